"""The state for a quota plan, read from a cluster or a snapshot, perhaps with another tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.model.quota.state import QuotaState
    from fairlead.model.quota.tree import QuotaTree
    from fairlead.model.snapshot import ClusterSnapshot

TREES: Final = "elasticquotatrees"
_NEEDED: Final = ("pods", "nodes")
_OF_NO_WEIGHT: Final = ("events", "gpu-telemetry", "gpu-topologies", "gpu-withheld")


def read_state(
    context: Context, tree: QuotaTree | None = None
) -> tuple[ClusterSnapshot, QuotaState]:
    """With `tree` in the place of the cluster's own. The state has all that is wrong with the tree.

    Raises UserError where there is no tree at all. What else cannot be read is warned of.
    """
    from msgspec.structs import replace

    from fairlead.rules.quota.managed import own_namespaces, with_user_caps_of
    from fairlead.rules.quota.sight import quota_state
    from fairlead.rules.quota.validate import validate

    snapshot = context.world.reader().read_all()
    old = snapshot.quota_tree
    if tree is not None:
        tree = with_user_caps_of(tree, old)
        snapshot = replace(snapshot, quota_tree=tree, quota=tree.sound_root)
    for source in snapshot.sources.values():
        if not source.is_unread or (source.name == TREES and snapshot.quota_tree is not None):
            continue
        message = source.message or str(source.state)
        if source.name in _NEEDED or source.name == TREES:
            raise OutsideError(
                "kubernetes", f"{source.name} cannot be read: {message}", source.hint
            )
        if source.name not in _OF_NO_WEIGHT:
            context.messages.warn(
                f"{source.name} cannot be read, so the answer may be wrong: {message}"
            )
    if snapshot.quota_tree is None:
        raise UserError(
            "the cluster has no quota tree",
            "`kubectl apply` an ElasticQuotaTree called elasticquotatree in namespace "
            "kube-system; `fairlead quota plan --tree FILE` asks "
            "beforehand what it would do",
        )
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
