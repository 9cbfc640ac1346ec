"""The inventory of a component: written, parsed, and refused where it is damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.errors import OutsideError
from fairlead.model.actions import ObjectRef
from fairlead.model.operations.apply_set import apply_set_id, as_member, is_member
from fairlead.model.operations.component import ComponentInventory
from fairlead.wire.components.inventory import (
    parse_component_inventory,
    render_component_inventory,
)

WRITTEN = ComponentInventory(
    id="fluid",
    version="1.0.8",
    state="complete",
    namespace="fairlead-system",
    place="fluid-system",
    objects=(
        ObjectRef("apps/v1", "Deployment", "dataset-controller", "fluid-system"),
        ObjectRef("v1", "ConfigMap", "settings", "fairlead-system"),
        ObjectRef("apiextensions.k8s.io/v1", "CustomResourceDefinition", "datasets.data.fluid.io"),
    ),
    values="replicas: 2\n",
    operation="abc",
)


def test_it_is_read_as_it_was_written() -> None:
    manifest = render_component_inventory(WRITTEN)
    assert parse_component_inventory(manifest, "fluid", "fairlead-system") == WRITTEN


def test_the_labels_and_annotations_of_an_apply_set() -> None:
    """The names and forms of KEP-3659."""
    meta: Any = render_component_inventory(WRITTEN)["metadata"]
    id = meta["labels"]["applyset.kubernetes.io/id"]
    assert id == apply_set_id("fluid", "fairlead-system")
    assert len(id) <= 63
    annotations = meta["annotations"]
    assert annotations["applyset.kubernetes.io/tooling"].startswith("fairlead/v")
    assert annotations["applyset.kubernetes.io/contains-group-kinds"] == (
        "ConfigMap,CustomResourceDefinition.apiextensions.k8s.io,Deployment.apps"
    )
    assert annotations["applyset.kubernetes.io/additional-namespaces"] == "fluid-system"
    member: Any = as_member({"metadata": {"labels": {"a": "b"}}}, id)
    assert member["metadata"]["labels"] == {"a": "b", "applyset.kubernetes.io/part-of": id}


def damaged(**changes: Any) -> Any:
    manifest = json.loads(json.dumps(render_component_inventory(WRITTEN)))
    manifest["data"].update(changes)
    return manifest


@pytest.mark.parametrize(
    "manifest",
    [
        [],
        {"metadata": {}},
        {"metadata": {"labels": None}, "data": {}},
        damaged(objects="[[1, 2]]"),
        damaged(objects="["),
        damaged(version=None),
        {**damaged(), "metadata": {"labels": {"fairlead.io/component": "other"}}},
    ],
)
def test_a_damaged_one_is_an_error(manifest: Any) -> None:
    with pytest.raises(OutsideError) as caught:
        parse_component_inventory(manifest, "fluid", "fairlead-system")
    assert caught.value.what.startswith(
        "ConfigMap fairlead-system/fairlead-component-fluid is no inventory: "
    )


def seen(manager: str = "fairlead", operation: str = "Apply", set_id: str = "s") -> Any:
    return {
        "metadata": {
            "labels": {"applyset.kubernetes.io/part-of": set_id},
            "managedFields": [{"manager": manager, "operation": operation}],
        }
    }


def test_the_label_alone_makes_no_member() -> None:
    assert is_member(seen(), "s")
    assert not is_member(seen(manager="kubectl"), "s")
    assert not is_member(seen(operation="Update"), "s")
    assert not is_member(seen(set_id="other"), "s")
    assert not is_member({"metadata": {"labels": seen()["metadata"]["labels"]}}, "s")
    assert not is_member({"metadata": {"managedFields": seen()["metadata"]["managedFields"]}}, "s")
