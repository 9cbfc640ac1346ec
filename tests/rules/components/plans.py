"""Builders of what plans are made from."""

from __future__ import annotations

import json
from typing import Any

from fairlead.model.actions import object_ref
from fairlead.model.installed.component_facts import (
    ComponentFacts,
    PlanFacts,
    TriedObject,
    WantedComponent,
)
from fairlead.model.installed.facts import ServerFact
from fairlead.model.operations.apply_set import apply_set_id, as_member
from fairlead.model.operations.component import ComponentInventory, ComponentRow
from fairlead.model.operations.operation import OperationKind
from fairlead.rules.components.catalogue import COMPONENTS
from fairlead.rules.components.state import component_rows

HOME = "fairlead-system"
SET = apply_set_id("mpi-operator", HOME)


def obj(kind: str, name: str, namespace: str = "mpi", **more: Any) -> Any:
    version = {
        "Deployment": "apps/v1",
        "CustomResourceDefinition": "apiextensions.k8s.io/v1",
        "Ingress": "networking.k8s.io/v1",
        "ClusterRole": "rbac.authorization.k8s.io/v1",
    }.get(kind, "v1")
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **more}


def definition(name: str = "mpijobs.kubeflow.org", *versions: str) -> Any:
    rows = [{"name": each, "served": True} for each in versions or ("v2beta1",)]
    plural, _, group = name.partition(".")
    spec = {"group": group, "names": {"kind": plural}, "scope": "Namespaced", "versions": rows}
    return obj("CustomResourceDefinition", name, "", spec=spec)


def deployment(image: str = "mpi:1", name: str = "mpi-operator") -> Any:
    pod = {"containers": [{"name": "c", "image": image}]}
    return obj("Deployment", name, spec={"template": {"spec": pod}})


def written(manifest: Any, set_id: str = SET, manager: str = "fairlead", uid: str = "u1") -> Any:
    """The object as the API server has it after Fairlead applied it."""
    found = json.loads(json.dumps(as_member(manifest, set_id)))
    found["metadata"].update(
        uid=uid,
        resourceVersion="7",
        managedFields=[{"manager": manager, "operation": "Apply"}],
    )
    return found


def wanted(do: OperationKind = OperationKind.DEPLOY, *objects: Any, **more: Any) -> WantedComponent:
    id = more.pop("id", "mpi-operator")
    return WantedComponent(
        component=COMPONENTS[id],
        do=do,
        place=more.pop("place", "mpi"),
        home=HOME,
        version=more.pop("version", "0.6.0"),
        objects=objects,
        **more,
    )


def facts(*tried: TriedObject, **more: Any) -> PlanFacts:
    server = more.pop("server", ServerFact("v1.36.3", (1, 36), 0.0))
    namespace = more.pop("namespace", obj("Namespace", "mpi", ""))
    return PlanFacts(server=server, tried=tried, namespace=namespace, **more)


def new(manifest: Any) -> TriedObject:
    return TriedObject(manifest, None, manifest)


def there(manifest: Any, result: Any = None, found: Any = None) -> TriedObject:
    found = found or written(manifest)
    return TriedObject(manifest, found, result or found)


def inventory(*objects: Any) -> ComponentInventory:
    return ComponentInventory(
        id="mpi-operator",
        version="0.5.0",
        state="complete",
        namespace=HOME,
        place="mpi",
        objects=tuple(object_ref(each) for each in objects),
        operation="before",
    )


def rows(facts: ComponentFacts | None = None) -> dict[str, ComponentRow]:
    empty = ComponentFacts(program="0.1.0", has_helm=True)
    return {each.id: each for each in component_rows(facts or empty)}
