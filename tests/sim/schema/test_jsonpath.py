"""JSONPath of printer columns: what it finds, and that a missing field finds nothing."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_sim.schema.jsonpath import find_all, find_first, parse_json_path

OBJ = {
    "metadata": {"labels": {"x.io/y": "z"}},
    "spec": {"size": 3, "tags": ["a", "b", "c"]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Done", "status": "False", "n": 5},
            {"type": "Odd"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.size", [3]),
        (".spec['size']", [3]),
        (r".metadata.labels.x\.io/y", ["z"]),
        (".metadata.labels['x.io/y']", ["z"]),
        (".spec.tags[0]", ["a"]),
        (".spec.tags[-1]", ["c"]),
        (".spec.tags[-1:]", ["c"]),
        (".spec.tags[0:2]", ["a", "b"]),
        (".spec.tags[*]", ["a", "b", "c"]),
        (".status.conditions[*].type", ["Ready", "Done", "Odd"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Done')].status", ["False"]),
        (".status.conditions[?(@.n>1)].type", ["Done"]),
        (".status.conditions[?(@.n)].type", ["Ready", "Done"]),
        (".status.conditions[?(@.type!='Odd')].type", ["Ready", "Done"]),
        (".spec.nothing.at.all", []),
        (".spec.tags[9]", []),
        (".spec.size[0]", []),
        (".status.conditions[?(@.type>3)].type", []),
    ],
)
def test_what_a_path_finds(path: str, found: list[Any]) -> None:
    assert find_all(path, OBJ) == found
    assert find_first(path, OBJ) == (found[0] if found else None)


@pytest.mark.parametrize("path", ["spec", ".a[", ".a[?(@.b==)]", ".a..b", ".a[x]", "{.a}"])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match="`"):
        parse_json_path(path)
    assert find_first(path, OBJ) is None
