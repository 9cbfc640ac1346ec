"""The admission webhook's answers about quota. Nothing is decided here: `rules/quota` decides.

Some facts are not part of a question, such as the leaf of a namespace: the API server is asked for
them, but only if the answer depends on them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.model.installation import OwnAccounts
from fairlead.model.keys import (
    ANNOTATION_LEAF,
    ANNOTATION_SUSPENDED_FOR,
    FIRST_ADMISSION,
    LABEL_QUOTA_NAME,
)
from fairlead.model.pod import Pod
from fairlead.model.quota.tree import QuotaTree, Violation, ViolationCode
from fairlead.model.quota.written import WrittenObject
from fairlead.model.refusal import Refusal
from fairlead.model.snapshot import build_snapshot
from fairlead.ports import AdmissionApi
from fairlead.rules.quota.admission import (
    DEFAULT_ACCOUNTS,
    additions,
    begins_suspended,
    refuse_binding,
    refuse_change,
    refuse_new,
    refuse_resize,
    refuse_stamp,
    stamp,
)
from fairlead.rules.quota.sight import quota_state
from fairlead.rules.quota.validate import TREE_NAME, TREE_NAMESPACE, validate, validate_deletion
from fairlead.wire.kube.admission_review import (
    CREATE,
    Review,
    parse_written,
    render_allowed,
    render_refused,
)
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree

Read = TypeVar("Read")

DELETE: Final = "DELETE"
BINDINGS: Final = ("pods/binding", "bindings")
TREE_BYTES_MAX: Final = 2 * 1024 * 1024
"""`TREE_BYTES_MAX`: more than etcd accepts for one object (1.5 MiB)."""
_VIOLATIONS_SHOWN: Final = 50
_AT_ONCE_BYTES: Final = 64 * 1024
"""`_AT_ONCE_BYTES`: a question of this size is read in a few milliseconds."""
_NAME_SHOWN: Final = 253
USE_SECONDS: Final = 2.0
"""`USE_SECONDS`: time to read the pods for a warning.

The API server waits 5 s for the answer, then refuses the tree.
"""
_log: Final = logging.getLogger(__name__)
_trees: Final = msgspec.json.Decoder(WireQuotaTree | None)


class _Name(msgspec.Struct, frozen=True):
    name: str | None = None
    namespace: str | None = None


class _Named(msgspec.Struct):
    metadata: _Name = _Name()


_names: Final = msgspec.json.Decoder(_Named | None)


async def off_loop(review: Review, read: Callable[[Review], Read]) -> Read:
    """The result of `read` for the question.

    A large question is read in a thread, so that probes and other questions are answered meanwhile.
    """
    if memoryview(review.written).nbytes + memoryview(review.replaced).nbytes <= _AT_ONCE_BYTES:
        return read(review)
    return await asyncio.to_thread(read, review)


class QuotaQuestions:
    """Without an `api` only questions are answered that need no further facts.

    `use_seconds`: how long pods may be read to warn of bounds below what is used. `own`: the
    accounts of the installation.
    """

    def __init__(
        self,
        api: AdmissionApi | None = None,
        use_seconds: float = USE_SECONDS,
        own: OwnAccounts = DEFAULT_ACCOUNTS,
    ) -> None:
        self._api = api
        self._own = own
        self._use_seconds = use_seconds

    async def gate(self, review: Review) -> bytes:
        """What is added to a new pod, or to an owner of pods."""
        if review.operation != CREATE:
            return render_allowed(review)
        try:
            _, new = await off_loop(review, parse_written)
        except ValueError as error:
            return render_refused(review, str(error), 400, "BadRequest")
        if review.resource != "pods":
            return render_allowed(
                review, [*_labelling(new, dict(stamp(review.writer))), *_suspending(new)]
            )
        added = additions(new, review.writer)
        patch = _labelling(new, dict(added.labels))
        if added.gate and new.gates:
            patch.append(
                {"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": added.gate}}
            )
        elif added.gate:
            patch.append(
                {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": added.gate}]}
            )
        return render_allowed(review, patch)

    async def guard(self, review: Review) -> bytes:
        """Whether the object may be written as it is."""
        try:
            before, after = await off_loop(review, parse_written)
            refusal = await self._refused(review, before, after)
        except ValueError as error:
            return render_refused(review, str(error), 400, "BadRequest")
        except FairleadError as error:
            return render_refused(
                review, f"quota cannot be judged: {error.what}", 503, "ServiceUnavailable"
            )
        return render_allowed(review) if refusal is None else render_refused(review, refusal.reason)

    async def _refused(
        self, review: Review, before: WrittenObject, after: WrittenObject
    ) -> Refusal | None:
        writer = review.writer
        if review.operation == DELETE:
            return None
        if review.resource == "pods/resize":
            tree = await self._reached().get_tree()
            managed = tree.root.resources if tree is not None and tree.root is not None else ()
            return refuse_resize(before, after, writer, managed, self._own)
        if review.resource not in ("pods", "pods/status", *BINDINGS):
            return refuse_stamp(before, after, writer, self._own)
        leaf = await self._leaf(review.namespace) if LABEL_QUOTA_NAME in after.labels else ""
        if review.resource in BINDINGS:
            return refuse_binding(after, writer, leaf, self._own)
        if review.operation == CREATE:
            return refuse_new(after, writer, leaf)
        return refuse_change(before, after, writer, leaf, self._own)

    async def tree(self, review: Review) -> bytes:
        """Whether the tree may be written or deleted.

        Violations that do not stop the plan are warnings.

        So are bounds below what is used now, if the tree is accepted.
        """
        unknown: list[str] = []
        try:
            if (other := _other_name(review)) is not None:
                return other
            old = await asyncio.to_thread(_parse_tree, review.replaced)
            if review.operation == DELETE:
                violations = validate_deletion(old) if old is not None else ()
            else:
                violations, unknown = await self._validated(
                    await asyncio.to_thread(_parse_tree, review.written), old
                )
        except ValueError as error:
            return render_refused(review, f"the tree cannot be read: {error}", 400, "BadRequest")
        except FairleadError as error:
            return render_refused(
                review, f"the tree cannot be judged: {error.what}", 503, "ServiceUnavailable"
            )
        errors = [each for each in violations if each.is_error]
        if errors:
            return render_refused(review, "; ".join(_sentences(errors)))
        return render_allowed(review, warnings=[*unknown, *_sentences(violations)])

    async def _validated(
        self, tree: QuotaTree | None, old: QuotaTree | None
    ) -> tuple[tuple[Violation, ...], list[str]]:
        """The violations, and why it is not known what is used (empty: it is known)."""
        if tree is None:
            return (), []
        api = self._reached()
        moved = _namespaces(tree) ^ _namespaces(old) | _moved(tree, old)
        pods = [pod for name in sorted(moved) for pod in await api.list_pods(name)]
        spaces = await api.list_namespaces()
        judged = partial(validate, tree, old, spaces, pods, own=self._own.namespaces)
        found = await asyncio.to_thread(judged)
        if tree.sound_root is None or any(each.is_error for each in found):
            return found, []
        try:
            async with asyncio.timeout(self._use_seconds):
                using = await api.list_unfinished_pods()
        except (OutsideError, TimeoutError) as error:
            why = (
                error.what
                if isinstance(error, OutsideError)
                else f"pods could not be read in {self._use_seconds:g} s"
            )
            _log.warning("a quota tree is judged without what is used: %s", why)
            return found, [
                (
                    f"it is not known whether bounds are below what is used: {why}; ask `fairlead "
                    "quota validate`"
                )
            ]
        return await asyncio.to_thread(_with_use, judged, tree, using), []

    async def _leaf(self, namespace: str) -> str:
        found = await self._reached().get_namespace(namespace)
        return found.annotations.get(ANNOTATION_LEAF, "") if found is not None else ""

    def _reached(self) -> AdmissionApi:
        if self._api is None:
            raise UserError("the webhook has no cluster", "start it with a kubeconfig or in a pod")
        return self._api


def _with_use(
    judged: Callable[..., tuple[Violation, ...]], tree: QuotaTree, using: Sequence[Pod]
) -> tuple[Violation, ...]:
    """The violations of the tree as `judged` finds them, with those that follow from what pods use
    under it now.
    """
    now = time.time()
    state = quota_state(build_snapshot(taken_at=now, pods=using, quota_tree=tree), now)
    return judged(state=state)


def _other_name(review: Review) -> bytes | None:
    """The answer to a tree with another name, which is read no further; None for the tree itself.

    Such a tree may not be written. An existing one (from before the schema) may be deleted.
    """
    try:
        name = _names.decode(review.replaced if review.operation == DELETE else review.written)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if name is None or (name.metadata.namespace, name.metadata.name) == (TREE_NAMESPACE, TREE_NAME):
        return None
    if review.operation == DELETE:
        return render_allowed(review)
    name_text = f"{_cut(name.metadata.namespace or '')}/{_cut(name.metadata.name or '')}"
    why = (
        f"{ViolationCode.NOT_THE_TREE}: {name_text}: the one tree of a cluster is "
        f"{TREE_NAMESPACE}/{TREE_NAME}"
    )
    return render_refused(review, why)


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_SHOWN else f"{name[:_NAME_SHOWN]}…"


def _sentences(violations: Sequence[Violation]) -> list[str]:
    """The first violations, and the number of the others."""
    texts = [f"{each.code}: {each.message}" for each in violations[:_VIOLATIONS_SHOWN]]
    return (
        texts
        if len(violations) <= _VIOLATIONS_SHOWN
        else [*texts, f"and {len(violations) - _VIOLATIONS_SHOWN} more"]
    )


def _parse_tree(written: msgspec.Raw) -> QuotaTree | None:
    size = memoryview(written).nbytes
    if size > TREE_BYTES_MAX:
        raise ValueError(f"it has {size} bytes, and {TREE_BYTES_MAX} are allowed")
    try:
        wire = _trees.decode(written)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return None if wire is None else parse_quota_tree(wire)


def _namespaces(tree: QuotaTree | None) -> set[str]:
    return set(_leaf_of(tree))


def _moved(tree: QuotaTree, old: QuotaTree | None) -> set[str]:
    """Namespaces that are on another leaf than before."""
    was = _leaf_of(old)
    return {name for name, leaf in _leaf_of(tree).items() if was.get(name, leaf) != leaf}


def _leaf_of(tree: QuotaTree | None) -> dict[str, str]:
    leaves = tree.root.leaves() if tree is not None and tree.root is not None else ()
    return {name: leaf.name for leaf in leaves for name in leaf.namespaces}


def _labelling(obj: WrittenObject, labels: dict[str, str]) -> list[dict[str, Any]]:
    missing = {key: value for key, value in labels.items() if obj.labels.get(key) != value}
    if not missing:
        return []
    if not obj.labels:
        return [{"op": "add", "path": "/metadata/labels", "value": missing}]
    escaped = {key.replace("~", "~0").replace("/", "~1"): value for key, value in missing.items()}
    return [
        {"op": "add", "path": f"/metadata/labels/{key}", "value": value}
        for key, value in escaped.items()
    ]


def _suspending(job: WrittenObject) -> list[dict[str, Any]]:
    """The patch with which a job is created suspended."""
    if not begins_suspended(job):
        return []
    place = "/spec/suspend" if job.kind in ("Job", "RayJob") else "/spec/runPolicy/suspend"
    mark = "/metadata/annotations/" + ANNOTATION_SUSPENDED_FOR.replace("/", "~1")
    none = [] if job.annotations else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    return [
        {"op": "add", "path": place, "value": True},
        *none,
        {"op": "add", "path": mark, "value": FIRST_ADMISSION},
    ]
