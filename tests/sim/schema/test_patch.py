"""Patches: they have the right result, share the parts that they do not change, and never change
their input.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_sim.schema.patch import apply_json_patch, apply_merge_patch, apply_strategic_patch
from fairlead_sim.schema.status import ApiStatus

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


def _difference(old: Any, new: Any) -> Any:
    """The merge patch that turns `old` into `new` (objects without nulls)."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone = {key: None for key in old if key not in new}
    return {
        **gone,
        **{
            key: _difference(old.get(key), value)
            for key, value in new.items()
            if key not in old or old[key] != value
        },
    }


def _without_nulls(value: Any) -> Any:
    """A merge patch cannot express nulls in objects; it can express those in lists."""
    if isinstance(value, dict):
        return {key: _without_nulls(held) for key, held in value.items() if held is not None}
    return value


@given(OBJECT, OBJECT)
def test_a_merge_patch_makes_any_object_of_any_other(old: Any, new: Any) -> None:
    old, new = _without_nulls(old), _without_nulls(new)
    before = copy.deepcopy(old)
    assert apply_merge_patch(old, _difference(old, new)) == new
    assert old == before


@given(OBJECT, OBJECT)
def test_patches_never_change_what_they_are_given(old: Any, patch: Any) -> None:
    before = copy.deepcopy((old, patch))
    apply_strategic_patch(old, patch, "core.Pod")
    apply_merge_patch(old, patch)
    assert (old, patch) == before


def test_what_a_patch_leaves_alone_is_shared() -> None:
    old = {"a": {"x": 1}, "b": {"y": [1]}}
    assert apply_merge_patch(old, {"a": {"x": 2}})["b"] is old["b"]
    assert apply_strategic_patch(old, {"a": {"x": 2}}, None)["b"] is old["b"]


@pytest.mark.parametrize(
    ("old", "patch", "new"),
    [
        ([{"name": "a", "v": 1}], [{"name": "b"}], [{"name": "b"}, {"name": "a", "v": 1}]),
        ([{"name": "a", "v": 1}], [{"name": "a", "$patch": "delete"}], []),
        ([{"name": "a"}], [{"$patch": "replace"}, {"name": "b"}], [{"name": "b"}]),
    ],
)
def test_lists_with_a_merge_key(old: Any, patch: Any, new: Any) -> None:
    assert apply_strategic_patch({"containers": old}, {"containers": patch}, "core.PodSpec") == {
        "containers": new
    }


def test_lists_without_one_are_replaced() -> None:
    assert apply_strategic_patch({"args": ["a"]}, {"args": ["b"]}, "core.Container") == {
        "args": ["b"]
    }
    assert apply_strategic_patch(
        {"tolerations": [{"key": "x"}]}, {"tolerations": []}, "core.PodSpec"
    ) == {"tolerations": []}


def test_lists_of_one_name_have_the_key_of_their_kind() -> None:
    """A container's ports are matched by their container port, a service's by their port; those of
    a network policy are replaced.
    """
    two = [{"containerPort": 1, "port": 1}, {"containerPort": 2, "port": 1}]
    patch = {"ports": [{"containerPort": 2, "port": 1, "name": "x"}]}
    assert [
        port.get("name")
        for port in apply_strategic_patch({"ports": two}, patch, "core.Container")["ports"]
    ] == [None, "x"]
    assert [
        port.get("name")
        for port in apply_strategic_patch({"ports": two}, patch, "core.ServiceSpec")["ports"]
    ] == ["x", None]
    assert (
        apply_strategic_patch({"ports": two}, patch, "networking.NetworkPolicyIngressRule") == patch
    )


def test_the_order_that_a_patch_asks_for() -> None:
    old = {"env": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}
    patch = {
        "$setElementOrder/env": [{"name": "c"}, {"name": "a"}],
        "env": [{"name": "c", "value": "1"}],
    }
    assert [
        item["name"] for item in apply_strategic_patch(old, patch, "core.Container")["env"]
    ] == ["b", "c", "a"]


def test_keys_to_retain() -> None:
    old = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert apply_strategic_patch(old, patch, "apps.DeploymentSpec") == {
        "strategy": {"type": "Recreate"}
    }


@pytest.mark.parametrize(
    ("operation", "new"),
    [
        ({"op": "add", "path": "/l/1", "value": 9}, {"l": [1, 9, 2], "a/b": 1}),
        ({"op": "add", "path": "/l/-", "value": 9}, {"l": [1, 2, 9], "a/b": 1}),
        ({"op": "remove", "path": "/l/0"}, {"l": [2], "a/b": 1}),
        ({"op": "replace", "path": "/a~1b", "value": 2}, {"l": [1, 2], "a/b": 2}),
        ({"op": "move", "from": "/l/0", "path": "/first"}, {"l": [2], "a/b": 1, "first": 1}),
        ({"op": "replace", "path": "/x", "value": 2}, {"l": [1, 2], "a/b": 1, "x": 2}),
        ({"op": "test", "path": "/x", "value": None}, {"l": [1, 2], "a/b": 1}),
    ],
)
def test_json_patch_operations(operation: Any, new: Any) -> None:
    assert apply_json_patch({"l": [1, 2], "a/b": 1}, [operation]) == new


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/l/2"},
        {"op": "add", "path": "/l/3", "value": 1},
        {"op": "replace", "path": "/x/y", "value": 1},
        {"op": "test", "path": "/l", "value": [1]},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "remove", "path": ""},
        {"op": "move", "from": "/x", "path": "/y"},
        {"op": "add"},
        {"op": "sing", "path": "/l"},
        {"op": "add", "path": "/l/one", "value": 1},
    ],
)
def test_json_patch_operations_that_do_not_apply(operation: Any) -> None:
    with pytest.raises(ApiStatus) as caught:
        apply_json_patch({"l": [1, 2]}, [operation])
    assert caught.value.code == 422


@pytest.mark.parametrize("patch", [{}, "x", [1]])
def test_what_is_no_json_patch(patch: Any) -> None:
    with pytest.raises(ApiStatus) as caught:
        apply_json_patch({"l": [1, 2]}, patch)
    assert caught.value.code == 400


def test_webhooks_are_merged_by_their_name() -> None:
    stored = {"webhooks": [{"name": "a", "timeoutSeconds": 5}, {"name": "b"}]}
    patch = {
        "$setElementOrder/webhooks": [{"name": "b"}, {"name": "a"}],
        "webhooks": [{"name": "a", "rules": []}],
    }
    merged = apply_strategic_patch(
        stored, patch, "admissionregistration.MutatingWebhookConfiguration"
    )
    assert merged == {"webhooks": [{"name": "b"}, {"name": "a", "timeoutSeconds": 5, "rules": []}]}


def test_an_order_of_what_has_no_key_changes_nothing() -> None:
    stored = {"rules": [{"a": 1}, {"b": 2}], "finalizers": ["x", "y"]}
    patch = {"$setElementOrder/rules": [{"c": 3}], "$setElementOrder/finalizers": [{}, ["y"]]}
    assert apply_strategic_patch(stored, patch, "meta.ObjectMeta") == stored


def test_copies_add_no_more_than_the_real_server_lets_them() -> None:
    """kube-apiserver's `JSONPatchMaxCopyBytes`: 3 MiB of compact JSON, of all copies of a patch
    together.
    """
    text = "x" * (1 << 20)
    copies = [{"op": "copy", "from": "/a", "path": f"/b{number}"} for number in range(4)]
    doubling = [{"op": "copy", "from": "/d", "path": f"/d/{key}"} for key in "bc" * 20]
    assert len(apply_json_patch({"a": text[2:]}, copies[:3])) == 4
    for target, steps in (({"a": text}, copies[:3]), ({"d": {"a": 1}}, doubling)):
        with pytest.raises(ApiStatus) as refused:
            apply_json_patch(target, steps)
        assert refused.value.code == 422
