"""The worked scenarios of quota on the real control plane: real controllers of Deployments, Jobs
and budgets, with Fairlead's controller beside them.

A third of them is drawn for each run: `QUOTA_SCENARIOS=7` repeats the draw of a run whose test ids
contain `seed 7`, `QUOTA_SCENARIOS=all` plays every one, the slow ones, too. The truth is a watch of
the test's own; the expected results are in the files.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.api_client import APPLY, JSON_PATCH, Answer, ApiClient
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.operators import running_operators
from tests.kube.quota_line import QuotaController, install, running_controller
from tests.kube.quota_truth import QuotaTruth
from tests.kube.servers import fairlead_answer
from tests.scenarios.quota.files import read_scenario, scenario_paths
from tests.scenarios.quota.objects import PLAYED, nodes, tree_object
from tests.scenarios.quota.player import GATE, ScenarioPlayer
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(4, 1)

Object = dict[str, Any]
TREES = "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees"
TREE = f"{TREES}/elasticquotatree"
JOBS = (
    "/apis/batch/v1/jobs",
    "/apis/kubeflow.org/v1/pytorchjobs",
    "/apis/kubeflow.org/v2beta1/mpijobs",
)
PATIENCE_SECONDS = 40.0
STILL_SECONDS = 1.0
SEED = os.environ.get("QUOTA_SCENARIOS") or str(random.randrange(1000))


def drawn() -> list[Path]:
    every = scenario_paths()
    if SEED == "all":
        return every
    quick = [
        path
        for path in every
        if not (scenario := read_scenario(path)).is_slow and "operators" not in scenario.needs
    ]
    return sorted(random.Random(int(SEED)).sample(quick, -(-len(every) // 3)))


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install(made)
        made.admin.create([*nodes(), *_rights()])
        yield made


def _rights() -> list[Object]:
    """One group may write all pods: only quota stops its users."""
    rbac, named = "rbac.authorization.k8s.io", {"metadata": {"name": "people"}}
    rules = [{"apiGroups": [""], "resources": ["pods", "pods/binding"], "verbs": ["*"]}]
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "people"},
        "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "people"}],
    }
    return [
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "rules": rules, **named},
        {**binding, **named},
    ]


@pytest.fixture(scope="module")
def controller(cluster: ControlPlane) -> Iterator[QuotaController]:
    with running_controller(cluster) as made:
        yield made


@pytest.fixture(scope="module")
def operators(cluster: ControlPlane, controller: QuotaController) -> Iterator[None]:
    """The operators start when the controller already works."""
    with running_operators(cluster):
        yield


class RealHands:
    def __init__(self, cluster: ControlPlane, truth: QuotaTruth) -> None:
        self.truth = truth
        self._admin = cluster.admin
        self._api = ApiClient("real", cluster.kubeconfig)

    def make(self, objects: list[Object]) -> None:
        self._admin.apply(objects)

    def set_tree(self, tree: Object) -> None:
        answer = self._api.patch(TREE, tree, APPLY, fieldManager="test", force="true")
        assert answer.status in (200, 201), answer.message
        self.truth.learn(tree["spec"]["root"])
        wait_until(
            lambda: f"the tree is enforced: {self.tree().get('status')}",
            self._is_enforced,
            30,
            pause_seconds=0.1,
        )
        for space in self.truth.above:
            wait_until(
                lambda space=space: f"the gate stands in {space}",
                lambda space=space: self._gates(space),
                30,
                0.1,
            )  # type: ignore[misc]

    def _is_enforced(self) -> bool:
        tree = self.tree()
        conditions = (tree.get("status") or {}).get("conditions") or ()
        states = {
            each["type"]: each["status"]
            for each in conditions
            if each["observedGeneration"] == tree["metadata"]["generation"]
        }
        return states.get("Enforced") == "True"

    def _gates(self, space: str) -> bool:
        """Whether a new pod would receive the gate; the namespace's default service account may
        still be missing.
        """
        born = self._try(self._api, space, {})
        return any(
            gate["name"] == GATE
            for gate in (born.body.get("spec") or {}).get("schedulingGates") or ()
        )

    @staticmethod
    def _try(api: ApiClient, space: str, more: Object) -> Answer:
        spec = {"containers": [{"name": "main", "image": "app:1"}], **more}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}
        return api.post(f"/api/v1/namespaces/{space}/pods", pod, dryRun="All")

    def remove(self, plural: str, namespace: str, app: str) -> None:
        self._admin.run("delete", plural, "-n", namespace, "-l", f"app={app}", "--wait=false")

    def roll(self, namespace: str, name: str) -> None:
        self._admin.run("set", "env", f"deployment/{name}", "-n", namespace, "RELEASE=2")

    def attempt(self, does: str, namespace: str, app: str) -> str:
        person = self._api.as_user("mallory", "people")
        if does == "set the node":
            answer = self._try(person, namespace, {"nodeName": "scenario-gpus"})
        else:
            name = next(
                pod["metadata"]["name"]
                for pod in self.pods()
                if pod["metadata"]["name"].startswith(app) and gated(pod)
            )
            step = {"op": "remove", "path": "/spec/schedulingGates/0"}
            answer = person.patch(f"/api/v1/namespaces/{namespace}/pods/{name}", [step], JSON_PATCH)
        return answer.message if answer.status >= 400 else ""

    def settle(self, differences: Callable[[], list[str]], seconds: float) -> list[str]:
        since = time.monotonic()

        def is_still() -> bool:
            nonlocal since
            if differences():
                since = time.monotonic()
            return time.monotonic() - since > STILL_SECONDS

        try:
            wait_until("all is as in the file", is_still, seconds + PATIENCE_SECONDS, 0.05)
        except TimeoutError:
            return differences() or ["it never came to rest"]
        return []

    def pods(self) -> Iterable[Object]:
        return [
            pod
            for pod in list(self.truth.pods.values())
            if PLAYED in pod["metadata"].get("labels", {})
        ]

    def jobs(self) -> Iterable[Object]:
        """All jobs; a kind whose operator is not installed has none."""
        answers = [self._api.get(path) for path in JOBS]
        return [job for answer in answers if answer.status == 200 for job in answer.body["items"]]

    def tree(self) -> Object:
        found: Object = self._api.get(TREE).body
        return found

    def planned(self, leaf: str) -> list[tuple[str, str]]:
        done = fairlead_answer(self._api.kubeconfig, "quota", "plan", "-o", "json")
        done.check_returncode()
        return [
            (row["reason"], row["message"])
            for row in json.loads(done.stdout)["waiting"]
            if row["leaf"] == leaf
        ]

    def stopped(self) -> dict[str, str]:
        return {uid: name.partition("/")[0] for uid, name in list(self.truth.stopped.items())}

    def clear(self) -> None:
        owners = "deployments,statefulsets,daemonsets,jobs,poddisruptionbudgets"
        if any("pytorchReplicaSpecs" in job["spec"] for job in self.jobs()):
            owners += ",pytorchjobs"
        self._admin.run("delete", owners, "-A", "-l", f"{PLAYED}=yes", "--wait=false")

        def is_gone() -> bool:
            if not self.pods():
                return True
            self._admin.run(
                "delete",
                "pods",
                "-A",
                "-l",
                f"{PLAYED}=yes",
                "--force",
                "--grace-period=0",
                "--wait=false",
            )
            return False

        wait_until("nothing is left", is_gone, 60)


def gated(pod: Object) -> bool:
    return any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates", ()))


@pytest.mark.parametrize("path", drawn(), ids=lambda path: f"{path.stem}, seed {SEED}")
def test_a_scenario(
    request: pytest.FixtureRequest, cluster: ControlPlane, controller: QuotaController, path: Path
) -> None:
    scenario = read_scenario(path)
    if "operators" in scenario.needs:
        request.getfixturevalue("operators")
    truth = QuotaTruth(cluster, tree_object(scenario.root())["spec"]["root"])
    hands = RealHands(cluster, truth)
    try:
        ScenarioPlayer(scenario, hands).play()
        assert truth.faults == []
        assert controller.component.is_running, controller.component.log_tail()
    finally:
        hands.clear()
        truth.stop()
