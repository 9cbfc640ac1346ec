"""`fairlead quota tree` and `fairlead quota validate`: the table, the documents, each refusal, and
which objects are read.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec.structs import replace
from tests.cli.command import Printed, run_command
from tests.cli.quota.researcher import REFUSED, Researcher, with_status

from fairlead.errors import OutsideError, UserError
from fairlead.model.node import Node
from fairlead.model.pod import Container, Pod, PodPhase
from fairlead.model.quota.rows import Namespace
from fairlead.model.snapshot import ClusterSnapshot, build_snapshot
from fairlead.model.source import Source, SourceState
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree

READ = (Source("pods"), Source("nodes"), Source("elasticquotatrees"))
SPACES = {"root.a.1": "ns1", "root.a.2": "ns2", "root.b.1": "ns3", "root.b.2": "ns4"}


def leaf(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "min": {"cpu": 10},
        "max": {"cpu": 20},
        "namespaces": [SPACES[name]],
        **changes,
    }


def manifest(**changes: Any) -> dict[str, Any]:
    """The tree of document 004. `changes` are the fields of root.a.1."""
    sides = [
        {
            "name": side,
            "min": {"cpu": 20},
            "max": {"cpu": 40},
            "children": [leaf(f"{side}.1", **more), leaf(f"{side}.2")],
        }
        for side, more in (("root.a", changes), ("root.b", {}))
    ]
    root = {"name": "root", "min": {"cpu": 40}, "max": {"cpu": 40}, "children": sides}
    meta = {"name": "elasticquotatree", "namespace": "kube-system"}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": meta,
        "spec": {"root": root},
    }


def runs(namespace: str, name: str, *, waits: bool = False) -> Pod:
    app = Container("main", requests={"cpu": 5000})
    phase = PodPhase.PENDING if waits else PodPhase.RUNNING
    gates = ("fairlead.io/quota",) if waits else ()
    return Pod(
        namespace=namespace, name=name, uid=name, phase=phase, containers=(app,), gates=gates
    )


def cluster(
    tree: dict[str, Any] | None = None, *pods: Pod, sources: tuple[Source, ...] = READ
) -> ClusterSnapshot:
    parsed = None if tree is None else parse_quota_tree(msgspec.convert(tree, WireQuotaTree))
    node = Node("n", allocatable={"cpu": 56_000})
    return build_snapshot(taken_at=0, nodes=[node], pods=pods, quota_tree=parsed, sources=sources)


def show(snapshot: ClusterSnapshot, line: str = "") -> str:
    return run_command(f"quota tree {line}", snapshot, "fairlead").out


def test_the_tree_with_what_is_used_borrowed_and_waiting() -> None:
    pods = [
        *(runs("ns1", f"p{n}") for n in range(3)),
        runs("ns1", "w", waits=True),
        runs("strange", "x"),
    ]
    assert show(cluster(manifest(), *pods)) == (
        "NAME   RESOURCE  MIN  USED  BORROWED  MAX  WAITING  NAMESPACES\n"
        "root   cpu       40   15    0         40   1        -\n"
        "  a    cpu       20   15    0         40   1        -\n"
        "    1  cpu       10   15    5         20   1        ns1\n"
        "    2  cpu       10   0     0         20   0        ns2\n"
        "  b    cpu       20   0     0         40   0        -\n"
        "    1  cpu       10   0     0         20   0        ns3\n"
        "    2  cpu       10   0     0         20   0        ns4\n"
    )


def test_it_is_reported_where_the_nodes_have_less_than_root_may_give() -> None:
    """Of 56 cores uncounted pods use 20; a cordoned node does not count."""
    stranger = replace(
        runs("strange", "x"), node="n", containers=(Container("main", requests={"cpu": 20_000}),)
    )
    snapshot = cluster(manifest(), stranger)
    nodes = [*snapshot.nodes, Node("cordoned", allocatable={"cpu": 8000}, unschedulable=True)]
    less = build_snapshot(
        taken_at=0, nodes=nodes, pods=snapshot.pods, quota_tree=snapshot.quota_tree, sources=READ
    )
    lines = show(less).splitlines()
    assert "root gives 36 cpu at most, not 40: the cluster's nodes have no more." in lines
    message = "cpu configured 40, available 36, so 10 counts as 9."
    assert lines[-4:] == [f"root.{name}: {message}" for name in ("a.1", "a.2", "b.1", "b.2")]
    assert [row.split()[2] for row in lines[1:8]] == ["36", "18", "9", "9", "18", "9", "9"]


def test_use_above_a_max_that_was_lowered_is_marked() -> None:
    """Three pods of 5 cores in a leaf whose max is now 10."""
    pods = [runs("ns1", name) for name in "xyz"]
    lines = show(cluster(manifest(max={"cpu": 10}), *pods)).splitlines()
    assert next(row.split()[3] for row in lines if row.split()[0] == "1") == "15!"
    assert lines[-1] == (
        "! root.a.1 uses 15 cpu, 5 more than its max 10: no pods are admitted there until it uses "
        "less."
    )


def test_a_max_and_a_min_under_use_are_reported_before_they_are_applied(tmp_path: Path) -> None:
    pods = [runs("ns1", name) for name in "xyz"]
    new = tmp_path / "new.yaml"
    new.write_text(yaml.safe_dump(manifest(min={"cpu": 5}, max={"cpu": 10})))
    printed = run_command(
        f"quota validate --snapshot s {new}", cluster(manifest(), *pods), "fairlead"
    )
    assert printed.status == 0
    reported = [" ".join(line.split()) for line in printed.out.splitlines()]
    assert reported[0] == (
        "WARNING OverMaxNow root.a.1: uses 15 cpu, more than its max 10 (pods ns1/x, ns1/y, "
        "ns1/z); nothing is admitted there until "
        "it uses less, and a pod of higher priority may take the place of several"
    )
    assert reported[1] == (
        "WARNING UnderUse root.a.1: min of cpu is lowered from 10 to 5 while 15 are used "
        "(pods ns1/x, ns1/y, ns1/z); "
        "5 of that become borrowed"
    )
    plan = run_command(f"quota plan --tree {new}", cluster(manifest(), *pods), "fairlead").out
    assert "OverMaxNow (warning)" in plan and "UnderUse (warning)" in plan
    since = run_command("quota plan", cluster(manifest(max={"cpu": 10}), *pods), "fairlead").out
    assert "OverMaxNow (warning)" in since


def test_unlimited_is_not_a_number() -> None:
    tree = manifest()
    unlimited = {"cpu": "2147483647"}
    tree["spec"]["root"] = {
        "name": "root",
        "min": unlimited,
        "max": unlimited,
        "children": [leaf("root.a.1", max={})],
    }
    rows = [line.split() for line in show(cluster(tree)).splitlines()[1:]]
    assert rows == [
        ["root", "cpu", "N/A", "0", "0", "N/A", "0", "-"],
        ["a.1", "cpu", "10", "0", "0", "N/A", "0", "ns1"],
    ]
    assert json.loads(show(cluster(tree), "-o json"))["nodes"][0]["max"] == {"cpu": "unlimited"}


def test_what_else_cannot_be_read_is_warned_of() -> None:
    nodes = Source("nodes", SourceState.FORBIDDEN, "no nodes")
    printed = run_command(
        "quota tree", cluster(manifest(), sources=(READ[0], nodes, READ[2])), "fairlead"
    )
    assert printed.err == "warning: nodes cannot be read: no nodes\n"
    assert printed.out.startswith("NAME ")


def test_documents_agree() -> None:
    snapshot = cluster(manifest(), runs("ns1", "p"), runs("ns1", "w", waits=True))
    found = json.loads(show(snapshot, "-o json"))
    assert found == yaml.safe_load(show(snapshot, "-o yaml"))
    one = next(node for node in found["nodes"] if node["name"] == "root.a.1")
    assert (
        one["used"],
        one["request"],
        one["waiting"]["pods"],
        one["min"],
        one["max"],
        one["parent"],
    ) == (
        {"cpu": "5"},
        {"cpu": "10"},
        1,
        {"cpu": "10"},
        {"cpu": "20"},
        "root.a",
    )


@pytest.mark.parametrize(
    ("snapshot", "error", "what"),
    [
        (cluster(), UserError, "the cluster has no quota tree"),
        (
            cluster(manifest(min={"cpu": "lots"})),
            UserError,
            (
                "the quota tree is invalid: root.a.1: min of cpu is `lots`, which is not a "
                "quantity of Kubernetes"
            ),
        ),
        (
            cluster(sources=(Source("elasticquotatrees", SourceState.FORBIDDEN, "you may not"),)),
            OutsideError,
            "the quota tree cannot be read: you may not",
        ),
        (
            cluster(manifest(), sources=(Source("pods", SourceState.FORBIDDEN, "no pods"),)),
            OutsideError,
            "pods cannot be read: no pods",
        ),
    ],
)
def test_a_tree_that_cannot_be_shown_is_an_error(
    snapshot: ClusterSnapshot, error: type[UserError | OutsideError], what: str
) -> None:
    with pytest.raises(error) as caught:
        show(snapshot)
    assert caught.value.what == what


# --- with the rights of one namespace -------------------------------------------------------------


def as_researcher(snapshot: ClusterSnapshot, line: str = "") -> Printed:
    reader = Researcher(snapshot, "ns1")
    return run_command(f"quota tree {line}", snapshot, "fairlead", reader=reader)


def test_a_researcher_gets_the_numbers_of_the_trees_status() -> None:
    """They are what an administrator's command counts, marks included."""
    pods = [*(runs("ns1", name) for name in "xyz"), runs("ns3", "w", waits=True)]
    whole = with_status(cluster(manifest(max={"cpu": 10}), *pods))
    printed = as_researcher(whole)
    assert printed.out == show(whole) and "15!" in printed.out
    assert printed.err.startswith("info: the pods of all namespaces cannot be read")
    assert printed.err.count("\n") == 1
    found = json.loads(as_researcher(whole, "-o json").out)
    assert found == {**json.loads(show(whole, "-o json")), "isReported": True}


def test_mins_that_count_as_less_are_those_of_the_status() -> None:
    whole = with_status(cluster(manifest()))
    assert whole.quota_tree is not None
    status = whole.quota_tree.status
    rows = [{**row, "countedMin": {"cpu": "9"}} for row in status["nodes"]]
    less = replace(whole.quota_tree, status={**status, "nodes": rows})
    lines = as_researcher(replace(whole, quota_tree=less)).out.splitlines()
    assert [line.split()[2] for line in lines[1:]] == ["9"] * 7


def test_nodes_without_numbers_are_left_out_and_counted() -> None:
    whole = with_status(cluster(manifest()))
    tree = whole.quota_tree
    assert tree is not None
    cut = {**tree.status, "nodes": tree.status["nodes"][:6], "nodesLeftOut": 1}
    printed = as_researcher(replace(whole, quota_tree=replace(tree, status=cut)))
    assert printed.out.splitlines() == show(whole).splitlines()[:7]
    assert printed.err.endswith("warning: the tree's status has no numbers of root.b.2\n")
    cut["nodes"] = cut["nodes"][:5]
    printed = as_researcher(replace(whole, quota_tree=replace(tree, status=cut)))
    assert printed.err.endswith("no numbers of root.b.1 and 1 more\n")


@pytest.mark.parametrize("status", [{}, {"nodes": []}, {"nodes": "hostile"}, {"nodes": [7]}])
def test_without_a_status_the_refusal_stands(status: dict[str, Any]) -> None:
    whole = with_status(cluster(manifest()))
    assert whole.quota_tree is not None
    bare = replace(whole, quota_tree=replace(whole.quota_tree, status=status))
    with pytest.raises(OutsideError) as refusal:
        as_researcher(bare)
    assert refusal.value.what == f"pods cannot be read: {REFUSED}"
    assert refusal.value.hint == "ask for a role"


# --- validate -------------------------------------------------------------------------------------

OFFLINE = "not checked against a cluster: running pods are unknown"


def check(tmp_path: Path, tree: Any, snapshot: ClusterSnapshot | None = None) -> Printed:
    """Runs `quota validate`; with a snapshot, as if `--snapshot` was given."""
    path = tmp_path / "tree.yaml"
    path.write_text(tree if isinstance(tree, str) else yaml.safe_dump(tree), encoding="utf-8")
    named = "" if snapshot is None else "--snapshot s "
    return run_command(f"quota validate {named}{path}", snapshot or cluster(), "fairlead")


def test_a_sound_tree_is_valid(tmp_path: Path) -> None:
    result = check(tmp_path, manifest())
    assert (result.status, result.out, result.err) == (
        0,
        f"valid: 7 nodes, 4 of them leaves; {OFFLINE}\n",
        "",
    )


def test_errors_come_first_and_make_the_status_one(tmp_path: Path) -> None:
    result = check(tmp_path, manifest(min={"cpu": 25}, attributes={"color": "red"}))
    lines = result.out.splitlines()
    assert result.status == 1
    assert lines == [
        (
            "ERROR    SumOfMinExceedsParent  root.a: children guarantee 35 cpu (root.a.1 25, "
            "root.a.2 10), more than its own min 20"
        ),
        "ERROR    MinExceedsMax          root.a.1: min of cpu is 25, more than its own max 20",
        "WARNING  AttributeNotEnforced   root.a.1: attribute color is kept and not enforced",
        f"2 errors and 1 warning; {OFFLINE}",
    ]


def test_warnings_alone_refuse_nothing(tmp_path: Path) -> None:
    result = check(tmp_path, manifest(namespaces=[]))
    assert (result.status, result.out.splitlines()[-1]) == (
        0,
        f"valid: 7 nodes, 4 of them leaves, 1 warning; {OFFLINE}",
    )


def test_a_cluster_reports_which_namespaces_are_busy(tmp_path: Path) -> None:
    moved = manifest(namespaces=["new"])
    result = check(tmp_path, moved, cluster(manifest(), runs("new", "p"), runs("ns2", "q")))
    assert result.status == 1
    assert "root.a.1: namespace new is added while 1 of its pods run (p)" in result.out
    assert result.out.splitlines()[-1] == "1 error; checked against a snapshot of the tests"
    quiet = check(tmp_path, moved, cluster(manifest(), runs("ns2", "q")))
    assert (quiet.status, quiet.out.splitlines()[-1]) == (
        0,
        "valid: 7 nodes, 4 of them leaves; checked against a snapshot of the tests",
    )


def test_namespaces_that_are_absent_are_reported_where_they_were_read(tmp_path: Path) -> None:
    known = replace(
        cluster(manifest(), sources=(*READ, Source("namespaces"))),
        namespaces=(Namespace("ns1"), Namespace("ns2"), Namespace("ns3")),
    )
    printed = check(tmp_path, manifest(), known).out
    assert printed.splitlines()[0] == (
        "WARNING  NoSuchNamespace  root.b.2: namespace ns4 does not exist yet"
    )
    assert "WARNING" not in check(tmp_path, manifest(), replace(known, sources={})).out


def test_pods_that_cannot_be_read_are_warned_of(tmp_path: Path) -> None:
    result = check(
        tmp_path, manifest(), cluster(sources=(Source("pods", SourceState.FORBIDDEN, "no"),))
    )
    assert (result.status, result.err) == (
        0,
        "warning: pods cannot be read, so it is unknown which namespaces have running pods\n",
    )


def test_stdin_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(manifest()).encode())))
    assert run_command("quota validate -", cluster(), "fairlead").status == 0


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "file `{tmp_path}/tree.yaml` holds no objects of kind ElasticQuotaTree"),
        (
            "a: [",
            (
                "tree `{tmp_path}/tree.yaml` is not YAML: while parsing a flow "
                'node\ndid not find expected node content\n  in "<byte string>", '
                "line 2, column 1"
            ),
        ),
        ("kind: Pod\n", "file `{tmp_path}/tree.yaml` holds no objects of kind ElasticQuotaTree"),
        (
            "kind: ElasticQuotaTree\n---\nkind: ElasticQuotaTree\n",
            "file `{tmp_path}/tree.yaml` holds 2 objects of kind ElasticQuotaTree",
        ),
        (
            "kind: ElasticQuotaTree\nmetadata: 5\n",
            (
                "the ElasticQuotaTree of `{tmp_path}/tree.yaml` cannot be read: "
                "Expected `object`, got `int` - at `$.metadata`"
            ),
        ),
    ],
)
def test_a_file_without_one_tree_is_reported(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(UserError) as caught:
        check(tmp_path, text)
    assert caught.value.what == what.format(tmp_path=tmp_path)


def test_a_file_that_is_absent_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        run_command(f"quota validate {tmp_path}/x", cluster(), "fairlead")
    assert caught.value.what == f"tree `{tmp_path}/x` cannot be read: No such file or directory"


def test_a_tree_of_two_hundred_levels_is_read(tmp_path: Path) -> None:
    node: dict[str, Any] = {
        "name": "l200",
        "namespaces": ["ns1"],
        "min": {"cpu": 1},
        "max": {"cpu": 1},
    }
    for level in range(199, 0, -1):
        node = {"name": f"l{level}", "min": {"cpu": 1}, "max": {"cpu": 1}, "children": [node]}
    result = check(tmp_path, json.dumps({**manifest(), "spec": {"root": node}}))
    assert (result.status, result.out) == (0, f"valid: 200 nodes, 1 of them leaves; {OFFLINE}\n")
