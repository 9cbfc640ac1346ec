"""The volume through which pods read a data set of Fluid: a PersistentVolume and its claim, both
with the annotation `CreatedBy: fluid`.

Objects of these names without the annotation are foreign: Fluid leaves them as they are, and
reports nothing.
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.data.fluid import CSI_DRIVER
from fairlead_sim.controllers.plan import View
from fairlead_sim.operators.fluid import identity

Object = dict[str, Any]

FLUID_CLASS = "fluid"
_CREATED_BY = {"CreatedBy": "fluid"}
_SIZE = "100Pi"
_SIZE_ANNOTATION = "pvc.fluid.io/resources.requests.storage"


def own_claim(view: View, dataset: Object) -> Object | None:
    """The claim that Fluid made for the Dataset."""
    metadata = dataset["metadata"]
    return _own(view.find("v1", "PersistentVolumeClaim", metadata["name"], metadata["namespace"]))


def own_volume(view: View, dataset: Object) -> Object | None:
    """The volume that Fluid made for the Dataset."""
    return _own(view.find("v1", "PersistentVolume", volume_name(dataset)))


def volume_name(dataset: Object) -> str:
    return f"{dataset['metadata']['namespace']}-{dataset['metadata']['name']}"


def _own(found: Object | None) -> Object | None:
    annotations = found["metadata"].get("annotations") or {} if found is not None else {}
    return found if _CREATED_BY.items() <= annotations.items() else None


def volume_objects(dataset: Object) -> list[Object]:
    """The volume and its claim, in the order in which they are made."""
    name, namespace = dataset["metadata"]["name"], dataset["metadata"]["namespace"]
    labels = {
        identity(dataset, "fluid.io/s-"): "true",
        "fluid.io/dataset-id": identity(dataset),
    }
    meta = {"labels": labels, "annotations": _CREATED_BY}
    size = (dataset["metadata"].get("annotations") or {}).get(_SIZE_ANNOTATION) or _SIZE
    modes = dataset["spec"].get("accessModes") or ["ReadOnlyMany"]
    attributes = {
        "fluid_path": f"/runtime-mnt/alluxio/{namespace}/{name}/alluxio-fuse",
        "mount_type": "fuse.alluxio-fuse",
        "runtime_namespace": namespace,
        "runtime_name": name,
    }
    volume = volume_name(dataset)
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume, **meta},
            "spec": {
                "accessModes": modes,
                "capacity": {"storage": size},
                "claimRef": {"namespace": namespace, "name": name},
                "csi": {
                    "driver": CSI_DRIVER,
                    "volumeHandle": volume,
                    "volumeAttributes": attributes,
                },
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": FLUID_CLASS,
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace, **meta},
            "spec": {
                "accessModes": modes,
                "resources": {"requests": {"storage": size}},
                "storageClassName": FLUID_CLASS,
                "volumeName": volume,
            },
        },
    ]
