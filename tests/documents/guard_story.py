"""Document 001 under the memory guard: one story, played in each place that has containers.

Two programs of 3 GiB share a card of 16130 MiB by 4 units each and run on, undisturbed; a third
takes 6 GiB of its 4 units and is in CrashLoopBackOff. All words and numbers are the document's, or
the specification's (docs/spec/gpu-sharing.md#simulated-programs). A place brings a cluster with one
node, which has one whole Tesla V100-SXM2-16GB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import yaml

Object = dict[str, Any]
EXAMPLES: Final = Path(__file__).parents[2] / "examples"
SHARED: Final = EXAMPLES / "app-3g-v1-shared.yaml"
GREEDY: Final = EXAMPLES / "app-6g-v1.yaml"
TENANTS: Final = ("app-3g-v1-0", "app-3g-v1-1")
THIRD: Final = "app-6g-v1-0"
LINE: Final = (
    "CUDA error at cgpu_cuda_malloc.cu:119 code=2(cudaErrorMemoryAllocation) "
    '"cudaMalloc( (void**)&dev_c, malloc_size)"'
)
STATUS: Final = 1
MEMORY: Final = "3193MiB /  4301MiB"
USED_MIB: Final = 3193
ISOLATION: Final = "guard(cooperative)"
BACK_OFFS: Final = ("10s", "20s", "40s", "1m20s", "2m40s", "5m0s")
"""How a kubelet spells its delays before the second and each later restart; the first is sooner."""


class Place(Protocol):
    @property
    def back_offs(self) -> int:
        """How many of `BACK_OFFS` the place has the time to wait for; at least 1."""
        ...

    def share(self) -> None:
        """Give the node the label cgpu=true."""
        ...

    def apply(self, manifest: Object) -> None:
        """Create a workload in the namespace default; the place chooses its image."""
        ...

    def pod(self, name: str) -> Object:
        """A pod of that namespace as the API server has it; empty while there is none."""
        ...

    def log(self, pod: str, *, previous: bool = False) -> Sequence[str]:
        """The lines of `kubectl logs`."""
        ...

    def memory(self, pod: str) -> str:
        """What a query of the GPU in the container prints (`kubectl exec`), without blanks around
        it.
        """
        ...

    def used_mib(self, pod: str) -> int:
        """What the programs of the pod take of the card, as the driver counts it."""
        ...

    def denied(self, pod: str) -> int:
        """The counter of refused allocations in the metrics of the node's exporter; -1 where it has
        none of the pod.
        """
        ...

    def inspected(self, *flags: str) -> str:
        """The output of `kubectl inspect cgpu`."""
        ...

    def wait(self, what: str, is_so: Callable[[], object]) -> None:
        """Let time pass until it is so; looks at least every two seconds."""
        ...


def play(place: Place) -> None:
    """The whole story; fails with an AssertionError, or the place's own error of a wait."""
    two_share(place)
    a_third_is_refused(place)


def two_share(place: Place) -> None:
    place.share()
    place.wait("the card is shared", lambda: "0/15 (0%)" in place.inspected())
    assert ISOLATION in place.inspected("-o", "wide")
    place.apply(_manifest(SHARED))
    for name in TENANTS:
        place.wait(f"{name} runs", lambda name=name: _is_ready(place, name))
        place.wait(f"{name} takes its memory", lambda name=name: place.used_mib(name) == USED_MIB)
        assert place.memory(name) == MEMORY
    shown = place.inspected("-d").splitlines()
    rows = [line.split() for line in shown]
    assert [row for row in rows if row[:1] in ([TENANTS[0]], [TENANTS[1]])] == [
        [name, "default", "4"] for name in TENANTS
    ]
    assert "Allocated/Total GPU Memory In Cluster:  8/15 (53%)" in shown


def a_third_is_refused(place: Place) -> None:
    """The third crashes again and again; the series of the others are flat meanwhile."""
    place.apply(_manifest(GREEDY))
    delays: dict[str, int] = {}
    series: set[tuple[int, ...]] = set()

    def has_waited() -> bool:
        waiting = _container(place, THIRD).get("state", {}).get("waiting", {})
        if waiting.get("reason") == "CrashLoopBackOff":
            delay = waiting["message"].removeprefix("back-off ").split()[0]
            delays.setdefault(delay, _container(place, THIRD)["restartCount"])
        series.add(tuple(place.used_mib(name) for name in TENANTS))
        return len(delays) == place.back_offs

    place.wait("the third waits for its restarts", has_waited)
    assert list(delays) == list(BACK_OFFS[: place.back_offs])
    assert list(delays.values()) == list(range(1, place.back_offs + 1)), "RESTARTS at each"
    assert series == {(USED_MIB, USED_MIB)}, "flat"
    ended = _container(place, THIRD)["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (STATUS, "Error")
    assert place.log(THIRD)[-1] == place.log(THIRD, previous=True)[-1] == LINE
    place.wait("its newest start is counted", lambda: place.denied(THIRD) == 1)
    for name in TENANTS:
        assert _is_ready(place, name)
        assert _container(place, name)["restartCount"] == 0
        assert place.denied(name) == 0
        assert place.memory(name) == MEMORY


def _manifest(path: Path) -> Object:
    (found,) = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
    return found  # type: ignore[no-any-return]


def _container(place: Place, name: str) -> Object:
    """The status of the pod's container; empty while there is none."""
    found = place.pod(name).get("status", {}).get("containerStatuses") or ({},)
    return found[0]  # type: ignore[no-any-return]


def _is_ready(place: Place, name: str) -> bool:
    return bool(_container(place, name).get("ready"))
