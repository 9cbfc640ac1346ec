"""The ElasticQuotaTree of the documents becomes the model's tree; a broken node names itself."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from fairlead.model.quota.tree import QuotaNode
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree


def read_tree(root: dict[str, Any] | None) -> QuotaNode | None:
    body = {"metadata": {"name": "elasticquotatree"}, "spec": {"root": root}}
    return parse_quota_tree(msgspec.json.decode(json.dumps(body), type=WireQuotaTree))


def test_paths_follow_the_tree_and_dotted_names_lose_their_prefix() -> None:
    root = read_tree(
        {"name": "root", "children": [{"name": "root.a", "children": [{"name": "root.a.1", "namespaces": ["n1"]}, {"name": "free"}]}]}
    )
    assert root is not None
    assert [node.path for node in root.walk()] == ["root", "root.a", "root.a.1", "root.a.free"]
    assert [node.short_name for node in root.leaves()] == ["1", "free"]


def test_unlimited_is_a_missing_key_whatever_its_suffix() -> None:
    root = read_tree({"name": "root", "max": {"cpu": 40, "memory": "2147483647Gi", "nvidia.com/gpu": 2147483647}, "min": {"cpu": "500m"}})
    assert root is not None
    assert root.max == {"cpu": 40_000}
    assert root.min == {"cpu": 500}


def test_no_root_is_no_tree() -> None:
    assert read_tree(None) is None


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ({"name": "root", "children": [{"name": ""}]}, "a child of quota node `root` has no name"),
        ({"name": "root", "max": {"cpu": "lots"}}, "quota node `root`: max of `cpu`: quantity `lots`"),
        ({}, "root has no name"),
    ],
)
def test_a_broken_node_names_itself(root: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_tree(root)


def test_a_bottomless_tree_is_refused() -> None:
    node: dict[str, Any] = {"name": "deep"}
    for level in range(40):
        node = {"name": f"l{level}", "children": [node]}
    with pytest.raises(ValueError, match="deeper than"):
        read_tree(node)
