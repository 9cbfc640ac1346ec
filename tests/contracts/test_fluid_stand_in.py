"""Contract: the definitions of the stand-in of Fluid against Fluid's own, and what a real API
server refuses with those (docs/spec/datasets.md#stand-in).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.contracts.api_client import ApiClient, until
from tests.contracts.conftest import new_space
from tests.kube.crds import fluid_definitions, install_fluid

from fairlead.wire.data.stand_in import stand_in_objects
from fairlead.wire.data.stand_in_kinds import stand_in_definitions

pytestmark = pytest.mark.turns(2, 1)

Object = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FLUID = "/apis/data.fluid.io/v1alpha1"


def named(definitions: list[Object]) -> dict[str, Object]:
    return {each["metadata"]["name"]: each["spec"] for each in definitions}


REAL = named(fluid_definitions())
OWN = named(stand_in_definitions())


def version(spec: Object) -> Object:
    (one,) = spec["versions"]
    return dict(one)


@pytest.mark.parametrize("name", sorted(OWN))
def test_names_columns_and_subresources_are_fluids(name: str) -> None:
    real, own = REAL[name], OWN[name]
    assert {**own, "versions": []} == {**real, "versions": []}
    kept = ("name", "served", "storage", "subresources", "additionalPrinterColumns")
    assert [version(own).get(key) for key in kept] == [version(real).get(key) for key in kept]


def faults(own: Object, real: Object, path: str = "") -> list[str]:
    """Where the schema of the stand-in differs from Fluid's own."""
    kept = ("type", "required", "enum", "minLength", "minItems", "minimum", "default", "pattern")
    found = [
        f"{path}: {key} is {own[key]}, Fluid's {real.get(key)}"
        for key in kept
        if key in own and own[key] != real.get(key) and _words(own, key) != _words(real, key)
    ]
    for key, inner in (own.get("properties") or {}).items():
        theirs = (real.get("properties") or {}).get(key)
        found += (
            [f"{path}.{key}: unknown"] if theirs is None else faults(inner, theirs, f"{path}.{key}")
        )
    if "items" in own:
        found += faults(own["items"], real.get("items") or {}, f"{path}[]")
    return found


def _words(schema: Object, key: str) -> Any:
    value = schema.get(key)
    return sorted(value) if isinstance(value, list) else value


@pytest.mark.parametrize("name", sorted(OWN))
def test_every_described_field_is_as_fluid_describes_it(name: str) -> None:
    own, real = (version(each[name])["schema"]["openAPIV3Schema"] for each in (OWN, REAL))
    assert faults(own, real) == []


@pytest.fixture(scope="module")
def servers(
    simulated: Any, request: pytest.FixtureRequest
) -> Iterator[list[tuple[ApiClient, str]]]:
    """The simulated server with the stand-in's definitions, the real one with Fluid's."""
    plane = request.getfixturevalue("control_plane")
    install_fluid(plane.admin)
    first = ApiClient("simulated", simulated.kubeconfig, keeps_connections=True)
    second = ApiClient("real", plane.kubeconfig, keeps_connections=True)
    for each in stand_in_definitions():
        made = first.post(DEFINITIONS, each)
        assert made.status == 201, made.message
    until("Fluid's kinds are served", lambda: first.get(f"{FLUID}/datasets").status == 200)
    yield [(each, new_space(each)) for each in (first, second)]
    for name in OWN:
        first.delete(f"{DEFINITIONS}/{name}")


def bad(kind: str, spec: Any) -> Object:
    return {
        "apiVersion": "data.fluid.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "bad"},
        "spec": spec,
    }


POINT = {"mountPoint": "pvc://raw"}
LEVEL = {"mediumtype": "MEM", "path": "/dev/shm", "quota": "1Gi"}
BAD = [
    bad("Dataset", {"mounts": []}),
    bad("Dataset", {"mounts": [{"name": "raw"}]}),
    bad("Dataset", {"mounts": [{"mountPoint": "pvc:"}]}),
    bad("Dataset", {"mounts": [{**POINT, "readOnly": "yes"}]}),
    bad("Dataset", {"mounts": [POINT], "placement": "Alone"}),
    bad("Dataset", {"mounts": [POINT], "nodeAffinity": {"required": {}}}),
    bad("Dataset", {"mounts": "pvc://raw"}),
    bad("AlluxioRuntime", {"replicas": "two"}),
    bad("AlluxioRuntime", {"replicas": -1}),
    bad("AlluxioRuntime", {"tieredstore": {"levels": [{**LEVEL, "mediumtype": "RAM"}]}}),
    bad("AlluxioRuntime", {"tieredstore": {"levels": [{"path": "/dev/shm"}]}}),
    bad("AlluxioRuntime", {"tieredstore": {"levels": [{**LEVEL, "quota": "much"}]}}),
    bad("AlluxioRuntime", {"tieredstore": {"levels": [{**LEVEL, "path": ""}]}}),
    bad("AlluxioRuntime", {"master": {"replicas": 0}}),
    bad("AlluxioRuntime", {"fuse": {"networkMode": "Bridge"}}),
    bad("DataLoad", {"dataset": {"namespace": "x"}}),
    bad("DataLoad", {"dataset": {"name": "x"}, "policy": "Often"}),
    bad("DataLoad", {"dataset": {"name": "x"}, "target": [{"replicas": 1}]}),
]


@pytest.mark.parametrize("obj", BAD, ids=lambda obj: f"{obj['kind']} {obj['spec']}")
def test_what_fluids_definitions_refuse_the_stand_ins_refuse(
    servers: list[tuple[ApiClient, str]], obj: Object
) -> None:
    place = f"{FLUID}/namespaces/{{}}/{obj['kind'].lower()}s"
    own, real = [server.post(place.format(space), obj) for server, space in servers]
    assert real.status == 422, real.message
    assert (own.status, own.message) == (real.status, real.message)


def test_what_fluid_adds_to_an_object_the_stand_in_adds(
    servers: list[tuple[ApiClient, str]],
) -> None:
    for kind, spec in (
        ("AlluxioRuntime", {"replicas": 1, "tieredstore": {"levels": [LEVEL]}}),
        ("DataLoad", {"dataset": {"name": "x", "namespace": "y"}}),
        ("Dataset", {"mounts": [POINT]}),
    ):
        place = f"{FLUID}/namespaces/{{}}/{kind.lower()}s"
        good = {**bad(kind, spec), "metadata": {"name": "good"}}
        own, real = [server.post(place.format(space), good) for server, space in servers]
        assert (own.status, real.status) == (201, 201), (own.message, real.message)
        assert own.body["spec"] == real.body["spec"]


def test_a_real_server_takes_every_object_of_the_stand_in(control_plane: Any) -> None:
    """As a dry run: Fluid's own definitions of this server stay."""
    api = ApiClient("real", control_plane.kubeconfig, keeps_connections=True)
    api.post("/api/v1/namespaces", {"metadata": {"name": "fluid-system"}})
    places = {
        "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
        "Deployment": "/apis/apps/v1/namespaces/fluid-system/deployments",
        "DaemonSet": "/apis/apps/v1/namespaces/fluid-system/daemonsets",
    }
    for each in stand_in_objects():
        if each["kind"] in places:
            renamed = {**each, "metadata": {**each["metadata"], "name": "a-stand-in"}}
            made = api.post(f"{places[each['kind']]}?dryRun=All&fieldValidation=Strict", renamed)
            assert made.status == 201, made.message
