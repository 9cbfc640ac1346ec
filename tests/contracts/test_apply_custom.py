"""Contract: server-side apply of custom objects. Their definition defines which lists have keys,
which are sets, and what is atomic.
"""

from __future__ import annotations

from typing import Final

import pytest
from tests.contracts.api_client import JSON_PATCH, MERGE, ApiClient
from tests.contracts.applied import (
    Case,
    Object,
    Step,
    applying,
    differing,
    reported_owners,
    reported_step,
)
from tests.contracts.gadgets import GADGETS, LATER, gadget


def _two(first: Object, second: Object) -> list[Step]:
    """Two managers apply; then the first keeps nothing."""
    return [
        applying("one", gadget(first)),
        applying("two", gadget(second)),
        applying("two", gadget(second), force=True),
        applying("one", gadget({})),
    ]


_ROW: Final = {"name": "a", "size": 1}
CASES: dict[str, Case] = {
    "a default": Case(
        GADGETS,
        [
            applying("one", gadget({})),
            applying("one", gadget({"size": 2})),
            applying("one", gadget({})),
        ],
    ),
    "a list without a type": Case(GADGETS, _two({"plain": ["a"]}, {"plain": ["b"]})),
    "an atomic list": Case(GADGETS, _two({"atoms": ["a"]}, {"atoms": ["a", "b"]})),
    "a set": Case(GADGETS, _two({"tags": ["a", "b"]}, {"tags": ["c", "b"]})),
    "a set with a value twice": Case(GADGETS, [applying("one", gadget({"tags": ["a", "a"]}))]),
    "a list with keys": Case(
        GADGETS, _two({"rows": [_ROW]}, {"rows": [{"name": "b"}, {"name": "a", "size": 2}]})
    ),
    "a set within a list with keys": Case(
        GADGETS,
        _two(
            {"rows": [{"name": "a", "inner": ["x", "y"]}]},
            {"rows": [{"name": "a", "inner": ["y", "z"]}]},
        ),
    ),
    "a key twice": Case(GADGETS, [applying("one", gadget({"rows": [_ROW, _ROW]}))]),
    "no key": Case(GADGETS, [applying("one", gadget({"rows": [{"size": 1}]}))]),
    "two keys, one of them by default": Case(
        GADGETS,
        _two(
            {"places": [{"name": "a"}, {"name": "a", "zone": "y"}]},
            {"places": [{"name": "a", "zone": "z", "size": 3}]},
        ),
    ),
    "a granular object": Case(GADGETS, _two({"pair": {"a": "1"}}, {"pair": {"a": "2", "b": "1"}})),
    "an atomic object": Case(GADGETS, _two({"whole": {"a": "1"}}, {"whole": {"b": "1"}})),
    "a map": Case(GADGETS, _two({"words": {"a": "1"}}, {"words": {"a": "2", "b": "1"}})),
    "an empty map": Case(GADGETS, _two({"words": {}}, {"words": {"b": "1"}})),
    "an object of which nothing is known": Case(
        GADGETS, _two({"open": {"a": {"b": 1}, "c": [1]}}, {"open": {"a": {"d": 1}, "c": [2]}})
    ),
    "an object of which one field is known": Case(
        GADGETS, _two({"half": {"a": "1", "b": {"c": 1}}}, {"half": {"b": {"c": 2}}})
    ),
    "a number or a text": Case(GADGETS, _two({"amount": 1}, {"amount": "1"})),
    "anything": Case(GADGETS, _two({"any": {"a": 1}}, {"any": [1]})),
    "anything that was a list": Case(GADGETS, _two({"any": [1]}, {"any": "x"})),
    "an object within an object": Case(
        GADGETS,
        _two(
            {
                "template": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "a", "labels": {"a": "1"}, "finalizers": ["x.io/a"]},
                    "data": {"a": "1"},
                }
            },
            {
                "template": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "a", "labels": {"b": "1"}, "finalizers": ["x.io/b"]},
                }
            },
        ),
    ),
    "a field that the schema lacks": Case(GADGETS, [applying("one", gadget({"foo": 1}))]),
    "a field beside the spec": Case(GADGETS, [applying("one", gadget({}, foo=1))]),
    "a field of another type": Case(GADGETS, [applying("one", gadget({"size": "x"}))]),
    "a text for an object": Case(GADGETS, [applying("one", gadget({"pair": "x"}))]),
    "a number for a list": Case(GADGETS, [applying("one", gadget({"tags": 1}))]),
    "updates": Case(
        GADGETS,
        [
            Step("POST", "one", gadget({"tags": ["a"], "rows": [_ROW]})),
            Step(MERGE, "two", {"spec": {"tags": ["b"], "rows": [_ROW, {"name": "b"}]}}),
            Step(JSON_PATCH, "three", [{"op": "remove", "path": "/spec/rows/0"}]),
            applying("two", gadget({"tags": ["c"]})),
        ],
    ),
    "a status": Case(
        GADGETS,
        [
            applying("one", gadget({"size": 1}, status={"replicas": 3})),
            applying(
                "two",
                gadget(status={"conditions": [{"type": "A", "status": "True"}]}),
                to="status",
            ),
            applying(
                "three",
                gadget(status={"conditions": [{"type": "B", "status": "True"}], "replicas": 1}),
                to="status",
            ),
            Step(MERGE, "four", {"status": {"replicas": 2}}, "status"),
            applying("two", gadget(status={}), to="status"),
            applying("three", gadget(status={"replicas": 1}), to="status"),
        ],
    ),
    "a scale": Case(
        GADGETS,
        [
            applying("one", gadget({"replicas": 1})),
            Step(MERGE, "two", {"spec": {"replicas": 2}}, "scale"),
            applying("one", gadget({"replicas": 1})),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=[name.replace(" ", "-") for name in CASES])
def test_a_custom_object_has_the_owners_that_it_has_on_the_real_server(
    gadgets: list[tuple[ApiClient, str]], case: Case
) -> None:
    simulated, real = (reported_owners(api, space, case) for api, space in gadgets)
    assert "\n".join(differing(simulated, real)) == ""


def test_owners_of_several_versions(gadgets: list[tuple[ApiClient, str]]) -> None:
    """An applier is the same in every version, an updater is another in each."""
    reported = []
    for api, space in gadgets:
        paths = [f"{path.replace('{s}', space)}/a" for path in (GADGETS, LATER)]
        steps = [
            (0, applying("one", gadget({"size": 2, "tags": ["a", "b"]}))),
            (1, applying("one", gadget({"tags": ["b"]}, "v2"))),
            (1, Step(MERGE, "two", {"spec": {"size": 5}})),
            (0, Step(MERGE, "two", {"spec": {"size": 6, "pair": {"a": "1"}}})),
            (1, applying("one", gadget({"size": 7}, "v2"))),
            (0, applying("three", gadget({"size": 7}))),
            (1, applying("three", gadget({"size": 7}, "v2"), force=True)),
        ]
        reported.append(
            [reported_step(api, space, paths[version], step) for version, step in steps]
        )
        api.delete(paths[0])
    assert "\n".join(differing(*reported)) == ""
