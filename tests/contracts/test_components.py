"""Contract: components that are applied natively, over both API servers: members, withdrawn fields,
pruning, fields of other managers (docs/spec/components.md#plan).
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contracts.api_client import APPLY, ApiClient, until
from tests.kube.servers import FAIRLEAD, environment, fairlead_answer
from tests.waiting import HANG_SECONDS

from fairlead.model.installation import INSTALLATION_LABEL, SYSTEM_PART
from fairlead.wire.operations.record import lease_name

pytestmark = pytest.mark.turns(4, 2)

_numbers = itertools.count(1)
PART_OF = "applyset.kubernetes.io/part-of"


class Deployed:
    """The component `mpi-operator` made of ConfigMaps, in a namespace that comes with it."""

    def __init__(self, api: ApiClient, folder: Path, system: str) -> None:
        self.api, self.folder, self.system = api, folder, system
        self.space = f"component-{next(_numbers)}"

    def manifests(self, **maps: dict[str, str]) -> str:
        """A file with the namespace and these ConfigMaps; they name no namespace."""
        path = self.folder / f"{next(_numbers)}.yaml"
        objects: list[Any] = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.space}}
        ]
        objects += [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
            for name, data in maps.items()
        ]
        path.write_text(yaml.safe_dump_all(objects))
        return str(path)

    def run(self, verb: str, *words: str, status: int = 0) -> str:
        answer = fairlead_answer(self.api.kubeconfig, "component", verb, "mpi-operator", *words)
        assert answer.returncode == status, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    def write(self, verb: str, **maps: dict[str, str]) -> str:
        return self.run(verb, "--manifests", self.manifests(**maps), "--in", self.space)

    def plan(self, status: int = 0, **maps: dict[str, str]) -> dict[str, Any]:
        words = ("--manifests", self.manifests(**maps), "--in", self.space, "-o", "json")
        found: dict[str, Any] = json.loads(self.run("plan", *words, status=status))
        return found

    def path(self, name: str = "") -> str:
        return f"/api/v1/namespaces/{self.space}/configmaps{f'/{name}' if name else ''}"

    def data(self, name: str) -> Any:
        answer = self.api.get(self.path(name))
        return answer.body.get("data", {}) if answer.status == 200 else None


@pytest.fixture
def deployed(api: ApiClient, tmp_path: Path) -> Iterator[Deployed]:
    system = f"b-system-{next(_numbers)}"
    labels = {INSTALLATION_LABEL: SYSTEM_PART}
    made = api.post("/api/v1/namespaces", {"metadata": {"name": system, "labels": labels}})
    assert made.status == 201
    found = Deployed(api, tmp_path, system)
    yield found
    for name in (system, found.space):
        api.delete(f"/api/v1/namespaces/{name}")
        until("it is gone", lambda name=name: api.get(f"/api/v1/namespaces/{name}").status == 404)


def test_a_component_from_its_deployment_to_its_end(deployed: Deployed) -> None:
    api = deployed.api
    deployed.write("deploy", one={"a": "1", "b": "2"}, two={"c": "3"})
    assert (deployed.data("one"), deployed.data("two")) == ({"a": "1", "b": "2"}, {"c": "3"})
    found = api.get(deployed.path("one")).body["metadata"]
    (entry,) = [each for each in found["managedFields"] if each["manager"] == "fairlead"]
    assert (entry["operation"], PART_OF in found["labels"]) == ("Apply", True)

    same = deployed.plan(one={"a": "1", "b": "2"}, two={"c": "3"})
    assert (same["changes"], same["same"]) == ([], 3)

    planned = deployed.plan(one={"a": "9"})
    assert [(each["do"], each["name"]) for each in planned["changes"]] == [
        *(("change", "one"), ("delete", "two"))
    ]
    assert [
        (each["path"], each["old"], each["new"]) for each in planned["changes"][0]["fields"]
    ] == [
        ("data.a", '"1"', '"9"'),
        ("data.b", '"2"', ""),
    ]
    forged = {"metadata": {"name": "forged", "labels": {PART_OF: found["labels"][PART_OF]}}}
    assert api.post(deployed.path(), forged).status == 201
    deployed.write("upgrade", one={"a": "9"})
    assert deployed.data("one") == {"a": "9"}, "a field that is left out is withdrawn"
    assert deployed.data("two") is None
    assert deployed.data("forged") is not None, "a label alone removes nothing"
    inventory = f"/api/v1/namespaces/{deployed.system}/configmaps/fairlead-component-mpi-operator"
    assert api.get(inventory).body["data"]["state"] == "complete"

    output = deployed.run("remove")
    assert "component mpi-operator: done" in output
    assert api.get(f"/api/v1/namespaces/{deployed.space}").status == 404
    assert api.get(inventory).status == 404


def test_a_field_of_another_manager_is_not_taken_over(deployed: Deployed) -> None:
    deployed.write("deploy", one={"a": "1"})
    taken = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one"},
        "data": {"a": "theirs"},
    }
    answer = deployed.api.patch(
        deployed.path("one"), taken, kind=APPLY, fieldManager="other", force="true"
    )
    assert answer.status == 200
    planned = deployed.plan(one={"a": "2"}, status=1)
    (bad,) = [each for each in planned["checks"] if each["state"] == "fail"]
    assert bad["check"] == "dry-run"
    assert '"other"' in bad["sentence"]
    assert ".data.a" in bad["sentence"]
    assert deployed.data("one") == {"a": "theirs"}


def test_a_port_of_the_node_that_another_pod_has(deployed: Deployed) -> None:
    """Its own pods do not count at an upgrade."""
    api, number = deployed.api, 20000 + next(_numbers)
    container = {
        "name": "main",
        "image": "image",
        "ports": [{"containerPort": 80, "hostPort": number}],
    }
    labels = {"app": "ported"}
    spec = {"containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "ported", "namespace": deployed.system},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }
    file = deployed.folder / "ported.yaml"
    file.write_text(yaml.safe_dump(manifest))
    words = ("--manifests", str(file), "--in", deployed.system, "-o", "json")

    def clash(status: int) -> Any:
        checks = json.loads(deployed.run("plan", *words, status=status))["checks"]
        (found,) = [each for each in checks if each["check"] == "host-clash"]
        return found

    assert clash(0)["state"] == "ok"
    pods = f"/api/v1/namespaces/{deployed.system}/pods"
    api.post(f"/api/v1/namespaces/{deployed.system}/serviceaccounts", _named("default"))
    assert api.post(pods, {**_named("own", labels=labels), "spec": spec}).status == 201
    assert clash(0)["state"] == "ok"
    assert api.post(pods, {**_named("other"), "spec": spec}).status == 201
    found = clash(1)
    assert found["state"] == "fail"
    assert f"host port `{number}/TCP` of Deployment {deployed.system}/ported" in found["sentence"]
    assert f"Pod {deployed.system}/other" in found["sentence"]


def _named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **more}}


class Pair:
    """Two components: the manifests of the second need the namespace of the first."""

    IDS = ("mpi-operator", "training-operator")

    def __init__(self, one: Deployed) -> None:
        self.one, self.api = one, one.api
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one.space}}
        self._files = [self._file(space, *self._maps("one", 30)), self._file(*self._maps("two", 2))]

    def _maps(self, name: str, count: int) -> list[Any]:
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{name}-{number}", "namespace": self.one.space},
            }
            for number in range(count)
        ]

    def _file(self, *objects: Any) -> str:
        path = self.one.folder / f"{next(_numbers)}.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return str(path)

    @property
    def words(self) -> list[str]:
        flags = [
            word
            for id, file in zip(self.IDS, self._files, strict=True)
            for word in (
                *("--manifests", f"{id}={file}"),
                *("--in", f"{id}={self.one.space}"),
            )
        ]
        return ["component", "deploy", *self.IDS, *flags]

    def run(self, *words: str, status: int = 0) -> str:
        answer = fairlead_answer(self.api.kubeconfig, *words)
        assert answer.returncode == status, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    def records(self) -> dict[str, Any]:
        """The states of the operations, by subject, each with its id."""
        place = f"/api/v1/namespaces/{self.one.system}/configmaps"
        found = {}
        for each in self.api.get(place).body["items"]:
            if each["metadata"]["name"].startswith("operation-"):
                state = json.loads(each["data"]["state"])
                id = each["metadata"]["name"].removeprefix("operation-")
                found[state["subject"]] = (id, state["state"])
        return found

    def count(self) -> int:
        found = self.api.get(self.one.path())
        names = [each["metadata"]["name"] for each in found.body["items"]]
        return sum(each.startswith(("one-", "two-")) for each in names)

    def states(self) -> list[str]:
        items = json.loads(self.run("component", "list", "-o", "json"))["items"]
        by_id = {each["id"]: each["state"] for each in items}
        return [by_id[id] for id in self.IDS]

    def remove(self) -> None:
        for id in reversed(self.IDS):
            self.run("component", "remove", id)


def test_two_components_by_one_command(deployed: Deployed) -> None:
    """One preflight over both: the first brings the namespace of the second."""
    pair = Pair(deployed)
    planned = pair.run(*[("plan" if each == "deploy" else each) for each in pair.words])
    assert f"create Namespace {deployed.space}" in planned
    assert pair.count() == 0, "a plan writes nothing"
    output = pair.run(*pair.words)
    assert "mpi-operator: [1/" in output
    assert "component training-operator: done" in output
    assert (pair.count(), pair.states()) == (32, ["Ready", "Ready"])
    assert "is there already" in pair.run(*pair.words, status=1)
    pair.remove()


def test_a_component_that_fails_its_checks_prevents_all(deployed: Deployed) -> None:
    pair = Pair(deployed)
    words = [
        each.replace("training-operator=/", "training-operator=/nowhere/") for each in pair.words
    ]
    assert "cannot be read" in pair.run(*words, status=1)
    output = pair.run(*pair.words[:8], status=1)  # without the flags of the second
    assert "nothing is changed: `training-operator`: config-complete" in output
    assert pair.count() == 0
    output = pair.run("component", "deploy", *pair.IDS, "--manifests", "x.yaml", status=1)
    assert "`--manifests x.yaml` names none of mpi-operator, training-operator" in output
    output = pair.run("component", "deploy", "mpi-operator", "mpi-operator", status=1)
    assert "`mpi-operator` is named twice" in output


@pytest.mark.parametrize("way", ["resume", "again"])
def test_a_killed_command_is_finished_with_all_components(deployed: Deployed, way: str) -> None:
    """kill -9 while the first component is written; the operation of the last one is resumed, or
    the same command runs again.
    """
    pair = Pair(deployed)
    killed = subprocess.Popen(
        [*FAIRLEAD, *pair.words, f"--kubeconfig={deployed.api.kubeconfig}"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        until("its first objects", lambda: pair.count() > 0)
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=HANG_SECONDS)
    assert pair.count() < 32
    records = pair.records()
    assert set(records) == {f"component/{id}" for id in pair.IDS}
    for subject in records:  # what 30 seconds do after the death of their holder
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{deployed.system}/leases"
        deployed.api.delete(f"{leases}/{lease_name(subject)}")
    last = records["component/training-operator"][0]
    words = ["operation", "resume", last] if way == "resume" else pair.words
    pair.run(*words)
    assert {state for _, state in pair.records().values()} == {"Succeeded"}
    assert (pair.count(), pair.states()) == (32, ["Ready", "Ready"])
    pair.remove()
