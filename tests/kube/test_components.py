"""`fairlead component …` on a real API server: manifests of the real MPI operator, and a chart with
the real Helm 3 and Helm 4. KWOK plays the node.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.helm import HELMS, Helm
from tests.kube.kubectl import KubectlError
from tests.kube.objects import cpu_node
from tests.kube.programs import module_folder, program
from tests.kube.servers import FAIRLEAD, environment
from tests.kube.small_chart import write_small_chart
from tests.programs import run_program
from tests.turns import in_turn
from tests.waiting import HANG_SECONDS, wait_until

NOT_COMPARED = ("events", "leases", "componentstatuses", "apiservices", "endpoints")
STACK = "kube-prometheus-stack"
"""The chart that the component `prometheus` is known by."""


OPERATORS, CHARTS = pytest.mark.turns(2, 0), pytest.mark.turns(2, 1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as plane:
        plane.admin.create([cpu_node("cpu-1")])
        yield plane


class Commands:
    """`fairlead component …` of an administrator. `helm`: its program, "" = there is none."""

    def __init__(self, cluster: ControlPlane, helm: str = "") -> None:
        self.cluster = cluster
        self._environment = {**environment(), "PATH": "/nowhere"}
        if helm:
            self._environment["FAIRLEAD_HELM"] = str(program(helm))

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*FAIRLEAD, *words, f"--kubeconfig={self.cluster.kubeconfig}"],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str, status: int = 0, seconds: float = 180.0) -> str:
        begun = self.begin(*words)
        try:
            output, _ = begun.communicate(timeout=seconds)
        finally:
            begun.kill()
        assert begun.returncode == status, output
        return output

    def row(self, id: str) -> dict[str, Any]:
        items = json.loads(self.run("component", "list", "-o", "json"))["items"]
        return next(each for each in items if each["id"] == id)

    def plan(self, *words: str, status: int = 0) -> dict[str, Any]:
        output = self.run("component", "plan", *words, "-o", "json", status=status)
        found: dict[str, Any] = json.loads(output)
        return found


@pytest.fixture
def commands(cluster: ControlPlane) -> Commands:
    return Commands(cluster)


def objects(cluster: ControlPlane) -> set[tuple[str, ...]]:
    """Kind, namespace and name of all objects that no loop of the cluster makes."""
    kinds = cluster.admin.run("api-resources", "--verbs=list", "-o", "name").split()
    wanted = ",".join(each for each in kinds if each.partition(".")[0] not in NOT_COMPARED)
    columns = "custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name"
    lines = cluster.admin.run("get", wanted, "-A", "--no-headers", "-o", columns)
    rows = (tuple(line.split()) for line in lines.splitlines())
    return {row for row in rows if not row[2].startswith("operation-") and row[1] != "<gone>"}


@pytest.fixture(scope="module")
def operator() -> list[Any]:
    """The MPI operator's own manifests."""
    path = module_folder("MPI_OPERATOR") / "deploy/v2beta1/mpi-operator.yaml"
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def written(path: Path, manifests: list[Any]) -> str:
    path.write_text(yaml.safe_dump_all(manifests))
    return str(path)


def kubectl_apply_set(cluster: ControlPlane, file: str) -> str:
    """What the real kubectl answers about the inventory as the parent of an ApplySet."""
    answer = run_program(
        [
            *(program("kubectl"), "apply", "--prune", "-f", file, "-n", "fairlead-system"),
            "--applyset=configmaps/fairlead-component-mpi-operator",
            f"--kubeconfig={cluster.kubeconfig}",
        ],
        env={**environment(), "KUBECTL_APPLYSET": "true"},
    )
    return answer.stderr


def changed(manifests: list[Any]) -> list[Any]:
    """Another image, and without one of the roles."""
    copy = json.loads(json.dumps(manifests))
    for each in copy:
        if each["kind"] == "Deployment":
            each["spec"]["template"]["spec"]["containers"][0]["image"] = "mpi-operator:next"
    return [each for each in copy if each["metadata"]["name"] != "kubeflow-mpijobs-view"]


@OPERATORS
def test_an_operator_from_its_deployment_to_its_end(
    commands: Commands, operator: list[Any], tmp_path: Path
) -> None:
    cluster = commands.cluster
    cluster.admin.run("create", "namespace", "fairlead-system")
    wait_until(
        "its account", lambda: ("ServiceAccount", "fairlead-system", "default") in objects(cluster)
    )
    before = objects(cluster)
    first = written(tmp_path / "first.yaml", operator)
    assert commands.row("mpi-operator")["state"] == "NotInstalled"

    planned = commands.plan("mpi-operator", "--manifests", first)
    assert planned["ok"]
    assert {each["do"] for each in planned["changes"]} == {"create"}
    assert objects(cluster) == before, "a plan writes nothing"

    commands.run("component", "deploy", "mpi-operator", "--manifests", first)
    row = commands.row("mpi-operator")
    assert (row["state"], row["version"], row["managedBy"]) == ("Ready", "0.6.0", "native")

    assert 'is managed by tooling "fairlead"' in kubectl_apply_set(cluster, first)

    # what the cluster has written since is no change
    again = commands.plan("mpi-operator", "--manifests", first)
    assert (again["changes"], again["same"]) == ([], len(operator))

    second = written(tmp_path / "second.yaml", changed(operator))
    planned = commands.plan("mpi-operator", "--manifests", second)
    rows = {(each["do"], each["kind"], each["name"]) for each in planned["changes"]}
    assert rows == {
        ("change", "Deployment", "mpi-operator"),
        ("delete", "ClusterRole", "kubeflow-mpijobs-view"),
    }
    (change,) = [each for each in planned["changes"] if each["do"] == "change"]
    assert [(each["path"], each["new"]) for each in change["fields"]] == [
        ("spec.template.spec.containers[0].image", '"mpi-operator:next"')
    ]
    commands.run("component", "upgrade", "mpi-operator", "--manifests", second)
    assert ("ClusterRole", "<none>", "kubeflow-mpijobs-view") not in objects(cluster)
    history = commands.run("component", "history", "mpi-operator")
    assert [line.split()[1] for line in history.splitlines()[1:]] == ["upgrade", "deploy"]

    commands.run("component", "remove", "mpi-operator")
    assert objects(cluster) - before == {
        ("CustomResourceDefinition", "<none>", "mpijobs.kubeflow.org")
    }
    assert before <= objects(cluster)


@OPERATORS
def test_definitions_with_objects_are_not_deleted(
    commands: Commands, operator: list[Any], tmp_path: Path
) -> None:
    admin = commands.cluster.admin
    file = written(tmp_path / "operator.yaml", operator)
    commands.run("component", "deploy", "mpi-operator", "--manifests", file)
    launcher = {"containers": [{"name": "main", "image": "image"}]}
    replicas = {"Launcher": {"replicas": 1, "template": {"spec": launcher}}}
    job = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "left", "namespace": "default"},
        "spec": {"mpiReplicaSpecs": replicas},
    }
    admin.apply([job])
    remove = ("component", "remove", "mpi-operator")
    output = commands.run(*remove, "--delete-definitions", status=1)
    assert "1 object of its kinds would be deleted: MPIJob default/left" in output
    assert commands.row("mpi-operator")["state"] == "Ready", "nothing was removed"

    output = commands.run(*remove)
    assert "1 object of its kinds stays: MPIJob default/left" in output
    assert "left" in admin.run("get", "mpijobs.kubeflow.org", "-n", "default")

    commands.run("component", "deploy", "mpi-operator", "--manifests", file)
    admin.run("delete", "mpijobs.kubeflow.org", "left", "-n", "default")
    commands.run(*remove, "--delete-definitions")
    crd = ("CustomResourceDefinition", "<none>", "mpijobs.kubeflow.org")
    assert crd not in objects(commands.cluster)


@OPERATORS
def test_forged_labels_remove_nothing_and_what_others_made_anew_stays(
    commands: Commands, operator: list[Any], tmp_path: Path
) -> None:
    admin = commands.cluster.admin
    first = written(tmp_path / "first.yaml", operator)
    commands.run("component", "deploy", "mpi-operator", "--manifests", first)
    (role,) = [
        each for each in admin.get("clusterroles") if each["metadata"]["name"] == "mpi-operator"
    ]
    label = role["metadata"]["labels"]["applyset.kubernetes.io/part-of"]
    admin.run("create", "configmap", "forged", "-n", "default")
    admin.run(
        "label", "configmap", "forged", "-n", "default", f"applyset.kubernetes.io/part-of={label}"
    )
    # listed in the inventory and with the label, but made anew by another program
    admin.run("delete", "clusterrole", "kubeflow-mpijobs-view")
    admin.run("create", "clusterrole", "kubeflow-mpijobs-view", "--verb=get", "--resource=pods")
    admin.run(
        "label", "clusterrole", "kubeflow-mpijobs-view", f"applyset.kubernetes.io/part-of={label}"
    )
    planned = commands.plan("mpi-operator", "--remove")
    assert ("keep", "kubeflow-mpijobs-view") in {
        (each["do"], each["name"]) for each in planned["changes"]
    }
    output = commands.run("component", "remove", "mpi-operator")
    assert "kubeflow-mpijobs-view" in output, "a warning names it"
    left = objects(commands.cluster)
    assert ("ConfigMap", "default", "forged") in left
    assert ("ClusterRole", "<none>", "kubeflow-mpijobs-view") in left
    assert ("ClusterRole", "<none>", "mpi-operator") not in left
    admin.run("delete", "clusterrole", "kubeflow-mpijobs-view")


def test_what_another_program_made_is_refused(
    commands: Commands, operator: list[Any], tmp_path: Path
) -> None:
    admin = commands.cluster.admin
    first = written(tmp_path / "first.yaml", operator)
    admin.run("create", "clusterrole", "mpi-operator", "--verb=get", "--resource=pods")
    try:
        output = commands.run("component", "deploy", "mpi-operator", "--manifests", first, status=1)
        assert "other-release: another program made ClusterRole mpi-operator" in output
        assert ("Namespace", "<none>", "mpi-operator") not in objects(commands.cluster)
    finally:
        admin.run("delete", "clusterrole", "mpi-operator")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("deploy", "fluidd"), "did you mean `fluid`?"),
        (("deploy", "kueue"), "Fairlead shows `kueue` and does not deploy it"),
        (("deploy", "cli"), "`cli` is always there"),
        (("deploy", "mpi-operator"), "the manifests of `mpi-operator` are not named"),
        (("deploy", "mpi-operator", "--chart", "x"), "`mpi-operator` has no Helm chart"),
        (("deploy", "fluid"), "the chart of `fluid` is not named"),
        (("upgrade", "fluid", "--chart", "x"), "`fluid` is not installed"),
        (("remove", "fluid"), "`fluid` is not installed"),
        (("remove", "quota"), "`quota` is not installed"),
        (("deploy", "fluid", "--chart", "x"), "or run `helm upgrade --install fluid x "),
        (("deploy", "mpi-operator", "--manifests", "/nowhere"), "`/nowhere` cannot be read"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    commands: Commands, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in commands.run("component", *words, status=1)


def test_parts_of_the_installation_are_written_by_the_installer(commands: Commands) -> None:
    """Which has its own tests; here: which values, and what is refused."""
    spaces = ("--set", "namespace=parts-system", "--set", "nodeNamespace=parts-nodes")
    output = commands.run("component", "deploy", "console", *spaces, status=1)
    assert "`cluster-exporter` is missing" in output
    try:
        commands.run("component", "deploy", "cluster-exporter", *spaces, "--wait", "0")
        row = commands.row("cluster-exporter")
        assert (row["managedBy"], row["namespace"]) == ("native", "parts-system")
        commands.run("component", "deploy", "console", "--wait", "0")
        inventory = commands.cluster.admin.run(
            *("get", "configmap", "fairlead-installation", "-n", "parts-system"),
            *("-o", "jsonpath={.data.values}"),
        )
        parts = yaml.safe_load(inventory)["parts"]
        assert not parts.get("quota", True)
        assert parts.get("console", True)
        for words, sentence in (
            (("deploy", "console"), "`console` is there already"),
            (("remove", "cluster-exporter"), "`console` needs it"),
            (("deploy", "quota", "--chart", "x"), "which has no --chart"),
        ):
            assert sentence in commands.run("component", *words, status=1)
        commands.run("component", "remove", "console", "--wait", "0")
        assert commands.row("console")["state"] == "NotInstalled"
        output = commands.run("component", "remove", "cluster-exporter", status=1)
        assert "`cluster-exporter` is the last part of the installation" in output
    finally:
        commands.run("uninstall", "--delete-data")


class Charted:
    """The component `prometheus` from the small chart, in a namespace of its own."""

    def __init__(self, commands: Commands, chart: Path, helm: Helm, namespace: str) -> None:
        self.commands, self.helm, self.namespace = commands, helm, namespace
        self.chart = str(write_small_chart(chart, name=STACK))

    def words(self, *more: str) -> tuple[str, ...]:
        return ("prometheus", "--chart", self.chart, "--in", self.namespace, *more)

    def run(self, verb: str, *more: str, status: int = 0) -> str:
        return self.commands.run("component", verb, *self.words(*more), status=status)

    def settings(self) -> dict[str, str]:
        words = ("configmap", "prometheus-settings", "-n", self.namespace, "-o", "json")
        found: dict[str, str] = json.loads(self.commands.cluster.admin.run("get", *words))["data"]
        return found


@pytest.fixture(params=in_turn(HELMS, len(HELMS)))
def charted(
    request: pytest.FixtureRequest, cluster: ControlPlane, tmp_path: Path
) -> Iterator[Charted]:
    name = request.param
    helm = Helm(name, tmp_path, cluster.kubeconfig)
    namespace = f"of-{name}"
    yield Charted(Commands(cluster, name), tmp_path / "chart", helm, namespace)
    helm.answer("uninstall", "prometheus", "-n", namespace, "--no-hooks", "--ignore-not-found")
    # pods of hooks are no part of the release
    cluster.admin.run("delete", "namespace", namespace, "--ignore-not-found")
    cluster.admin.run("delete", "crd", "smalls.test.fairlead.io", "--ignore-not-found")


@CHARTS
def test_a_chart_from_its_deployment_to_its_end(charted: Charted) -> None:
    commands = charted.commands
    planned = commands.plan(*charted.words("--set", "color=green"))
    assert {(each["do"], each["kind"]) for each in planned["changes"]} == {
        ("create", "CustomResourceDefinition"),
        ("create", "ConfigMap"),
    }
    charted.run("deploy", "--set", "color=green")
    row = commands.row("prometheus")
    assert (row["state"], row["managedBy"], row["version"]) == ("Ready", "helm", "1.2.3")
    assert charted.settings() == {"color": "green"}
    # definitions are Fairlead's
    crd = json.loads(
        commands.cluster.admin.run(
            "get", "crd", "smalls.test.fairlead.io", "-o", "json", "--show-managed-fields"
        )
    )
    managers = {(each["manager"], each["operation"]) for each in crd["metadata"]["managedFields"]}
    assert ("fairlead", "Apply") in managers
    assert not any("helm" in manager for manager, _ in managers)

    (change,) = commands.plan(*charted.words("--set", "color=blue"))["changes"]
    assert [(each["path"], each["old"], each["new"]) for each in change["fields"]] == [
        ("data.color", '"green"', '"blue"')
    ]
    charted.run("upgrade", "--set", "color=blue")
    assert charted.settings() == {"color": "blue"}

    output = commands.run("component", "remove", "prometheus")
    assert "uninstall release" in output
    assert commands.row("prometheus")["state"] == "NotInstalled"
    assert ("CustomResourceDefinition", "<none>", "smalls.test.fairlead.io") in objects(
        commands.cluster
    )


@CHARTS
def test_a_failed_upgrade_goes_back(charted: Charted) -> None:
    """Helm waits for a pod of a hook that does not end."""
    charted.run("deploy", "--set", "color=green")
    more = ("--set", "color=blue", "--set", "hasHook=true", "--wait", "5")
    output = charted.run("upgrade", *more, status=1)
    assert "[undo 1/1] roll release" in output
    assert charted.settings() == {"color": "green"}
    assert charted.commands.row("prometheus")["state"] == "Ready"
    history = charted.commands.run("component", "history", "prometheus").splitlines()[1:]
    assert "Failed" in history[0]


@CHARTS
def test_a_release_of_another_program_is_never_changed(charted: Charted) -> None:
    charted.helm.run(
        "install", "prometheus", charted.chart, "-n", charted.namespace, "--create-namespace"
    )
    assert charted.commands.row("prometheus")["state"] == "Foreign"
    for verb, more in (("deploy", charted.words()), ("remove", ("prometheus",))):
        output = charted.commands.run("component", verb, *more, status=1)
        assert "of another program" in output
    assert charted.settings() == {"color": "red"}


@CHARTS
def test_a_secret_in_the_values_is_in_no_output_and_no_record(charted: Charted) -> None:
    output = charted.run("deploy", "--set", "adminPassword=hunter2", status=1)
    assert "the values have a secret in plain text: adminPassword" in output
    assert "hunter2" not in output
    records = charted.commands.cluster.admin.run("get", "configmaps,secrets", "-A", "-o", "yaml")
    assert "hunter2" not in records


@CHARTS
def test_bad_values_are_named(charted: Charted) -> None:
    output = charted.run("deploy", "--set", "replicas=many", status=2)
    assert "replicas" in output
    assert "correct the values that are named" in output


@CHARTS
def test_a_killed_deployment_is_finished_by_another_process(charted: Charted) -> None:
    """Killed while Helm waits for a pod: the release is pending, and its record names the
    operation, so that the next process clears it.
    """
    commands, admin = charted.commands, charted.commands.cluster.admin
    killed = commands.begin("component", "deploy", *charted.words("--set", "hasHook=true"))
    try:
        wait_until(
            "the hook's pod",
            lambda: [
                each
                for each in admin.get("pods")
                if each["metadata"]["namespace"] == charted.namespace
            ],
        )
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    history = commands.run("component", "history", "prometheus", "-o", "json")
    id = json.loads(history)[0]["id"]
    going_on = commands.begin("operation", "resume", id)
    try:
        wait_until("the pod of a new run ends", lambda: _end_hook(charted), 240.0)
        output, _ = going_on.communicate(timeout=HANG_SECONDS)
    finally:
        going_on.kill()
    assert going_on.returncode == 0, output
    assert commands.row("prometheus")["state"] == "Ready"
    assert charted.settings() == {"color": "red"}
    maps = [row for row in objects(commands.cluster) if row[:2] == ("ConfigMap", charted.namespace)]
    assert sorted(row[2] for row in maps) == ["kube-root-ca.crt", "prometheus-settings"]


def _end_hook(charted: Charted) -> bool:
    """Plays the end of the hook's pod; whether the release is there."""
    admin = charted.commands.cluster.admin
    words = ("pod", "prometheus-hook", "-n", charted.namespace)
    patch = '{"status": {"phase": "Succeeded"}}'
    answer = charted.helm.answer("status", "prometheus", "-n", charted.namespace, "-o", "json")
    if answer.returncode == 0 and json.loads(answer.stdout)["info"]["status"] == "deployed":
        return True
    if answer.returncode == 0 and "pending" in answer.stdout and _is_of_new_run(charted):
        with suppress(KubectlError):  # Helm may remove the pod between the look and the patch
            admin.run("patch", *words, "--subresource=status", "--type=merge", "-p", patch)
    return False


def _is_of_new_run(charted: Charted) -> bool:
    admin = charted.commands.cluster.admin
    return any(
        each["metadata"]["name"] == "prometheus-hook"
        for each in admin.get("pods")
        if each["metadata"]["namespace"] == charted.namespace
    )
