"""Do training jobs end in the same state with the simulated operators and with the real ones?

The real cluster runs all of them at once, each in a namespace of its own. Where the two differ, the
real one is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.operators import running_operators
from tests.kube.places import Object, Place, real_place, simulated_place
from tests.kube.training_cases import CASES, NAME, plural_of
from tests.kube.training_end import training_end
from tests.kube.workload_objects import node
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 1)

NODES = [node("node-1", "plain"), node("node-2", "plain")]
SETTLED_SECONDS = 40.0
"""How long a simulated world runs before its end is read."""
REACHED_SECONDS = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as started, running_operators(started):
        started.admin.create(NODES)
        wait_until(
            "the nodes are Ready",
            lambda: (
                started.admin.run("get", "nodes", "--no-headers").count(" Ready ") == len(NODES)
            ),
        )
        yield started


@pytest.fixture(scope="module")
def real_lives(
    cluster: ControlPlane, request: pytest.FixtureRequest
) -> Iterator[dict[str, Future[Place]]]:
    """The chosen lives, started together."""
    own = (
        item
        for item in request.session.items
        if item.path == request.path and getattr(item, "callspec", None)
    )
    with ThreadPoolExecutor(len(CASES)) as pool:
        yield {
            name: pool.submit(_live, cluster.kubeconfig, name)
            for name in {item.callspec.params["case"] for item in own}
        }


def _live(kubeconfig: Path, case: str) -> Place:
    place = real_place(kubeconfig, case.replace("_", "-"))
    CASES[case](place)
    return place


def _simulated_end(folder: Path, case: str) -> Object:
    with simulated_place(folder, case.replace("_", "-"), NODES) as place:
        CASES[case](place)
        place.rest(SETTLED_SECONDS)
        return training_end(place, plural_of(case), NAME)


@pytest.mark.parametrize("case", CASES)
def test_a_training_job_ends_in_the_same_state(
    case: str, real_lives: dict[str, Future[Place]], tmp_path: Path
) -> None:
    simulated = _simulated_end(tmp_path, case)
    place = real_lives[case].result(timeout=300)
    with suppress(TimeoutError):  # what differs is shown below
        wait_until(
            case,
            lambda: training_end(place, plural_of(case), NAME) == simulated,
            REACHED_SECONDS,
            0.5,
        )
    real = training_end(place, plural_of(case), NAME)
    for part, value in simulated.items():
        assert value == real[part], f"{part}: left: the simulated world, right: the real one"
