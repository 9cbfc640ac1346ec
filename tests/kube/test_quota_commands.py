"""`fairlead quota` beside the real API server and the controller: what it says beforehand is what then happens."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.quota_line import DEMO, STEPS, QuotaController, big_node, bounded, deployment, enforce, install, settled, tree
from tests.kube.quota_truth import QuotaTruth, said
from tests.kube.servers import FAIRLEAD, environment

RAISED = bounded(
    "root",
    40,
    40,
    children=[
        bounded("root.a", 20, 40, children=[bounded("root.a.1", 10, 20, ["namespace1"]), bounded("root.a.2", 10, 20, ["namespace2"])]),
        bounded("root.b", 20, 40, children=[bounded("root.b.1", 15, 20, ["namespace3"]), bounded("root.b.2", 5, 20, ["namespace4"])]),
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
    argv = [*FAIRLEAD, "quota", *words, f"--kubeconfig={cluster.kubeconfig}"]
    answer = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert not answer.stderr, answer.stderr
    return answer.returncode, answer.stdout


def test_what_is_said_beforehand_happens(cluster: ControlPlane, truth: QuotaTruth, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        cluster.admin.create([deployment(f"nginx{number}", f"namespace{number}", 5, "5")])
        settled(truth, {f"namespace{place + 1}": count for place, count in enumerate(STEPS[number - 1])})

    waiting = next(pod for pod in cluster.admin.get("pods", "-n", "namespace3") if pod["spec"].get("schedulingGates"))
    _, text = fairlead(cluster, "why", f"namespace3/{waiting['metadata']['name']}")
    assert text.splitlines()[0] == said(waiting)["message"]

    file = tmp_path / "tree.json"
    file.write_text(json.dumps(tree(RAISED)))
    before = set(truth.evicted.values())
    _, text = fairlead(cluster, "plan", f"--tree={file}", "--until-settled", "-o=json")
    told = json.loads(text)
    cluster.admin.apply([tree(RAISED)])
    settled(truth, {"namespace1": told["running"]["root.a.1"], "namespace2": told["running"]["root.a.2"], "namespace3": 3})
    assert {f"{each['namespace']}/{each['pod']}" for each in told["evict"]} == set(truth.evicted.values()) - before
    assert told["evictions"] == 1


def test_a_sound_installation_and_what_is_wrong_with_a_broken_one(cluster: ControlPlane, truth: QuotaTruth) -> None:
    status, text = fairlead(cluster, "doctor")
    assert (status, {line.split()[0] for line in text.splitlines()}) == (0, {"STATE", "ok"}), text

    cluster.admin.run("delete", "mutatingadmissionpolicybinding", "fairlead-quota-gate")
    cluster.admin.run("delete", "clusterrolebinding", "fairlead-quota-controller")
    status, text = fairlead(cluster, "doctor")
    install(cluster)

    assert status == 1
    assert "BAD    injector    MutatingAdmissionPolicyBinding/fairlead-quota-gate: not there\n" in text
    assert "BAD    rights      the controller may not list pods, patch pods, patch pods/status, create pods/eviction" in text
