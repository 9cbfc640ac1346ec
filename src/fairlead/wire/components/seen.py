"""Workloads of any program as facts about components. Every field may be absent."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec import Struct

from fairlead.model.installed.component_facts import ProgramWorkload
from fairlead.wire.kube.forms import JsonForm

WORKLOAD_KINDS: Final = ("Deployment", "DaemonSet", "StatefulSet")
_RELEASE: Final = "meta.helm.sh/release-name"
_VERSION: Final = "app.kubernetes.io/version"


class _Meta(Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str | None = None
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Image(Struct, gc=False):
    image: str = ""


class _Pod(Struct, gc=False):
    containers: list[_Image] | None = None


class _Template(Struct, gc=False):
    spec: _Pod | None = None


class _Spec(Struct, gc=False):
    replicas: int | None = None
    template: _Template | None = None


class _Status(Struct, gc=False, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    desired_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0


class WireWorkload(Struct, gc=False):
    """A Deployment, DaemonSet or StatefulSet."""

    metadata: _Meta
    spec: _Spec | None = None
    status: _Status | None = None


def workload_form(kind: str) -> JsonForm[ProgramWorkload]:
    """The form of one of the three kinds."""
    return JsonForm(WireWorkload, partial(_parse, kind))


def _parse(kind: str, wire: WireWorkload) -> ProgramWorkload:
    """Pods of an older spec do not count as ready."""
    meta, spec, status = wire.metadata, wire.spec or _Spec(), wire.status or _Status()
    pod = (spec.template and spec.template.spec) or _Pod()
    wanted, ready = _counts(kind, spec, status)
    return ProgramWorkload(
        kind,
        meta.namespace,
        meta.name,
        tuple(each.image for each in pod.containers or ()),
        wanted,
        0 if status.observed_generation < meta.generation else ready,
        (meta.annotations or {}).get(_RELEASE, ""),
        (meta.labels or {}).get(_VERSION, ""),
    )


def _counts(kind: str, spec: _Spec, status: _Status) -> tuple[int, int]:
    if kind == "DaemonSet":
        counts = (status.updated_number_scheduled, status.number_available)
        return status.desired_number_scheduled, min(counts)
    wanted = 1 if spec.replicas is None else spec.replicas
    # Available pods may be old ones that serve until the new ones are available, too.
    old = max(0, status.replicas - status.updated_replicas)
    return wanted, min(status.updated_replicas, max(0, status.available_replicas - old))
