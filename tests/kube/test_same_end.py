"""Do the same workloads end in the same state on the simulated cluster and on a real control plane?

The real cluster runs all of them at once, each in a namespace of its own; those that change nodes
begin when the others are over. A simulated world's end is read first. The real cluster must then
reach and keep it: where they differ, the real one is right.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.kube import workloads_apps, workloads_batch, workloads_nodes, workloads_objects
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.end_state import end_state
from tests.kube.places import Place, real_place, simulated_place
from tests.kube.workload_cases import CASES, Case
from tests.turns import in_turn
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(4, 3)

__all__ = ["workloads_apps", "workloads_batch", "workloads_nodes", "workloads_objects"]

AT_ONCE = 12
SETTLED_SECONDS = 45.0
"""How long a simulated world runs before its end is read."""
KEPT_SECONDS = 1.5
REACHED_SECONDS = 25.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as control_plane:
        control_plane.admin.create(workloads_nodes.NODES)
        wait_until(
            "all nodes are Ready",
            lambda: all(_is_ready(node) for node in control_plane.admin.get("nodes")),
        )
        yield control_plane


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions") or ()
    taints = node["spec"].get("taints") or ()
    is_ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return is_ready and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)


class RealEnds:
    """The chosen workloads on the real cluster. Those that change nodes begin only when a test asks
    for one of them.
    """

    def __init__(self, kubeconfig: Path, cases: list[Case]) -> None:
        self._kubeconfig = kubeconfig
        self._cases = cases
        self._places: dict[str, Future[Place]] = {}
        self.reached: dict[str, dict[str, Any]] = {}
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._begin(changes_nodes=False)

    def _begin(self, *, changes_nodes: bool) -> None:
        chosen = [case for case in self._cases if case.changes_nodes is changes_nodes]
        self._places |= {
            case.name: self._pool.submit(_live, self._kubeconfig, case) for case in chosen
        }

    def place_of(self, case: Case) -> Place:
        """Where the workload is at its end; raises its exception if it failed."""
        if case.name not in self._places:
            wait(self._places.values())
            self._begin(changes_nodes=True)
        return self._places[case.name].result(timeout=300)


@pytest.fixture(scope="module")
def real_ends(cluster: ControlPlane, request: pytest.FixtureRequest) -> RealEnds:
    own = [
        item
        for item in request.session.items
        if item.path == request.path and getattr(item, "callspec", None)
    ]
    chosen = {item.callspec.params.get("case") for item in own}
    return RealEnds(cluster.kubeconfig, [case for name, case in CASES.items() if name in chosen])


def _live(kubeconfig: Path, case: Case) -> Place:
    place = real_place(kubeconfig, case.namespace)
    case.steps(place)
    return place


def _simulated_end(folder: Path, case: Case) -> dict[str, Any]:
    with simulated_place(folder, case.namespace, workloads_nodes.NODES) as place:
        case.steps(place)
        place.rest(SETTLED_SECONDS)
        return end_state(place)


@pytest.mark.parametrize(
    "case", in_turn(sorted(name for name, case in CASES.items() if not case.changes_nodes), 2)
)
def test_the_same_workload_ends_in_the_same_state(
    case: str, real_ends: RealEnds, tmp_path: Path
) -> None:
    _reach(CASES[case], real_ends, tmp_path)


def test_their_ends_are_kept(real_ends: RealEnds) -> None:
    _keep(real_ends)


@pytest.mark.parametrize(
    "case", in_turn(sorted(name for name, case in CASES.items() if case.changes_nodes), 2)
)
def test_the_same_workload_that_changes_nodes_ends_in_the_same_state(
    case: str, real_ends: RealEnds, tmp_path: Path
) -> None:
    _reach(CASES[case], real_ends, tmp_path)


def test_the_ends_of_those_that_change_nodes_are_kept(real_ends: RealEnds) -> None:
    _keep(real_ends)


def _reach(case: Case, real_ends: RealEnds, folder: Path) -> None:
    simulated = _simulated_end(folder, case)
    place = real_ends.place_of(case)
    with suppress(TimeoutError):  # what differs is shown below
        wait_until(case.name, lambda: end_state(place) == simulated, REACHED_SECONDS, 0.5)
    assert simulated == end_state(place), "left: the simulated world, right: the real one"
    real_ends.reached[case.name] = simulated


def _keep(real_ends: RealEnds) -> None:
    """Check that the end state still holds a while later; all workloads wait together."""
    ends, real_ends.reached = real_ends.reached, {}
    limit = time.monotonic() + REACHED_SECONDS
    while True:
        time.sleep(KEPT_SECONDS)
        left = {
            name for name, end in ends.items() if end_state(real_ends.place_of(CASES[name])) != end
        }
        if not left or time.monotonic() > limit:
            break
    assert not left, "these ends were reached and left again"
