"""Which nodes have Fluid's volume driver."""

from __future__ import annotations

from msgspec import Struct

from fairlead.wire.data.fluid import CSI_DRIVER
from fairlead.wire.kube.objects import WireMeta


class WireDriver(Struct, gc=False):
    name: str | None = None


class WireCsiNodeSpec(Struct, gc=False):
    drivers: list[WireDriver] | None = None


class WireCsiNode(Struct, gc=False):
    metadata: WireMeta
    spec: WireCsiNodeSpec | None = None


def parse_csi_node(wire: WireCsiNode) -> str:
    """The node's name; "" if it does not have the driver."""
    drivers = (wire.spec and wire.spec.drivers) or ()
    return wire.metadata.name or "" if any(each.name == CSI_DRIVER for each in drivers) else ""
