"""An edit of the quota tree, merged into the stored object.

What the edit does not speak of is kept: fields that Fairlead does not know, and amounts as they are
written where the amount is the same. Changed amounts are written in their shortest
form.

Specification: docs/spec/console.md#writing-the-quota-tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fairlead.model.actions import Manifest
from fairlead.model.keys import MAX_JOBS
from fairlead.model.quota.edit import EditedNode
from fairlead.model.resources import CPU, UNLIMITED, amount_text
from fairlead.wire.kube.quantity import parse_quantity
from fairlead.wire.quota.elastic_quota import ACK_FIELD

_UNLIMITED: Final = re.compile(rf"\+?0*{UNLIMITED}(?:\.0*)?(?:[A-Za-z]\w*|[eE][+-]?\d+)?")
_TEXT_MAX: Final = 60


def edited_root(stored: Manifest | None, nodes: Sequence[EditedNode]) -> dict[str, Any]:
    """`spec.root` after the edit. `stored`: the object, None = there is none.

    `nodes`: parents before children, the root first. Raises ValueError for a node whose parent does
    not come before it, and for a second root.
    """
    before = {str(each.get("name")): each for each in _written(_root_of(stored))}
    old_root, new_root = _root_of(stored) or {}, nodes[0]
    were = _resources(old_root)
    now = {*new_root.min, *new_root.max}
    made: dict[str, dict[str, Any]] = {}
    for node in nodes:
        raw = dict(before.get(node.formerly, {})) if node.formerly else {}
        raw.pop("children", None)
        raw["name"] = node.name
        for bound, amounts in (("min", node.min), ("max", node.max)):
            kept = _bounds(raw.get(bound), amounts, were, now, bound, is_root=node is new_root)
            if kept or bound in raw:
                raw[bound] = kept
        if node.namespaces or "namespaces" in raw:
            raw["namespaces"] = list(node.namespaces)
        if node.attributes is not None and (node.attributes or "attributes" in raw):
            raw["attributes"] = {
                key: value for key, value in node.attributes.items() if key.lower() != ACK_FIELD
            }
        if node is not new_root:
            above = made.get(node.parent)
            if above is None:
                raise ValueError(
                    f"the node `{node.name[:80]}` has the parent `{node.parent[:80]}`, which does "
                    "not come before it"
                )
            above.setdefault("children", []).append(raw)
        made.setdefault(node.name, raw)  # of two nodes of one name, the first has the children
    return made[new_root.name]


def merge_patch(before: Any, after: Any) -> Any:
    """The merge patch (RFC 7386) that makes `after` of `before`.

    >>> merge_patch({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 4}})
    {'b': {'c': 4, 'd': None}, 'a': None}
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    patch = {
        key: merge_patch(before.get(key), value)
        for key, value in after.items()
        if key not in before or before[key] != value
    }
    return patch | dict.fromkeys(key for key in before if key not in after)


def _root_of(stored: Manifest | None) -> dict[str, Any] | None:
    spec = (stored or {}).get("spec")
    root = spec.get("root") if isinstance(spec, dict) else None
    return root if isinstance(root, dict) else None


def _written(root: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    ahead = [root] if root else []
    while ahead:
        node = ahead.pop()
        yield node
        children = node.get("children")
        if isinstance(children, list):
            ahead += [each for each in reversed(children) if isinstance(each, dict)]


def _resources(node: dict[str, Any]) -> frozenset[str]:
    parts = [node.get(bound) for bound in ("min", "max")]
    return frozenset(key for part in parts if isinstance(part, dict) for key in part)


def _bounds(
    stored: Any,
    wanted: Mapping[str, str],
    were: frozenset[str],
    now: set[str],
    bound: str,
    *,
    is_root: bool,
) -> dict[str, Any]:
    """`were`, `now`: the resources of the tree, before and after."""
    raw = stored if isinstance(stored, dict) else {}
    made: dict[str, Any] = {}
    for resource in dict.fromkeys((*raw, *wanted)):
        text, written = wanted.get(resource), raw.get(resource)
        if text:
            is_same = _is_same(resource, written, text)
            made[resource] = written if is_same else _short(resource, text)
        elif resource not in were and resource in raw:
            made[resource] = written  # the edit cannot show it, so it cannot have removed it
        elif resource == MAX_JOBS and resource in raw:
            made[resource] = written
        elif resource not in now:
            continue
        elif is_root and text is not None:
            made[resource] = written if _is_unlimited(written) else str(UNLIMITED)
        elif resource in raw and _says_nothing(bound, written):
            made[resource] = written
    return made


def _says_nothing(bound: str, written: Any) -> bool:
    """Whether the amount means the same as none: a min of 0, a max without limit."""
    return _is_unlimited(written) if bound == "max" else str(written) == "0"


def _is_unlimited(written: Any) -> bool:
    return written is not None and _UNLIMITED.fullmatch(str(written)) is not None


def _is_same(resource: str, written: Any, text: str) -> bool:
    if written is None or isinstance(written, bool):
        return False
    first, second = _amount(resource, str(written)), _amount(resource, text)
    return str(written) == text or (first is not None and first == second)


def _short(resource: str, text: str) -> str:
    """The shortest form of the amount; what is no amount stays, and is reported when it is read."""
    amount = _amount(resource, text)
    return text if amount is None or _is_unlimited(text) else amount_text(resource, amount)


def _amount(resource: str, text: str) -> int | None:
    """None for what is no amount of the resource, or not a whole one."""
    if len(text) > _TEXT_MAX:
        return None
    scale = 3 if resource == CPU else 0
    try:
        amount = parse_quantity(text, scale=scale)
        exact = parse_quantity(text, scale=scale + 30)
    except ValueError:
        return None
    return amount if amount >= 0 and exact == amount * 10**30 else None
