"""ConfigMaps about a node's GPUs: their topology, and the GPUs that an operator took out of use.

Topology (docs/spec/arena-cli.md#topology-nodes): the data keys `devices`, `linkType` and
`bandwidth`, each a JSON text; they are parsed one by one, so a ConfigMap with malformed bandwidths
still has devices. GPUs out of use: the ConfigMap `unhealthy-gpu-<node>`
(docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory), which has no labels to select it
by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from fairlead.model.devices.topology import GpuTopology
from fairlead.model.sharing import Withheld
from fairlead.wire import names
from fairlead.wire.gpus.allocation import parse_withheld

Value = TypeVar("Value")


class WireConfigMapMeta(msgspec.Struct, gc=False, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str | None] | None = None


class WireConfigMap(msgspec.Struct, gc=False):
    """The fields that are read: labels name the node, `data` has the texts."""

    metadata: WireConfigMapMeta
    data: dict[str, str | None] | None = None


def parse_topology_map(wire: WireConfigMap) -> tuple[str, GpuTopology]:
    """The node's name, "" if the ConfigMap names none, and its topology."""
    return (wire.metadata.labels or {}).get(names.LABEL_TOPOLOGY_NODE) or "", parse_topology(
        wire.data
    )


def parse_withheld_map(wire: WireConfigMap) -> Withheld:
    """The node and its GPUs out of use; node "" for any other ConfigMap."""
    name = wire.metadata.name or ""
    if not name.startswith(names.UNHEALTHY_GPUS_PREFIX):
        return Withheld("", frozenset())
    return Withheld(name.removeprefix(names.UNHEALTHY_GPUS_PREFIX), parse_withheld(wire.data))


def parse_topology(data: Mapping[str, str | None] | None) -> GpuTopology:
    """The topology in a ConfigMap's data; parts that are absent or do not parse are empty.

    >>> devices, links = '{"1":"Healthy","0":"Bad"}', '[["N-A","NV2"]]'
    >>> found = parse_topology({"devices": devices, "linkType": links, "bandwidth": "?"})
    >>> found.health_by_index, found.links, found.bandwidths
    ({0: 'Bad', 1: 'Healthy'}, (('N-A', 'NV2'),), ())
    """
    texts = data or {}
    healths = _decoded(texts.get("devices"), dict[int, str]) or {}
    return GpuTopology(
        health_by_index=dict(sorted(healths.items())),
        links=_decoded(texts.get("linkType"), tuple[tuple[str, ...], ...]) or (),
        bandwidths=_decoded(texts.get("bandwidth"), tuple[tuple[float, ...], ...]) or (),
    )


def _decoded(text: str | None, kind: type[Value]) -> Value | None:
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError):
        return None
