"""Which records of an installation are trusted, and what is reported of a refused change.

Only administrators label namespaces, while a user may have a namespace of any name with ConfigMaps
of any content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from fairlead.edge.kube.api_discovery import Discovery, ServedResource
from fairlead.edge.kube.api_failure import ApiFailure, NotServed
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import Resource
from fairlead.edge.queries.installation_target import KubeInstallationTarget
from fairlead.errors import UserError
from fairlead.model.actions import Manifest, ObjectRef, PatchObject
from fairlead.model.refusal import Refusal
from fairlead.wire.installation.inventory import inventory_ref
from fairlead.wire.installation.release import release_ref

CHART = "fairlead"
SYSTEM = {"fairlead.io/installation": "system"}
NODES = {"fairlead.io/installation": "nodes"}
HELMS = {"meta.helm.sh/release-namespace": "gpus"}


class Cluster(KubeInstallationTarget):
    """`spaces`: labels and annotations of the namespaces that carry the installation's label."""

    def __init__(
        self, spaces: Mapping[str, tuple[dict[str, str], dict[str, str]]], *found: ObjectRef
    ) -> None:
        super().__init__(cast("KubeBlocking", None))
        self._spaces = spaces
        self._found = {each.identity for each in found}

    def installation_namespaces(self) -> list[Manifest]:
        return [
            {"metadata": {"name": name, "labels": labels, "annotations": annotations}}
            for name, (labels, annotations) in self._spaces.items()
        ]

    def get(self, target: ObjectRef) -> Manifest | None:
        return {"metadata": {"namespace": target.namespace}} if self._has(target) else None

    def _has(self, target: ObjectRef) -> bool:
        return target.identity in self._found


def place(found: Any) -> str | None:
    return found and str(found["metadata"]["namespace"])


@pytest.mark.parametrize(
    ("spaces", "records", "expected"),
    [
        ({}, ["fairlead-system"], None),
        ({"fairlead-system": (NODES, {})}, ["fairlead-system"], None),
        ({"fairlead-system": (SYSTEM, {})}, ["fairlead-system"], "fairlead-system"),
        ({"one": (SYSTEM, {})}, ["fairlead-system", "one"], "one"),
        ({"one": (SYSTEM, {}), "gpus": (SYSTEM, {})}, ["one", "gpus"], "gpus"),
    ],
    ids=["of a tenant", "in the nodes' namespace", "labelled", "both", "the first one"],
)
def test_an_inventory_counts_in_a_namespace_that_an_administrator_labelled(
    spaces: Any, records: list[str], expected: str | None
) -> None:
    cluster = Cluster(spaces, *map(inventory_ref, records))
    assert place(cluster.inventory("gpus")) == expected


def test_two_inventories_are_two_installations() -> None:
    cluster = Cluster(
        {"one": (SYSTEM, {}), "two": (SYSTEM, {})}, inventory_ref("one"), inventory_ref("two")
    )
    with pytest.raises(UserError) as caught:
        cluster.inventory("gpus")
    assert caught.value.what == "there are several installations: in namespaces one, two"


@pytest.mark.parametrize(
    ("spaces", "records", "expected"),
    [
        ({}, ["fairlead-system"], None),
        ({}, ["gpus"], None),
        ({"fairlead-system": (SYSTEM, {})}, ["fairlead-system"], "fairlead-system"),
        ({"fairlead-nodes": (NODES, HELMS)}, ["fairlead-system", "gpus"], "gpus"),
        ({"fairlead-nodes": (NODES, {})}, ["gpus"], None),
    ],
    ids=["of a tenant", "of a tenant, named", "labelled", "named by Helm's", "named by none"],
)
def test_a_release_counts_in_a_labelled_namespace_or_in_the_one_that_a_labelled_one_names(
    spaces: Any, records: list[str], expected: str | None
) -> None:
    cluster = Cluster(spaces, *(release_ref(each, CHART) for each in records))
    assert place(cluster.release("gpus", CHART)) == expected


class Refusing:
    """An API server that refuses every patch of a pod at a gate."""

    def __init__(self, failure: ApiFailure) -> None:
        self._failure = failure

    def get(self, *_: Any) -> Any:
        gates = [{"name": "fairlead.io/quota"}]
        return {"metadata": {"uid": "u"}, "spec": {"schedulingGates": gates}}

    def discovery(self) -> Discovery:
        pods = Resource("", "v1", "pods", kind="Pod")
        return Discovery((ServedResource(pods, ("get", "patch")),))

    def send(self, _: Any) -> None:
        raise self._failure


POD = ObjectRef("v1", "Pod", "p", "team", "u")
WHY = 'admission webhook "theirs" denied the request'


def refusing(failure: ApiFailure) -> KubeInstallationTarget:
    return KubeInstallationTarget(cast("KubeBlocking", Refusing(failure)))


@pytest.mark.parametrize("status", [403, 409, 422])
def test_a_refused_change_has_the_api_servers_sentence(status: int) -> None:
    cluster = refusing(ApiFailure("x", status=status, message=WHY))
    assert cluster.open_gate(POD, "fairlead.io/quota") == Refusal(WHY)
    assert cluster.change(PatchObject(POD, {})) == Refusal(WHY)


def test_a_change_of_an_absent_object_is_no_refusal_and_a_broken_answer_is_raised() -> None:
    assert refusing(NotServed("x", status=404)).change(PatchObject(POD, {})) is None
    with pytest.raises(ApiFailure):
        refusing(ApiFailure("x", status=500)).change(PatchObject(POD, {}))
