"""Real kubectl on the simulated API: users' own definitions, the operators' definitions, explain,
and kinds without effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.contracts.api_client import ApiClient
from tests.contracts.conftest import WallClock
from tests.contracts.simulated import SimulatedServer, simulated_server
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.programs import module_folder, program

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget, shortNames: [gd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Note, type: string, jsonPath: .spec.note, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: how large it is}
              note: {type: string}
          status:
            type: object
            properties: {size: {type: integer}}
"""
GADGET = (
    "{apiVersion: shop.example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 2, note: "
    "hello}}"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    with simulated_server(tmp_path_factory.mktemp("kinds"), WallClock()) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(server: SimulatedServer) -> Kubectl:
    return Kubectl(program("kubectl"), server.kubeconfig, server.kubeconfig.parent)


@pytest.fixture(scope="module")
def gadgets(kubectl: Kubectl) -> Kubectl:
    kubectl.run("apply", "-f", "-", stdin=GADGETS)
    kubectl.run(
        "wait", "--for=condition=Established", "crd/gadgets.shop.example.com", "--timeout=10s"
    )
    kubectl.run("apply", "-f", "-", stdin=GADGET)
    return kubectl


def _cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def test_a_kind_of_ones_own_is_a_kind_like_any_other(gadgets: Kubectl) -> None:
    assert _cells(gadgets.run("get", "gd")) == [["NAME", "SIZE"], ["a", "2"]]
    assert _cells(gadgets.run("get", "gadgets", "-o", "wide")) == [
        ["NAME", "SIZE", "NOTE"],
        ["a", "2", "hello"],
    ]
    assert "gadget.shop.example.com/a" in gadgets.run("get", "all")
    gadgets.run("scale", "gadget/a", "--replicas=5")
    gadgets.run(
        "patch",
        "gd",
        "a",
        "--subresource=status",
        "--type=merge",
        "-p",
        ('{"status": {"size": 5}}'),
    )
    assert (
        gadgets.run(
            "get", "gd", "a", "-o", "jsonpath={.spec.size} {.status.size} {.metadata.generation}"
        )
        == "5 5 2"
    )


def test_faults_are_reported_by_the_schema(gadgets: Kubectl) -> None:
    with pytest.raises(
        KubectlError,
        match=(
            r"spec.size: Invalid value: 0: spec.size in body should "
            r"be greater than or equal to 1"
        ),
    ):
        gadgets.run("apply", "-f", "-", stdin=GADGET.replace("size: 2", "size: 0"))
    with pytest.raises(KubectlError, match=r'strict decoding error: unknown field "spec.sise"'):
        gadgets.run("apply", "-f", "-", stdin=GADGET.replace("note: hello", "sise: 3"))


def test_apply_is_done_when_nothing_changed(gadgets: Kubectl) -> None:
    assert gadgets.run("apply", "-f", "-", stdin=GADGETS).endswith("unchanged\n")


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("gadget.spec.size", ["FIELD: size <integer>", "how large it is"]),
        (
            "pods.spec.containers",
            [
                "FIELD: containers <[]Container>",
                "image\t<string>",
                "resources\t<ResourceRequirements>",
            ],
        ),
        ("pods.spec.containers.resources.limits", ["FIELD: limits <map[string]Quantity>"]),
        ("pods", ["The simulated API server knows the fields of this kind and their types"]),
        ("hpa.spec", ["maxReplicas\t<integer>"]),
        ("deployments.spec.strategy.rollingUpdate", ["maxSurge\t<IntOrString>"]),
        ("mpijobs.spec", ["Whatever is written here is kept"]),
        (
            "elasticquotatrees.spec.root.children",
            ["namespaces\t<[]string>", "What the node is guaranteed"],
        ),
        (
            "crd.spec.versions",
            ["FIELD: versions <[]CustomResourceDefinitionVersion>", "served\t<boolean>"],
        ),
    ],
)
def test_explain(gadgets: Kubectl, path: str, lines: list[str]) -> None:
    text = " ".join(gadgets.run("explain", path).split("\n    "))
    for line in lines:
        assert line in text, text


def test_the_kinds_of_this_world_are_definitions(kubectl: Kubectl) -> None:
    names = kubectl.run("get", "crd", "-o", "name").split()
    for name in (
        "mpijobs.kubeflow.org",
        "tfjobs.kubeflow.org",
        "pytorchjobs.kubeflow.org",
        "elasticquotatrees.scheduling.sigs.k8s.io",
    ):
        assert f"customresourcedefinition.apiextensions.k8s.io/{name}" in names


def test_the_operators_definitions_go_over_fairleads(kubectl: Kubectl) -> None:
    def apply(path: Path) -> str:
        return kubectl.run("apply", "--server-side", "--force-conflicts", "-f", str(path))

    operators = module_folder("TRAINING_OPERATOR") / "manifests/base/crds"
    for path in (
        module_folder("MPI_OPERATOR") / "manifests/base/kubeflow.org_mpijobs.yaml",
        operators / "kubeflow.org_tfjobs.yaml",
    ):
        assert "serverside-applied" in apply(path)
    assert "RunPolicy encapsulates" in kubectl.run(
        "explain", "mpijob.spec.runPolicy", "--api-version=kubeflow.org/v2beta1"
    )
    example = module_folder("MPI_OPERATOR") / "examples/v2beta1/pi/pi.yaml"
    assert "created" in kubectl.run("create", "-f", str(example))
    broken = yaml.safe_load(example.read_text(encoding="utf-8"))
    broken["spec"]["slotsPerWorker"] = "many"
    with pytest.raises(KubectlError, match="slotsPerWorker in body must be of type integer"):
        kubectl.run(
            "create", "-f", "-", stdin=json.dumps({**broken, "metadata": {"name": "broken"}})
        )
    with pytest.raises(KubectlError, match="v2beta1 was previously a storage version"):
        apply(operators / "kubeflow.org_mpijobs.yaml")


def test_what_is_not_evaluated_is_reported(server: SimulatedServer, kubectl: Kubectl) -> None:
    body = yaml.safe_load(GADGETS.replace("gadgets", "checked").replace("Gadget", "Checked"))
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = [
        {"rule": "self.spec.size < 9"}
    ]
    answer = ApiClient("simulated", server.kubeconfig).post(DEFINITIONS, body, dryRun="All")
    assert "does not evaluate x-kubernetes-validations" in answer.headers["warning"]


def test_a_definition_goes_with_its_objects(kubectl: Kubectl) -> None:
    body = (
        GADGETS.replace("gadgets", "trinkets")
        .replace("Gadget", "Trinket")
        .replace("shortNames: [gd], ", "")
    )
    kubectl.run("apply", "-f", "-", stdin=body)
    kubectl.run("apply", "-f", "-", stdin=GADGET.replace("Gadget", "Trinket"))
    kubectl.run("delete", "crd", "trinkets.shop.example.com", "--timeout=10s")
    with pytest.raises(
        KubectlError,
        match=(
            r"the server doesn't have a resource type|could not "
            r"find the requested resource"
        ),
    ):
        kubectl.run("get", "trinkets")


def test_kubectl_makes_kinds_without_effect(kubectl: Kubectl) -> None:
    kubectl.run("create", "ingress", "web", "--rule=a.example.com/*=s:80")
    kubectl.run("create", "quota", "team", "--hard=pods=3")
    kubectl.run("create", "deployment", "web", "--image=web:1")
    kubectl.run("autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu=50%")
    assert _cells(kubectl.run("get", "hpa", "--no-headers"))[0][:-1] == [
        "web",
        "Deployment/web",
        "cpu:",
        "<unknown>/50%",
        "1",
        "3",
        "0",
    ]
    assert "a.example.com" in kubectl.run("describe", "ingress", "web")
    assert "Metrics:" in kubectl.run("describe", "hpa", "web")
