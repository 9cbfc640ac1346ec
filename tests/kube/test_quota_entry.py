"""How a quota tree enters a real API server: through the definition, through the webhook that
judges it, and, where neither refuses it, past both. A broken tree that got in admits and evicts no
pod, and its status reports what is wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import of_file, running_webhook
from tests.kube.kubectl import KubectlError
from tests.kube.objects import pod
from tests.kube.quota_line import (
    QuotaController,
    big_node,
    clear,
    deployment,
    enforce,
    install,
    running_controller,
    settled,
    tree,
)
from tests.kube.quota_truth import QuotaTruth, quota_condition
from tests.kube.servers import fairlead_answer
from tests.scenarios.trees.files import TreeFile, standing, tree_files
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(4, 0)

Object = dict[str, Any]
FILES = sorted(tree_files(), key=lambda file: (file.needs_standing, file.path.stem))
PLACES = ("alpha", "beta", "busy", "gamma")
STANDING = standing().tree["spec"]["root"]
LET_IN = [file for file in FILES if file.errors and not file.definition and not file.needs_standing]
TREE = ("eqtree", "elasticquotatree", "-n", "kube-system")


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install(made)
        made.admin.create(
            [
                big_node("only", 56),
                *(
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}}
                    for each in PLACES
                ),
            ]
        )
        yield made


@pytest.fixture(scope="module")
def controller(cluster: ControlPlane) -> Iterator[QuotaController]:
    with running_controller(cluster) as made:
        yield made


# --- the webhook judges ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judged(cluster: ControlPlane) -> Iterator[ControlPlane]:
    judge = [
        each
        for each in of_file("quota-webhook.yaml")
        if each["metadata"]["labels"]["fairlead.io/admission"] == "tree"
    ]
    with running_webhook(cluster, [*of_file("admission-webhook.yaml"), *judge]):
        broken = next(file for file in FILES if file.path.stem == "sum-of-min")
        wait_until(
            "trees are judged",
            lambda: "denied the request: SumOfMinExceedsParent" in refusal(cluster, broken),
            60,
        )
        yield cluster


@pytest.fixture(scope="module")
def busy(judged: ControlPlane, controller: QuotaController) -> ControlPlane:
    """A pod runs in a namespace of the stored tree."""
    enforce(judged, STANDING)
    judged.admin.create([pod("runs", namespace="busy")])
    judged.admin.run(
        "wait", "pod/runs", "-n", "busy", "--for=jsonpath={.status.phase}=Running", "--timeout=60s"
    )
    return judged


def refusal(cluster: ControlPlane, file: TreeFile) -> str:
    """kubectl's message; "" where the tree is accepted."""
    try:
        cluster.admin.run("apply", "--dry-run=server", "-f", str(file.path))
    except KubectlError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.stem)
def test_kubectl_gets_the_refusal(
    request: pytest.FixtureRequest, judged: ControlPlane, file: TreeFile
) -> None:
    """In the words of the definition where it covers the fault, otherwise in the webhook's, which
    are those of `fairlead quota validate`.
    """
    if file.needs_standing:
        request.getfixturevalue("busy")
    reported = refusal(judged, file)
    if file.definition:
        assert file.definition in reported
    elif file.errors:
        assert 'admission webhook "quota-tree.fairlead.io" denied the request: ' in reported
        for code, sentence in file.errors:
            assert f"{code}: {sentence}" in reported
    else:
        assert reported == ""


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.needs_standing], ids=lambda file: file.path.stem
)
def test_the_command_sees_the_clusters_tree_and_pods(busy: ControlPlane, file: TreeFile) -> None:
    printed = fairlead_answer(busy.kubeconfig, "quota", "validate", str(file.path))
    errors = [
        tuple(line.split(None, 2)[1:])
        for line in printed.stdout.splitlines()
        if line.startswith("ERROR")
    ]
    assert (printed.returncode, errors) == (1, list(file.errors))


def printed_on_apply(cluster: ControlPlane, root: Object) -> list[str]:
    """The warnings that kubectl prints."""
    return [
        line.removeprefix("Warning: ")
        for line in cluster.admin.warned(tree(root))
        if line.startswith("Warning: ")
    ]


def printed_by_validate(cluster: ControlPlane, root: Object) -> list[str]:
    reported = json.dumps(tree(root))
    printed = fairlead_answer(cluster.kubeconfig, "quota", "validate", "-", stdin=reported)
    rows = [
        line.split(None, 2) for line in printed.stdout.splitlines() if line.startswith("WARNING")
    ]
    return [f"{code}: {sentence}" for _, code, sentence in rows]


def test_a_max_under_use_is_reported_on_apply_and_while_it_lasts(
    judged: ControlPlane, controller: QuotaController
) -> None:
    """kubectl prints the sentences of `quota validate`; then the condition of the tree contains
    them, until use is below the max.
    """
    clear(judged, PLACES)
    enforce(judged, STANDING)
    judged.admin.create([deployment("web", "beta", 3, "5")])
    judged.admin.run(
        "wait", "deployment/web", "-n", "beta", "--for=condition=Available", "--timeout=60s"
    )
    lowered = json.loads(json.dumps(STANDING))
    lowered["children"][1] |= {"min": {"cpu": 10}, "max": {"cpu": 10}}
    reported = [
        each
        for each in printed_by_validate(judged, lowered)
        if each.startswith(("OverMaxNow", "UnderUse"))
    ]
    assert [each.partition(" (")[0] for each in reported] == [
        "OverMaxNow: root.b: uses 15 cpu, more than its max 10",
        "UnderUse: root.b: min of cpu is lowered from 20 to 10 while 15 are used",
    ]
    on_apply = printed_on_apply(judged, lowered)
    assert [each for each in on_apply if each in reported] == reported, on_apply
    wait_until(
        "the condition shows it",
        lambda: "uses 15 cpu" in condition(judged).get("message", ""),
        30,
    )
    assert condition(judged)["status"] == "True"
    assert f"OverMaxNow: {condition(judged)['message'].partition(' (and ')[0]}" == reported[0]
    judged.admin.run("scale", "deployment/web", "-n", "beta", "--replicas=2")
    wait_until("it ends with the use", lambda: "uses" not in condition(judged)["message"], 60)
    assert [each for each in printed_on_apply(judged, STANDING) if "OverMaxNow" in each] == []


# --- past the webhook -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unjudged(cluster: ControlPlane) -> ControlPlane:
    """From here on there is no webhook."""
    cluster.admin.run(
        "delete", "validatingwebhookconfigurations", "fairlead-quota-tree", "--ignore-not-found"
    )
    for file in LET_IN:
        wait_until(
            f"{file.path.stem} is let in", lambda file=file: refusal(cluster, file) == "", 30
        )  # type: ignore[misc]
    return cluster


@pytest.fixture
def truth(unjudged: ControlPlane, controller: QuotaController) -> Iterator[QuotaTruth]:
    """A valid tree, and a pod that runs under it."""
    cluster = unjudged
    clear(cluster, PLACES)
    enforce(cluster, STANDING)
    made = QuotaTruth(cluster, STANDING)
    try:
        cluster.admin.create([deployment("web", "alpha", 1, "5")])
        settled(made, {"alpha": 1})
        yield made
        assert made.faults == []
        assert made.stopped == {}
        assert controller.component.is_running, controller.component.log_tail()
    finally:
        made.stop()


def let_in(cluster: ControlPlane, root: Object) -> None:
    """Apply the tree; returns when the controller has reported on this version of it."""
    cluster.admin.apply([tree(root)])
    wait_until("the tree is looked at", lambda: condition(cluster), 300)


def condition(cluster: ControlPlane, kind: str = "Valid") -> Object:
    """The condition of the tree's current version; empty until a controller has read it."""
    found = json.loads(cluster.admin.run("get", *TREE, "-o", "json"))
    rows: list[Object] = found.get("status", {}).get("conditions", [])
    return next(
        (
            row
            for row in rows
            if (row["type"], row["observedGeneration"]) == (kind, found["metadata"]["generation"])
        ),
        {},
    )


def reported_of(truth: QuotaTruth, place: str) -> set[tuple[str, str]]:
    waiting = [
        pod
        for pod in list(truth.pods.values())
        if pod["metadata"]["namespace"] == place and pod["spec"].get("schedulingGates")
    ]
    return {
        (quota_condition(pod).get("reason", ""), quota_condition(pod).get("message", ""))
        for pod in waiting
    }


@pytest.mark.parametrize("file", LET_IN, ids=lambda file: file.path.stem)
def test_a_broken_tree_that_got_in_evicts_no_pod_and_its_fault_is_reported(
    cluster: ControlPlane, truth: QuotaTruth, file: TreeFile
) -> None:
    (code, sentence), *_ = file.errors
    let_in(cluster, file.tree["spec"]["root"])
    wait_until("it is reported", lambda: condition(cluster).get("status") == "False", 30)
    assert condition(cluster)["message"] == sentence
    assert condition(cluster)["reason"] == ("TreeInvalid" if file.is_stopping else code)
    if file.is_stopping:
        cluster.admin.create([deployment("late", "beta", 1, "5")])
        wait_until(
            lambda: f"a waiting pod gets the reason: {reported_of(truth, 'beta')}",
            lambda: reported_of(truth, "beta"),
            30,
        )
        wait_until(
            lambda: f"a waiting pod gets the reason: {reported_of(truth, 'beta')}",
            lambda: (
                reported_of(truth, "beta")
                == {("TreeInvalid", f"the quota tree is invalid: {sentence}")}
            ),
            30,
        )
        enforce(cluster, STANDING)
        settled(truth, {"alpha": 1, "beta": 1})
    (system,) = (
        each
        for each in cluster.admin.get("namespaces")
        if each["metadata"]["name"] == "kube-system"
    )
    assert "fairlead.io/quota" not in system["metadata"]["labels"]


# --- malformed input ------------------------------------------------------------------------------


def test_a_fault_that_lies_deeper_than_the_definition_reaches_stops_the_plan(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    node: Object = {"name": "l8", "namespaces": ["alpha", "beta"], "min": {"cpu": "lots"}}
    for level in range(7, 0, -1):
        node = {"name": f"l{level}", "min": {"cpu": 40}, "max": {"cpu": 40}, "children": [node]}
    let_in(cluster, node)
    cluster.admin.create([deployment("late", "beta", 1, "5")])
    message = (
        "the quota tree is invalid: l8: min of cpu is `lots`, which is not a quantity of Kubernetes"
    )
    wait_until(
        lambda: f"it is reported: {reported_of(truth, 'beta')}",
        lambda: reported_of(truth, "beta") == {("TreeInvalid", message)},
        30,
    )
    enforce(cluster, STANDING)
    settled(truth, {"alpha": 1, "beta": 1})


def test_a_tree_of_200_levels_is_planned_by(cluster: ControlPlane, truth: QuotaTruth) -> None:
    node: Object = {"name": "l200", "namespaces": ["alpha"], "min": {"cpu": 5}, "max": {"cpu": 20}}
    for level in range(199, 1, -1):
        node = {"name": f"l{level}", "min": {"cpu": 5}, "children": [node]}
    let_in(
        cluster,
        {
            "name": "l1",
            "min": {"cpu": 40},
            "max": {"cpu": 40},
            "children": [node, {"name": "rest", "namespaces": ["beta"]}],
        },
    )
    cluster.admin.create([deployment("more", "alpha", 5, "5"), deployment("late", "beta", 5, "5")])
    settled(truth, {"alpha": 4, "beta": 4})
    wait_until(
        "a waiting pod gets the reason",
        lambda: reported_of(truth, "alpha") == {("OverMax", "cpu asks 5; l200 uses 20 of max 20")},
        30,
    )
    assert condition(cluster)["status"] == "True"


def test_names_in_any_script_and_quantities_in_any_form(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    (malformed,) = (file for file in FILES if file.path.stem == "odd-and-good")
    let_in(cluster, malformed.tree["spec"]["root"])
    cluster.admin.create(
        [deployment("late", "beta", 1, "5"), deployment("huge", "beta", 1, "2000")]
    )
    settled(truth, {"alpha": 1, "beta": 1})
    wait_until(
        "a waiting pod gets the reason",
        lambda: {reason for reason, _ in reported_of(truth, "beta")} == {"NeverFits"},
        30,
    )
    ((_, sentence),) = reported_of(truth, "beta")
    assert sentence.startswith("cpu asks 2000; root b/ü ☃ max is 1000"), sentence
    assert condition(cluster)["status"] == "True"


def test_a_node_without_status_and_pods_that_ask_nothing(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    cluster.admin.create([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "blank"}}])
    free = deployment("free", "beta", 2, "1")
    free["spec"]["template"]["spec"]["containers"][0].pop("resources")
    try:
        cluster.admin.create([free, deployment("late", "beta", 1, "5")])
        settled(truth, {"alpha": 1, "beta": 3})
    finally:
        cluster.admin.delete("node", "blank")


def test_a_tree_of_20000_nodes_is_planned_by(cluster: ControlPlane, truth: QuotaTruth) -> None:
    """Its status has room for only a part of its nodes."""
    rows: list[list[Object]] = [
        [{"name": f"n{1000 * g + n}", "namespaces": [f"s{1000 * g + n}"]} for n in range(999)]
        for g in range(20)
    ]
    rows[0][0] |= {"namespaces": ["alpha", "beta"], "max": {"cpu": 10}}
    rows[1][0].pop("namespaces")
    groups = [{"name": f"g{number}", "children": leaves} for number, leaves in enumerate(rows)]
    let_in(cluster, {"name": "root", "min": {"cpu": 40}, "max": {"cpu": 40}, "children": groups})
    cluster.admin.create([deployment("late", "beta", 2, "5")])
    settled(truth, {"alpha": 1, "beta": 1})
    wait_until(
        "a waiting pod gets the reason",
        lambda: reported_of(truth, "beta") == {("OverMax", "cpu asks 5; n0 uses 10 of max 10")},
        120,
    )

    def reported() -> int:
        """The number of nodes that the status lists or counts; it
        is written once a second at most.
        """
        status = json.loads(cluster.admin.run("get", *TREE, "-o", "json")).get("status", {})
        return len(status.get("nodes", ())) + int(status.get("nodesLeftOut", 0))

    wait_until("the status counts all nodes", lambda: reported() == 20_001, 120)
