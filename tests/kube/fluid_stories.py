"""Lives of data sets, played in a cluster with Fluid's real controllers and in a simulated one.

A story reaches states, by name. What each of them contains is in `fluid_ends.json`, written from
the real cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.kube.fluid import NODES
from tests.kube.fluid_places import CLAIM, NAME, DataPlace
from tests.kube.small_chart import write_small_chart

from fairlead.model.jobs.acceleration import Acceleration
from fairlead.wire.data.fluid import render_acceleration

Reach = Callable[[str], None]
_FINALIZER = "fluid-dataset-controller-finalizer"
_HELD = "example.com/held"
"""A finalizer of the test: the data set stays until it is removed."""


@dataclass(frozen=True)
class Story:
    """`is_alone`: it stops Fluid, so no other one runs meanwhile."""

    name: str
    steps: Callable[[DataPlace, Reach], None]
    is_alone: bool = False


def _accelerated(place: DataPlace, *words: str) -> None:
    printed = place.fairlead("dataset", "accelerate", CLAIM, "--wait=180", *words)
    assert f"data set {place.namespace}/{NAME}: done" in printed


def _made_by_hand(place: DataPlace) -> None:
    """What another program may make, without Fairlead's checks."""
    asked = Acceleration(place.namespace, CLAIM, NAME, workers=1, quota=1 << 30)
    place.create(*render_acceleration(asked))


def _install_release(place: DataPlace, driver: str) -> None:
    chart = write_small_chart(place.world.folder / f"chart-of-{place.namespace}")
    place.helm("install", NAME, str(chart), "--skip-crds", driver=driver)


def a_claim_is_accelerated(place: DataPlace, reach: Reach) -> None:
    place.claim(CLAIM)
    _accelerated(place, "--workers=2")
    reach("Bound")
    place.fairlead("dataset", "unaccelerate", NAME, "--wait=180")
    reach("gone")


def two_claims_of_a_namespace_are_accelerated(place: DataPlace, reach: Reach) -> None:
    """By as many workers as there are nodes: both have one on each node."""
    place.claim(CLAIM)
    place.claim("other")
    _accelerated(place)
    place.fairlead("dataset", "accelerate", "other", "--wait=180")
    reach("both Bound")


def an_exclusive_data_set_has_the_nodes(place: DataPlace, reach: Reach) -> None:
    """Fluid's default: workers of another data set of the namespace never run beside its own."""
    place.claim(CLAIM)
    place.claim("other")
    asked = Acceleration(place.namespace, "other", "theirs", workers=len(NODES), quota=1 << 30)
    data_set, runtime = render_acceleration(asked)
    data_set["spec"]["placement"] = "Exclusive"
    place.create(data_set, runtime)
    place.until("it is Bound", lambda: place.phase("datasets", "theirs") == "Bound")
    place.until("all its workers run", lambda: _running_workers(place) == len(NODES))
    refusal = place.fairlead("dataset", "accelerate", CLAIM, "--wait=0", status=1)
    assert "nodes: no node can run a worker" in refusal
    _made_by_hand(place)
    reach("the later one NotBound")


def _running_workers(place: DataPlace) -> int:
    pods = place.list("pods", "role=alluxio-worker")
    return sum((each.get("status") or {}).get("phase") == "Running" for each in pods)


def no_worker_can_run(place: DataPlace, reach: Reach) -> None:
    """The nodes are large enough, but others use their memory."""
    place.claim(CLAIM)
    for node in NODES:
        place.pod(f"filler-{node}", node=node, memory="300Gi")
    place.fairlead("dataset", "accelerate", CLAIM, "--workers=1", "--quota=300Gi", "--wait=0")
    reach("NotBound")
    printed = place.fairlead("dataset", "list", "-o", "wide")
    assert "NotReady (NotBound)" in printed
    assert "AlluxioRuntime 0/1" in printed


def a_foreign_claim_has_the_name(place: DataPlace, reach: Reach) -> None:
    place.claim(CLAIM)
    place.claim(NAME)
    refusal = place.fairlead("dataset", "accelerate", CLAIM, "--wait=0", status=1)
    assert f"name-free: taken: claim `{NAME}`" in refusal
    _made_by_hand(place)
    reach("Bound")
    assert "Bound, but its claim is not Fluid's" in place.fairlead("dataset", "list", "-o", "wide")
    place.fairlead("dataset", "unaccelerate", NAME, "--wait=180")
    reach("gone")


def a_foreign_release_has_the_name(place: DataPlace, reach: Reach) -> None:
    """Fluid's Helm sees it, takes it for its own, and removes it in the end."""
    place.claim(CLAIM)
    _install_release(place, "configmap")
    refusal = place.fairlead("dataset", "accelerate", CLAIM, "--wait=0", status=1)
    assert f"name-free: taken: Helm release `{NAME}`" in refusal
    _made_by_hand(place)
    reach("NotBound")
    place.fairlead("dataset", "unaccelerate", NAME, "--wait=180")
    reach("gone, the foreign release too")


def a_persons_release_has_the_name(place: DataPlace, reach: Reach) -> None:
    """Helm keeps it in a Secret, where Fluid's Helm does not look."""
    place.claim(CLAIM)
    _install_release(place, "secret")
    refusal = place.fairlead("dataset", "accelerate", CLAIM, "--wait=0", status=1)
    assert f"name-free: taken: Helm release `{NAME}`" in refusal
    _made_by_hand(place)
    reach("Bound")


def a_claim_of_one_node_is_accelerated(place: DataPlace, reach: Reach) -> None:
    place.claim(CLAIM, "ReadWriteOnce")
    place.pod("writer", claim=CLAIM, node=NODES[1])
    _accelerated(place)
    reach("Bound")


def workers_are_added_and_removed(place: DataPlace, reach: Reach) -> None:
    place.claim(CLAIM)
    _accelerated(place, "--workers=1")
    printed = place.fairlead("dataset", "scale", NAME, "--workers=2", "--wait=120")
    assert "1 -> 2 workers" in printed
    reach("two workers")
    place.fairlead("dataset", "scale", NAME, "--workers=1", "--wait=120")
    reach("one worker")
    # otherwise Fluid may have removed the data set before the command looks
    place.patch("datasets", NAME, {"metadata": {"finalizers": [_FINALIZER, _HELD]}})
    printed = place.fairlead("dataset", "unaccelerate", NAME, "--wait=0")
    assert f"more is to be done when Dataset {place.namespace}/{NAME} is gone" in printed
    place.until("Fluid has released it", lambda: _finalizers(place) == [_HELD])
    place.patch("datasets", NAME, {"metadata": {"finalizers": []}})
    place.until("it is gone", lambda: place.get("alluxioruntimes", NAME) is None)


def _finalizers(place: DataPlace) -> list[str]:
    return list(place.the("datasets", NAME)["metadata"]["finalizers"])


def a_data_set_is_preheated(place: DataPlace, reach: Reach) -> None:
    place.claim(CLAIM)
    _accelerated(place, "--workers=2")
    printed = place.fairlead("dataset", "preheat", NAME, "--wait=300")
    assert "is Complete" in printed
    reach("Complete")
    place.fairlead("dataset", "unaccelerate", NAME, "--wait=180")
    reach("gone")


def a_pod_mounts_the_data_set(place: DataPlace, reach: Reach) -> None:
    place.claim(CLAIM)
    _accelerated(place, "--workers=1")
    place.pod("reader", claim=NAME)
    refusal = place.fairlead("dataset", "unaccelerate", NAME, status=1)
    assert f"pods mount it: `{place.namespace}/reader`" in refusal
    place.delete("datasets", NAME)
    reach("blocked")
    place.delete("pods", "reader", grace=0)
    place.until("it is gone", lambda: place.get("alluxioruntimes", NAME) is None)
    reach("gone")


def fluid_is_down_and_comes_back(place: DataPlace, reach: Reach) -> None:
    place.claim(CLAIM)
    place.world.stop_controllers()
    place.fairlead("dataset", "accelerate", CLAIM, "--workers=1", "--wait=0")
    reach("made while Fluid was down")
    place.fairlead("dataset", "unaccelerate", NAME, "--wait=60")
    assert place.get("alluxioruntimes", NAME) is None, "no Dataset owns it yet: we remove it"
    place.fairlead("dataset", "accelerate", CLAIM, "--workers=1", "--wait=0")
    place.world.start_controllers()
    place.until("it is Bound", lambda: place.phase("datasets", NAME) == "Bound")
    reach("Bound")
    place.world.stop_controllers()
    refusal = place.fairlead("dataset", "unaccelerate", NAME, "--wait=2", status=1)
    assert _FINALIZER in refusal
    assert _FINALIZER in place.the("datasets", NAME)["metadata"]["finalizers"]
    assert "NotReady (Terminating)" in place.fairlead("dataset", "list")
    place.world.start_controllers()
    place.until("it is gone", lambda: place.get("alluxioruntimes", NAME) is None)
    reach("gone")


STORIES = {
    story.name: story
    for story in (
        Story("accelerated", a_claim_is_accelerated),
        Story("both", two_claims_of_a_namespace_are_accelerated),
        Story("exclusive", an_exclusive_data_set_has_the_nodes),
        Story("no-room", no_worker_can_run),
        Story("foreign-claim", a_foreign_claim_has_the_name),
        Story("foreign-release", a_foreign_release_has_the_name),
        Story("persons-release", a_persons_release_has_the_name),
        Story("one-node", a_claim_of_one_node_is_accelerated),
        Story("scaled", workers_are_added_and_removed),
        Story("preheated", a_data_set_is_preheated),
        Story("mounted", a_pod_mounts_the_data_set),
        Story("down", fluid_is_down_and_comes_back, is_alone=True),
    )
}
