"""What quota commands read of a cluster or a snapshot: the state for a plan, perhaps with another
tree, or, for a user without the rights for a plan, what the quota controller has written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.errors import OutsideError, UserError
from fairlead.model.resources import PODS

if TYPE_CHECKING:
    from fairlead.model.quota.plan import QuotaNodeUse
    from fairlead.model.quota.state import QuotaState
    from fairlead.model.quota.tree import QuotaTree
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.model.source import Source

TREES: Final = "elasticquotatrees"
_NEEDED: Final = (PODS, "nodes")
_OF_NO_WEIGHT: Final = ("events", "gpu-telemetry", "gpu-topologies", "gpu-withheld")
_PLAN_HINT: Final = (
    "a plan needs the pods of all namespaces: `fairlead quota why NAMESPACE/POD` needs the rights "
    "of the pod's namespace alone, and so does the console's page My work"
)
_CREATE_TREE: Final = (
    "`kubectl apply` an ElasticQuotaTree called elasticquotatree in namespace kube-system"
)


def read_cluster(context: Context) -> ClusterSnapshot:
    """The cluster, without warnings: `sources` has what could not be read."""
    return context.world.reader().read_all(with_warnings=False)


def hides_pods(snapshot: ClusterSnapshot) -> bool:
    """Whether the user may not read the pods of all namespaces, so that there can be no plan."""
    pods = snapshot.sources.get(PODS)
    return pods is not None and pods.is_forbidden


def tree_of(snapshot: ClusterSnapshot) -> QuotaTree:
    """Raises UserError where there is none, or one that cannot be read."""
    tree, source = snapshot.quota_tree, snapshot.sources.get(TREES)
    if tree is not None and tree.faults:
        raise UserError(
            f"the quota tree is invalid: {tree.faults[0].message}",
            "`fairlead quota validate FILE` names every fault of it",
        )
    if tree is not None:
        return tree
    if source is not None and source.is_unread:
        raise OutsideError(
            "kubernetes",
            f"the quota tree cannot be read: {source.message or source.state}",
            source.hint,
        )
    raise UserError("the cluster has no quota tree", _CREATE_TREE)


def note_reported(tree: QuotaTree, uses: Sequence[QuotaNodeUse], context: Context) -> None:
    """Prints that there is no plan, and warns if `uses`, which are from the status of the tree, are
    of another version of it.
    """
    context.messages.info(
        "the pods of all namespaces cannot be read, so this is what the quota controller has "
        "written: the tree's status and the conditions of pods"
    )
    if uses and tree.status.get("observedGeneration") != tree.generation:
        context.messages.warn(
            "the tree has changed since the quota controller wrote its status: ask an "
            "administrator whether the controller runs"
        )


def warn_of_unread(snapshot: ClusterSnapshot, context: Context) -> None:
    """Warns of each source that an answer needs and that could not be read."""
    for source in snapshot.sources.values():
        if source.is_unread and source.name not in (TREES, *_OF_NO_WEIGHT):
            context.messages.warn(
                f"{source.name} cannot be read, so the answer may be wrong: "
                f"{source.message or source.state}"
            )


def read_state(
    context: Context, tree: QuotaTree | None = None
) -> tuple[ClusterSnapshot, QuotaState]:
    """With `tree` in the place of the cluster's own."""
    return state_of(read_cluster(context), context, tree)


def state_of(
    snapshot: ClusterSnapshot, context: Context, tree: QuotaTree | None = None
) -> tuple[ClusterSnapshot, QuotaState]:
    """With `tree` in the place of the cluster's own. The state has all that is wrong with the tree.

    Raises UserError where there is no tree at all. What else cannot be read is warned of.
    """
    from msgspec.structs import replace

    from fairlead.rules.quota.managed import own_namespaces, with_user_caps_of
    from fairlead.rules.quota.sight import quota_state
    from fairlead.rules.quota.validate import validate

    old = snapshot.quota_tree
    if tree is not None:
        tree = with_user_caps_of(tree, old)
        snapshot = replace(snapshot, quota_tree=tree, quota=tree.sound_root)
    if hides_pods(snapshot):
        raise OutsideError("kubernetes", _unread(snapshot.sources[PODS]), _PLAN_HINT)
    for source in snapshot.sources.values():
        if not source.is_unread or (source.name == TREES and snapshot.quota_tree is not None):
            continue
        if source.name in _NEEDED or source.name == TREES:
            raise OutsideError("kubernetes", _unread(source), source.hint)
    warn_of_unread(snapshot, context)
    if snapshot.quota_tree is None:
        hint = f"{_CREATE_TREE}; `fairlead quota plan --tree FILE` asks beforehand what it would do"
        raise UserError("the cluster has no quota tree", hint)
    state = quota_state(snapshot, snapshot.taken_at or context.now())
    violations = validate(
        snapshot.quota_tree,
        old,
        snapshot.namespace_names,
        snapshot.pods,
        state=state,
        own=own_namespaces(snapshot.namespaces),
    )
    return snapshot, replace(state, violations=violations)


def _unread(source: Source) -> str:
    return f"{source.name} cannot be read: {source.message or source.state}"
