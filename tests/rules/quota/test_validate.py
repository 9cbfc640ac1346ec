"""Every code of docs/spec/quota.md#validation: the trees that it refuses, and its message."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies
from pytest import mark, param
from tests.examples import examples

from fairlead.model.pod import Owner, Pod, PodPhase
from fairlead.model.quota.rows import LeafGroup
from fairlead.model.quota.tree import QuotaNode, QuotaTree, Violation
from fairlead.rules.quota.validate import validate, validate_deletion
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree

STARS = {"BadShape", "DuplicateName", "NamespaceInTwoLeaves", "ParentWithNamespaces"}
META = {"name": "elasticquotatree", "namespace": "kube-system"}
NAMESPACES = ("ns1", "ns2", "ns3", "ns4")


def node(name: str, bounds: Any = None, *children: Any, **more: Any) -> dict[str, Any]:
    """`bounds`: cpu of min and max, or one ResourceList for both, or a pair of ResourceLists."""
    least, most = bounds if isinstance(bounds, tuple) else (bounds, bounds)
    limits = {
        key: {"cpu": value} if isinstance(value, int | str) else value
        for key, value in (("min", least), ("max", most))
    }
    return {
        "name": name,
        **{key: value for key, value in limits.items() if value is not None},
        "children": list(children),
        **more,
    }


def tree(root: Any, **meta: Any) -> QuotaTree:
    return parse_quota_tree(
        msgspec.convert({"metadata": {**META, **meta}, "spec": {"root": root}}, WireQuotaTree)
    )


def leaf(name: str, bounds: Any, *namespaces: str, **more: Any) -> dict[str, Any]:
    return node(name, bounds, namespaces=list(namespaces), **more)


def demo(**changes: Any) -> dict[str, Any]:
    """The tree of document 004. `changes` replace leaves by name (`a1` is root.a.1; None removes
    the leaf).
    """
    leaves = {
        name: leaf(f"root.{name[0]}.{name[1]}", (10, 20), namespace)
        for name, namespace in zip(("a1", "a2", "b1", "b2"), NAMESPACES, strict=True)
    }
    found = {name: one for name, one in {**leaves, **changes}.items() if one is not None}
    of = {letter: [one for name, one in found.items() if name[0] == letter] for letter in "ab"}
    return node("root", 40, node("root.a", (20, 40), *of["a"]), node("root.b", (20, 40), *of["b"]))


def errors(found: tuple[Violation, ...]) -> list[tuple[str, str]]:
    assert all(each.stops == (each.code in STARS) for each in found)
    return [(each.code, each.message) for each in found if each.is_error]


def warnings(found: tuple[Violation, ...]) -> list[tuple[str, str]]:
    assert not any(each.stops for each in found if not each.is_error)
    return [(each.code, each.message) for each in found if not each.is_error]


def test_the_tree_of_document_004_is_sound() -> None:
    assert validate(tree(demo()), None, NAMESPACES, capacity={"cpu": 56_000}) == ()


@mark.parametrize(
    ("root", "code", "sentence"),
    [
        param(
            node("root", 40, node("root.a", (40, 40), leaf("root.a", (40, 40), "ns1"))),
            "DuplicateName",
            "root.a: 2 nodes have this name (under root, under root.a)",
        ),
        param(
            demo(b1=leaf("root.b.1", (10, 20), "ns1")),
            "NamespaceInTwoLeaves",
            "root.b.1: namespace ns1 is on root.a.1 as well",
        ),
        param(
            demo(b1=leaf("root.b.1", (10, 20), "x", "x")),
            "NamespaceInTwoLeaves",
            "root.b.1: namespace x is listed here twice",
        ),
        param(
            demo(
                a1=node(
                    "root.a.1", (10, 20), leaf("root.a.1.x", (10, 20)), namespaces=["ns1", "ns9"]
                )
            ),
            "ParentWithNamespaces",
            "root.a.1: has children and namespaces (ns1, ns9); only a leaf has namespaces",
        ),
        param(
            demo(a1=leaf("root.a.1", (10, 20), "kube-system")),
            "ProtectedNamespace",
            "root.a.1: namespace kube-system is one of Kubernetes' own and takes no quota",
        ),
        param(
            demo(a1=leaf("root.a.1", (10, 20), "kube-ai")),
            "ProtectedNamespace",
            "root.a.1: namespace kube-ai is one of Fairlead's own and takes no quota",
        ),
        param(
            demo(a2=leaf("root.a.2", (15, 20), "ns2")),
            "SumOfMinExceedsParent",
            (
                "root.a: children guarantee 25 cpu (root.a.1 10, root.a.2 15), more than its own "
                "min 20"
            ),
        ),
        param(
            node(
                "root",
                {"cpu": 40},
                *(leaf(f"root.{n}", ("6500m", None), f"ns{n}") for n in range(8)),
            ),
            "SumOfMinExceedsParent",
            (
                "root: children guarantee 52 cpu (root.0 6500m, root.1 6500m, root.2 6500m, "
                "root.3 6500m, root.4 6500m, and 3 more), more than its own min 40"
            ),
        ),
        param(
            node(
                "root",
                {"cpu": 40, "memory": "64Gi"},
                node("a", (40, 40), leaf("b", ({"cpu": 40, "memory": "1536Mi"}, None), "ns1")),
            ),
            "SumOfMinExceedsParent",
            "a: children guarantee 1536Mi memory (b 1536Mi), more than its own min 0",
        ),
        param(
            demo(a1=leaf("root.a.1", (10, 41), "ns1")),
            "MaxExceedsParent",
            "root.a.1: max of cpu is 41, more than the max 40 of root.a",
        ),
        param(
            node("root", 40, node("root.a", (40, None), leaf("root.a.1", (40, "40500m"), "ns1"))),
            "MaxExceedsParent",
            "root.a.1: max of cpu is 40500m, more than the max 40 of root",
        ),
        param(
            node(
                "root",
                {"cpu": 40, "memory": "1Gi"},
                leaf("root.a", ({"cpu": 40, "memory": "1Gi"}, {"gpu": 1}), "ns1"),
            ),
            "UnknownResource",
            "root.a: names gpu, which root does not; it names cpu, memory",
        ),
        param(
            demo(
                a1=leaf(
                    "root.a.1",
                    (10, 20),
                    "ns1",
                    attributes={"alibabacloud.com/lendlimit": '{"cpus":"5"}'},
                )
            ),
            "UnknownResource",
            "root.a.1: names cpus, which root does not; it names cpu",
        ),
        param(
            node("root", None, leaf("a", (None, {"cpu": "2147483647"}), "ns1")),
            "UnknownResource",
            "a: names cpu, which root does not; it names none",
        ),
        param(
            demo(a1=leaf("root.a.1", (10, 8), "ns1")),
            "MinExceedsMax",
            "root.a.1: min of cpu is 10, more than its own max 8",
        ),
        param(
            node("root", (30, 40), leaf("root.a", (30, 40), "ns1")),
            "RootMinNotMax",
            "root: min of cpu is 30 and max is 40; they must be equal at the root",
        ),
        param(
            node("root", ("2147483647", 40), leaf("root.a", (30, 40), "ns1")),
            "RootMinNotMax",
            "root: min of cpu is unlimited and max is 40; they must be equal at the root",
        ),
        param(
            node("root", (0, None), leaf("a", 0, "ns1")),
            "RootMinNotMax",
            "root: min of cpu is 0 and max is unlimited; they must be equal at the root",
        ),
        param(
            demo(
                a1=leaf("root.a.1", ("2147483647Ki", 20), "ns1"),
                a2=leaf("root.a.2", (20, 20), "ns2"),
            ),
            "UnlimitedMin",
            "root.a.1: min of cpu is unlimited; only the root's may be",
        ),
    ],
)
def test_a_tree_with_one_fault_is_refused_in_one_sentence(
    root: dict[str, Any], code: str, sentence: str
) -> None:
    assert errors(validate(tree(root))) == [(code, sentence)]


def test_a_resource_that_the_parent_lacks_is_refused_by_name_and_by_sum() -> None:
    root = node("root", 40, leaf("root.a", ({"cpu": 40, "nvidia.com/gpu": 1}, None), "ns1"))
    assert errors(validate(tree(root))) == [
        (
            "SumOfMinExceedsParent",
            "root: children guarantee 1 nvidia.com/gpu (root.a 1), more than its own min 0",
        ),
        ("UnknownResource", "root.a: names nvidia.com/gpu, which root does not; it names cpu"),
    ]


def test_a_second_tree_cannot_exist() -> None:
    message = "the one tree of a cluster is kube-system/elasticquotatree"
    assert errors(validate(tree(demo(), name="second"))) == [
        ("NotTheTree", f"kube-system/second: {message}")
    ]
    assert errors(validate(tree(demo(), namespace="default"))) == [
        ("NotTheTree", f"default/elasticquotatree: {message}")
    ]


def test_what_could_not_be_read_is_reported_and_amounts_are_not_compared_then() -> None:
    found = validate(
        tree(
            node(
                "root",
                "lots",
                leaf("root.a", 10, "ns1", namespace=["x"]),
                leaf("root.b", 10, "ns1"),
            )
        )
    )
    assert [(code, message.partition(":")[0]) for code, message in errors(found)] == [
        ("BadShape", "root"),
        ("BadShape", "root"),
        ("BadShape", "root.a"),
        ("NamespaceInTwoLeaves", "root.b"),
    ]


def test_a_tree_without_a_root_is_refused() -> None:
    assert errors(validate(tree(None))) == [("BadShape", "spec: the tree has no root")]


@mark.parametrize("bounds", [{"cpu": "2147483647", "memory": "2147483647Gi"}, {}, None])
def test_a_root_may_be_unlimited_on_both_sides(bounds: Any) -> None:
    named = dict.fromkeys(bounds or {}, 5)
    assert errors(validate(tree(node("root", bounds, leaf("root.a", ({}, named), "ns1"))))) == []


def test_an_unlimited_root_guarantees_whatever_its_children_need() -> None:
    root = node("root", {"cpu": "2147483647"}, leaf("root.a", (1000, None), "ns1"))
    assert validate(tree(root), None, NAMESPACES) == ()


def test_the_sum_of_max_may_exceed_the_parents() -> None:
    assert (
        errors(
            validate(
                tree(
                    demo(a1=leaf("root.a.1", (10, 40), "ns1"), a2=leaf("root.a.2", (10, 40), "ns2"))
                )
            )
        )
        == []
    )


def test_a_count_of_jobs_needs_no_root() -> None:
    assert (
        validate(
            tree(
                demo(
                    a1=leaf("root.a.1", ({"cpu": 10}, {"cpu": 20, "kube-queue/max-jobs": 3}), "ns1")
                )
            )
        )
        == ()
    )


@mark.parametrize(
    ("root", "code", "sentence"),
    [
        param(
            demo(a1=leaf("root.a.1", (10, 20), "ns1", attributes={"color": "red"})),
            "AttributeNotEnforced",
            "root.a.1: attribute color is kept and not enforced",
        ),
        param(
            demo(a1=leaf("root.a.1", (10, 20), "ns1", resourceflavors=["x"])),
            "AttributeNotEnforced",
            "root.a.1: attribute resourceflavors is kept and not enforced",
        ),
        param(
            demo(
                a1=leaf(
                    "root.a.1", (10, 20), "ns1", attributes={"fairlead.io/reclaim-scope": "leaf"}
                )
            ),
            "AttributeNotEnforced",
            (
                "root.a.1: attribute fairlead.io/reclaim-scope is not enforced here; it counts on "
                "the root alone"
            ),
        ),
        param(
            node("root", 40, leaf("root.a", 40, "ns1"), attributes={"preempt-policy": "Never"}),
            "AttributeNotEnforced",
            "root: attribute preempt-policy is not enforced here; it counts on leaves alone",
        ),
        param(
            node("root", 40, leaf("root.a", 40, "ns1"), attributes={"fairlead.io/queue": "strict"}),
            "AttributeNotEnforced",
            "root: attribute fairlead.io/queue is not enforced here; it counts on leaves alone",
        ),
        param(
            node("root", 60, leaf("a", 60, "ns1")),
            "RootExceedsCluster",
            "root: max of cpu is 60, and the cluster has 56",
        ),
        param(
            demo(a1=leaf("root.a.1", (10, 20), "new")),
            "NoSuchNamespace",
            "root.a.1: namespace new does not exist yet",
        ),
        param(
            demo(a1=leaf("root.a.1", (10, 20))),
            "LeafWithoutNamespace",
            "root.a.1: has no namespace and no group, so no pod can use it",
        ),
        param(
            demo(a1=leaf("root.a.1", (4, 20), "ns1")),
            "SumOfMinBelowParent",
            "root.a: children guarantee 14 of its min 20 cpu; no child can claim the other 6",
        ),
    ],
)
def test_a_warning_refuses_nothing(root: dict[str, Any], code: str, sentence: str) -> None:
    found = validate(tree(root), None, NAMESPACES, capacity={"cpu": 56_000})
    assert (errors(found), warnings(found)) == ([], [(code, sentence)])


def test_a_group_makes_use_of_a_leaf_without_namespaces() -> None:
    assert (
        validate(tree(demo(a1=leaf("root.a.1", (10, 20)))), groups=[LeafGroup("team", "root.a.1")])
        == ()
    )


# --- changes between two trees --------------------------------------------------------------------


def runs(namespace: str, name: str, phase: PodPhase = PodPhase.RUNNING, owner: str = "") -> Pod:
    owners = (Owner(owner, "x", "u", True, "apps/v1"),) if owner else ()
    return Pod(namespace=namespace, name=name, uid=name, phase=phase, owners=owners)


ADOPT = 'wait until they have ended, or annotate the tree with fairlead.io/adopt-running: "true"'


@mark.parametrize(
    ("old", "new", "sentence"),
    [
        param(None, demo(), "root.a.1: namespace ns1 is added while 2 of its pods run (x, y)"),
        param(
            demo(a1=leaf("root.a.1", (10, 20), "o")),
            demo(),
            "root.a.1: namespace ns1 is added while 2 of its pods run (x, y)",
        ),
        param(
            demo(),
            demo(a1=leaf("root.a.1", (10, 20), "o")),
            "root.a.1: namespace ns1 is removed while 2 of its pods run (x, y)",
        ),
        param(
            demo(),
            demo(a1=leaf("root.a.1", (10, 20)), a2=leaf("root.a.2", (10, 20), "ns2", "ns1")),
            "root.a.2: namespace ns1 is moved here from root.a.1 while 2 of its pods run (x, y)",
        ),
    ],
)
def test_a_namespace_whose_pods_run_stays_where_it_is(old: Any, new: Any, sentence: str) -> None:
    before = tree(old) if old else None
    pods = [
        runs("ns1", "y"),
        runs("ns1", "x"),
        runs("ns1", "waits", PodPhase.PENDING),
        runs("ns1", "ended", PodPhase.SUCCEEDED),
        runs("ns1", "daemon", owner="DaemonSet"),
        runs("strange", "z"),
    ]
    assert errors(validate(tree(new), before, pods=pods)) == [
        ("NamespaceBusy", f"{sentence}; {ADOPT}")
    ]
    adopted = validate(
        tree(new, annotations={"fairlead.io/adopt-running": "true"}), before, pods=pods
    )
    busy = [message for code, message in warnings(adopted) if code == "NamespaceBusy"]
    assert (errors(adopted), busy) == ([], [f"{sentence}; they are charged as they are"])
    assert errors(validate(tree(new), before, pods=pods[2:])) == []


def test_a_tree_as_it_stands_asks_for_no_running_pods() -> None:
    standing = tree(demo())
    assert validate(standing, standing, pods=[runs("ns1", "x")]) == ()


def test_a_leaf_under_another_name_moves_nothing() -> None:
    renamed = tree(demo(a1=leaf("root.a.one", (10, 20), "ns1")))
    assert validate(renamed, tree(demo()), pods=[runs("ns1", "x")]) == ()


def test_a_leaf_that_holds_something_stays_a_leaf() -> None:
    old, groups = tree(demo()), [LeafGroup("team", "root.b.1")]
    less = demo(a1=None, a2=leaf("root.a.2", (20, 20), "ns2"))
    assert errors(validate(tree(less), old)) == [
        (
            "LeafBound",
            "root.a.1: is removed and still has namespace ns1; take that off the leaf first",
        )
    ]
    parent = node("root.b.1", (10, 20), leaf("root.b.1.x", (10, 20), "ns3"))
    assert errors(validate(tree(demo(b1=parent)), old, groups=groups)) == [
        (
            "LeafBound",
            (
                "root.b.1: is given children and still has namespace ns3, UserGroup team; "
                "take that "
                "off the leaf first"
            ),
        )
    ]
    empty = tree(demo(a1=leaf("root.a.1", (10, 20))))
    assert errors(validate(tree(less), empty)) == []
    assert errors(validate(tree(less), empty, groups=[LeafGroup("team", "root.a.1")])) == [
        (
            "LeafBound",
            "root.a.1: is removed and still has UserGroup team; take that off the leaf first",
        )
    ]


def test_the_tree_goes_when_no_leaf_holds_anything() -> None:
    assert validate_deletion(tree(node("root", 40, leaf("root.a", 40)))) == ()
    assert validate_deletion(tree(None)) == ()
    found = validate_deletion(
        tree(node("root", 40, leaf("root.a", 40, *(f"ns{n}" for n in range(7)))))
    )
    message = (
        "namespace ns0, namespace ns1, namespace ns2, namespace ns3, namespace ns4, and 2 more"
    )
    assert errors(found) == [
        (
            "LeafBound",
            f"root.a: the tree is deleted and still has {message}; take that off the leaf first",
        )
    ]


# --- any tree -------------------------------------------------------------------------------------

_words = strategies.sampled_from(["root", "a", "a.b", "", "組", "kube-system", "ns1"])
_amounts = strategies.sampled_from(
    [0, 1, 5, 0.5, -1, "1e3", "2147483647Gi", "lots", "8Ei", None, True, [], "500m"]
)
_lists = strategies.dictionaries(
    strategies.sampled_from(["cpu", "memory", "nvidia.com/gpu", "kube-queue/max-jobs", ""]),
    _amounts,
    max_size=3,
)
_keys = strategies.sampled_from(
    [
        "alibabacloud.com/lendlimit",
        "preempt-policy",
        "fairlead.io/user-cap",
        "fairlead.io/reclaim-scope",
        "x",
    ]
)
_texts = strategies.sampled_from(['{"cpu":"5"}', "Never", "{", "", None, 5, "leaf"])
_values: strategies.SearchStrategy[Any] = strategies.one_of(
    strategies.none(), strategies.integers(), strategies.text(max_size=3), strategies.lists(_words)
)


def _nodes(children: strategies.SearchStrategy[Any]) -> strategies.SearchStrategy[Any]:
    return strategies.fixed_dictionaries(
        {},
        optional={
            "name": strategies.one_of(_words, _values),
            "min": strategies.one_of(_lists, _values),
            "max": strategies.one_of(_lists, _values),
            "namespaces": strategies.one_of(strategies.lists(_words, max_size=3), _values),
            "attributes": strategies.one_of(
                strategies.dictionaries(_keys, _texts, max_size=3), _values
            ),
            "children": strategies.one_of(strategies.lists(children, max_size=4), children),
            "namespace": _values,
        },
    )


any_tree = strategies.recursive(strategies.one_of(_nodes(_values), _values), _nodes, max_leaves=8)


@examples(30, 1500, any_tree, any_tree)
def test_whatever_is_stored_gets_sentences_and_no_exception(new: Any, old: Any) -> None:
    now, before = tree(new), tree(old)
    pods = [runs("ns1", "x"), runs("a", "y")]
    for found in (
        validate(now),
        validate(now, before, ("ns1",), pods, capacity={"cpu": 1}),
        validate_deletion(now),
    ):
        for each in found:
            assert each.message.startswith(f"{each.path}: ")
            assert each.stops == (each.code in STARS)
    if not any(each.stops for each in validate(now)):
        names = [each.name for each in now.root.walk()] if now.root else []
        assert names
        assert len(set(names)) == len(names)


def test_a_wide_and_a_deep_tree_are_judged() -> None:
    deep: QuotaNode = QuotaNode("l200", "l200", "l199", {"cpu": 1000})
    for level in range(199, 0, -1):
        deep = QuotaNode(
            f"l{level}",
            f"l{level}",
            f"l{level - 1}" if level > 1 else "",
            {"cpu": 1000},
            children=(deep,),
        )
    found = validate(QuotaTree("elasticquotatree", "kube-system", deep))
    assert [each.code for each in found] == ["RootMinNotMax", "LeafWithoutNamespace"]
    children = [leaf(f"root.{n}", (1, 40), f"ns{n}") for n in range(20_000)]
    (one,) = validate(tree(node("root", {"cpu": 19_999}, *children)))
    assert one.message.endswith("root.4 1, and 19995 more), more than its own min 19999")
