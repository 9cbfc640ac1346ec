"""What an operator chooses about an installation of Fairlead: parts, images, replicas, addresses.

All objects of an installation follow from this one value (`wire/installation`). A field's default
is what `deploy/*.yaml` show.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

DEFAULT_IMAGE: Final = "fairlead:0.1.0"
DEFAULT_KUBE_SCHEDULER_IMAGE: Final = "registry.k8s.io/kube-scheduler:v1.36.3"

Image = Annotated[str, Meta(min_length=1, pattern=r"^\S+$")]
Replicas = Annotated[int, Meta(ge=1, le=10)]


class Parts(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which parts of Fairlead an installation has."""

    console: bool = True
    cluster_exporter: bool = True
    gpu_exporter: bool = True
    gpu_exporter_rights: bool = False
    gpu_sharing: bool = True
    node_agent: bool = True
    quota: bool = True


class Installation(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One installation. In files the names are in camel case (`kubeSchedulerImage`).

    `replicas`: of each part of which one replica works and others stand by. `admission`: the
    API server's policies (Kubernetes 1.36 and later), or webhooks. `scheduler`: a kube-scheduler
    of its own, or the one on the machines of the control plane. `gpu_source`, `prometheus`: flags
    of console and cluster exporter; "" = their defaults. `runtime_class`: of pods that load the
    GPU driver; "" = the node's default.
    """

    parts: Parts = Parts()
    image: Image = DEFAULT_IMAGE
    kube_scheduler_image: Image = DEFAULT_KUBE_SCHEDULER_IMAGE
    replicas: Replicas = 2
    admission: Literal["policies", "webhooks"] = "policies"
    scheduler: Literal["own", "control-plane"] = "own"
    gpu_source: Literal["", "exporters", "prometheus", "none"] = ""
    prometheus: str = ""
    runtime_class: str = ""
