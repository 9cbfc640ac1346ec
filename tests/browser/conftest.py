"""Fixtures: the browser, and two clusters to look at, the laptop's simulated one and a real control
plane, each with its own console.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.chromium import OUTPUT, PATIENCE_MS, running_chromium
from tests.browser.sight import SIGHTS, Sight
from tests.kube.company import build_company
from tests.kube.control_plane import running_control_plane
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.servers import running

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_chromium(tmp_path_factory.mktemp("chromium")) as chromium:
        yield chromium


@pytest.fixture(scope="session")
def laptop() -> Iterator[Laptop]:
    """`fairlead up`, as a person starts it."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with running_laptop(OUTPUT / "laptop.log") as running_one:
        yield running_one


@pytest.fixture(scope="session")
def simulated(laptop: Laptop) -> Sight:
    return Sight("simulated", laptop.console.url, laptop.kubectl)


@pytest.fixture(scope="session")
def faults() -> Iterator[Sight]:
    """`fairlead up --scenario faults`: broken cards, silent nodes, jobs that fail."""
    yield from _laptop_of("faults")


@pytest.fixture(scope="session")
def empty() -> Iterator[Sight]:
    """`fairlead up --scenario empty`: a cluster without any objects of users."""
    yield from _laptop_of("empty")


def _laptop_of(scenario: str) -> Iterator[Sight]:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with running_laptop(OUTPUT / f"laptop-{scenario}.log", f"--scenario={scenario}") as running_one:
        yield Sight(scenario, running_one.console.url, running_one.kubectl)


@pytest.fixture(scope="session")
def real() -> Iterator[Sight]:
    """A company's cluster on a real API server, and `fairlead console --kubeconfig` beside it."""
    with running_control_plane() as cluster:
        build_company(cluster)
        OUTPUT.mkdir(parents=True, exist_ok=True)
        with running(
            "console", f"--kubeconfig={cluster.kubeconfig}", log=OUTPUT / "console.log"
        ) as server:
            yield Sight("real", server.url, cluster.admin)


@pytest.fixture(params=SIGHTS)
def sight(request: pytest.FixtureRequest) -> Sight:
    """Runs each test on the cluster of this run's part, or once per cluster."""
    found: Sight = request.getfixturevalue(request.param)
    return found
