"""The ElasticQuotaTree of the documents becomes the model's tree. A fault names its node, and the
rest is read all the same.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from fairlead.model.quota.tree import QuotaNode, QuotaSettings, QuotaTree
from fairlead.wire.quota.elastic_quota import LEVELS_MAX, WireQuotaTree, parse_quota_tree

COUNTED = "which is a fraction of a resource that is counted in whole units"


def read_object(**fields: Any) -> QuotaTree:
    body = {"metadata": {"name": "elasticquotatree", "namespace": "kube-system"}, **fields}
    return parse_quota_tree(msgspec.json.decode(json.dumps(body), type=WireQuotaTree))


def read_tree(root: Any) -> QuotaTree:
    return read_object(spec={"root": root})


def read_root(root: dict[str, Any]) -> QuotaNode:
    tree = read_tree(root)
    assert tree.faults == ()
    assert tree.root is not None
    assert tree.sound_root is tree.root
    return tree.root


def faults(tree: QuotaTree) -> list[str]:
    assert all(fault.code == "BadShape" and fault.stops and fault.is_error for fault in tree.faults)
    return [fault.message for fault in tree.faults]


def test_paths_follow_the_tree_and_dotted_names_lose_their_prefix() -> None:
    root = read_root(
        {
            "name": "root",
            "children": [
                {
                    "name": "root.a",
                    "children": [{"name": "root.a.1", "namespaces": ["n1"]}, {"name": "free"}],
                }
            ],
        }
    )
    assert [node.path for node in root.walk()] == ["root", "root.a", "root.a.1", "root.a.free"]
    assert [node.short_name for node in root.leaves()] == ["1", "free"]
    assert [node.parent for node in root.walk()] == ["", "root", "root.a", "root.a"]


@pytest.mark.parametrize(
    "text",
    [
        "2147483647Gi",
        2147483647,
        "2147483647",
        "2147483647m",
        "2147483647k",
        "2147483647e3",
        2147483647.0,
    ],
)
def test_unlimited_is_a_missing_amount_whatever_its_suffix(text: str | float) -> None:
    root = read_root(
        {"name": "root", "max": {"cpu": 40, "memory": text}, "min": {"cpu": "500m", "memory": text}}
    )
    assert (root.max, root.unlimited) == ({"cpu": 40_000}, ("memory",))
    assert (root.min, root.unlimited_min) == ({"cpu": 500}, ("memory",))
    assert root.resources == {"cpu", "memory"}


@pytest.mark.parametrize("text", ["2147483648", "21474836470", "2147483646Gi", "2147483647.5"])
def test_what_only_looks_like_unlimited_is_a_number(text: str) -> None:
    root = read_root({"name": "root", "max": {"memory": text}})
    assert root.unlimited == ()
    assert root.max["memory"] > 2147483646


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "0.5", 500),
        ("cpu", 0.5, 500),
        ("cpu", "0.0001", 1),
        ("cpu", "1e3", 1_000_000),
        ("memory", "1e3", 1000),
        ("memory", "1.5Gi", 1610612736),
        ("memory", "0.5", 1),
        ("nvidia.com/gpu", "1e3", 1000),
        ("nvidia.com/gpu", 1e3, 1000),
        ("nvidia.com/gpu", "2000m", 2),
        ("aliyun.com/gpu-mem", "0.5k", 500),
        ("nvidia.com/gpu", "-0", 0),
        ("memory", "9223372036854775807", 2**63 - 1),
        ("kube-queue/max-jobs", 3, 3),
    ],
)
def test_amounts_are_exact_and_rounded_up(resource: str, text: str | float, amount: int) -> None:
    assert read_root({"name": "root", "max": {resource: text}}).max == {resource: amount}


def test_what_other_tools_write_beside_the_tree_is_no_fault() -> None:
    tree = read_object(
        spec={"root": {"name": "root"}},
        status={"root": 5},
        kind="ElasticQuotaTree",
        apiVersion="x/v1",
    )
    assert (tree.faults, tree.status) == ((), {"root": 5})
    assert read_object(spec={"root": {"name": "root"}}, status="ill").status == {}


def test_the_object_is_known_again() -> None:
    metadata = {
        "name": "t",
        "namespace": "n",
        "uid": "u",
        "generation": 7,
        "annotations": {"fairlead.io/adopt-running": "true", "x": "y"},
    }
    tree = read_object(metadata=metadata, spec={"root": {"name": "root"}})
    assert (tree.name, tree.namespace, tree.uid, tree.generation) == ("t", "n", "u", 7)
    assert tree.annotations == {"fairlead.io/adopt-running": "true"}


def test_what_the_root_sets_is_read_and_what_another_node_sets_is_not() -> None:
    attributes = {
        "fairlead.io/surge-wait": "5s",
        "fairlead.io/refused-victim-wait": "1m30s",
        "fairlead.io/unbound-return": "1h",
        "fairlead.io/stuck-after": "1d",
        "fairlead.io/longest-grace": "2m",
        "fairlead.io/bare-pods-preemptible": "true",
    }
    leaf = {"name": "leaf", "attributes": {"fairlead.io/surge-wait": "7s"}}
    tree = read_tree({"name": "root", "attributes": attributes, "children": [leaf]})
    assert tree.faults == ()
    assert tree.settings == QuotaSettings(5, 90, 3600, 86400, 120, are_bare_pods_preemptible=True)
    assert read_tree({"name": "root"}).settings == QuotaSettings(
        60, 30, 300, 300, 300, are_bare_pods_preemptible=False
    )


def test_attributes_are_kept_and_those_with_lists_are_read() -> None:
    attributes = {
        "alibabacloud.com/lendlimit": '{"cpu":"5"}',
        "fairlead.io/user-cap": '{"nvidia.com/gpu":"4"}',
        "other": "kept",
        "none": None,
    }
    root = read_root({"name": "root", "attributes": attributes, "resourceFlavors": {"a": ["b"]}})
    assert root.lend_limit == {"cpu": 5000}
    assert root.user_cap == {"nvidia.com/gpu": 4}
    assert root.attributes == {**attributes, "none": "", "resourceFlavors": '{"a":["b"]}'}


@pytest.mark.parametrize(
    ("root", "sentence"),
    [
        ({}, "root: the node has no name"),
        ({"name": "  "}, 'root: name is `"  "` and not a name'),
        ({"name": 5}, "root: name is `5` and not a name"),
        ({"name": "root", "children": [{"name": ""}]}, "root.children[0]: the node has no name"),
        ({"name": "root", "children": [{"name": "root.a"}, 5]}, ("root.children[1]: is `5` "
"and not a node")),
        ({"name": "root", "children": {"name": "x"}}, ('root: children is '
'`{"name":"x"}` and not a list')),
        (
            {"name": "root", "namespace": ["n"]},
            ("root: unknown field `namespace`; a node has name, min, max, namespaces, "
"attributes, children"),
        ),
        ({"name": "root", "namespaces": "n"}, 'root: namespaces is `"n"` and not a list'),
        ({"name": "root", "namespaces": ["a", ""]}, ('root: namespaces has `""`, which is not '
'the name of a namespace')),
        ({"name": "root", "namespaces": [7]}, ("root: namespaces has `7`, which is not "
"the name of a namespace")),
        ({"name": "root", "max": {"cpu": "lots"}}, ("root: max of cpu is `lots`, which is not a "
"quantity of Kubernetes")),
        ({"name": "root", "max": {"cpu": ""}}, ("root: max of cpu is ``, which is not a "
"quantity of Kubernetes")),
        ({"name": "root", "max": {"cpu": "٣"}}, ("root: max of cpu is `٣`, which is not a "
"quantity of Kubernetes")),
        ({"name": "root", "max": {"cpu": "5\n"}}, ("root: max of cpu is `5\n`, which is not a "
"quantity of Kubernetes")),
        ({"name": "root", "max": {"cpu": "1e99"}}, ("root: max of cpu is `1e99`, which is not a "
"quantity of Kubernetes")),
        ({"name": "root", "max": {"cpu": None}}, ("root: max of cpu is `null`, which "
"is not a quantity")),
        ({"name": "root", "max": {"cpu": True}}, ("root: max of cpu is `true`, which "
"is not a quantity")),
        ({"name": "root", "max": {"cpu": ["5"]}}, ('root: max of cpu is `["5"]`, which '
'is not a quantity')),
        ({"name": "root", "max": {"": "5"}}, "root: max has a resource without a name"),
        ({"name": "root", "max": ["cpu"]}, 'root: max is `["cpu"]` and not a list of resources'),
        ({"name": "root", "min": {"cpu": "-1"}}, "root: min of cpu is `-1`, which is negative"),
        ({"name": "root", "min": {"cpu": "-0.0001"}}, ("root: min of cpu is `-0.0001`, "
"which is negative")),
        ({"name": "root", "min": {"nvidia.com/gpu": "0.5"}}, ("root: min of nvidia.com/gpu is "
f"`0.5`, {COUNTED}")),
        ({"name": "root", "min": {"nvidia.com/gpu": 0.5}}, ("root: min of nvidia.com/gpu is "
f"`0.5`, {COUNTED}")),
        ({"name": "root", "min": {"aliyun.com/gpu-mem": "1500m"}}, ("root: min of "
"aliyun.com/gpu-mem is "
f"`1500m`, {COUNTED}")),
        ({"name": "root", "min": {"nvidia.com/gpu": "0.99999999"}}, ("root: min of "
"nvidia.com/gpu is "
f"`0.99999999`, {COUNTED}")),
        (
            {"name": "root", "max": {"memory": "8Ei"}},
            ("root: max of memory is `8Ei`, which is more than can be counted; leave it out, "
"or write 2147483647 for unlimited"),
        ),
        ({"name": "root", "max": {"cpu": "9" * 5000}}, ("root: max of cpu is "
f"`{'9' * 60}…`, which is "
"too long for a quantity")),
        ({"name": "root", "attributes": []}, "root: attributes is `[]` and not a map of words"),
        ({"name": "root", "attributes": {"a": 5}}, ("root: attribute a is `5` and not a "
"text; put it in quotes")),
        (
            {"name": "root", "attributes": {"preempt-policy": "Always"}},
            "root: attribute preempt-policy is `Always`; it may be PreemptLowerPriority or Never",
        ),
        (
            {"name": "root", "attributes": {"fairlead.io/reclaim-scope": "tree"}},
            "root: attribute fairlead.io/reclaim-scope is `tree`; it may be leaf or subtree",
        ),
        (
            {"name": "root", "attributes": {"fairlead.io/user-order": ""}},
            "root: attribute fairlead.io/user-order is ``; it may be fifo or fair",
        ),
        (
            {"name": "root", "attributes": {"fairlead.io/queue": "fifo"}},
            "root: attribute fairlead.io/queue is `fifo`; it may be backfill or strict",
        ),
        (
            {"name": "root", "attributes": {"fairlead.io/drain-over-max": "yes"}},
            "root: attribute fairlead.io/drain-over-max is `yes`; it may be true or false",
        ),
        (
            {"name": "root", "attributes": {"alibabacloud.com/lendlimit": "cpu=5"}},
            ('root: attribute alibabacloud.com/lendlimit is `cpu=5`, which is not a list of '
'resources in JSON such as {"cpu":"5"}'),
        ),
        (
            {"name": "root", "attributes": {"fairlead.io/user-cap": '{"nvidia.com/gpu":"-4"}'}},
            "root: attribute fairlead.io/user-cap of nvidia.com/gpu is `-4`, which is negative",
        ),
        *(
            (
                {"name": "root", "attributes": {"fairlead.io/surge-wait": span}},
                (f"root: attribute fairlead.io/surge-wait is `{span}`, which is not a length "
"of time such as `90s` or `5m`"),
            )
            for span in ("soon", "", "0s", "-5s", "1.5m", "5")
        ),
        (
            {"name": "root", "attributes": {"fairlead.io/bare-pods-preemptible": "yes"}},
            "root: attribute fairlead.io/bare-pods-preemptible is `yes`; it may be true or false",
        ),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence(root: dict[str, Any], sentence: str) -> None:
    tree = read_tree(root)
    assert faults(tree) == [sentence]
    assert tree.root is not None
    assert tree.sound_root is None


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (None, "spec: the tree has no root"),
        ({}, "spec: the tree has no root"),
        ({"root": None}, "spec: the tree has no root"),
        (5, "spec: is `5` and not an object with `root`"),
        ({"root": []}, "spec: root is `[]` and not a node"),
    ],
)
def test_no_root_is_a_fault(spec: Any, sentence: str) -> None:
    tree = read_object(spec=spec)
    assert (faults(tree), tree.root) == ([sentence], None)


def test_an_unknown_field_beside_the_root_is_reported_and_the_root_is_read() -> None:
    tree = read_object(spec={"root": {"name": "root"}, "roots": []})
    assert faults(tree) == ["spec: unknown field `roots`; it has only `root`"]
    assert tree.root is not None


def test_every_fault_is_reported_and_what_is_sound_is_read() -> None:
    tree = read_tree(
        {
            "name": "root",
            "min": {"cpu": "x", "memory": "1Gi"},
            "children": [{"namespaces": ["n"]}, {"name": "root.b", "max": {"cpu": "-2"}}],
        }
    )
    assert [fault.path for fault in tree.faults] == ["root", "root.children[0]", "root.b"]
    assert tree.root is not None
    assert [node.name for node in tree.root.walk()] == ["root", "root.children[0]", "root.b"]
    assert tree.root.min == {"memory": 1 << 30}


def chain(levels: int) -> dict[str, Any]:
    node: dict[str, Any] = {"name": f"l{levels}"}
    for level in range(levels - 1, 0, -1):
        node = {"name": f"l{level}", "children": [node]}
    return node


def test_two_hundred_levels_are_a_tree() -> None:
    root = read_root(chain(200))
    assert len(list(root.walk())) == 200
    assert [leaf.name for leaf in root.leaves()] == ["l200"]


def test_a_tree_that_is_too_deep_is_a_fault() -> None:
    tree = read_tree(chain(LEVELS_MAX + 1))
    assert faults(tree) == [
        f"l{LEVELS_MAX + 1}: lies deeper than 250 levels, which is as deep as a tree may be"
    ]


def test_names_are_any_text() -> None:
    root = read_root(
        {
            "name": "組織",
            "children": [{"name": "組織.視覺", "namespaces": ["視覺"]}, {"name": "🚀 b.c"}],
        }
    )
    assert [node.path for node in root.walk()] == ["組織", "組織.視覺", "組織.🚀 b.c"]


def test_twenty_thousand_nodes_are_read() -> None:
    children = [
        {
            "name": f"root.{n}",
            "children": [{"name": f"root.{n}.{m}", "min": {"cpu": m}} for m in range(99)],
        }
        for n in range(200)
    ]
    assert len(list(read_root({"name": "root", "children": children}).walk())) == 1 + 200 * 100
