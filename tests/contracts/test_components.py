"""Contract: components that are applied natively, over both API servers: members, withdrawn fields,
pruning, fields of other managers (docs/spec/components.md#plan).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contracts.api_client import APPLY, ApiClient, until
from tests.kube.servers import fairlead_answer

from fairlead.model.installation import INSTALLATION_LABEL, SYSTEM_PART

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
