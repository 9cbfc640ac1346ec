"""Readers of each kind, in JSON and in protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.resource import CONFIG_MAPS, EVENTS, NAMESPACES, NODES, PODS
from fairlead.wire.gpus.topology import WireConfigMap, parse_withheld_map
from fairlead.wire.kube.budgets import WireNamespace, parse_namespace
from fairlead.wire.kube.objects import WireEvent, WireNode, WirePod, parse_event, parse_node, parse_pod

READERS: Mapping[str, ItemReader[Any]] = {
    "Pod": ItemReader(PODS, WirePod, parse_pod),
    "Node": ItemReader(NODES, WireNode, parse_node),
    "Event": ItemReader(EVENTS, WireEvent, parse_event),
    "Namespace": ItemReader(NAMESPACES, WireNamespace, parse_namespace),
    "ConfigMap": ItemReader(CONFIG_MAPS, WireConfigMap, parse_withheld_map),
}
