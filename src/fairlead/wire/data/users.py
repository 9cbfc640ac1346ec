"""Pods as users of data: which claims they mount."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.acceleration import DataUser
from fairlead.model.pod import controller_of
from fairlead.wire.kube.objects import WireMeta, WireVolume, parse_claims, parse_owners

EXCLUSIVE_WORKERS: Final = "fluid.io/dataset-placement=Exclusive"
"""The selector of workers of data sets that share no node of their namespace, Fluid's default."""
_ENDED: Final = ("Succeeded", "Failed")


class WireUserSpec(Struct, gc=False, rename="camel"):
    volumes: list[WireVolume] | None = None
    node_name: str | None = None


class WireUserStatus(Struct, gc=False):
    phase: str | None = None


class WireUser(Struct, gc=False):
    metadata: WireMeta
    spec: WireUserSpec | None = None
    status: WireUserStatus | None = None


def parse_users(wire: WireUser) -> tuple[DataUser, ...]:
    """A row for each claim that the pod mounts; none if the pod has ended."""
    return tuple(_users(wire))


def node_of(wire: WireUser) -> str:
    """The pod's node; "" while it waits."""
    return (wire.spec and wire.spec.node_name) or ""


def _users(wire: WireUser) -> Iterator[DataUser]:
    meta, spec = wire.metadata, wire.spec or WireUserSpec()
    if wire.status is not None and wire.status.phase in _ENDED:
        return
    owner = controller_of(parse_owners(meta.owner_references))
    for claim in parse_claims(spec.volumes or ()):
        yield DataUser(meta.namespace or "", meta.name or "", claim, spec.node_name or "", owner)
