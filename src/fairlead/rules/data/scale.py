"""Before a cache gets more workers, or fewer.

Specification: docs/spec/datasets.md#workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.model.installed.finding import Finding, State
from fairlead.model.jobs.datasets import Claim, DataRuntime, DataSet
from fairlead.model.node import Node
from fairlead.rules.data.acceleration import eligible_nodes, is_of_one_node
from fairlead.rules.data.mounts import claims_of

FIXED_KINDS: Final = ("ThinRuntime",)
"""Runtimes without the subresource `scale`: they cache nothing themselves."""


def check_scale(
    data_set: DataSet,
    runtimes: Sequence[DataRuntime],
    claims: Sequence[Claim],
    nodes: Sequence[Node] | None,
    workers: int,
) -> list[Finding]:
    """All checks. `runtimes`: of the data set's name. `claims`: of its namespace. `nodes`: None =
    they may not be read.
    """
    return [
        _runtime(data_set, runtimes),
        *_idle(data_set, runtimes, workers),
        *_access(data_set, claims, workers),
        _nodes(runtimes, nodes, workers),
    ]


def _runtime(data_set: DataSet, runtimes: Sequence[DataRuntime]) -> Finding:
    if data_set.is_ending:
        sentence = f"`{data_set.name}` is being deleted"
        mend = f"`fairlead dataset show {data_set.name}` shows what holds it"
        return Finding("runtime", State.FAIL, sentence, mend)
    if len(runtimes) != 1:
        found = "no runtime has" if not runtimes else f"{len(runtimes)} runtimes have"
        mend = f"`fairlead dataset show {data_set.name}` shows them; exactly one has its workers"
        return Finding("runtime", State.FAIL, f"{found} the name `{data_set.name}`", mend)
    kind = runtimes[0].kind
    if kind in FIXED_KINDS:
        mend = "scale the data set that it mounts"
        return Finding("runtime", State.FAIL, f"a {kind} has no workers to scale", mend)
    return Finding("runtime", State.OK, f"a {kind} can be scaled")


def _idle(data_set: DataSet, runtimes: Sequence[DataRuntime], workers: int) -> Iterator[Finding]:
    fewer = any(each.replicas > workers for each in runtimes)
    if fewer and data_set.operations:
        yield Finding(
            "idle",
            State.FAIL,
            f"`{data_set.operations[0]}` runs on `{data_set.name}`, and would lose workers",
            "wait until it has ended",
        )
    elif fewer:
        sentence = "files that only the removed workers have are read from the source again"
        yield Finding("idle", State.WARN, sentence)


def _access(data_set: DataSet, claims: Sequence[Claim], workers: int) -> Iterator[Finding]:
    mounted = claims_of(data_set)
    for claim in claims:
        if workers > 1 and claim.name in mounted and is_of_one_node(claim):
            yield Finding(
                "access-mode",
                State.FAIL,
                f"one node at a time may mount `{claim.name}` "
                f"({', '.join(claim.access_modes)}), so its cache has one worker",
                "for caches on several nodes use a claim with ReadWriteMany or ReadOnlyMany",
            )


def _nodes(runtimes: Sequence[DataRuntime], nodes: Sequence[Node] | None, workers: int) -> Finding:
    if nodes is None:
        return Finding("nodes", State.UNKNOWN, "nodes may not be read")
    count = len(eligible_nodes(nodes))
    if workers > count and any(each.replicas < workers for each in runtimes):
        return Finding(
            "nodes",
            State.FAIL,
            f"{count} of {workers} nodes can run a worker: Ready, schedulable, Linux and without "
            "taints",
            f"`--workers {count}`, or more nodes" if count else "make a node schedulable",
        )
    return Finding("nodes", State.OK, f"{count} nodes can run {workers} workers")
