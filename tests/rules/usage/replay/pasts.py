"""Histories for tests of replays, written as short as the cases are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from tests.rules.quota.small import tree

from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import NodeRoom, QuotaPod
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.usage.ledger import GPU
from fairlead.rules.usage.replay.history import NodeSpan, PastPod, ReplayInput, TreeSpan
from fairlead.rules.usage.replay.simulation import Replay, ReplayedPod

GPUS = "nvidia.com/gpu"
HOUR = 3600.0
START = 1_000_000.0


def past(
    space: str, name: str, at: float, run: float | None, gpus: int = 1, **more: Any
) -> PastPod:
    """A pod that came `at` hours after the start, ran at once, and for `run` hours.

    `run` None: it serves. `ends`: hours after the start. `node`: where it was.
    """
    begins = START + at * HOUR
    ends = more.pop("ends", None)
    ended = begins + run * HOUR if run is not None else None
    ended = START + ends * HOUR if ends is not None else ended
    follows, node = more.pop("follows", None), more.pop("node", "")
    pod = QuotaPod(space, name, f"{space}/{name}", {GPUS: gpus}, created_at=begins)
    pod = replace(pod, **{"owner": f"of-{name}", **more})
    return PastPod(
        pod,
        begins,
        begins,
        begins,
        ended,
        run * HOUR if run is not None else None,
        node,
        spells=((begins, begins),),
        gpu=gpus * GPU,
        follows=follows,
    )


def nodes(*gpus: int, labels: Mapping[str, str] | None = None) -> tuple[NodeSpan, ...]:
    """A node for each number of GPUs."""
    return tuple(
        NodeSpan(
            START, None, NodeRoom(f"node-{at}", {GPUS: count, "pods": 110}, labels=labels or {})
        )
        for at, count in enumerate(gpus)
    )


def quota(text: str, **more: Any) -> QuotaTree:
    return QuotaTree("elasticquotatree", "kube-system", tree(text, resource=GPUS, **more))


def history(
    pods: Iterable[PastPod],
    trees: QuotaTree | Sequence[TreeSpan],
    there: tuple[NodeSpan, ...] = (),
    hours: float = 24.0,
    workloads: Mapping[str, Workload] | None = None,
) -> ReplayInput:
    spans = (TreeSpan(START, trees),) if isinstance(trees, QuotaTree) else tuple(trees)
    return ReplayInput(
        START,
        START + hours * HOUR,
        tuple(sorted(pods, key=lambda each: each.arrived_at)),
        there,
        spans,
        workloads=workloads or {},
    )


def played(of: ReplayInput, tree: QuotaTree | None = None) -> dict[str, ReplayedPod]:
    """The places by the name of their pod, at the end."""
    replay = Replay(of, tree)
    while replay.advance():
        pass
    return {place.past.pod.name: place for place in replay.places}


def began(place: ReplayedPod) -> float | None:
    """When it was first admitted, in hours after the start."""
    return None if place.admitted_at is None else round((place.admitted_at - START) / HOUR, 3)
