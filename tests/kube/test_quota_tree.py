"""The ElasticQuotaTree on a real API server: ACK's form is accepted unchanged, faults get a
message, and Fairlead's status is kept.

The same manifests go to the simulated API server, which enforces no rules in CEL: there the schema
alone judges.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contracts.simulated import simulated_server
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.programs import program
from tests.waiting import wait_until

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.files.clock import WallClock
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.writer import KubeWriter
from fairlead.edge.queries.cluster_query import ClusterQuery
from fairlead.model.actions import Outcome, Result, WriteTreeStatus
from fairlead.model.quota.plan import QuotaNodeUse
from fairlead.model.quota.tree import QuotaTree, Violation

pytestmark = pytest.mark.turns(2, 0)

CRD = Path(__file__).resolve().parents[2] / "deploy" / "quota-crd.yaml"
NAME = "elasticquotatrees.scheduling.sigs.k8s.io"
MANUAL = """
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata:
  name: elasticquotatree
  namespace: kube-system # as in the manual: it works there alone
spec:
  root:
    name: root
    max: {cpu: 40, memory: 40Gi, nvidia.com/gpu: 4, aliyun.com/gpu-mem: "2147483647"}
    min: {cpu: 40, memory: 40Gi, nvidia.com/gpu: 4, aliyun.com/gpu-mem: "2147483647"}
    children:
    - name: root.a
      max: {cpu: 40, memory: 40Gi, nvidia.com/gpu: 4}
      min: {cpu: 20, memory: 20Gi, nvidia.com/gpu: 2}
      attributes: {alibabacloud.com/lendlimit: '{"cpu":"5"}', anything: else}
      resourceflavors: [a10]
      children:
      - name: root.a.1
        namespaces: [namespace1]
        max: {cpu: 20, memory: 20Gi, nvidia.com/gpu: 1}
        min: {cpu: 10, memory: 10Gi, nvidia.com/gpu: 1}
      - name: root.a.2
        namespaces: [namespace2]
        max: {cpu: 20}
        min: {cpu: 10, memory: 10Gi, nvidia.com/gpu: 1}
    - name: root.b
      namespaces: []
      max: {cpu: 40, memory: 2147483647Gi}
      min: {cpu: 20, memory: 20Gi, nvidia.com/gpu: 2}
      children:
      - {name: root.b.1, namespaces: [namespace3],
         max: {cpu: "20"}, min: {cpu: "10"}, attributes: {}}
      - {name: root.b.2, namespaces: [namespace4],
         max: {cpu: 20000m}, min: {cpu: 1e1}, children: []}
"""
"""A tree in ACK's form, with values as users write them."""


def manual() -> Any:
    tree = yaml.safe_load(MANUAL)
    # PyYAML reads a word where kubectl reads a number
    tree["spec"]["root"]["children"][1]["children"][1]["min"]["cpu"] = "1e1"
    return tree


def ack_definition() -> dict[str, Any]:
    """The definition as in ACK: no field of a node is typed, and there is no status subresource."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": NAME,
            "annotations": {
                "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"
            },
        },
        "spec": {
            "group": "scheduling.sigs.k8s.io",
            "names": {
                "plural": "elasticquotatrees",
                "singular": "elasticquotatree",
                "kind": "ElasticQuotaTree",
                "listKind": "ElasticQuotaTreeList",
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def install(kubectl: Kubectl) -> None:
    kubectl.run("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
    wait_until("the typed tree is served", lambda: _is_typed(kubectl), 60)


def _is_typed(kubectl: Kubectl) -> bool:
    """Whether kubectl sees the definition: its short names come with discovery, which kubectl
    caches, the fields with the API server's OpenAPI.
    """
    kubectl.run("api-resources", "--cached=false", "--api-group=scheduling.sigs.k8s.io")
    try:
        return "guaranteed" in kubectl.run("explain", "eqtree.spec.root.min")
    except KubectlError:
        return False


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as running:
        yield running


@pytest.fixture(scope="module")
def before_own(cluster: ControlPlane) -> dict[str, Any]:
    """A tree under ACK's definition, with a fault that it accepts, over which Fairlead's definition
    is installed. Yields the tree as it was before.
    """
    admin = cluster.admin
    admin.apply([ack_definition()])
    admin.run("wait", "--for=condition=Established", f"crd/{NAME}", "--timeout=60s")
    old = manual()
    old["spec"]["root"]["children"][0]["namespace"] = ["typo"]
    wait_until("ACK's tree is served", lambda: _is_done(admin, old), 60)
    kept: dict[str, Any] = json.loads(
        admin.run("get", "elasticquotatree", "elasticquotatree", "-n", "kube-system", "-o", "json")
    )
    install(admin)
    return kept


def _is_done(kubectl: Kubectl, tree: Any) -> bool:
    try:
        kubectl.run(
            "apply",
            "--server-side",
            "--force-conflicts",
            "--validate=false",
            "-f",
            "-",
            stdin=json.dumps(tree),
        )
    except KubectlError:
        return False
    return True


@pytest.fixture(scope="module")
def admin(cluster: ControlPlane, before_own: dict[str, Any]) -> Kubectl:
    return cluster.admin


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("simulated")
    with simulated_server(folder, WallClock()) as server:
        yield Kubectl(program("kubectl"), server.kubeconfig, folder)


@pytest.fixture(params=["admin", "simulated"])
def either(request: pytest.FixtureRequest) -> Kubectl:
    found: Kubectl = request.getfixturevalue(request.param)
    return found


def apply(kubectl: Kubectl, tree: Any) -> str:
    return kubectl.run(
        "apply", "-f", "-", stdin=tree if isinstance(tree, str) else json.dumps(tree)
    )


def read(kubeconfig: Path) -> QuotaTree:
    connection = find_connection(str(kubeconfig), env={})
    assert connection is not None
    with KubeBlocking(connection) as api:
        tree = ClusterQuery(api).read_all().quota_tree
    assert tree is not None
    return tree


def test_fairleads_goes_over_acks_and_the_objects_stay(
    cluster: ControlPlane, before_own: dict[str, Any]
) -> None:
    now = json.loads(
        cluster.admin.run("get", "eqtree", "elasticquotatree", "-n", "kube-system", "-o", "json")
    )
    assert now["metadata"]["uid"] == before_own["metadata"]["uid"]
    typo = before_own["spec"]["root"]["children"][0].pop("namespace")
    assert (now["spec"], typo) == (before_own["spec"], ["typo"])


def test_a_tree_in_acks_form_is_taken_as_it_is(either: Kubectl) -> None:
    assert "elasticquotatree" in apply(either, MANUAL)
    tree = read(either.kubeconfig)
    assert tree.faults == ()
    assert tree.root is not None
    assert [leaf.namespaces for leaf in tree.root.leaves()] == [
        ("namespace1",),
        ("namespace2",),
        ("namespace3",),
        ("namespace4",),
    ]
    assert [leaf.max["cpu"] for leaf in tree.root.leaves()] == [20_000] * 4
    assert tree.root.children[0].attributes["resourceflavors"] == '["a10"]'


Change = Callable[[dict[str, Any]], object]


def of_child(**fields: Any) -> Change:
    return lambda root: root["children"][0].update(fields)


def of_root(**fields: Any) -> Change:
    return lambda root: root.update(fields)


BY_SCHEMA: list[tuple[str, Change, str]] = [
    ("unknown field", of_child(namespace=["x"]), 'unknown field "spec.root.children[0].namespace"'),
    (
        "no name",
        lambda root: root["children"][0].pop("name"),
        "spec.root.children[0].name: Required value",
    ),
    ("empty name", of_child(name=""), "spec.root.children[0].name: Invalid value"),
    ("negative", of_child(min={"cpu": "-1"}), 'spec.root.children[0].min.cpu: Invalid value: "-1"'),
    (
        "no quantity",
        of_child(min={"cpu": "lots"}),
        ('spec.root.children[0].min.cpu: Invalid value: "lots"'),
    ),
    ("a float", of_child(min={"cpu": 0.5}), "spec.root.children[0].min.cpu: Invalid value"),
    ("a list of resources", of_child(min=["cpu"]), "spec.root.children[0].min: Invalid value"),
    (
        "a word for namespaces",
        of_child(namespaces="x"),
        "spec.root.children[0].namespaces: Invalid value",
    ),
    (
        "a number for an attribute",
        of_child(attributes={"a": 5}),
        "spec.root.children[0].attributes.a: Invalid value",
    ),
]
BY_RULE: list[tuple[str, Change, str]] = [
    (
        "a parent with namespaces",
        of_child(namespaces=["x"]),
        "root.a: has children and namespaces; only a leaf has namespaces",
    ),
    (
        "min over max",
        of_child(max={"cpu": 10}),
        "root.a: min of cpu is 20, more than its own max 10",
    ),
    ("a child's max", of_child(max={"cpu": 41}), "root.a: max is more than the max of root"),
    (
        "unlimited min",
        of_child(min={"cpu": "2147483647Ki"}),
        "root.a: min of cpu is unlimited; only the root's may be",
    ),
    (
        "an unknown resource",
        of_child(min={"cpu": 20, "gpu": 1}),
        "root: a child names a resource that the root does not",
    ),
    (
        "root min",
        lambda root: root["min"].update(cpu=30),
        "root: min and max differ; they must be equal at the root",
    ),
    (
        "root max",
        lambda root: root["max"].update(gpu=1),
        "root: min and max differ; they must be equal at the root",
    ),
    (
        "root without min",
        lambda root: root.pop("min"),
        "root: min and max differ; they must be equal at the root",
    ),
]


def changed(change: Change) -> Any:
    tree = copy.deepcopy(manual())
    change(tree["spec"]["root"])
    return tree


@pytest.mark.parametrize(
    ("change", "sentence"), [pytest.param(*case[1:], id=case[0]) for case in BY_SCHEMA]
)
def test_what_is_no_tree_is_refused_by_its_schema(
    either: Kubectl, change: Change, sentence: str
) -> None:
    with pytest.raises(KubectlError) as refusal:
        apply(either, changed(change))
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "sentence"), [pytest.param(*case[1:], id=case[0]) for case in BY_RULE]
)
def test_what_the_rules_reach_is_refused_with_the_name_of_the_node(
    admin: Kubectl, change: Change, sentence: str
) -> None:
    with pytest.raises(KubectlError) as refusal:
        apply(admin, changed(change))
    assert sentence in str(refusal.value)


def test_a_second_tree_is_refused(admin: Kubectl) -> None:
    tree = manual()
    tree["metadata"]["name"] = "second"
    with pytest.raises(
        KubectlError, match="the one tree of a cluster is kube-system/elasticquotatree"
    ):
        apply(admin, tree)


@pytest.mark.parametrize(("server", "levels"), [("admin", 200), ("simulated", 90)])
def test_a_deep_tree_is_kept_whole(
    request: pytest.FixtureRequest, server: str, levels: int
) -> None:
    """The simulated API server accepts no body that is nested in more than 200 levels; each level
    of a tree takes two.
    """
    either: Kubectl = request.getfixturevalue(server)
    node: dict[str, Any] = {
        "name": f"l{levels}",
        "namespaces": ["namespace1"],
        "attributes": {"any": "thing"},
    }
    for level in range(levels - 1, 0, -1):
        node = {"name": f"l{level}", "children": [node]}
    tree = manual()
    tree["spec"]["root"] = node
    either.run("replace", "-f", "-", stdin=json.dumps(tree))
    found = read(either.kubeconfig)
    assert found.faults == ()
    assert found.root is not None
    assert [leaf.name for leaf in found.root.leaves()] == [f"l{levels}"]
    apply(either, MANUAL)


def test_below_the_typed_levels_nothing_is_cut_off_and_fairlead_reports_the_faults(
    either: Kubectl,
) -> None:
    node: dict[str, Any] = {"name": "l8", "namespace": ["typo"], "min": {"cpu": "lots"}}
    for level in range(7, 0, -1):
        node = {"name": f"l{level}", "children": [node]}
    tree = manual()
    tree["spec"]["root"] = node
    either.run("replace", "-f", "-", stdin=json.dumps(tree))
    assert [fault.message.partition(";")[0] for fault in read(either.kubeconfig).faults] == [
        "l8: unknown field `namespace`",
        "l8: min of cpu is `lots`, which is not a quantity of Kubernetes",
    ]
    apply(either, MANUAL)


def write(kubeconfig: Path, action: WriteTreeStatus) -> Outcome:
    connection = find_connection(str(kubeconfig), env={})
    assert connection is not None

    async def whole() -> Outcome:
        async with KubeApi(connection) as api:
            return await KubeWriter(api, RateLimit(100, 100)).apply(action)

    return asyncio.run(whole())


def test_the_status_is_written_beside_the_spec_and_shown_in_columns(either: Kubectl) -> None:
    apply(either, MANUAL)
    tree = read(either.kubeconfig)
    use = QuotaNodeUse(
        "root.a.1",
        ("namespace1",),
        used={"cpu": 12_500},
        borrowed={"cpu": 2500},
        waiting_units=1,
        waiting_pods=3,
    )
    warning = Violation(
        "root.a.1",
        "NoSuchNamespace",
        "root.a.1: namespace namespace1 does not exist yet",
        is_error=False,
    )
    assert (
        write(either.kubeconfig, WriteTreeStatus(tree, (use,), (warning,), at=1767600000.0)).result
        is Result.DONE
    )
    after = json.loads(
        either.run("get", "eqtree", "elasticquotatree", "-n", "kube-system", "-o", "json")
    )
    assert (
        after["metadata"]["generation"] == tree.generation == after["status"]["observedGeneration"]
    )
    (row,) = after["status"]["nodes"]
    assert (row["used"], row["borrowed"], row["waiting"]) == (
        {"cpu": "12500m"},
        {"cpu": "2500m"},
        {"units": 1, "pods": 3},
    )
    header, line = either.run("get", "eqtrees", "-n", "kube-system").splitlines()
    assert header.split() == ["NAME", "VALID", "LEAVES", "WAITING", "AGE"]
    assert line.split()[:4] == ["elasticquotatree", "True", "4", "3"]


def test_the_status_of_another_tree_is_left_alone(either: Kubectl) -> None:
    other = QuotaTree("elasticquotatree", "kube-system", uid="11111111-2222-3333-4444-555555555555")
    before = read(either.kubeconfig).status
    assert write(either.kubeconfig, WriteTreeStatus(other)).result is Result.REFUSED
    assert read(either.kubeconfig).status == before
    assert (
        write(
            either.kubeconfig, WriteTreeStatus(QuotaTree("absent", "kube-system", uid="u"))
        ).result
        is Result.GONE
    )


def test_a_writer_of_the_spec_writes_no_status(either: Kubectl) -> None:
    tree = manual()
    tree["status"] = {"leaves": 99}
    apply(either, tree)
    assert (
        json.loads(
            either.run("get", "eqtree", "elasticquotatree", "-n", "kube-system", "-o", "json")
        )["status"]["leaves"]
        != 99
    )
