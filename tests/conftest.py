"""Fixtures that several test folders share: the real cluster.
Started on first use, once a session.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.turns import VARIABLE, chosen_turn, is_in_turn

LONG_TURNS = 3

# A busy machine is not a failure. People explore new examples with every run; CI repeats the same
# ones: a commit is judged by itself.
settings.register_profile("fairlead", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("fairlead")


def pytest_report_header() -> str:
    return f"part of the divided tests: {VARIABLE}={chosen_turn()}"


def pytest_collection_finish() -> None:
    """Modules and cases live to the end: the collector need not walk over them for every few
    hundred new objects (a tenth of `sim`).
    """
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A run tries a third of what is marked `long`."""
    if config.option.markexpr != "long":
        return
    kept = [
        item for item in items if "long" not in item.keywords or is_in_turn(item.nodeid, LONG_TURNS)
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A real control plane with KWOK as its nodes; see tests/kube/control_plane.py."""
    with running_control_plane() as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """A program writes its log to its own stderr; what a test ran in this process leaves nothing of
    that behind.
    """
    logger = logging.getLogger("fairlead")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = before
