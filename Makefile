# The two commands of the README are `make up` and `make test`; the rest is for people who change Fairlead.
# ARGS goes to `fairlead up`:  make up ARGS="--seed 7"

ifndef PYTHON
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.version_info < (3, 11) and sys.exit(1); print(sys.executable)' 2>/dev/null && break; done)
endif
ARGS ?=

.PHONY: up test check golden pictures lock clean python

up: python
	@$(PYTHON) tools/environment.py run --console
	@exec .venv/bin/fairlead up $(ARGS)

test: python
	@exec $(PYTHON) tools/run_tests.py

check: python
	@exec $(PYTHON) tools/run_tests.py --only check

# Rewrites what tests/golden compares with; read the diff before you commit it.
golden: python
	@$(PYTHON) tools/environment.py dev
	@FAIRLEAD_REWRITE_GOLDEN=1 .venv/bin/python -m pytest -q tests/golden

# Takes the pictures of README.md anew, from a laptop that runs; needs Chromium. Look at them before you commit them.
pictures: python
	@$(PYTHON) tools/environment.py dev --console
	@.venv/bin/python tools/flow_picture.py
	@.venv/bin/python tools/pictures.py

# Writes requirements/*.txt anew from pyproject.toml, every package with its hashes.
lock: python
	@$(PYTHON) tools/lock.py

clean:
	rm -rf .venv build test-output web/node_modules src/fairlead/web_dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

python:
	@test -n "$(PYTHON)" || { \
	echo "error: Fairlead needs Python 3.11 or newer; this machine has $$(python3 --version 2>&1 || true)" >&2; \
	echo "hint: install one (Debian: \`apt-get install python3 python3-venv\`), or name it: \`make up PYTHON=/path/to/python3.11\`" >&2; \
	exit 1; }
