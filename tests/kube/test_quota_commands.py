"""`fairlead quota` beside the real API server and the controller: what it predicts is what then
happens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import of_file
from tests.kube.quota_line import (
    DEMO,
    STEPS,
    QuotaController,
    big_node,
    bounded,
    deployment,
    enforce,
    install,
    settled,
    tree,
)
from tests.kube.quota_truth import QuotaTruth, is_admitted, quota_condition
from tests.kube.servers import fairlead_answer
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 1)

RAISED = bounded(
    "root",
    40,
    40,
    children=[
        bounded(
            "root.a",
            20,
            40,
            children=[
                bounded("root.a.1", 10, 20, ["namespace1"]),
                bounded("root.a.2", 10, 20, ["namespace2"]),
            ],
        ),
        bounded(
            "root.b",
            20,
            40,
            children=[
                bounded("root.b.1", 15, 20, ["namespace3"]),
                bounded("root.b.2", 5, 20, ["namespace4"]),
            ],
        ),
    ],
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install(made)
        made.admin.create([big_node("only", 56)])
        yield made


@pytest.fixture(scope="module")
def truth(cluster: ControlPlane) -> Iterator[QuotaTruth]:
    controller = QuotaController(cluster)
    seen = None
    try:
        controller.start()
        enforce(cluster, DEMO)
        seen = QuotaTruth(cluster, DEMO)
        yield seen
    finally:
        if seen is not None:
            seen.stop()
        controller.stop()


def fairlead(cluster: ControlPlane, *words: str) -> tuple[int, str]:
    answer = fairlead_answer(cluster.kubeconfig, "quota", *words)
    assert not answer.stderr, answer.stderr
    return answer.returncode, answer.stdout


def test_the_caps_of_a_user_group_hold_and_commands_know_them(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    """The definition of groups is installed while the controller runs."""
    kinds = ("Namespace", "CustomResourceDefinition")
    cluster.admin.apply([each for each in of_file("people.yaml") if each["kind"] in kinds])
    cluster.admin.run("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    team = {
        "apiVersion": "fairlead.io/v1",
        "kind": "UserGroup",
        "metadata": {"name": "team", "namespace": "kube-ai"},
        "spec": {
            "groupName": "team",
            "quotaNames": ["root.b.2"],
            "userCaps": {"bob": {"cpu": "1"}},
        },
    }
    cluster.admin.apply([team])

    def status() -> dict[str, Any]:
        (found,) = cluster.admin.get("elasticquotatree", "-n", "kube-system")
        shown: dict[str, Any] = found.get("status", {})
        return shown

    caps = [{"leaf": "root.b.2", "user": "bob", "resources": {"cpu": "1"}}]
    wait_until("the cap is in the status", lambda: status().get("userCaps") == caps)
    web = deployment("capped", "namespace4", 3, "500m")
    web["metadata"]["labels"] = {"arena.kubeflow.org/console-user": "bob"}
    cluster.admin.apply([web])

    def reasons() -> list[str]:
        pods = cluster.admin.get("pods", "-n", "namespace4", "-l", "app=capped")
        return sorted(quota_condition(each).get("reason", "") for each in pods)

    wait_until("two run", lambda: reasons() == ["Admitted", "Admitted", "UserCap"])
    use = [{"leaf": "root.b.2", "user": "bob", "used": {"cpu": "1"}}]
    wait_until("the use is in the status", lambda: status().get("userUse") == use)
    code, printed = fairlead(cluster, "plan", "-o=json")
    assert code == 0, printed
    (row,) = [each for each in json.loads(printed)["waiting"] if "capped" in each["unit"]]
    assert row["reason"] == "UserCap"
    assert "bob uses 1 of 1 allowed in root.b.2" in row["message"]
    team["spec"]["userCaps"]["bob"]["cpu"] = "1500m"
    cluster.admin.apply([team])
    wait_until("all run", lambda: reasons() == ["Admitted"] * 3)
    cluster.admin.run("delete", "deployment", "capped", "-n", "namespace4")
    wait_until("they are gone", lambda: reasons() == [])


def test_what_is_announced_beforehand_happens(
    cluster: ControlPlane, truth: QuotaTruth, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        cluster.admin.create([deployment(f"nginx{number}", f"namespace{number}", 5, "5")])
        settled(
            truth, {f"namespace{place + 1}": count for place, count in enumerate(STEPS[number - 1])}
        )

    waiting = next(
        pod
        for pod in cluster.admin.get("pods", "-n", "namespace3")
        if pod["spec"].get("schedulingGates")
    )
    _, text = fairlead(cluster, "why", f"namespace3/{waiting['metadata']['name']}")
    assert text.splitlines()[0] == quota_condition(waiting)["message"]
    why_is_what_the_cluster_says(cluster, truth)

    file = tmp_path / "tree.json"
    file.write_text(json.dumps(tree(RAISED)))
    before = set(truth.evicted.values())
    _, text = fairlead(cluster, "plan", f"--tree={file}", "--until-settled", "-o=json")
    reported = json.loads(text)
    cluster.admin.apply([tree(RAISED)])
    settled(
        truth,
        {
            "namespace1": reported["running"]["root.a.1"],
            "namespace2": reported["running"]["root.a.2"],
            "namespace3": 3,
        },
    )
    assert {f"{each['namespace']}/{each['pod']}" for each in reported["evict"]} == set(
        truth.evicted.values()
    ) - before
    assert reported["evictions"] == 1


def why_is_what_the_cluster_says(cluster: ControlPlane, truth: QuotaTruth) -> None:
    """`why -o json` of the youngest waiting pod in namespace1, whose Deployment lost pods by
    eviction: each number comes from kubectl.
    """
    pods = cluster.admin.get("pods", "-A")
    gated = sorted(
        (pod for pod in pods if not is_admitted(pod)),
        key=lambda pod: (pod["metadata"]["creationTimestamp"], name_of(pod)),
    )
    own = [pod for pod in gated if pod["metadata"]["namespace"] == "namespace1"]
    asked = own[-1]
    _, text = fairlead(cluster, "why", name_of(asked), "-o=json")
    [item] = json.loads(text)["items"]
    [unit] = item["units"]
    condition = quota_condition(asked)
    assert (item["kind"], item["name"], item["leaf"], item["priority"]) == (
        "pod",
        name_of(asked),
        "root.a.1",
        asked["spec"]["priority"],
    )
    assert (item["reason"], item["message"]) == (condition["reason"], condition["message"])
    assert (item["reasonSince"], item["waitsSince"]) == (
        condition["lastTransitionTime"],
        asked["metadata"]["creationTimestamp"],
    )
    assert unit["place"]["inLeaf"] == {"place": len(own), "of": len(own)}, (
        "by age: they ask and borrow alike"
    )
    assert [each["unit"] for each in unit["ahead"]] == [name_of(pod) for pod in own[:-1]]
    overall, before = unit["place"]["overAllLeaves"], unit["aheadInOtherLeaves"]
    assert overall["of"] == len(gated)
    assert overall["place"] == len(own) + sum(before.values())
    assert unit["lacks"] == [{"of": "max", "at": "root", "resource": "cpu", "amount": "5"}], (
        "40 of 40 are used"
    )
    victims = [each for each in truth.evicted.values() if each.startswith("namespace1/")]
    assert victims and item["evictions"]["count"] == len(victims)


def name_of(pod: dict[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def test_the_doctor_names_the_leaf_that_is_over_its_max(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    """Pods of 5 run in root.a.1, whose max becomes 5: the doctor's verdict is bad, until the max is
    20 again. No pod is evicted for it.
    """
    before, used = dict(truth.evicted), 5 * truth.running()["namespace1"]
    root = json.loads(json.dumps(RAISED))
    leaf = root["children"][0]["children"][0]
    leaf["min"], leaf["max"] = {"cpu": "5"}, {"cpu": "5"}
    cluster.admin.apply([tree(root)])
    try:
        status, text = fairlead(cluster, "doctor")
    finally:
        cluster.admin.apply([tree(RAISED)])
    assert status == 1
    assert (
        used > 5
        and (
            f"BAD    max         root.a.1: uses {used} cpu, more than its max 5 (pods "
            "namespace1/nginx1-"
        )
        in text
    )
    assert "\nmax: raise its max" in text
    assert truth.evicted == before
    assert "ok     max         no node uses more than its max" in fairlead(cluster, "doctor")[1]


def test_a_sound_installation_and_what_is_wrong_with_a_broken_one(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    status, text = fairlead(cluster, "doctor")
    assert (status, {line.split()[0] for line in text.splitlines()}) == (0, {"STATE", "ok"}), text

    cluster.admin.run("delete", "mutatingadmissionpolicybinding", "fairlead-quota-gate")
    cluster.admin.run("delete", "clusterrolebinding", "fairlead-quota-controller")
    status, text = fairlead(cluster, "doctor")
    install(cluster)

    assert status == 1
    assert (
        "BAD    injector    MutatingAdmissionPolicyBinding/fairlead-quota-gate: not found\n"
    ) in text
    assert (
        "BAD    rights      the controller is not allowed to list pods, patch pods, patch "
        "pods/status, create pods/eviction"
    ) in text
