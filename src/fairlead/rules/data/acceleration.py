"""A claim is accelerated by a data set of Fluid: defaults, checks before it, and what prevents its
end.

Specification: docs/spec/datasets.md#acceleration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import structs

from fairlead.model.installed.finding import Finding, State
from fairlead.model.jobs.acceleration import Acceleration, AccelerationFacts, DataUser, Medium
from fairlead.model.jobs.datasets import Claim, DataSet
from fairlead.model.node import Node
from fairlead.model.resources import MEMORY
from fairlead.rules.data.mounts import claims_of
from fairlead.rules.nodes.status import is_ready

MOST_NAME: Final = 45
"""Letters of a data set's name: Fluid's StatefulSet `NAME-worker` may have 52."""
MOST_WORKERS: Final = 4
"""Workers, if none are named."""
MOST_MEMORY: Final = 64 << 30
"""Bytes of memory of one worker, if no quota is named."""
DISK_QUOTA: Final = 150 << 30
"""Bytes of disk of one worker, if no quota is named."""
_LEAST_QUOTA: Final = 1 << 20
MOST_LABEL: Final = 63
"""Letters of a claim's name: Fluid names a volume of its pods after the claim."""
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUFFIX: Final = "-acc"
_BLOCKING_TAINTS: Final = ("NoSchedule", "NoExecute")
_SHARED_MODES: Final = ("ReadWriteMany", "ReadOnlyMany")
_LINUX: Final = ("kubernetes.io/os", "linux")


def default_name(claim: str) -> str:
    """A legal name of a data set over a claim, whatever the claim's name is.

    >>> default_name("raw"), default_name("2026.images"), len(default_name("a" * 200))
    ('raw-acc', 'd-2026-images-acc', 45)
    """
    letters = re.sub("[^-a-z0-9]", "-", claim)
    if not letters[:1].isalpha():
        letters = f"d-{letters}"
    return letters[: MOST_NAME - len(_SUFFIX)].rstrip("-") + _SUFFIX


def chosen_acceleration(
    facts: AccelerationFacts,
    asked: Acceleration,
    *,
    has_workers: bool,
    has_quota: bool,
) -> Acceleration:
    """`asked` with defaults in place of workers and quota that were not named.

    A claim of one node (ReadWriteOnce) gets one worker, on the node that has it mounted, because
    master and worker mount it, too.
    """
    nodes = _usable_nodes(facts)
    claim = facts.claim
    node, workers = "", asked.workers if has_workers else max(1, min(MOST_WORKERS, len(nodes)))
    if claim is not None and is_of_one_node(claim):
        workers = 1
        having = sorted(facts.users) or sorted(each.name for each in nodes)
        node = having[0] if having else ""
    quota = asked.quota
    if not has_quota:
        quota = _default_quota(asked.medium, claim.size if claim else 0, workers)
    name = asked.name or default_name(asked.claim)
    return structs.replace(asked, name=name, workers=workers, quota=quota, node=node)


def _default_quota(medium: Medium, size: int, workers: int) -> int:
    if medium == "SSD":
        return DISK_QUOTA
    share = -(-size // workers)
    return max(_LEAST_QUOTA, min(share, MOST_MEMORY)) if size else MOST_MEMORY


def eligible_nodes(nodes: Iterable[Node]) -> list[Node]:
    """Where a worker without tolerations may run."""
    key, value = _LINUX
    return [
        node
        for node in nodes
        if is_ready(node)
        and not node.unschedulable
        and node.labels.get(key, value) == value
        and not any(taint.effect in _BLOCKING_TAINTS for taint in node.taints)
    ]


def _usable_nodes(facts: AccelerationFacts) -> list[Node]:
    """Eligible, and without a worker that shares no node."""
    nodes = eligible_nodes(facts.nodes or ())
    return [each for each in nodes if each.name not in facts.exclusive]


def is_of_one_node(claim: Claim) -> bool:
    """Whether only the pods of one node at a time may mount it."""
    return "ReadWriteOnce" in claim.access_modes and not any(
        mode in claim.access_modes for mode in _SHARED_MODES
    )


def check_acceleration(facts: AccelerationFacts, chosen: Acceleration) -> list[Finding]:
    """All checks, whatever the first of them finds."""
    return [*_fluid(facts), *_claim(facts, chosen), *_name(facts, chosen), *_places(facts, chosen)]


def check_cache(facts: AccelerationFacts, chosen: Acceleration) -> list[Finding]:
    """The checks of a data set whose source is no claim."""
    return [*_fluid(facts), *_name(facts, chosen), *_places(facts, chosen)]


def _fluid(facts: AccelerationFacts) -> Iterator[Finding]:
    yield _known(
        "fluid-crds",
        facts.has_kinds,
        "the API server serves Fluid's kinds",
        "the API server does not serve `datasets` and `alluxioruntimes` of `data.fluid.io`",
        "install Fluid: https://fluid-cloudnative.io",
    )
    yield _controller(facts)
    nodes = {each.name for each in eligible_nodes(facts.nodes or ())}
    if facts.csi_nodes is None:
        yield Finding("csi", State.UNKNOWN, "the drivers of nodes may not be read")
        return
    lacking = sorted(nodes - facts.csi_nodes)
    if not lacking:
        yield Finding("csi", State.OK, "every node has the driver `fuse.csi.fluid.io`")
        return
    state = State.WARN if nodes & facts.csi_nodes else State.FAIL
    yield Finding(
        "csi",
        state,
        f"without the driver `fuse.csi.fluid.io`: {_some(lacking)}; pods there cannot mount it",
        "the DaemonSet `csi-nodeplugin-fluid` in `fluid-system` brings it",
    )


def _controller(facts: AccelerationFacts) -> Finding:
    """0 replicas are normal: `dataset-controller` scales it up. One of both has to be ready."""
    name, starter = "alluxioruntime-controller", "dataset-controller"
    states = {each.name: each for each in facts.controllers or ()}
    found = _known(
        "runtime-controller",
        None if facts.controllers is None else name in states,
        f"the Deployment `{name}` exists",
        f"there is no Deployment `{name}` in `fluid-system`",
        "install Fluid with `runtime.alluxio.enabled=true`",
    )
    is_moved = any(states[each].ready for each in (name, starter) if each in states)
    if found.state is not State.OK or is_moved:
        return found
    return Finding(
        found.check,
        State.WARN,
        f"neither `{starter}` nor `{name}` is ready: the data set stays NotBound until one is",
        "`kubectl -n fluid-system get deployments,pods` shows the reason",
    )


def _claim(facts: AccelerationFacts, chosen: Acceleration) -> Iterator[Finding]:
    claim = facts.claim
    if claim is None:
        yield Finding(
            "claim-bound",
            State.FAIL,
            f"there is no claim `{chosen.namespace}/{chosen.claim}`",
            "`fairlead dataset list` shows the claims",
        )
        return
    if claim.is_ready:
        yield Finding("claim-bound", State.OK, f"`{claim.name}` is bound to `{claim.volume}`")
    else:
        word = "being deleted" if claim.is_ending else claim.phase or "Pending"
        mend = f"`kubectl -n {claim.namespace} describe pvc {claim.name}` shows the reason"
        yield Finding("claim-bound", State.FAIL, f"`{claim.name}` is {word}", mend)
    if len(claim.name) > MOST_LABEL or not _LABEL.fullmatch(claim.name):
        yield Finding(
            "claim-name",
            State.FAIL,
            f"Fluid names a volume of its pods `{claim.name}`, and Kubernetes refuses this name",
            "use a claim whose name has only small letters, digits and `-`, at most "
            f"{MOST_LABEL} of them",
        )
    yield _access(claim, chosen)
    yield _known(
        "volume-mode",
        claim.volume_mode == "Filesystem",
        "the volume has a file system",
        f"the volume's mode is `{claim.volume_mode}`",
        "Fluid caches files: use a claim with `volumeMode: Filesystem`",
    )
    yield _known(
        "claim-not-fluid",
        not claim.is_fluids,
        f"`{claim.name}` is no claim of Fluid",
        f"`{claim.name}` is a claim of Fluid itself, for a data set",
        "accelerate the claim that this data set mounts",
    )
    begun = begun_data_set(facts, chosen)
    by = [
        each.name for each in facts.data_sets if claim.name in claims_of(each) and each is not begun
    ]
    if by:
        yield Finding(
            "not-accelerated",
            State.FAIL,
            f"`{claim.name}` is mounted by the data set {_some(by)} already",
            f"mount the claim `{by[0]}` in your pods",
        )
    else:
        yield Finding("not-accelerated", State.OK, f"no data set mounts `{claim.name}`")


def _access(claim: Claim, chosen: Acceleration) -> Finding:
    modes = ", ".join(claim.access_modes)
    if any(mode in claim.access_modes for mode in _SHARED_MODES):
        return Finding("access-mode", State.OK, f"many nodes may mount it ({modes})")
    if is_of_one_node(claim):
        return Finding(
            "access-mode",
            State.WARN,
            f"one node at a time may mount it ({modes}), so master and worker run on "
            f"`{chosen.node or 'no node'}`",
            "for caches on several nodes use a claim with ReadWriteMany or ReadOnlyMany",
        )
    return Finding(
        "access-mode",
        State.FAIL,
        f"only one pod may mount it ({modes or 'no mode'}); master and workers all do",
        "use a claim with ReadWriteMany or ReadOnlyMany",
    )


def _name(facts: AccelerationFacts, chosen: Acceleration) -> Iterator[Finding]:
    name = chosen.name
    if len(name) > MOST_NAME or not _NAME.fullmatch(name):
        yield Finding(
            "name",
            State.FAIL,
            f"`{name}` is no name of a data set",
            f"small letters, digits and `-`, a letter first, at most {MOST_NAME}",
        )
    begun = begun_data_set(facts, chosen)
    others = [each for each in facts.data_sets if each is not begun]
    taken = [
        *(f"data set `{name}`" for each in others if each.name == name),
        *(f"{each.kind} `{name}`" for each in facts.runtimes if each.name == name),
        *(f"claim `{name}`" for each in facts.claims if each.name == name),
        *([f"volume `{chosen.namespace}-{name}`"] if facts.has_volume else []),
        *([f"Helm release `{name}`"] if facts.has_release else []),
    ]
    if taken:
        mend = "choose another one with --name: Fluid would adopt or remove what has it"
        yield Finding("name-free", State.FAIL, f"taken: {_some(taken, '')}", mend)
        return
    unread = [
        *(["volumes"] if facts.has_volume is None else []),
        *(["Helm releases"] if facts.has_release is None else []),
    ]
    if unread:
        sentence = f"{' and '.join(unread)} may not be read; nothing else has the name `{name}`"
        mend = ""
        if facts.has_release is None:
            mend = (
                f"`helm list -n {chosen.namespace}` shows releases; the right to list ConfigMaps "
                "and Secrets there makes it known"
            )
        yield Finding("name-free", State.UNKNOWN, sentence, mend)
    else:
        yield Finding("name-free", State.OK, f"nothing has the name `{name}`")


def begun_data_set(facts: AccelerationFacts, chosen: Acceleration) -> DataSet | None:
    """The data set that an interrupted run of the same acceleration left without a runtime."""
    if not chosen.claim or any(each.name == chosen.name for each in facts.runtimes):
        return None
    return next(
        (
            each
            for each in facts.data_sets
            if (each.name, each.accelerates) == (chosen.name, chosen.claim) and not each.is_ending
        ),
        None,
    )


def _places(facts: AccelerationFacts, chosen: Acceleration) -> Iterator[Finding]:
    if facts.nodes is None:
        yield Finding("nodes", State.UNKNOWN, "nodes may not be read")
        yield from _governed(facts, chosen)
        return
    nodes = _usable_nodes(facts)
    if chosen.node:
        nodes = [each for each in nodes if each.name == chosen.node]
    if len(nodes) < chosen.workers:
        found = "no node" if not nodes else f"{len(nodes)} of {chosen.workers} nodes"
        yield Finding(
            "nodes",
            State.FAIL,
            f"{found} can run a worker: Ready, schedulable, Linux and without taints"
            + _exclusive_nodes(facts),
            "use fewer --workers, or more nodes",
        )
    else:
        yield Finding("nodes", State.OK, f"{len(nodes)} nodes can run {chosen.workers} workers")
    if chosen.medium == "MEM":
        fitting = [each for each in nodes if each.allocatable.get(MEMORY, 0) >= chosen.quota]
        size = f"{chosen.quota / (1 << 30):.1f} GiB"
        if len(fitting) < chosen.workers:
            yield Finding(
                "room",
                State.FAIL,
                f"{len(fitting)} of {chosen.workers} nodes have {size} of memory for a worker",
                "use a smaller --quota, or `--medium SSD`",
            )
        else:
            yield Finding("room", State.OK, f"{len(fitting)} nodes have {size} of memory")
    yield from _governed(facts, chosen)


def _exclusive_nodes(facts: AccelerationFacts) -> str:
    if not facts.exclusive:
        return ""
    return f"; a data set with placement Exclusive shares no node: {_some(sorted(facts.exclusive))}"


def _governed(facts: AccelerationFacts, chosen: Acceleration) -> Iterator[Finding]:
    if facts.is_governed:
        yield Finding(
            "namespace-quota",
            State.WARN,
            f"pods of `{chosen.namespace}` count in quota, the cache's pods too",
            "`fairlead quota tree` shows what is left",
        )
    else:
        yield Finding("namespace-quota", State.OK, f"no quota of Fairlead in `{chosen.namespace}`")


def blockers(data_set: DataSet, users: Sequence[DataUser]) -> list[str]:
    """Why a data set may not end: what still uses it.

    `users`: pods of its namespace that mount a claim and have not ended.
    """
    pods = [f"{each.namespace}/{each.name}" for each in users if each.claim == data_set.name]
    return [
        *([f"pods mount it: {_some(pods)}"] if pods else []),
        *([f"data sets refer to it: {_some(data_set.references)}"] if data_set.references else []),
        *([f"an operation runs: {_some(data_set.operations)}"] if data_set.operations else []),
    ]


def _known(check: str, is_so: bool | None, good: str, bad: str, mend: str) -> Finding:
    if is_so is None:
        return Finding(check, State.UNKNOWN, "it may not be read")
    return Finding(check, State.OK, good) if is_so else Finding(check, State.FAIL, bad, mend)


def _some(names: Sequence[str], quote: str = "`") -> str:
    shown = ", ".join(f"{quote}{each}{quote}" for each in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
