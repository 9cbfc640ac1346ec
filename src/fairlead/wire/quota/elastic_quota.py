"""The ElasticQuotaTree object (`scheduling.sigs.k8s.io/v1beta1`), turned into the model's tree.

The object is one deep value; a node that does not parse names itself in the error, so that a broken tree is a
sentence on the Quota board and never half a tree.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import NOTHING, UNLIMITED, Amounts
from fairlead.wire.kube.objects import WireMeta
from fairlead.wire.kube.quantity import parse_amount

_MAX_DEPTH: Final = 32
_NUMBER: Final = re.compile(r"^\d+")


class WireQuotaNode(Struct, gc=False):
    name: str | None = None
    min: dict[str, str | int | float] | None = None
    max: dict[str, str | int | float] | None = None
    namespaces: list[str] | None = None
    attributes: dict[str, str | None] | None = None
    children: list[WireQuotaNode] | None = None


class WireQuotaSpec(Struct, gc=False):
    root: WireQuotaNode | None = None


class WireQuotaTree(Struct, gc=False):
    metadata: WireMeta
    spec: WireQuotaSpec | None = None


def parse_quota_tree(wire: WireQuotaTree) -> QuotaNode | None:
    """The tree below `spec.root`, None when the object has no root.

    Raises ValueError naming the node at fault.
    """
    if wire.spec is None or wire.spec.root is None:
        return None
    return _parse_node(wire.spec.root, parent="", parent_path="", depth=0)


def _parse_node(wire: WireQuotaNode, parent: str, parent_path: str, depth: int) -> QuotaNode:
    if not wire.name:
        raise ValueError(f"a child of quota node `{parent}` has no name" if parent else "the quota tree's root has no name")
    if depth > _MAX_DEPTH:
        raise ValueError(f"quota node `{wire.name}` lies deeper than {_MAX_DEPTH} levels")
    short = wire.name[len(parent) + 1 :] if parent and wire.name.startswith(f"{parent}.") else wire.name
    path = f"{parent_path}.{short}" if parent_path else short
    return QuotaNode(
        name=wire.name,
        path=path,
        parent=parent,
        min=_parse_bounds(wire.name, "min", wire.min),
        max=_parse_bounds(wire.name, "max", wire.max),
        namespaces=tuple(wire.namespaces or ()),
        attributes={key: value or "" for key, value in (wire.attributes or {}).items()},
        children=tuple(_parse_node(child, wire.name, path, depth + 1) for child in wire.children or ()),
    )


def _parse_bounds(node: str, bound: str, texts: dict[str, str | int | float] | None) -> Amounts:
    """Finite amounts only: an unlimited entry is left out.

    Of max that means no ceiling; of root's min, no guarantee to speak of.
    """
    if not texts:
        return NOTHING
    amounts: dict[str, int] = {}
    for resource, text in texts.items():
        if _is_unlimited(str(text)):
            continue
        try:
            amounts[resource] = parse_amount(resource, text)
        except ValueError as error:
            raise ValueError(f"quota node `{node}`: {bound} of `{resource}`: {error}") from None
    return amounts


def _is_unlimited(text: str) -> bool:
    number = _NUMBER.match(text)
    return number is not None and int(number[0]) >= UNLIMITED and number[0] == str(UNLIMITED)
