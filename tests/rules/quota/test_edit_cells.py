"""Which cell of the editor each violation is on, by which rule; and the editor's own rules."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.model.quota.edit import EditedNode
from fairlead.model.quota.tree import QuotaNode, QuotaTree, ViolationCode
from fairlead.rules.quota.edit.cells import RULES, edit_faults, refused_cells
from fairlead.rules.quota.validate import TREE_NAME, TREE_NAMESPACE, validate

WARNINGS = {
    ViolationCode.ATTRIBUTE_NOT_ENFORCED,
    ViolationCode.ROOT_EXCEEDS_CLUSTER,
    ViolationCode.NO_SUCH_NAMESPACE,
    ViolationCode.LEAF_WITHOUT_NAMESPACE,
    ViolationCode.SUM_OF_MIN_BELOW_PARENT,
    ViolationCode.OVER_MAX_NOW,
    ViolationCode.UNDER_USE,
}
RULE_IDS = {
    *("name", "min-le-max", "children-min", "child-max", "root-equal", "resource-known"),
    *("quantity", "ns-leaf", "ns-once", "ns-quiet", "delete-leaf"),
}


def tree(*leaves: QuotaNode, **root: Any) -> QuotaNode:
    return QuotaNode("root", "root", "", {"cpu": 4}, {"cpu": 4}, children=leaves, **root)


def leaf(name: str, least: int = 0, most: int = 4, *spaces: str, **more: Any) -> QuotaNode:
    return QuotaNode(name, name, "root", {"cpu": least}, {"cpu": most}, spaces, **more)


def cells(now: QuotaNode, old: QuotaNode | None = None) -> set[tuple[str, str, str]]:
    made = QuotaTree(TREE_NAME, TREE_NAMESPACE, now)
    before = QuotaTree(TREE_NAME, TREE_NAMESPACE, old) if old is not None else None
    return {
        (each.path, each.rule, each.code)
        for each in refused_cells(validate(made, before), now, old)
    }


def test_every_code_that_refuses_a_tree_has_one_of_the_editors_rules() -> None:
    assert set(RULES) == set(ViolationCode) - WARNINGS
    assert set(RULES.values()) == RULE_IDS


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (tree(leaf("a", 3), leaf("b", 2)), ("b.min.cpu", "children-min")),
        (tree(leaf("a", 2, 5)), ("a.max.cpu", "child-max")),
        (tree(leaf("a", 3, 2)), ("a.min.cpu", "min-le-max")),
        (tree(leaf("a", 0, 4, "x"), leaf("b", 0, 4, "x")), ("b.namespaces", "ns-once")),
        (tree(leaf("a", 0, 4, "kube-system")), ("a.namespaces", "ns-leaf")),
        (tree(leaf("a"), namespaces=("x",)), ("root.namespaces", "ns-leaf")),
        (tree(leaf("a"), leaf("a")), ("a.name", "name")),
        (
            tree(QuotaNode("a", "a", "root", {"gpu": 1}, {})),
            ("a.min.gpu", "resource-known"),
        ),
        (
            QuotaNode("root", "root", "", {"cpu": 1}, {"cpu": 2}),
            ("root.min.cpu", "root-equal"),
        ),
    ],
)
def test_a_violation_is_on_its_cell(now: QuotaNode, found: tuple[str, str]) -> None:
    old = tree(leaf("a", 3), leaf("b", 1))
    assert found in {cell[:2] for cell in cells(now, old)}


def test_too_large_a_sum_is_on_every_min_that_was_raised_else_on_the_parents() -> None:
    old = tree(leaf("a", 2), leaf("b", 2))
    code = "SumOfMinExceedsParent"
    assert cells(tree(leaf("a", 3), leaf("b", 2)), old) == {("a.min.cpu", "children-min", code)}
    less = QuotaNode("root", "root", "", {"cpu": 3}, {"cpu": 3}, children=old.children)
    assert ("root.min.cpu", "children-min", code) in cells(less, old)


@pytest.mark.parametrize(
    ("node", "cell"),
    [
        (EditedNode("root.a.1", "root.a"), None),
        (EditedNode("root.a.b.c", "root.a"), "name"),
        (EditedNode("x y", "root"), "name"),
        (EditedNode("a" * 64, "root"), "name"),
        (EditedNode("a" * 63, "root"), None),
        (EditedNode("小组", "root"), "name"),
        (EditedNode("root.", "root"), "name"),
        (EditedNode("old name", "root", "old name"), None),
        (EditedNode("a", min={"memory": "128"}), "min.memory"),
        (EditedNode("a", min={"memory": "128Mi", "cpu": "128"}), None),
        (EditedNode("a", max={"memory": "2147483647"}), None),
        (EditedNode("old name", "root", "old name", {"memory": "7"}), None),
    ],
)
def test_new_names_and_bare_amounts_of_memory(node: EditedNode, cell: str | None) -> None:
    old = tree(QuotaNode("old name", "old name", "root", {"memory": 7}))
    found = list(edit_faults([node], old))
    assert [each.cell for each in found] == ([cell] if cell else [])
