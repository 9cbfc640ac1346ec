"""Whether a job that is about to be submitted would start now, in the sentences of the boards.

It is asked of one board state, so a researcher reads no name of another team.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.quota.waiting import clause_sentences
from fairlead.console.pages.envelope import Scalar, Sentence
from fairlead.console.pages.writing.jobs import SubmitVerdict
from fairlead.kinds.parts.kind import JobKind
from fairlead.kinds.workloads import workload_of
from fairlead.model.actions import Manifest
from fairlead.model.jobs.job import Job, Role
from fairlead.model.pod import Container, Pod
from fairlead.model.quota.rows import Workload
from fairlead.rules.jobs.waiting import UNSCHEDULABLE, Wait
from fairlead.rules.sharing.would_start import StartState, WouldStart, would_start
from fairlead.wire.kube.objects import WirePod, parse_pod
from fairlead.wire.kube.workloads import WireOwnerObject, parse_owner_object

PODS_MAX: Final = 2_000
"""A job of more pods gets no verdict: a plan of it would take seconds."""
_UID: Final = "submitted"
_SENTENCES: Final = {
    StartState.STARTS: "It starts now.",
    StartState.WAITS: "It will wait.",
    StartState.NEVER: "It can never run here as it is written.",
    StartState.UNKNOWN: "Whether it starts now is not known.",
}


def submit_verdict(
    board: BoardState, kind: JobKind, manifest: Manifest, user: str, priority: int
) -> SubmitVerdict:
    """`manifest`: of the job. `user`: id of the User who submits it, "" = none. `priority`: of its
    pods.
    """
    job = _parsed(kind, manifest)
    count = sum(role.replicas for role in _first(job))
    if not 0 < count <= PODS_MAX:
        return _verdict(StartState.UNKNOWN)
    pods = [replace(pod, priority=priority) for pod in _pods(job, manifest)]
    return _judged(board, replace(workload_of(job), uid=_UID, user=user), pods)


def serving_verdict(board: BoardState, manifest: Manifest, user: str) -> SubmitVerdict:
    """Whether all pods of a Deployment would start. `manifest`: of it; `user`: as above."""
    count = int(manifest["spec"]["replicas"])
    if not 0 < count <= PODS_MAX:
        return _verdict(StartState.UNKNOWN)
    wire = msgspec.json.decode(msgspec.json.encode(manifest), type=WireOwnerObject)
    work = parse_owner_object(wire, manifest["kind"], manifest["apiVersion"])
    [template] = _templates(manifest)
    names = (f"{work.name}-{number}" for number in range(count))
    pods = [
        replace(template, namespace=work.namespace, name=name, uid=f"{_UID}/{name}")
        for name in names
    ]
    return _judged(board, replace(work, uid=_UID, user=user), pods)


def _judged(board: BoardState, work: Workload, pods: Sequence[Pod]) -> SubmitVerdict:
    quota = board.quota_state if board.snapshot.quota else None
    return _worded(board, would_start(board.snapshot, board.rooms, quota, work, pods))


def _worded(board: BoardState, found: WouldStart) -> SubmitVerdict:
    if found.waiting is not None:
        shown = board.shown_waiting(found.waiting)
        return _verdict(
            found.state, shown.reason.value, shown.message, clause_sentences(shown.clauses)
        )
    if found.pod is not None:
        why = board.explainer.explain(Wait(UNSCHEDULABLE, ""), [found.pod]).sentence
        return _verdict(found.state, "", why.text if why else "", [why] if why else [])
    if found.state is StartState.WAITS:
        values: dict[str, Scalar] = {"seated": found.seated, "pods": found.pods}
        text = f"the nodes have room for {found.seated} of its {found.pods} pods"
        return _verdict(found.state, "", text, [Sentence("submit-room", values, text)])
    return _verdict(found.state)


def _verdict(
    state: StartState, reason: str = "", message: str = "", clauses: list[Sentence] | None = None
) -> SubmitVerdict:
    sentence = Sentence(f"submit-{state.value}", {}, _SENTENCES[state])
    return SubmitVerdict(state.value, reason, message, sentence, clauses or [])


def _parsed(kind: JobKind, manifest: Manifest) -> Job:
    version = str(manifest["apiVersion"]).rpartition("/")[2]
    return kind.parse(
        msgspec.json.decode(msgspec.json.encode(manifest), type=kind.WIRE, strict=False), version
    )


def _first(job: Job) -> list[Role]:
    """The roles whose pods are created at once."""
    return [role for role in job.roles if role not in job.late]


def _pods(job: Job, manifest: Manifest) -> Iterator[Pod]:
    templates = list(_templates(manifest))
    for role in _first(job):
        asked = {**role.limits, **role.requests}
        like = next((each for each in templates if each.requests == asked), None) or Pod(
            job.namespace, "", containers=(Container("main", requests=asked, limits=role.limits),)
        )
        for number in range(role.replicas):
            name = f"{job.name}-{role.name}-{number}"
            yield replace(like, namespace=job.namespace, name=name, uid=f"{_UID}/{name}")


def _templates(value: Any) -> Iterator[Pod]:
    """The pods of all templates, however deep they are."""
    if isinstance(value, list):
        for each in value:
            yield from _templates(each)
    if not isinstance(value, dict):
        return
    spec = value.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
        metadata = {**(value.get("metadata") or {}), "name": "", "namespace": "", "uid": ""}
        data = msgspec.json.encode({"metadata": metadata, "spec": spec})
        yield parse_pod(msgspec.json.decode(data, type=WirePod))
        return
    for each in value.values():
        yield from _templates(each)
