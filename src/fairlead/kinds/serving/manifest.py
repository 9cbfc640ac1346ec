"""Makes the Deployment and Service of a spec: custom images, TensorFlow Serving, Triton.

Specification: docs/spec/arena-cli.md#objects-of-serving-jobs.

The Service has the version in its name, so two versions of a model can be served at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.kinds.serving.kinds import CUSTOM, TENSORFLOW, TRITON
from fairlead.kinds.serving.parts import (
    add,
    annotations_of,
    config_maps,
    container,
    labels_of,
    metadata,
    pod_fields,
    release,
)
from fairlead.kinds.serving.spec import ServingSpec
from fairlead.model.actions import Manifest


class Server(Struct, frozen=True):
    """`app`: the suffix of the objects' names; `container`: the name of the container.

    `names_service`: whether the Service's name has the app too.
    """

    app: str
    container: str
    names_service: bool = True


SERVERS: Final[Mapping[str, Server]] = {
    CUSTOM: Server("custom-serving", "custom-serving", names_service=False),
    TENSORFLOW: Server("tensorflow-serving", "tensorflow-serving"),
    TRITON: Server("tritoninferenceserver", "tritonserver"),
}


def workload_name(spec: ServingSpec) -> str:
    return f"{release(spec)}-{SERVERS[spec.type].app}"


def service_name(spec: ServingSpec) -> str:
    return workload_name(spec) if SERVERS[spec.type].names_service else release(spec)


def objects(spec: ServingSpec) -> list[Manifest]:
    """The Deployment, then the objects that it will own."""
    server = SERVERS[spec.type]
    return [_deployment(spec, server), _service(spec, server), *config_maps(spec, server.app)]


def _deployment(spec: ServingSpec, server: Server) -> Manifest:
    rolling: Manifest = {}
    add(rolling, "maxSurge", _share(spec.surge))
    add(rolling, "maxUnavailable", _share(spec.unavailable))
    annotations = annotations_of(spec) | (
        {"sidecar.istio.io/inject": "true"} if spec.has_istio else {}
    )
    template: Manifest = {"labels": labels_of(spec, server.app)}
    add(template, "annotations", annotations)
    ports = [
        {"name": name, "containerPort": port, "protocol": "TCP"} for name, _, port in _ports(spec)
    ]
    body: Manifest = {"replicas": spec.replicas, "selector": {"matchLabels": _chosen(spec, server)}}
    if rolling:
        body["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    body["template"] = {
        "metadata": template,
        "spec": {"containers": [container(spec, server.container, ports)], **pod_fields(spec)},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(spec, server.app, workload_name(spec)),
        "spec": body,
    }


def _service(spec: ServingSpec, server: Server) -> Manifest:
    """A Service inside the cluster; of type NodePort when the job is exposed to the outside."""
    ports = [
        {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
        for _, name, port in _ports(spec)
    ]
    body = {
        "type": "NodePort" if spec.is_exposed else "ClusterIP",
        "selector": _chosen(spec, server),
        "ports": ports,
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(spec, server.app, service_name(spec)),
        "spec": body,
    }


def _chosen(spec: ServingSpec, server: Server) -> dict[str, str]:
    return {"app": server.app, "release": release(spec)}


def _ports(spec: ServingSpec) -> list[tuple[str, str, int]]:
    """Name in the container, name in the Service, port number. Triton's list begins with HTTP."""
    ports = [
        ("grpc", "grpc-serving", spec.ports.grpc),
        ("restful", "http-serving", spec.ports.http),
    ]
    if spec.type == TRITON:
        ports.reverse()
    ports.append(("metrics", "http-metrics", spec.ports.metrics))
    return [each for each in ports if each[2]]


def _share(text: str) -> Any:
    """A number, or the text of a percentage."""
    return int(text) if text.isdigit() else text
