"""A driver on the stub library, closed when the test is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.nvml.stub import StubState, build_stub

from fairlead.edge.nvml.driver import NvmlDriver


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stub(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stub(tmp_path_factory.mktemp("old-nvml"), is_old=True)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubState:
    """Two cards, all well."""
    monkeypatch.setenv("STUB_NVML", str(tmp_path))
    return StubState(tmp_path)


class Seconds:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def driver_on(state: StubState, tmp_path: Path, clock: Seconds) -> Iterator[Callable[[Path], NvmlDriver]]:
    """Makes a driver on this library."""
    made: list[NvmlDriver] = []

    def make(path: Path) -> NvmlDriver:
        made.append(NvmlDriver(str(path), tmp_path / "cgroup", tmp_path / "mps", tmp_path / "proc", clock))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def driver(driver_on: Callable[[Path], NvmlDriver], library: Path) -> NvmlDriver:
    return driver_on(library)
