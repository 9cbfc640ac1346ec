"""The groups of tests: what runs in each, and what must be there first.

The order is that of the run: what is quick and breaks most often comes first. `check_groups` need
no real component; `real_groups` need the programs and packages that they name; `on_demand_groups`
are run by name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from debian import (
    BUSYBOX,
    C_COMPILER,
    C_HEADERS,
    CHINESE_FONTS,
    CHROMIUM,
    CONTAINERD,
    CROSS_PACKAGES,
    DATABASES,
    EMULATOR,
    FAKE_TIME,
    FISH,
    GROFF,
    IPSET,
    IPTABLES,
    MUSL,
    NFTABLES,
    NODE_PACKAGES,
    PROMETHEUS,
    RUNC,
    ZSH,
    Package,
)
from environment import PYTHON
from kube_programs import FLUID_CONTROLLERS, KUBE_ROUTER, MONITORING, OTHER_KUBERNETES, Family
from progress import cache_home
from toolchains import REPOSITORY

JUNIT = REPOSITORY / "build" / "junit"
TESTS = REPOSITORY / "tests"
REAL_FOLDERS = (
    "kube",
    "kubelet",
    "cdi",
    "nodes",
    "nvml",
    "native",
    "contracts",
    "documents",
    "browser",
    "image",
    "prometheus",
    "shells",
    "site",
    "stores",
)
STORMS = "kube/test_share_storms.py"
QUOTA = "tests/kube/test_quota_*.py"
DISCOVERED = "tests/kube/test_discovered.py"
COMPATIBILITY = "tests/kube/test_compatibility.py"
POLICIES = "tests/kube/test_network_policies.py"
FLUID = "tests/kube/test_fluid*.py"
_IN_BOTH_WORLDS = (
    *("same_end", "training_same_end", "operators", "kubectl_twins", "kubectl_kinds"),
    *("kubectl_access", "sharing_words", "serve", "startable", "idle_hours", "default_over_time"),
    *("boards_over_time", "laptop_time", "kubectl_sim", "kubectl_exec"),
)
BOTH_WORLDS = (*(f"tests/kube/test_{name}.py" for name in _IN_BOTH_WORLDS), "tests/kube/numbers")
_OF_INSTALLATIONS = (
    *("chart", "chart_values", "installation", "removal", "rolling_upgrade"),
    *("deploy", "deploy_admission", "people", "sign_in", "node_agent_rights"),
)
INSTALLATIONS = tuple(f"tests/kube/test_{name}.py" for name in _OF_INSTALLATIONS)
"""With these, thirds of tests/kube by time, so that no group takes much longer than the others."""
OWN_GROUP_FOLDERS = ("apps", "cli", "console", "docs", "edge", "golden", "rules", "run", "sim")
JOBS = "tests/cli/jobs"
WRITES = (
    *("tests/apps/test_console_*writes.py", "tests/apps/test_console_dataset*.py"),
    *("tests/apps/test_console_submit.py", "tests/apps/test_console_c*.py"),
)
PAGES = ("tests/apps/test_console_*.py", "tests/apps/test_s*_requests.py")
"""Tests of the console's server: two groups, those of `WRITES` and the others of `PAGES`."""
_NOT_LONG = ("-m", "not long")
_LONG_FOLDERS = (
    "tests/apps",
    "tests/cli",
    "tests/edge",
    "tests/properties",
    "tests/rules",
    "tests/run",
    "tests/scenarios",
    "tests/sim",
)
MYPY = ("-m", "mypy", f"--cache-dir={cache_home() / 'mypy'}")
"""What it knows is kept between clones: it looks at a file's content."""
PYTEST = (str(PYTHON), "-m", "pytest", "-v", "--tb=short", "-rfE", "-o", "faulthandler_timeout=300")

SILENCE_SECONDS = 300.0
"""A test or a tool that prints nothing for this time hangs, also on a busy machine."""
REAL_SILENCE_SECONDS = 1200.0
"""Silence allowed to tests of real components.

Some wait up to 15 minutes for what a machine has once: the node, an operator.
"""


@dataclass(frozen=True)
class Step:
    """One program of a group.

    `junit` is the report that it writes; without one the whole step counts as one case.
    """

    title: str
    argv: tuple[str, ...]
    folder: Path = REPOSITORY
    junit: Path | None = None
    needs_node: bool = False


@dataclass(frozen=True)
class Group:
    """Steps under one name; each is ended when it prints nothing for `silence_seconds`.

    `missing`: why the group cannot run here (it is then skipped). `broken`: why it could not start
    (it failed). `more_programs`: beside the Kubernetes programs that all `needs_kube` groups need.
    `needs_image`: the Debian packages of the image are fetched first. `is_ordered`: each case finds
    the cluster as the case before it left it, so that none runs without the rest of its module.
    `is_heavy`: its programs need the whole machine, so it runs after all others. `is_patient`: it
    computes, and does not depend on how fast; it runs at low priority beside the last of the others
    and beside the heavy one, which leave much time idle.
    """

    name: str
    what: str
    steps: tuple[Step, ...]
    silence_seconds: float = SILENCE_SECONDS
    packages: tuple[Package, ...] = ()
    needs_kube: bool = False
    needs_console: bool = False
    missing: str = ""
    broken: str = ""
    more_programs: tuple[Family, ...] = ()
    needs_image: bool = False
    is_ordered: bool = False
    is_heavy: bool = False
    is_patient: bool = False


def check_groups() -> tuple[Group, ...]:
    """All that needs no real component."""
    return (
        Group("lint", "ruff, and rules of the house that it does not know", _lint_steps()),
        Group(
            "types",
            "mypy, strict",
            (_python("mypy fairlead", *MYPY), _python("mypy tools", *MYPY, *_tool_files())),
        ),
        Group("arrows", "import-linter", (_script("import contracts", "lint-imports"),)),
        Group(
            "unit",
            "Python unit tests",
            (_pytest("unit", *_NOT_LONG, *(f"tests/{folder}" for folder in _unit_folders())),),
        ),
        Group("rules", "the pure rules", (_pytest("rules", *_NOT_LONG, "tests/rules"),)),
        Group(
            "cli",
            "the command line",
            (_pytest("cli", *_NOT_LONG, f"--ignore={JOBS}", "tests/cli"),),
        ),
        Group("jobs", "the command line about jobs", (_pytest("jobs", *_NOT_LONG, JOBS),)),
        Group(
            "run",
            "the laptop, its processes, its kept world: from start to end",
            (_pytest("run", *_NOT_LONG, "tests/run"),),
        ),
        Group(
            "apps", "Fairlead's servers", (_pytest("apps", *_NOT_LONG, *_but(PAGES), "tests/apps"),)
        ),
        Group(
            "boards",
            "what the console's pages show, without a server",
            (_pytest("boards", *_NOT_LONG, "tests/console"),),
        ),
        Group(
            "pages",
            "the console's server; strange and slow requests to all",
            (_pytest("pages", *_NOT_LONG, *_matching(*PAGES, but=WRITES)),),
        ),
        Group(
            "writes",
            "what users and administrators change by the console's server",
            (_pytest("writes", *_NOT_LONG, *_matching(*WRITES)),),
        ),
        Group(
            "edge",
            "conversations with servers and kubelets; the store in SQLite",
            (
                _pytest("edge", *_NOT_LONG, "tests/edge"),
                _pytest("sqlite", *_NOT_LONG, "-k", "sqlite", "tests/stores"),
            ),
        ),
        Group(
            "sim",
            "the simulated world: lives, properties, determinism",
            (_pytest("sim", *_NOT_LONG, "tests/sim"),),
        ),
        Group("examples", "worked examples in docstrings", (_doctests(),)),
        _folder_group("docs", "documents are fresh"),
        _folder_group("golden", "whole pages and tables"),
        Group(
            "console", "TypeScript: types, lint, unit tests", _console_steps(), needs_console=True
        ),
    )


def real_groups() -> tuple[Group, ...]:
    """All that runs against real programs, and what `make test` has no time for.

    The short ones come last, and the heavy one after all; `documents` mostly waits, so it runs
    beside those that compute. The patient ones run beside the heavy one.
    """
    return (
        _cluster_group(
            "kube",
            "a real control plane and Prometheus",
            "tests/kube",
            f"--ignore=tests/{STORMS}",
            *_but((QUOTA, DISCOVERED, COMPATIBILITY, POLICIES, FLUID)),
            *_but((*BOTH_WORLDS, *INSTALLATIONS)),
        ),
        _cluster_group(
            "installed", "installation, chart, users and removal on a real one", *INSTALLATIONS
        ),
        _cluster_group("worlds", "the simulated cluster beside the real one", *BOTH_WORLDS),
        replace(
            _cluster_group(
                "fluid", "data sets: Fluid's real controllers and simulated ones", *_matching(FLUID)
            ),
            more_programs=(FLUID_CONTROLLERS,),
            packages=(PROMETHEUS, FAKE_TIME, CHROMIUM, CHINESE_FONTS),
        ),
        _with_image(
            _node_group(
                "kubelet",
                "containers that really run, on a real node",
                (PROMETHEUS, C_COMPILER, C_HEADERS, *CROSS_PACKAGES),
            )
        ),
        _patient(
            Group(
                "long",
                "more seeds, kills and hours of what `make test` tries",
                (_pytest("long", "-m", "long", *_LONG_FOLDERS),),
            )
        ),
        _folder_group(
            "browser", "the console in Chromium", (CHROMIUM, CHINESE_FONTS), needs_real=True
        ),
        _cluster_group("quota", "elastic quota on a real control plane", *_matching(QUOTA)),
        _cluster_group("documents", "the lines of the documents, on both", "tests/documents"),
        _cluster_group("contracts", "one suite on two API servers", "tests/contracts"),
        _cluster_group(
            "storms",
            "shared GPUs while everything falls over, on the real programs",
            f"tests/{STORMS}",
        ),
        _node_group(
            "cdi",
            "devices by CDI, on a real node whose runtime does it",
            (C_COMPILER, C_HEADERS),
        ),
        replace(
            _with_image(
                _node_group(
                    "nodes",
                    "Fairlead from its image on three real nodes: install, use, unplug, uninstall",
                    (NFTABLES, CHROMIUM, C_COMPILER, C_HEADERS, *CROSS_PACKAGES),
                )
            ),
            is_ordered=True,
            is_heavy=True,
        ),
        _patient(
            _with_image(
                _folder_group(
                    "image",
                    "the image: what is in it, and that it runs in containerd; wheel and sdist",
                    (CONTAINERD, RUNC, C_COMPILER, C_HEADERS, *CROSS_PACKAGES, EMULATOR),
                )
            )
        ),
        _folder_group(
            "prometheus",
            "rules and alerts: what fires, asked of Prometheus's promtool",
            packages=(PROMETHEUS,),
        ),
        Group(
            "stores",
            "the store of the console in PostgreSQL and MariaDB",
            (_pytest("stores", "-k", "not sqlite", "tests/stores"),),
            packages=DATABASES,
        ),
        _patient(
            _folder_group(
                "native",
                "the memory guard in C, on a stub of NVIDIA's driver",
                packages=(C_COMPILER, C_HEADERS, *CROSS_PACKAGES, MUSL, EMULATOR),
            )
        ),
        _patient(
            _folder_group(
                "nvml",
                "NVIDIA's driver, played by a library in C",
                packages=(C_COMPILER, C_HEADERS),
            )
        ),
        _patient(
            _folder_group(
                "shells",
                "completion in bash, zsh and fish; the manual page",
                packages=(ZSH, FISH, GROFF),
            )
        ),
        _patient(
            _folder_group(
                "site",
                "the documentation site: built, each link followed, read",
                packages=(CHROMIUM,),
            )
        ),
    )


def on_demand_groups() -> tuple[Group, ...]:
    """Run when they are named, and in no run of all: their programs take long to build."""
    found = _cluster_group(
        "discovery",
        "what the Prometheus operator and Prometheus itself find in a cluster",
        DISCOVERED,
    )
    played = _cluster_group(
        "compatibility",
        f"install, share, quota and uninstall on Kubernetes {' and '.join(OTHER_KUBERNETES)}",
        COMPATIBILITY,
    )
    enforced = _cluster_group(
        "policies", "NetworkPolicies, enforced by kube-router in network namespaces", POLICIES
    )
    return (
        replace(enforced, more_programs=(KUBE_ROUTER,), packages=(IPTABLES, IPSET, BUSYBOX)),
        replace(found, more_programs=MONITORING),
        replace(played, more_programs=tuple(OTHER_KUBERNETES.values())),
    )


def _pytest(name: str, *arguments: str) -> Step:
    report = JUNIT / f"{name}.xml"
    return Step("pytest", (*PYTEST, f"--junit-xml={report}", *arguments), junit=report)


def _folder_group(
    name: str, what: str, packages: tuple[Package, ...] = (), *, needs_real: bool = False
) -> Group:
    missing = "" if any((TESTS / name).rglob("test_*.py")) else f"there is no test in tests/{name}"
    silence = REAL_SILENCE_SECONDS if needs_real else SILENCE_SECONDS
    return Group(
        name,
        what,
        (_pytest(name, f"tests/{name}"),),
        silence,
        packages,
        needs_real,
        needs_real,
        missing,
    )


def _cluster_group(name: str, what: str, *arguments: str) -> Group:
    steps = (_pytest(name, *arguments),)
    return Group(
        name,
        what,
        steps,
        REAL_SILENCE_SECONDS,
        (PROMETHEUS, FAKE_TIME),
        needs_kube=True,
        needs_console=True,
    )


def _node_group(name: str, what: str, packages: tuple[Package, ...] = ()) -> Group:
    """One at a time has the node, so they stand apart: who waits
    for it keeps others from running.
    """
    return Group(
        name,
        what,
        (_pytest(name, f"tests/{name}"),),
        silence_seconds=REAL_SILENCE_SECONDS,
        packages=(*NODE_PACKAGES, FAKE_TIME, *packages),
        needs_kube=True,
        needs_console=True,
        missing="" if os.geteuid() == 0 else "a kubelet runs containers only for root",
    )


def _with_image(group: Group) -> Group:
    return replace(group, needs_image=True)


def _patient(group: Group) -> Group:
    return replace(group, is_patient=True)


def _matching(*patterns: str, but: Sequence[str] = ()) -> list[str]:
    found = {path for pattern in patterns for path in REPOSITORY.glob(pattern)}
    found -= {path for pattern in but for path in REPOSITORY.glob(pattern)}
    return sorted(str(path.relative_to(REPOSITORY)) for path in found)


def _but(patterns: Sequence[str]) -> list[str]:
    return [f"--ignore-glob={pattern}" for pattern in patterns]


def _unit_folders() -> list[str]:
    apart = {*REAL_FOLDERS, *OWN_GROUP_FOLDERS}
    return sorted(
        folder.name
        for folder in TESTS.iterdir()
        if folder.name not in apart and any(folder.rglob("test_*.py"))
    )


def _doctests() -> Step:
    report = JUNIT / "examples.xml"
    return Step(
        "doctest",
        (
            *PYTEST,
            *("-p", "tests.worked_examples", "--doctest-modules", f"--junit-xml={report}"),
            *("src/fairlead", "src/fairlead_sim"),
        ),
        junit=report,
    )


def _console_steps() -> tuple[Step, ...]:
    web, report = REPOSITORY / "web", JUNIT / "console.xml"
    unit = (
        "npx",
        "--no-install",
        "vitest",
        "run",
        "--reporter=default",
        "--reporter=junit",
        f"--outputFile.junit={report}",
    )
    return (
        Step("npm run check", ("npm", "run", "--silent", "check"), web, needs_node=True),
        Step("vitest", unit, web, report, needs_node=True),
    )


def _lint_steps() -> tuple[Step, ...]:
    house = str(Path(__file__).with_name("house_lint.py"))
    return (
        _tool("ruff check", "check", "."),
        _tool("ruff format", "format", "--check", "."),
        _python("house lint", house),
        _python("plain English", str(Path(__file__).with_name("plain_english.py"))),
    )


def _tool_files() -> list[str]:
    return [
        str(path.relative_to(REPOSITORY)) for path in sorted(Path(__file__).parent.rglob("*.py"))
    ]


def _tool(title: str, *arguments: str) -> Step:
    return Step(title, (str(PYTHON.parent / "ruff"), *arguments))


def _script(title: str, name: str) -> Step:
    return Step(title, (str(PYTHON.parent / name),))


def _python(title: str, *arguments: str) -> Step:
    return Step(title, (str(PYTHON), *arguments))
