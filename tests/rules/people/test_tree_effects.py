"""What another quota tree does to groups and bindings."""

from __future__ import annotations

from fairlead.model.people.rows import GroupStatus, User, UserGroup, UserRole
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.rules.people.tree_effects import tree_effects

USERS = {"bob": User("bob", "kube-ai", roles=(UserRole.RESEARCHER,), groups=("team",))}
GROUPS = {"team": UserGroup("team", "kube-ai", leaf="a", status=GroupStatus("a", ("x", "y")))}
THERE = ("x", "y", "z")


def tree(name: str, *spaces: str) -> QuotaTree:
    leaf = QuotaNode(name, name, "root", namespaces=spaces)
    root = QuotaNode("root", "root", children=(leaf,))
    return QuotaTree("elasticquotatree", "kube-system", root)


def test_bindings_follow_the_namespaces_of_the_leaf() -> None:
    found = tree_effects(USERS, GROUPS, THERE, tree("a", "x", "y"), tree("a", "y", "z"))
    assert found.added == (("z", "bob:z:fairlead-researcher"),)
    assert found.removed == (("x", "bob:x:fairlead-researcher"),)
    assert found.renamed == {}


def test_a_renamed_leaf_changes_no_binding() -> None:
    found = tree_effects(USERS, GROUPS, THERE, tree("a", "x", "y"), tree("b", "x", "y"))
    assert (found.renamed, found.added, found.removed) == ({"team": "b"}, (), ())


def test_a_namespace_that_does_not_exist_gets_no_binding_yet() -> None:
    found = tree_effects(USERS, GROUPS, THERE, tree("a", "x", "y"), tree("a", "x", "y", "new"))
    assert (found.added, found.removed) == ((), ())
