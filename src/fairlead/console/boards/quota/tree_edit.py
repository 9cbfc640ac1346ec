"""The preview of an edited quota tree, from the plan of the quota controller and the rules of the
people controller.

Specification: docs/spec/console.md#writing-the-quota-tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from fairlead.console.pages.envelope import FieldFault
from fairlead.console.pages.quota_tree import (
    GroupRename,
    QuotaTreeOrder,
    QuotaTreePreview,
    TreeCellChange,
    TreeNodeChange,
    TreeNodeOrder,
)
from fairlead.console.pages.writing.preview import Effect
from fairlead.model.actions import Manifest
from fairlead.model.people.rows import User, UserGroup
from fairlead.model.quota.edit import EditedNode
from fairlead.model.quota.rows import LeafGroup
from fairlead.model.quota.tree import QuotaTree, Violation, ViolationCode
from fairlead.model.resources import amount_text
from fairlead.rules.people.tree_effects import PeopleEffects, tree_effects
from fairlead.rules.quota.edit.cells import edit_faults, refused_cells
from fairlead.rules.quota.edit.difference import tree_difference
from fairlead.rules.quota.managed import own_namespaces
from fairlead.rules.quota.validate import TREE_NAME, TREE_NAMESPACE, validate
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead.wire.quota.tree_edit import edited_root

if TYPE_CHECKING:
    from fairlead.console.boards.board_state import BoardState

NO_TREE: Final = "none"
"""The version of a tree that does not exist."""
_KIND: Final = "ElasticQuotaTree"
_EFFECTS_MAX: Final = 1_000
_NO_BINDINGS: Final = PeopleEffects({}, (), ())


class TreeEdit(Struct, frozen=True):
    """An edit that was looked at. `root`: `spec.root` as it would be written. `new_namespaces`: to
    be created before.
    """

    root: Manifest
    faults: tuple[FieldFault, ...]
    preview: QuotaTreePreview
    summary: str = ""
    new_namespaces: tuple[str, ...] = ()


def version_of(tree: QuotaTree | None) -> str:
    """What names this state of the tree, whatever its status is; "" = it has no API server."""
    if tree is None:
        return NO_TREE
    return f"{tree.uid}.{tree.generation}" if tree.uid else ""


def read_tree(stored: Manifest) -> QuotaTree:
    """The tree of an object as the API server has it, with a fault for whatever is malformed."""
    return parse_quota_tree(msgspec.json.decode(msgspec.json.encode(stored), type=WireQuotaTree))


def edited_nodes(order: QuotaTreeOrder) -> list[EditedNode]:
    return [
        EditedNode(
            each.name,
            each.parent,
            each.formerly,
            each.min,
            each.max,
            tuple(each.namespaces),
            each.attributes,
        )
        for each in order.nodes
    ]


def node_orders(tree: QuotaTree) -> list[TreeNodeOrder]:
    """The tree as a write takes it, every node under the name that it has."""
    return [
        TreeNodeOrder(
            name=node.name,
            parent=node.parent,
            formerly=node.name,
            min={each: amount_text(each, amount) for each, amount in node.min.items()}
            | ({} if node.parent else dict.fromkeys(node.unlimited_min, "")),
            max={each: amount_text(each, amount) for each, amount in node.max.items()}
            | ({} if node.parent else dict.fromkeys(node.unlimited, "")),
            namespaces=list(node.namespaces),
            attributes=dict(node.attributes),
        )
        for node in (tree.root.walk() if tree.root is not None else ())
    ]


def tree_edit(
    board: BoardState,
    stored: Manifest | None,
    order: QuotaTreeOrder,
    users: Mapping[str, User],
    groups: Mapping[str, UserGroup],
) -> TreeEdit:
    """`board`: of the whole cluster. `stored`: the object, None = there is none.

    Raises UserError where plans do not come to an end, ValueError for an order that is no tree.
    """
    nodes = edited_nodes(order)
    root = edited_root(stored, nodes)
    old = read_tree(stored) if stored is not None else None
    new = read_tree({**(stored or new_object({})), "spec": {"root": root}})
    old_root = old.root if old is not None else None
    violations = _violations(board, new, old, groups, nodes)
    faults = _field_faults(violations, new, old)
    if faults or new.root is None:
        return TreeEdit(root, faults, QuotaTreePreview(False, list(faults), []))
    formerly = {node.name: node.formerly for node in nodes}
    difference = tree_difference(old_root, new.root, formerly, board.snapshot.namespace_names)
    what_if = board.effects_of(new, violations)
    created = difference.unknown if order.create_namespaces else ()
    people = _people(board, users, groups, old, new, created)
    preview = QuotaTreePreview(
        valid=True,
        fields=[],
        effects=_effects(what_if.evicted, people, users, created, is_new=stored is None),
        nodes=[
            TreeNodeChange(
                each.name,
                each.change,
                [TreeCellChange(cell.cell, cell.before, cell.after) for cell in each.cells],
            )
            for each in difference.nodes
        ],
        what_if=what_if,
        over_max=sorted({v.path for v in violations if v.code == ViolationCode.OVER_MAX_NOW}),
        raised=list(difference.raised),
        governed=list(difference.governed),
        released=list(difference.released),
        unknown_namespaces=[each for each in difference.unknown if each not in created],
        groups=[
            GroupRename(name, groups[name].leaf, leaf) for name, leaf in people.renamed.items()
        ],
    )
    changes = [f"{each.change} {each.name}" for each in difference.nodes]
    changes += [f"created namespace {each}" for each in created]
    summary = ", ".join(changes[:10])
    more = len(changes) - 10
    summary += f" and {more} more" if more > 0 else ""
    return TreeEdit(root, (), preview, summary, created)


def new_object(root: Manifest) -> Manifest:
    """The object of a cluster's first tree."""
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": _KIND,
        "metadata": {"name": TREE_NAME, "namespace": TREE_NAMESPACE},
        "spec": {"root": root},
    }


def _violations(
    board: BoardState,
    new: QuotaTree,
    old: QuotaTree | None,
    groups: Mapping[str, UserGroup],
    nodes: Sequence[EditedNode],
) -> tuple[Violation, ...]:
    seen = board.snapshot
    found = validate(
        new,
        old,
        seen.namespace_names,
        seen.pods,
        [LeafGroup(each.name, each.leaf) for each in groups.values() if each.leaf],
        state=board.state_under(new),
        own=own_namespaces(seen.namespaces),
    )
    own = tuple(edit_faults(nodes, old.root if old is not None else None))
    return (*own, *found)


def _field_faults(
    violations: Sequence[Violation], new: QuotaTree, old: QuotaTree | None
) -> tuple[FieldFault, ...]:
    before = old.root if old is not None else None
    cells = refused_cells(violations, new.root, before)
    return tuple(FieldFault(each.path, each.rule, each.message, each.code) for each in cells)


def _people(
    board: BoardState,
    users: Mapping[str, User],
    groups: Mapping[str, UserGroup],
    old: QuotaTree | None,
    new: QuotaTree,
    created: Sequence[str],
) -> PeopleEffects:
    if not groups:
        return _NO_BINDINGS
    seen = board.snapshot
    there = (*(seen.namespace_names or ()), *created)
    return tree_effects(users, groups, there, old, new, own_namespaces(seen.namespaces))


def _effects(
    evicted: Sequence[Any],
    people: PeopleEffects,
    users: Mapping[str, User],
    created: Sequence[str],
    *,
    is_new: bool,
) -> list[Effect]:
    place = next((each.namespace for each in users.values()), "")
    found = [Effect("create", "Namespace", "", name) for name in created]
    found += [Effect("create" if is_new else "update", _KIND, TREE_NAMESPACE, TREE_NAME)]
    found += [Effect(each.how, "Pod", each.namespace, each.pod) for each in evicted]
    found += [Effect("update", "UserGroup", place, name) for name in people.renamed]
    for verb, keys in (("create", people.added), ("delete", people.removed)):
        found += [
            Effect(verb, "RoleBinding" if space else "ClusterRoleBinding", space, name)
            for space, name in keys
        ]
    return found[:_EFFECTS_MAX]
