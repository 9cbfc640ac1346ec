"""An edit merged into the stored tree: what it does not speak of stays as it is written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.quota.edit import EditedNode
from fairlead.wire.quota.tree_edit import edited_root, merge_patch

VALUES = st.recursive(
    st.integers(0, 3) | st.text(max_size=2),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(st.sampled_from("abc"), each),
    max_leaves=8,
)


def applied(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = applied(made.get(name), value)
    return made


@given(st.dictionaries(st.sampled_from("abc"), VALUES), st.dictionaries(st.text("abc"), VALUES))
def test_a_merge_patch_makes_the_one_of_the_other(before: Any, after: Any) -> None:
    assert applied(before, merge_patch(before, after)) == after


def stored(root: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"root": {"name": "root", **root}}}


def test_fields_of_other_writers_and_amounts_that_are_the_same_are_kept() -> None:
    leaf = {
        "name": "a",
        "min": {"cpu": "1000m", "kube-queue/max-jobs": 3},
        "max": {"cpu": 2147483647},
        "attributes": {"x": "y"},
        "newer": [1],
    }
    before = stored({"min": {"cpu": 4}, "max": {"cpu": 4}, "children": [leaf]})
    made = edited_root(
        before,
        [
            EditedNode("root", "", "root", {"cpu": "4"}, {"cpu": "4.0"}),
            EditedNode("b", "root", "a", {"cpu": "1"}, {}, ("ns",)),
        ],
    )
    assert made["max"] == {"cpu": 4}
    assert made["children"] == [{**leaf, "name": "b", "namespaces": ["ns"]}]


def test_changed_amounts_are_written_in_their_shortest_form() -> None:
    made = edited_root(
        None, [EditedNode("root", min={"cpu": "1500m", "memory": "16384Mi"}, max={"cpu": "lots"})]
    )
    assert made == {
        "name": "root",
        "min": {"cpu": "1500m", "memory": "16Gi"},
        "max": {"cpu": "lots"},
    }


def test_a_resource_that_the_root_no_longer_names_goes() -> None:
    node = {"min": {"cpu": 4, "memory": "1Gi"}, "max": {"cpu": 4, "memory": "1Gi"}}
    before = stored({**node, "children": [{"name": "a", **node}]})
    made = edited_root(
        before,
        [
            EditedNode("root", "", "root", {"cpu": ""}, {"cpu": ""}),
            EditedNode("a", "root", "a", {"cpu": "4"}, {}),
        ],
    )
    assert (made["min"], made["max"]) == ({"cpu": "2147483647"}, {"cpu": "2147483647"})
    assert (made["children"][0]["min"], made["children"][0]["max"]) == ({"cpu": 4}, {})


@pytest.mark.parametrize("parent", ["", "nowhere", "b"])
def test_a_node_comes_after_its_parent(parent: str) -> None:
    with pytest.raises(ValueError, match="does not come before it"):
        edited_root(None, [EditedNode("root"), EditedNode("b", parent)])
