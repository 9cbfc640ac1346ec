"""The objects of a stand-in of Fluid: its kinds, and workloads of the names that Fluid 1.0.8 has.

The stand-in contains no program of Fluid. In a simulated cluster its workloads start, and simulated
controllers work while they are ready (`fairlead_sim/operators`). For a real cluster no image of
these names exists. An annotation on each object marks the stand-in.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.model.actions import Manifest
from fairlead.wire.data.fluid import CONTROLLER, CSI_DRIVER, FLUID_NAMESPACE
from fairlead.wire.data.stand_in_kinds import stand_in_definitions
from fairlead.wire.names import PREFIX

FLUID_VERSION: Final = "1.0.8"
STAND_IN_FOR: Final = PREFIX + "stand-in-for"
"""The annotation of each object: what it stands in for."""
DATASET_CONTROLLER: Final = "dataset-controller"
"""The Deployment that serves Datasets and DataLoads."""
CSI_PLUGIN: Final = "csi-nodeplugin-fluid"
"""The DaemonSet that brings the volume driver to nodes."""
SCALED_TO: Final = "controller.runtime.fluid.io/replicas"
"""The annotation of a runtime's controller: the replicas that Fluid gives it when a runtime exists.
"""
REGISTRATION_PATH: Final = "--kubelet-registration-path="
"""The argument of a driver's registrar; the folder of the socket has the driver's name."""
_MARK: Final = {STAND_IN_FOR: f"fluid-{FLUID_VERSION}"}
_SOCKET: Final = f"/var/lib/kubelet/csi-plugins/{CSI_DRIVER}/csi.sock"


def stand_in_image(program: str) -> str:
    """
    >>> stand_in_image("alluxio")
    'fluid-stand-in/alluxio:1.0.8'
    """
    return f"fluid-stand-in/{program}:{FLUID_VERSION}"


def stand_in_objects() -> list[Manifest]:
    """All objects, in the order in which they are created."""
    objects = [
        *stand_in_definitions(),
        _object("v1", "Namespace", {"name": FLUID_NAMESPACE}),
        _csi_driver(),
        _deployment(DATASET_CONTROLLER, 1, {}),
        _deployment(CONTROLLER, 0, {SCALED_TO: "1"}),
        _csi_plugin(),
    ]
    return [_marked(each) for each in objects]


def _object(version: str, kind: str, metadata: dict[str, Any], **more: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def _marked(manifest: Manifest) -> Manifest:
    metadata = manifest["metadata"]
    annotations = {**_MARK, **(metadata.get("annotations") or {})}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _csi_driver() -> Manifest:
    spec = {"attachRequired": False, "podInfoOnMount": True}
    return _object("storage.k8s.io/v1", "CSIDriver", {"name": CSI_DRIVER}, spec=spec)


def _deployment(name: str, replicas: int, annotations: dict[str, str]) -> Manifest:
    labels = {"control-plane": name}
    container = {
        "name": "manager",
        "image": stand_in_image(name),
        "imagePullPolicy": "IfNotPresent",
        "command": [name, "start"],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 10}
    return _object(
        "apps/v1",
        "Deployment",
        {
            "name": name,
            "namespace": FLUID_NAMESPACE,
            "labels": labels,
            **({"annotations": annotations} if annotations else {}),
        },
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": _MARK}, "spec": spec},
        },
    )


def _csi_plugin() -> Manifest:
    labels = {"app": CSI_PLUGIN}
    containers = [
        {
            "name": "node-driver-registrar",
            "image": stand_in_image("csi-node-driver-registrar"),
            "imagePullPolicy": "IfNotPresent",
            "args": ["--v=5", f"--csi-address={_SOCKET}", f"{REGISTRATION_PATH}{_SOCKET}"],
        },
        {
            "name": "plugins",
            "image": stand_in_image("fluid-csi"),
            "imagePullPolicy": "IfNotPresent",
        },
    ]
    spec = {"containers": containers, "tolerations": [{"operator": "Exists"}]}
    return _object(
        "apps/v1",
        "DaemonSet",
        {"name": CSI_PLUGIN, "namespace": FLUID_NAMESPACE, "labels": labels},
        spec={
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels, "annotations": _MARK}, "spec": spec},
        },
    )
