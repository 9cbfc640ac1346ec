# The commands of the README are `make up`, `make test` and `make test-all`; the rest is for people who change Fairlead.
# `make help` lists the targets by what stands behind their `##`; `make` alone is `make help`.
# ARGS goes to `fairlead up`:  make up ARGS="--seed 7"

ifndef PYTHON
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.version_info < (3, 11) and sys.exit(1); print(sys.executable)' 2>/dev/null && break; done)
endif
ARGS ?=

.PHONY: help up test test-all gpu-check image image-lock dist chart bundle site release release-notes golden pictures lock clean python

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

# Ctrl-C is how a person ends it, and no error of make. The trap keeps the shell until the laptop has ended.
up: python ## start the laptop: a simulated GPU cluster, its console and exporters (ARGS="…" goes to `fairlead up`)
	@trap : INT; { $(PYTHON) tools/environment.py run --console && .venv/bin/fairlead up $(ARGS); } || \
	{ status=$$?; [ $$status -eq 130 ] || exit $$status; echo stopped >&2; }

test: python ## run lint, types and the tests that need no real component
	@exec $(PYTHON) tools/run_tests.py --only check

test-all: python ## run all tests, those of `make test` first
	@exec $(PYTHON) tools/run_tests.py

# Needs no other package than those of requirements/run.txt, which may lie in wheels/ where there is no network.
gpu-check: python ## check exporter, agent, load generator and memory guard on this machine's NVIDIA GPUs (≤ 8 minutes)
	@exec $(PYTHON) tools/gpu_check.py $(ARGS)

image: python ## build the container image, for amd64 and arm64, into build/image (needs Debian's apt, no root)
	@exec $(PYTHON) tools/build_image.py $(ARGS)

image-lock: python ## take the newest versions of the image's Debian packages into tools/image/debian.lock.json
	@exec $(PYTHON) tools/image_lock.py

dist: python ## build the wheel and the sdist, with the console's pages, into build/dist
	@exec $(PYTHON) tools/distributions.py

chart: python ## pack the Helm chart into build/dist/chart
	@$(PYTHON) tools/environment.py dev
	@.venv/bin/python tools/helm_chart.py --package build/dist/chart

# Needs the network for wheels of every supported Python, once.
bundle: python ## pack image, chart, wheels and objects for a cluster without internet into build/bundle
	@exec $(PYTHON) tools/bundle.py

# Changes nothing here: the version and the changelog are committed before.
release: python ## make all files of a version, from one commit, into build/release (VERSION=x.y.z)
	@exec $(PYTHON) tools/release.py "$(VERSION)"

release-notes: python ## write the changelog's section of a version from newsfragments/ (VERSION=x.y.z)
	@exec $(PYTHON) tools/release.py --notes "$(VERSION)"

# Needs the network for the packages of requirements/site.txt, once.
site: python ## build the documents as a site into build/site (open build/site/index.html)
	@exec $(PYTHON) tools/build_site.py

# Rewrites what tests/golden compares with; read the diff before you commit it.
golden: python ## rewrite the files that tests/golden compares with
	@$(PYTHON) tools/environment.py dev
	@FAIRLEAD_REWRITE_GOLDEN=1 .venv/bin/python -m pytest -q tests/golden

# Takes the pictures of documents anew, from a laptop that runs; needs Chromium. Look at them before you commit them.
pictures: python ## take the pictures of documents anew (needs Chromium)
	@$(PYTHON) tools/environment.py dev --console
	@.venv/bin/python tools/flow_picture.py
	@.venv/bin/python tools/pictures.py

# Writes requirements/*.txt anew from pyproject.toml, every package with its hashes.
lock: python ## write requirements/*.txt anew from pyproject.toml
	@$(PYTHON) tools/lock.py

clean: ## delete everything that was built here
	rm -rf .venv build test-output web/node_modules src/fairlead/web_dist src/fairlead/guard_dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

python:
	@test -n "$(PYTHON)" || { \
	echo "error: Fairlead needs Python 3.11 or newer; this machine has $$(python3 --version 2>&1 || true)" >&2; \
	echo "hint: install one (Debian: \`apt-get install python3 python3-venv\`), or name it: \`make up PYTHON=/path/to/python3.11\`" >&2; \
	exit 1; }
