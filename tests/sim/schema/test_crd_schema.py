"""Structural schemas applied to values: what contracts with the real server cannot see, that values
are not changed in place and which parts are shared.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlead_sim.schema.crd_schema import defaulted, pruned, schema_errors

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 1},
                "deep": {
                    "type": "object",
                    "default": {},
                    "properties": {"level": {"type": "integer", "default": 3}},
                },
                "list": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"a": {"type": "string", "default": "x"}},
                    },
                },
                "map": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {"a": {"type": "string"}},
                    },
                },
                "free": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": {"type": "object"}},
                },
                "inner": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {},
                },
            },
        },
    },
}
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(("spec", "size", "deep", "list", "map", "free", "a")), inner
        )
    ),
    max_leaves=9,
)


def test_defaults_of_defaults() -> None:
    assert defaulted(SCHEMA, {"spec": {"list": [{}, {"a": "y"}]}}) == {
        "spec": {"size": 1, "deep": {"level": 3}, "list": [{"a": "x"}, {"a": "y"}]},
    }
    assert defaulted(SCHEMA, {"spec": {"size": None}})["spec"]["size"] == 1


def test_an_object_that_misses_nothing_is_the_same_object() -> None:
    whole = {"spec": {"size": 2, "deep": {"level": 1}}}
    assert defaulted(SCHEMA, whole) is whole


def test_pruning_reports_where_and_keeps_what_is_free() -> None:
    unknown: list[str] = []
    spec = {
        "no": 1,
        "list": [{"b": 1}],
        "map": {"k": {"a": "", "b": 1}},
        "free": {"x": {"y": 1}, "known": {"z": 1}},
        "inner": {"apiVersion": "v1", "kind": "K", "metadata": {"any": 1}, "other": 1},
    }
    kept = pruned(
        SCHEMA,
        {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec},
        unknown,
    )
    assert kept["spec"] == {
        "list": [{}], "map": {"k": {"a": ""}}, "free": {"x": {"y": 1}, "known": {}},
        "inner": {"apiVersion": "v1", "kind": "K", "metadata": {"any": 1}},
    }  # fmt: skip
    assert unknown == [
        "spec.free.known.z",
        "spec.inner.other",
        "spec.list[0].b",
        "spec.map.k.b",
        "spec.no",
    ]
    assert kept["metadata"] == {"name": "a"}


def test_alternatives() -> None:
    one = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert not schema_errors(one, {"a": 1})
    assert schema_errors(one, {"a": 1, "b": 1})[0].message.endswith(
        "(oneOf). Found 2 valid alternatives"
    )
    assert schema_errors({"anyOf": [{"required": ["a"]}]}, {})[0].message.endswith(
        "must validate at least one schema (anyOf)"
    )
    assert schema_errors({"not": {"required": ["a"]}}, {"a": 1})[0].message.endswith(
        "must not validate the schema (not)"
    )
    assert (
        schema_errors({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1})[0].field
        == "b"
    )


@given(_values)
def test_nothing_is_changed_in_place_and_what_is_filled_in_stays(value: Any) -> None:
    body = {"spec": value}
    before = copy.deepcopy(body)
    once = defaulted(SCHEMA, pruned(SCHEMA, body, []))
    assert body == before
    unknown: list[str] = []
    assert defaulted(SCHEMA, pruned(SCHEMA, once, unknown)) == once and unknown == []
    schema_errors(SCHEMA, once)
