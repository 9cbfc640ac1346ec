"""Submitting a job: the objects of `arena submit`, created as the user who asks.

Specification: docs/spec/console.md#submitting-a-job.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.submitting.verdict import serving_verdict, submit_verdict
from fairlead.console.http.answers import Refused
from fairlead.console.http.subjects import account_of, require, subject_of
from fairlead.console.http.writing.frame import PlannedWrite, Written, invalid
from fairlead.console.http.writing.job_forms import JobForms, WrittenJob
from fairlead.console.pages.envelope import FieldFault
from fairlead.console.pages.writing.jobs import (
    JobSubmission,
    JobSubmitted,
    SubmitPreview,
    SubmitVerdict,
)
from fairlead.console.pages.writing.preview import Effect
from fairlead.errors import (
    AlreadyExists,
    FairleadError,
    Forbidden,
    InvalidObject,
    NotFound,
    OutsideError,
    UserError,
)
from fairlead.kinds.parts.job_companions import owned_by, owner_reference
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind import label_of
from fairlead.kinds.registry import kind_by_type
from fairlead.kinds.submission import Served
from fairlead.model.actions import (
    CreateObject,
    DeleteObject,
    Manifest,
    ObjectRef,
    PatchObject,
    object_ref,
)
from fairlead.model.people.permission import ConsoleResource, ConsoleVerb, Right
from fairlead.model.people.subject import Subject
from fairlead.model.records.audit import AuditTarget
from fairlead.ports import ClusterWrites
from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.files.shown_manifest import shown_manifest

_FIELDS: Final = (
    (r"^metadata\.name$", "name"),
    (r"^metadata\.namespace$", "namespace"),
    (r"labels", "label"),
    (r"annotations", "annotation"),
    (r"priorityClassName", "priority"),
    (r"serviceAccount", "service-account"),
    (r"schedulerName", "scheduler"),
    (r"nodeSelector", "selector"),
    (r"tolerations", "toleration"),
    (r"imagePullSecrets", "image-pull-secret"),
    (r"imagePullPolicy", "image-pull-policy"),
    (r"image$", "image"),
    (r"cpu", "cpu"),
    (r"resources.*\bmemory\]?$", "memory"),
    (r"gpu-mem", "gpumemory"),
    (r"gpu", "gpus"),
    (r"\benv\b", "env"),
    (r"volume", "data"),
    (r"workingDir", "working-dir"),
    (r"nprocPerNode", "nproc-per-node"),
    (r"backoffLimit", "retry"),
    (r"ttlSecondsAfterFinished", "ttl-after-finished"),
    (r"activeDeadlineSeconds", "running-timeout"),
    (r"\bcommand\b|\bargs\b", "command"),
    (r"[rR]eplicas$", "workers"),
    (r"[rR]eplicas$", "replicas"),
)
"""Parts of a field's path in an object -> the field of the form; the first that matches and that
the form has counts.
"""
_OF_TENSORBOARD: Final = ((r"image$", "tensorboard-image"), (r"args|command", "logdir"))
PATH_MAX: Final = 1_000
"""Characters of the path of a field that are looked at."""
_EXISTS: Final = "exists"
_BODY_FIELDS: Final = ("name", "namespace", "command")
_RIGHT: Final = Right(ConsoleVerb.CREATE, ConsoleResource.JOBS)
"""Needed in the namespace of the body."""
_PRIORITY_CLASS: Final = ObjectRef(
    "scheduling.k8s.io/v1", "PriorityClass", "", plural="priorityclasses"
)


class _Ready(Struct, frozen=True):
    """What would be created. `type`: of the form. `place`: of the main object among the objects."""

    type: str
    job: WrittenJob
    objects: list[Manifest]
    priority: int = 0
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> int:
        kind = self.job.submission.kind.KIND
        return next(place for place, each in enumerate(self.objects) if each["kind"] == kind)


class _Faulty(Exception):
    """What is wrong with the body, found while the job was made."""

    def __init__(self, *faults: FieldFault, line: str = "") -> None:
        super().__init__(*faults)
        self.faults = faults
        self.line = line


class Submitting(Struct, frozen=True):
    """Plans jobs of one console."""

    writes: ClusterWrites
    forms: JobForms

    async def plan(self, board: BoardState, request: Request, order: JobSubmission) -> PlannedWrite:
        """Plans the objects of the job. `board`: as the subject may see it."""
        subject = subject_of(request)
        require(request, _RIGHT, order.namespace)
        account_of(request)  # refused here, and not object for object
        is_trial = request.query_params.get("dryRun") == "true"
        try:
            ready = await self._ready(subject, order, is_trial=is_trial)
        except _Faulty as error:
            return self._refused(order, error.faults, error.line)
        if is_trial:
            return _planned(order, ready, await self._preview(board, subject, ready))
        return _planned(order, ready, None, lambda: self._create(subject, ready))

    def _refused(
        self, order: JobSubmission, faults: Sequence[FieldFault], line: str
    ) -> PlannedWrite:
        kind = self.forms.kind_of(order.type)
        return PlannedWrite(
            target=AuditTarget(kind.KIND if kind else "", order.namespace[:253], order.name[:253]),
            act=_nothing,
            faults=faults,
            preview=SubmitPreview(valid=False, fields=list(faults), effects=[], line=line),
        )

    async def _ready(self, subject: Subject, order: JobSubmission, *, is_trial: bool) -> _Ready:
        job = await asyncio.to_thread(self.forms.read, order, is_trial=is_trial)
        if isinstance(job, list):
            raise _Faulty(*job)
        job, served, notes = await self._as_served(job)
        name = job.spec.priority if isinstance(job.spec, JobSpec) else ""
        priority = await self._priority(name, subject.account)
        user = subject.account or subject.user or subject.name
        try:
            objects = await asyncio.to_thread(self.forms.objects, job, replace(served, user=user))
        except UserError as error:
            field = "flags.data" if "volumes" in error.what else "flags.gpumemory"
            raise _Faulty(FieldFault(field, "value", error.what), line=job.line) from error
        if priority is None:
            notes = (*notes, "whether the priority class exists is unknown: it may not be read")
        return _Ready(order.type, job, objects, priority or 0, notes)

    async def _as_served(self, job: WrittenJob) -> tuple[WrittenJob, Served, tuple[str, ...]]:
        """The job as this cluster takes it: in which version, or as the kind that replaces it."""
        kind = job.submission.kind
        served = await self._served(job)
        if job.submission.version(served) is not None:
            return job, served, tuple(_lost_fields(job, served))
        instead = job.submission.instead
        if instead is not None:
            other = replace(job, submission=instead, spec=replace(job.spec, options=None))
            found = await self._served(other)
            if instead.version(found) is not None:
                note = f"the cluster serves no {label_of(kind)}: a {instead.kind.KIND} is created"
                return other, found, (note,)
        raise _Faulty(
            FieldFault(
                "type",
                "crd-missing",
                f"the cluster serves no {label_of(kind)} "
                f"(looked for: {', '.join(kind.CREATED_VERSIONS)})",
            )
        )

    async def _served(self, job: WrittenJob) -> Served:
        kind = job.submission.kind
        versions = await self.writes.served(kind.GROUP, kind.PLURAL)
        newest = f"{kind.GROUP}/{kind.CREATED_VERSIONS[0]}"
        fields = await self.writes.spec_fields(newest, kind.KIND) if kind.READS_SCHEMA else None
        return Served(versions, fields)

    async def _priority(self, name: str, account: str) -> int | None:
        """The priority of this class; None = the user may not read it."""
        if not name:
            return 0
        try:
            found = await self.writes.read(replace(_PRIORITY_CLASS, name=name), account)
        except Forbidden:
            return None
        except NotFound:
            what = f"there is no priority class `{name}`: `kubectl get priorityclass` lists them"
            raise _Faulty(FieldFault("flags.priority", "not-found", what)) from None
        value = found.get("value")
        return value if isinstance(value, int) else 0

    async def _preview(self, board: BoardState, subject: Subject, ready: _Ready) -> SubmitPreview:
        faults = await self._tried(subject, ready)
        verdict = None
        if all(fault.rule != _EXISTS for fault in faults):  # else its pods would join the other's
            # In a thread: a plan of the whole cluster is made with the new pods.
            verdict = await asyncio.to_thread(_verdict, board, ready, subject.user)
        return SubmitPreview(
            valid=not faults,
            fields=faults,
            effects=[] if faults else _effects(ready),
            line=ready.job.line,
            manifests=render_manifests(map(_without_keys, ready.objects)),
            notes=list(ready.notes),
            verdict=verdict,
        )

    async def _tried(self, subject: Subject, ready: _Ready) -> list[FieldFault]:
        """What the API server would refuse, asked as the subject; nothing is created."""
        faults = list[FieldFault]()
        for manifest in ready.objects:
            action = CreateObject(manifest, ready.job.spec.namespace, is_trial=True)
            try:
                await self.writes.write(action, subject.account)
            except _REFUSALS as error:
                faults += _faults_of(error, manifest, self._flags_of(ready))
        return faults

    def _flags_of(self, ready: _Ready) -> frozenset[str]:
        forms = (form for form in self.forms.forms() if form.type == ready.type)
        return frozenset(flag.name for form in forms for flag in form.flags)

    async def _create(self, subject: Subject, ready: _Ready) -> Written:
        """All objects, or none. Raises Refused."""
        made: list[Manifest] = []
        at = ready.objects[0]
        try:
            for place, manifest in enumerate(ready.objects):
                at = manifest
                wanted = owned_by(manifest, made[ready.place]) if place > ready.place else manifest
                made.append(await self._made(wanted, subject.account))
                if place == ready.place:
                    await self._adopt(made, subject.account)
        except BaseException as error:
            left = await self._removed(made, subject.account)
            failure = self._failure(error, at, left, ready)
            if failure is error:
                raise
            raise failure from error
        body = JobSubmitted(
            ready.job.spec.namespace,
            ready.job.submission.kind.TYPE,
            ready.job.spec.name,
            ready.job.line,
            _effects(ready),
        )
        return Written(body, 201)

    async def _made(self, manifest: Manifest, account: str) -> Manifest:
        action = CreateObject(manifest, manifest["metadata"]["namespace"])
        return await self.writes.write(action, account) or manifest

    async def _adopt(self, made: Sequence[Manifest], account: str) -> None:
        """What was made before the job becomes the job's."""
        job = made[-1]
        for each in made[:-1]:
            patch = {"metadata": {"ownerReferences": [owner_reference(job)]}}
            await self.writes.write(PatchObject(object_ref(each), patch), account)

    async def _removed(self, made: Sequence[Manifest], account: str) -> list[str]:
        """Removes them, the newest first; the sentences about those that could not be removed."""
        left = list[str]()
        for each in reversed(made):
            target = object_ref(each)
            try:
                await self.writes.write(DeleteObject(target), account)
            except NotFound:
                continue
            except FairleadError as error:
                left.append(f"{target.title} was made and could not be removed: {error.what}")
        return left

    def _failure(
        self, error: BaseException, at: Manifest, left: Sequence[str], ready: _Ready
    ) -> BaseException:
        """The refusal of the write, with what is left of it."""
        more = "; ".join(left)
        if isinstance(error, AlreadyExists):
            what = f"there is a {at['kind']} `{at['metadata']['name']}` already"
            hint = "; ".join(filter(None, ("choose another name, or delete it first", more)))
            return Refused(409, what, hint, code="exists", fields=_faults_of(error, at, ()))
        if isinstance(error, InvalidObject):
            refused = invalid(_faults_of(error, at, self._flags_of(ready)))
            refused.hint = "; ".join(filter(None, (refused.hint, more)))
            return refused
        if isinstance(error, FairleadError) and more:
            error.hint = "; ".join(filter(None, (error.hint, more)))
        return error


_REFUSALS: Final = (AlreadyExists, InvalidObject, Forbidden, NotFound)


def _faults_of(error: OutsideError, manifest: Manifest, flags: Iterable[str]) -> list[FieldFault]:
    """The refusal of the API server, at the fields of the form. `flags`: those of the form."""
    kind = manifest["kind"]
    if isinstance(error, AlreadyExists):
        what = f"there is a {kind} `{manifest['metadata']['name']}` already: choose another name"
        return [FieldFault("name", _EXISTS, what)]
    if isinstance(error, InvalidObject):
        causes = error.causes or (("", error.what),)
        known = frozenset(flags)
        return [
            FieldFault(
                _form_field(path, kind, known), "api-server", f"{kind} {path}: {message}".strip()
            )
            for path, message in causes
        ]
    rule = "forbidden" if isinstance(error, Forbidden) else "not-found"
    return [FieldFault("namespace", rule, error.what)]


def _form_field(path: str, kind: str, flags: frozenset[str]) -> str:
    """
    >>> flags = frozenset(("image", "tensorboard-image", "cpu", "label"))
    >>> template = "spec.pytorchReplicaSpecs[Master].template.spec.containers[0]"
    >>> paths = f"{template}.resources.limits[cpu]", f"{template}.image", "metadata.name", "spec.x"
    >>> [_form_field(path, "PyTorchJob", flags) for path in paths]
    ['flags.cpu', 'flags.image', 'name', '']
    >>> _form_field("spec.template.spec.containers[0].image", "Deployment", flags)
    'flags.tensorboard-image'
    >>> flags = frozenset(("image", "replicas"))
    >>> paths = "spec.template.spec.containers[0].image", "spec.replicas"
    >>> [_form_field(path, "Deployment", flags) for path in paths]
    ['flags.image', 'flags.replicas']
    """
    of_board = _OF_TENSORBOARD if kind == "Deployment" else ()
    for pattern, field in (*of_board, *_FIELDS):
        if re.search(pattern, path[:PATH_MAX]) and field in (*_BODY_FIELDS, *flags):
            return field if field in _BODY_FIELDS else f"flags.{field}"
    return ""


def _verdict(board: BoardState, ready: _Ready, user: str) -> SubmitVerdict | None:
    """None for a cron, whose jobs come later, and where an operator determines the pods."""
    made, manifest = ready.job.submission.kind, ready.objects[ready.place]
    if made.KIND == "Deployment":
        return serving_verdict(board, manifest, user)
    kind = kind_by_type(made.TYPE)
    return submit_verdict(board, kind, manifest, user, ready.priority) if kind else None


def _lost_fields(job: WrittenJob, served: Served) -> Iterable[str]:
    if served.spec_fields is None or not isinstance(job.spec, JobSpec):
        return
    asked = {
        "startingDeadlineSeconds": job.spec.starting_seconds is not None,
        "nprocPerNode": bool(job.spec.nproc_per_node),
    }
    for name, is_asked in asked.items():
        if is_asked and name not in served.spec_fields:
            yield f"the cluster's operator does not support `spec.{name}`: it is omitted"


def _effects(ready: _Ready) -> list[Effect]:
    """The job first."""
    place = ready.place
    ordered = [ready.objects[place], *ready.objects[:place], *ready.objects[place + 1 :]]
    return [
        Effect("create", each["kind"], each["metadata"]["namespace"], each["metadata"]["name"])
        for each in ordered
    ]


def _without_keys(manifest: Manifest) -> Manifest:
    return shown_manifest(manifest)[0] if manifest["kind"] == "Secret" else manifest


def _planned(
    order: JobSubmission,
    ready: _Ready,
    preview: SubmitPreview | None,
    act: Callable[[], Awaitable[Written]] | None = None,
) -> PlannedWrite:
    return PlannedWrite(
        target=AuditTarget(
            ready.job.submission.kind.KIND,
            order.namespace,
            ready.objects[ready.place]["metadata"]["name"],
        ),
        act=act or _nothing,
        summary=f"submitted: {', '.join(('command', *sorted(order.flags)))}"[:500],
        effects=_effects(ready),
        preview=preview,
    )


async def _nothing() -> Written:
    raise NotImplementedError
