"""Readers of each kind, in JSON and in protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.resource import CONFIG_MAPS, EVENTS, NAMESPACES, NODES, PODS
from fairlead.wire.gpus.topology import WireConfigMap, parse_withheld_map
from fairlead.wire.kube.budgets import WireNamespace, parse_namespace
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.objects import EVENT_FORM, NODE_FORM, POD_FORM

READERS: Mapping[str, ItemReader[Any]] = {
    "Pod": ItemReader(PODS, POD_FORM),
    "Node": ItemReader(NODES, NODE_FORM),
    "Event": ItemReader(EVENTS, EVENT_FORM),
    "Namespace": ItemReader(NAMESPACES, JsonForm(WireNamespace, parse_namespace)),
    "ConfigMap": ItemReader(CONFIG_MAPS, JsonForm(WireConfigMap, parse_withheld_map)),
}
