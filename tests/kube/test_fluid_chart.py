"""Fluid's real chart with the real Helm 3 and Helm 4 on a real API server: installed, upgraded,
rolled back and removed while data sets exist, and killed in the middle.

A run tries one of the two. KWOK plays the pods. Fluid's controllers do not run: a test writes the
finalizer that they would write.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.fault_proxy import held_back, running_fault_proxy
from tests.kube.fluid import NAMESPACE, RELEASE, chart_folder
from tests.kube.helm import HELMS
from tests.kube.objects import cpu_node
from tests.kube.programs import program
from tests.turns import in_turn
from tests.waiting import wait_until

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.helm.helm_program import HelmProgram
from fairlead.model.operations.operation import HelmRelease, HelmStep
from fairlead.rules.operations.releases import release_turn

VALUES: dict[str, Any] = {"crdUpgrade": {"enabled": False}, "webhook": {"enabled": False}}
"""The hook is off: definitions are Fairlead's to apply. The webhook's program cannot run here."""
FINALIZER = "fluid-dataset-controller-finalizer"
_KILLED = """\
import asyncio, json, sys
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.helm.helm_program import HelmProgram
from fairlead.model.operations.operation import HelmStep
verb, chart, values, operation, kubeconfig = sys.argv[1:]
helm = HelmProgram(find_connection(kubeconfig))
step = HelmStep(verb, "fluid", "fluid-system", chart, "1.0.8", json.loads(values))
asyncio.run(helm.carry_out(step, operation))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as plane:
        plane.admin.create([cpu_node("node-1"), cpu_node("node-2")])
        plane.admin.run("apply", "--server-side", "-f", str(chart_folder() / "crds"))
        yield plane


class Installed:
    """Fluid in the cluster through one of the two programs, as a component of Fairlead."""

    def __init__(self, name: str, cluster: ControlPlane) -> None:
        self.cluster = cluster
        self.environment = {**os.environ, "FAIRLEAD_HELM": str(program(name))}
        connection = find_connection(str(cluster.kubeconfig))
        assert connection is not None
        self._helm = HelmProgram(connection, self.environment)

    def step(self, verb: Any, **values: Any) -> HelmStep:
        chart = str(chart_folder())
        return HelmStep(verb, RELEASE, NAMESPACE, chart, "1.0.8", {**VALUES, **values}, seconds=120)

    def carry_out(self, step: HelmStep, operation: str) -> None:
        asyncio.run(self._helm.carry_out(step, operation))

    def release(self) -> HelmRelease | None:
        return asyncio.run(self._helm.release(RELEASE, NAMESPACE))

    def found(self) -> HelmRelease:
        release = self.release()
        assert release is not None
        return release

    def remove(self) -> None:
        self.carry_out(HelmStep("uninstall", RELEASE, NAMESPACE), "remove000000")

    def deployments(self) -> dict[str, int]:
        """Wanted replicas by name."""
        found = self.cluster.admin.get("deployments", "-n", NAMESPACE)
        return {each["metadata"]["name"]: each["spec"]["replicas"] for each in found}

    def killed(self, verb: str, operation: str, revision: int) -> None:
        """A process of Fairlead, killed before Helm has written that this revision is deployed."""
        words = [verb, str(chart_folder()), json.dumps(VALUES), operation]
        argv = [sys.executable, "-c", _KILLED, *words]
        self._kill(argv, f"pending-{verb}", revision, kubeconfig="")

    def person_killed(self) -> None:
        """The same for the installation of a person's Helm, who wrote no mark."""
        helm = self.environment["FAIRLEAD_HELM"]
        values = json.dumps(VALUES["webhook"])
        words = ["install", RELEASE, str(chart_folder()), "--create-namespace", "--skip-crds"]
        more = ["--set", "crdUpgrade.enabled=false", "--set-json", f"webhook={values}"]
        argv = [helm, *words, *more, f"--namespace={NAMESPACE}"]
        self._kill(argv, "pending-install", 1, kubeconfig="--kubeconfig=")

    def _kill(self, argv: list[str], status: str, revision: int, kubeconfig: str) -> None:
        """Kills it while the last write of its revision is held; the release keeps its status then.

        `kubeconfig`: what stands before the path, the last word.
        """
        with running_fault_proxy(self.cluster) as proxy:
            fault = proxy.plan(held_back(f"sh.helm.release.v1.{RELEASE}.v{revision}"))
            process = subprocess.Popen(
                [*argv, f"{kubeconfig}{proxy.kubeconfig}"],
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                wait_until("the last write of the revision is held", lambda: fault.strikes == 1)
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()
        assert self._has(status)

    def _has(self, status: str) -> bool:
        chosen = f"owner=helm,name={RELEASE},status={status}"
        return bool(self.cluster.admin.get("secrets", "-n", NAMESPACE, "-l", chosen))


@pytest.fixture(params=in_turn(HELMS, len(HELMS)))
def fluid(request: pytest.FixtureRequest, cluster: ControlPlane) -> Iterator[Installed]:
    found = Installed(request.param, cluster)
    yield found
    found.remove()


def _data_set(namespace: str) -> list[dict[str, Any]]:
    meta = {"name": "images", "namespace": namespace, "finalizers": [FINALIZER]}
    spec = {"mounts": [{"mountPoint": "pvc://raw", "name": "raw"}]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "data.fluid.io/v1alpha1", "kind": "Dataset", "metadata": meta, "spec": spec},
    ]


@pytest.mark.turns(2, 0)
def test_data_sets_outlive_an_upgrade_a_rollback_and_a_removal(fluid: Installed) -> None:
    cluster, namespace = fluid.cluster, f"of-{Path(fluid.environment['FAIRLEAD_HELM']).name}"
    namespace = namespace.replace(".", "-")
    definitions = _definitions(cluster)
    fluid.carry_out(fluid.step("install"), "install00000")
    release = fluid.found()
    assert (release.status, release.revision, release.chart, release.chart_version) == (
        *("deployed", 1, "fluid", "1.0.8"),
    )
    assert (release.operation, release.is_own) == ("install00000", True)
    wanted = fluid.deployments()
    assert wanted["dataset-controller"] == 1
    assert wanted["alluxioruntime-controller"] == 0
    cluster.admin.create(_data_set(namespace))

    fluid.carry_out(fluid.step("upgrade", dataset={"replicas": 2}), "upgrade00000")
    assert fluid.deployments()["dataset-controller"] == 2
    assert cluster.admin.get("jobs", "-n", NAMESPACE) == [], "no hook upgraded definitions"
    fluid.carry_out(HelmStep("rollback", RELEASE, NAMESPACE, revision=1), "rollback0000")
    assert fluid.deployments()["dataset-controller"] == 1
    assert (fluid.found().revision, fluid.found().rolled_back_to) == (3, 1)

    fluid.remove()
    assert fluid.release() is None
    assert fluid.deployments() == {}
    assert _definitions(cluster) == definitions, "the same objects: none was made again"
    assert _finalizers(cluster, namespace) == [FINALIZER]
    cluster.admin.run("delete", "dataset", "images", "-n", namespace, "--wait=false")
    assert _finalizers(cluster, namespace) == [FINALIZER], "no controller is there to remove it"

    fluid.carry_out(fluid.step("install"), "again0000000")
    assert (fluid.found().revision, fluid.found().status) == (1, "deployed")
    patch = ("patch", "dataset", "images", "-n", namespace, "--type=merge", "-p")
    cluster.admin.run(*patch, '{"metadata":{"finalizers":[]}}')


def _definitions(cluster: ControlPlane) -> dict[str, str]:
    found = cluster.admin.get("customresourcedefinitions")
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}


def _finalizers(cluster: ControlPlane, namespace: str) -> list[str]:
    (found,) = cluster.admin.get("datasets", "-n", namespace)
    return list(found["metadata"]["finalizers"])


@pytest.mark.turns(2, 1)
def test_a_killed_installation_is_removed_and_begins_again(fluid: Installed) -> None:
    fluid.killed("install", "killed000000", revision=1)
    release = fluid.found()
    assert (release.status, release.operation, release.deployed) == (
        *("pending-install", "killed000000", 0),
    )
    step = fluid.step("install")
    turn = release_turn(step, release, "killed000000")
    assert (turn.do, turn.message) == ("uninstall", "")
    fluid.remove()
    assert release_turn(step, fluid.release(), "killed000000").do == "run"
    fluid.carry_out(step, "killed000000")
    assert fluid.found().status == "deployed"
    assert release_turn(step, fluid.found(), "killed000000").do == "done"


@pytest.mark.turns(2, 0)
def test_a_killed_upgrade_is_rolled_back_and_begins_again(fluid: Installed) -> None:
    fluid.carry_out(fluid.step("install"), "install00000")
    fluid.killed("upgrade", "killed000000", revision=2)
    release = fluid.found()
    assert (release.status, release.revision, release.deployed) == ("pending-upgrade", 2, 1)
    turn = release_turn(fluid.step("upgrade"), release, "killed000000")
    assert (turn.do, turn.revision) == ("rollback", 1)
    fluid.carry_out(HelmStep("rollback", RELEASE, NAMESPACE, revision=1), "killed000000")
    step = fluid.step("upgrade", dataset={"replicas": 2})
    assert release_turn(step, fluid.found(), "killed000000").do == "run"
    fluid.carry_out(step, "killed000000")
    assert (fluid.found().status, fluid.deployments()["dataset-controller"]) == ("deployed", 2)


@pytest.mark.turns(2, 1)
def test_a_persons_killed_installation_is_explained_and_left_alone(fluid: Installed) -> None:
    fluid.person_killed()
    for verb in ("install", "upgrade", "uninstall"):
        turn = release_turn(fluid.step(verb), fluid.found(), "other0000000")
        assert turn.do == "refuse"
        assert "is of another program and is pending-install" in turn.message
    assert fluid.found().status == "pending-install"
