"""Fixtures that several test folders share: the real cluster, which starts on first use, once per
session.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.turns import VARIABLE, chosen_turn, is_in_turn, is_module_in_turn

LONG_TURNS = 5
IS_DIVIDED = VARIABLE in os.environ
"""Whether the part of this run was chosen before pytest began, as tools/run_tests.py does."""

# A busy machine is not a failure. Developers try new examples with every run; CI repeats the same
# ones, so that a commit is judged by itself.
settings.register_profile("fairlead", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("fairlead")

# Most of what tests of real components cost is programs in Go, which spend a fifth of their time
# collecting garbage at Go's default of 100. They take up to 300 MiB more for it.
os.environ.setdefault("GOGC", "400")
os.environ.setdefault("GOMEMLIMIT", "600MiB")


def pytest_configure(config: pytest.Config) -> None:
    """A killed program leaves its temporary files: all of a session are in one folder, which is
    removed at its end. pytest's own folders stay where they are, because they are looked at after a
    failure, and because the path of a socket has at most 107 characters.
    """
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    folder = tempfile.mkdtemp(prefix="fl-")
    Path(folder).chmod(0o1777)  # as /tmp: servers of databases run as users of their own
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = tempfile.tempdir = folder

    def end() -> None:
        tempfile.tempdir = None
        os.environ.pop("TMPDIR")
        if before is not None:
            os.environ["TMPDIR"] = before
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(end)
    if IS_DIVIDED and config.get_verbosity() > 0:
        config.pluginmanager.register(CollectedModules(config))


class CollectedModules:
    """Prints a dot for each collected module: tools/run_tests.py ends a group that is silent for
    five minutes, and the first collection on a busy machine takes longer.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.nodeid.endswith(".py"):
            self._config.get_terminal_writer().write(".", flush=True)


def pytest_report_header() -> str:
    return f"part of the divided tests: {VARIABLE}={chosen_turn()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line that tools/run_group.py reads: what the run cost a machine, whatever else it does.

    The programs that the tests started and ended are in it, also those that were killed.
    """
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own, others = (usage.ru_utime + usage.ru_stime for usage in usages)
    terminalreporter.write_line(
        f"CPU: {own + others:.0f} s (tests {own:.0f} s, programs {others:.0f} s)"
    )


def pytest_collection_finish() -> None:
    """Test modules and cases live until the end, so the garbage collector need not visit them every
    few hundred new objects (which took a tenth of the time of `sim`).
    """
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A run tries a fifth of the cases that are marked `long`, and the modules of its part."""
    is_long = config.option.markexpr == "long"
    left_out = [
        item
        for item in items
        if (is_long and "long" in item.keywords and not is_in_turn(item.nodeid, LONG_TURNS))
        or (IS_DIVIDED and not all(map(_is_of_run, item.iter_markers("turns"))))
    ]
    config.hook.pytest_deselected(items=left_out)
    without = set(left_out)
    items[:] = [item for item in items if item not in without]


def _is_of_run(mark: pytest.Mark) -> bool:
    return is_module_in_turn(*mark.args)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A real control plane with KWOK as its nodes; see tests/kube/control_plane.py."""
    with running_control_plane() as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """A program logs to its own stderr. Removes the log settings that a command of this test made
    in this process.
    """
    logger = logging.getLogger("fairlead")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = before
