"""How the console writes the quota tree, and keeps its versions in the store.

The tree is written with the server's own rights, and namespaces of new leaves as the administrator
who asks. A write is based on a version of the tree, not of
the object: the controller writes the status many times while an administrator edits.

Specification: docs/spec/console.md#writing-the-quota-tree.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.requests import Request

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.quota.tree_edit import (
    NO_TREE,
    TreeEdit,
    new_object,
    node_orders,
    read_tree,
    tree_edit,
    version_of,
)
from fairlead.console.http.answers import Refused
from fairlead.console.http.sign_in.desk import SignInDesk
from fairlead.console.http.subjects import account_of, subject_of
from fairlead.console.http.writing.frame import PlannedWrite, Written
from fairlead.console.pages.quota_tree import (
    QuotaTreeOrder,
    QuotaTreeVersion,
    QuotaTreeVersions,
    QuotaTreeWritten,
)
from fairlead.errors import ChangedMeanwhile, NotFound, StoreDown, UserError
from fairlead.model.actions import CreateObject, Manifest, ObjectRef, PatchObject
from fairlead.model.records.audit import AuditTarget
from fairlead.model.records.rows import TreeVersion
from fairlead.ports import ClusterWrites, TreeVersions
from fairlead.rules.quota.validate import TREE_NAME, TREE_NAMESPACE
from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.quota.tree_edit import merge_patch

TREE: Final = ObjectRef(
    "scheduling.sigs.k8s.io/v1beta1",
    "ElasticQuotaTree",
    TREE_NAME,
    TREE_NAMESPACE,
    plural="elasticquotatrees",
)
TRIES: Final = 10
"""How often a write is repeated because the status was written in between."""
NODES_MAX: Final = 5_000
_log = logging.getLogger(__name__)


class _Wanted(Struct, frozen=True):
    """`stored`: what the edit was merged into; None = there is no tree."""

    stored: Manifest | None
    edit: TreeEdit


async def plan_tree(
    writes: ClusterWrites, desk: SignInDesk, board: BoardState, request: Request, body: Any
) -> PlannedWrite:
    """Plans the write of a whole tree. `board`: of the whole cluster."""
    order: QuotaTreeOrder = body
    if not 0 < len(order.nodes) <= NODES_MAX:
        raise UserError(
            f"the tree has {len(order.nodes)} nodes", f"send 1 to {NODES_MAX} nodes, the root first"
        )
    stored = await _stored(writes)
    roster = desk.roster
    try:
        # In a thread: plans are made until nothing is left to do.
        edit = await asyncio.to_thread(tree_edit, board, stored, order, roster.users, roster.groups)
    except ValueError as error:
        raise UserError(str(error), "send every node after its parent, the root first") from error
    wanted = _Wanted(stored, edit)

    async def act() -> Written:
        versions = desk.versions
        await _keep_foreign(versions, stored)
        if edit.new_namespaces:
            await _create_namespaces(writes, edit.new_namespaces, account_of(request))
        made = await _write(writes, wanted)
        await _keep(versions, made, request, edit.summary)
        return Written(QuotaTreeWritten(_version(made)))

    return PlannedWrite(
        target=AuditTarget("ElasticQuotaTree", TREE_NAMESPACE, TREE_NAME),
        act=act,
        summary=edit.summary[:500],
        faults=edit.faults,
        version=_version(stored),
        current=await _current(board, stored, request),
        preview=edit.preview,
    )


async def _current(board: BoardState, stored: Manifest | None, request: Request) -> Any:
    """The page of the tree as it is now, for a client that has read another; else None."""
    if _version(stored) == request.headers.get("if-match", "").strip().removeprefix("W/").strip(
        '"'
    ):
        return None
    tree = read_tree(stored) if stored is not None else None
    # In a thread: the use of every node is counted.
    return await asyncio.to_thread(
        lambda: board.quota_tree if tree is None else board.tree_page(tree)
    )


async def tree_versions(desk: SignInDesk | None, hint: str) -> QuotaTreeVersions:
    """The versions that the store has.

    Raises Refused, 404, where users do not sign in, so that none are kept. `hint`: how they do.
    """
    versions = desk.versions if desk is not None else None
    if versions is None:
        raise Refused(
            404,
            "this console keeps no versions of the quota tree, because users do not sign in",
            hint,
        )
    return QuotaTreeVersions([_shown(each) for each in await versions.tree_versions()])


def _shown(version: TreeVersion) -> QuotaTreeVersion:
    spec = msgspec.json.decode(version.tree)
    object_ = {**new_object({}), "spec": spec}
    return QuotaTreeVersion(
        id=version.id,
        at=datetime.fromtimestamp(version.at / 1000, UTC).isoformat(timespec="seconds"),
        actor=version.actor,
        summary=version.summary,
        yaml=render_manifests([object_]),
        nodes=node_orders(read_tree(object_)),
    )


async def _stored(writes: ClusterWrites) -> Manifest | None:
    try:
        return await writes.read(TREE)
    except NotFound:
        return None


def _version(stored: Manifest | None) -> str:
    return NO_TREE if stored is None else version_of(read_tree(stored))


async def _write(writes: ClusterWrites, wanted: _Wanted) -> Manifest:
    """Raises ChangedMeanwhile if the tree itself was changed since it was read."""
    stored, root = wanted.stored, wanted.edit.root
    if stored is None:
        made = await writes.write(CreateObject(new_object(root), plural=TREE.plural))
        return made or new_object(root)
    for number in range(TRIES):
        patch = {
            "metadata": {"resourceVersion": stored["metadata"].get("resourceVersion", "")},
            "spec": {"root": merge_patch(stored["spec"].get("root"), root)},
        }
        try:
            return await writes.write(PatchObject(TREE, patch)) or stored
        except ChangedMeanwhile:
            now = await writes.read(TREE)
            if _version(now) != _version(wanted.stored) or number == TRIES - 1:
                raise
            stored = now
    raise AssertionError("the last try returns or raises")


async def _create_namespaces(writes: ClusterWrites, names: Sequence[str], account: str) -> None:
    """As the administrator. Before the tree, so that no leaf names one that cannot be created; a
    namespace that exists meanwhile is as good.
    """
    for name in names:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        with suppress(ChangedMeanwhile):
            await writes.write(CreateObject(namespace, plural="namespaces"), account)


async def _keep_foreign(versions: TreeVersions | None, stored: Manifest | None) -> None:
    """Stores the tree that is replaced, if another client than the console wrote it."""
    if versions is None or stored is None:
        return
    known = await versions.tree_versions()
    spec = _spec(stored)
    if not known or msgspec.json.decode(known[0].tree) != msgspec.json.decode(spec):
        at = int(datetime.now(UTC).timestamp() * 1000)
        await versions.add_tree_version(TreeVersion(at, "", spec))


async def _keep(
    versions: TreeVersions | None, made: Manifest, request: Request, summary: str
) -> None:
    """After the write. A store that went away meanwhile does not make it undone."""
    if versions is None:
        return
    subject = subject_of(request)
    version = TreeVersion(
        at=int(datetime.now(UTC).timestamp() * 1000),
        actor=subject.user or subject.name,
        tree=_spec(made),
        version=str(made.get("metadata", {}).get("resourceVersion", "")),
        summary=summary[:500],
        request_id=request.state.request_id,
    )
    try:
        await versions.add_tree_version(version)
    except StoreDown as error:
        _log.warning("the version of the quota tree is not kept: %s", error.log_line)


def _spec(stored: Manifest) -> str:
    return msgspec.json.encode(stored.get("spec")).decode()
