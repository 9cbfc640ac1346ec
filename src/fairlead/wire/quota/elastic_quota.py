"""Parses the ElasticQuotaTree object (`scheduling.sigs.k8s.io/v1beta1`) into the model's tree.

The parser accepts anything that an API server may have stored: a mistake becomes a `BadShape`
violation with the node, the resource and the actual value, and the rest of the tree is still
parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from fairlead.model.keys import (
    ANNOTATION_ADOPT_RUNNING,
    BARE_PODS_PREEMPTIBLE,
    DRAIN_OVER_MAX,
    LEND_LIMIT,
    LONGEST_GRACE,
    PREEMPT_POLICY,
    QUEUE,
    RECLAIM_SCOPE,
    REFUSED_VICTIM_WAIT,
    STUCK_AFTER,
    SURGE_WAIT,
    UNBOUND_RETURN,
    USER_CAP,
    USER_ORDER,
)
from fairlead.model.quota.tree import (
    AdmittedUse,
    QuotaNode,
    QuotaSettings,
    QuotaTree,
    Violation,
    ViolationCode,
)
from fairlead.model.resources import CPU, NOTHING, UNLIMITED, Amounts, is_byte_resource
from fairlead.wire.kube.objects import WireMeta
from fairlead.wire.kube.quantity import parse_amounts, parse_quantity
from fairlead.wire.quota.tree_size import LEVELS_MAX, too_large
from fairlead.wire.text.time_span import parse_span

AMOUNT_MAX: Final = 2**63 - 1
"""The largest amount in Kubernetes, in the unit in which Fairlead counts the resource."""

_FIELDS: Final = ("name", "min", "max", "namespaces", "attributes", "children")
ACK_FIELD: Final = "resourceflavors"
"""Of ACK's console, beside the attributes; read as one of them."""
_ATTRIBUTES: Final = "attributes"
_WORDS: Final = {
    PREEMPT_POLICY: ("PreemptLowerPriority", "Never"),
    RECLAIM_SCOPE: ("leaf", "subtree"),
    USER_ORDER: ("fifo", "fair"),
    QUEUE: ("backfill", "strict"),
    DRAIN_OVER_MAX: ("true", "false"),
    BARE_PODS_PREEMPTIBLE: ("true", "false"),
}
_SPANS: Final = {
    SURGE_WAIT: "surge_wait_seconds",
    REFUSED_VICTIM_WAIT: "refusal_seconds",
    UNBOUND_RETURN: "unbound_seconds",
    STUCK_AFTER: "stuck_seconds",
    LONGEST_GRACE: "longest_grace_seconds",
}
_LISTS: Final = (LEND_LIMIT, USER_CAP)
_UNLIMITED: Final = re.compile(rf"\+?0*{UNLIMITED}(?:\.0*)?(?:[A-Za-z]\w*|[eE][+-]?\d+)?")
_EXACT: Final = 80
"""Digits of precision beyond the length of a text that keep every quantity exact."""
_TEXT_MAX: Final = 60


class Fault(Protocol):
    def __call__(self, what: str, cell: str = "") -> None: ...


class WireTreeMeta(WireMeta, gc=False):
    generation: int | None = None


class WireQuotaTree(Struct, gc=False):
    """`spec` and `status` undecoded: under another CRD they may hold anything."""

    metadata: WireTreeMeta
    spec: Any = None
    status: Any = None


"""The tree, with a violation for every mistake in its shape."""


def parse_quota_tree(wire: WireQuotaTree) -> QuotaTree:
    meta = wire.metadata
    faults: list[Violation] = []
    root = _parse_spec(wire.spec, faults)
    status = wire.status if isinstance(wire.status, dict) else {}
    if root is not None and (caps := parse_user_caps(status)):
        root = root.with_user_caps(caps)
    annotations = {
        key: text or ""
        for key, text in (meta.annotations or {}).items()
        if key == ANNOTATION_ADOPT_RUNNING
    }
    return QuotaTree(
        name=meta.name or "",
        namespace=meta.namespace or "",
        root=root,
        uid=meta.uid or "",
        generation=meta.generation or 0,
        annotations=annotations,
        settings=QuotaSettings()
        if root is None
        else _parse_settings(root, _reporter(root.name, faults)),
        faults=tuple(faults),
        status=status,
        user_use=tuple(AdmittedUse(*each) for each in _of_users(status.get("userUse"), "used")),
    )


def parse_user_caps(status: Mapping[str, Any]) -> dict[str, dict[str, Amounts]]:
    """By leaf and user, the caps of user groups that the quota controller enforces, from the tree's
    status. What is malformed there is left out: the controller wrote none of it.
    """
    found: dict[str, dict[str, Amounts]] = {}
    for leaf, user, amounts in _of_users(status.get("userCaps"), "resources"):
        found.setdefault(leaf, {})[user] = amounts
    return found


def _of_users(rows: Any, field: str) -> Iterator[tuple[str, str, Amounts]]:
    """Leaf, user and amounts of each well-formed row."""
    for row in rows if isinstance(rows, list) else []:
        try:
            yield str(row["leaf"]), str(row["user"]), parse_amounts(row[field])
        except (LookupError, TypeError, ValueError, AttributeError):
            continue


def _parse_spec(spec: Any, faults: list[Violation]) -> QuotaNode | None:
    report = _reporter("spec", faults)
    if not isinstance(spec, dict) or spec.get("root") is None:
        report(
            "the tree has no root"
            if spec is None or isinstance(spec, dict)
            else f"is {_shown(spec)} and not an object with `root`"
        )
        return None
    for field in spec:
        if field != "root":
            report(f"unknown field `{field}`; it has only `root`")
    if not isinstance(spec["root"], dict):
        report(f"root is {_shown(spec['root'])} and not a node")
        return None
    if why := too_large(spec["root"]):
        report(why)
        return None
    return _parse_node(spec["root"], "root", None, 1, faults)


def _parse_node(
    wire: dict[str, Any], place: str, parent: QuotaNode | None, level: int, faults: list[Violation]
) -> QuotaNode | None:
    """`place`: the node's description while it has no name. `parent`: has no children yet."""
    written = wire.get("name")
    has_name = isinstance(written, str) and bool(written.strip())
    name = str(written) if has_name else place
    report = _reporter(name, faults)
    if not has_name:
        report(
            "the node has no name"
            if written in (None, "")
            else f"name is {_shown(written)} and not a name",
            "name",
        )
    if level > LEVELS_MAX:
        report(f"lies deeper than {LEVELS_MAX} levels, which is as deep as a tree may be")
        return None
    for field in wire:
        if field not in _FIELDS and field.lower() != ACK_FIELD:
            report(f"unknown field `{field}`; a node has {', '.join(_FIELDS)}")
    attributes = _parse_attributes(wire, report)
    caps = {key: _parse_list_attribute(key, attributes.get(key, ""), report) for key in _LISTS}
    least, unlimited_min = _parse_bounds("min", wire.get("min"), report)
    most, unlimited = _parse_bounds("max", wire.get("max"), report)
    above, upper = (parent.name, parent.path) if parent else ("", "")
    short = name[len(above) + 1 :] if above and name.startswith(f"{above}.") else name
    node = QuotaNode(
        name=name,
        path=f"{upper}.{short}" if upper else short,
        parent=above,
        min=least,
        max=most,
        namespaces=_parse_namespaces(wire.get("namespaces"), report),
        attributes=attributes,
        lend_limit=caps[LEND_LIMIT],
        user_cap=caps[USER_CAP],
        unlimited=unlimited,
        unlimited_min=unlimited_min,
    )
    children = []
    for number, child in enumerate(_as_list("children", wire.get("children"), report)):
        here = f"{name}.children[{number}]"
        if not isinstance(child, dict):
            _reporter(here, faults)(f"is {_shown(child)} and not a node")
        elif (parsed := _parse_node(child, here, node, level + 1, faults)) is not None:
            children.append(parsed)
    return msgspec.structs.replace(node, children=tuple(children)) if children else node


def _parse_settings(root: QuotaNode, report: Fault) -> QuotaSettings:
    spans: dict[str, Any] = {}
    for key, field in _SPANS.items():
        text = root.attributes.get(key)
        if text is not None and (seconds := _seconds(text)) is None:
            report(
                f"attribute {key} is `{_cut(text)}`, which is not a length of time such as `90s` "
                "or `5m`"
            )
        elif text is not None:
            spans[field] = seconds
    return QuotaSettings(
        **spans, are_bare_pods_preemptible=root.attributes.get(BARE_PODS_PREEMPTIBLE) == "true"
    )


def _seconds(text: str) -> float | None:
    """Seconds; None for text that is no duration, or is 0 or less."""
    if len(text) > _TEXT_MAX:
        return None
    try:
        return parse_span(text) or None
    except ValueError:
        return None


def _parse_bounds(bound: str, wire: Any, report: Fault) -> tuple[Amounts, tuple[str, ...]]:
    """The finite amounts, and the names of unlimited resources."""
    if wire is None:
        return NOTHING, ()
    if not isinstance(wire, dict):
        report(f"{bound} is {_shown(wire)} and not a list of resources")
        return NOTHING, ()
    amounts: dict[str, int] = {}
    unlimited = []
    for resource, value in wire.items():
        text, cell = str(value), f"{bound}.{resource}"
        if not resource:
            report(f"{bound} has a resource without a name")
        elif not isinstance(value, str | int | float) or isinstance(value, bool):
            report(f"{bound} of {resource} is {_shown(value)}, which is not a quantity", cell)
        elif _UNLIMITED.fullmatch(text):
            unlimited.append(resource)
        elif wrong := _fault_of(resource, text):
            report(f"{bound} of {resource} is `{_cut(text)}`, {wrong}", cell)
        else:
            amounts[resource] = parse_quantity(text, scale=3 if resource == CPU else 0)
    return amounts or NOTHING, tuple(unlimited)


def _fault_of(resource: str, text: str) -> str:
    """What is wrong with an amount of this resource; "" = nothing."""
    if len(text) > _TEXT_MAX:
        return "which is too long for a quantity"
    try:
        exact, unit = parse_quantity(text, scale=_EXACT + len(text)), 10 ** (_EXACT + len(text))
    except ValueError:
        return "which is not a quantity of Kubernetes"
    if exact < 0:
        return "which is negative"
    if exact * (1000 if resource == CPU else 1) > AMOUNT_MAX * unit:
        return (
            f"which is more than can be counted; leave it out, or write {UNLIMITED} for unlimited"
        )
    if exact % unit and resource != CPU and not is_byte_resource(resource):
        return "which is a fraction of a resource that is counted in whole units"
    return ""


def _parse_namespaces(wire: Any, report: Fault) -> tuple[str, ...]:
    found = []
    for namespace in _as_list("namespaces", wire, report):
        if isinstance(namespace, str) and namespace:
            found.append(namespace)
        else:
            report(
                f"namespaces has {_shown(namespace)}, which is not the name of a namespace",
                "namespaces",
            )
    return tuple(found)


def _as_list(field: str, wire: Any, report: Fault) -> list[Any]:
    if wire is None or isinstance(wire, list):
        return wire or []
    report(f"{field} is {_shown(wire)} and not a list")
    return []


def _parse_attributes(wire: dict[str, Any], report: Fault) -> dict[str, str]:
    """All attributes, with ACK's own field as one more. Values of known attributes are checked."""
    written_attributes = wire.get("attributes")
    if written_attributes is not None and not isinstance(written_attributes, dict):
        report(f"attributes is {_shown(written_attributes)} and not a map of words", _ATTRIBUTES)
        written_attributes = None
    attributes = {
        field: _json(value) for field, value in wire.items() if field.lower() == ACK_FIELD
    }
    for key, value in (written_attributes or {}).items():
        if value is not None and not isinstance(value, str):
            report(
                f"attribute {key} is {_shown(value)} and not a text; put it in quotes", _ATTRIBUTES
            )
            continue
        attributes[key] = value or ""
        words = _WORDS.get(key)
        if words and value not in words:
            may_be = " or ".join(words)
            report(f"attribute {key} is `{_cut(value or '')}`; it may be {may_be}", _ATTRIBUTES)
    return attributes


def _parse_list_attribute(key: str, text: str, report: Fault) -> Amounts:
    """A JSON ResourceList in an attribute. An unlimited amount there means no limit."""
    if not text:
        return NOTHING
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        report(
            f"attribute {key} is `{_cut(text)}`, which is not a list of resources in JSON such as "
            f'{{"cpu":"5"}}',
            _ATTRIBUTES,
        )
        return NOTHING
    amounts, _ = _parse_bounds(f"attribute {key}", value, report)
    return amounts


def _reporter(path: str, faults: list[Violation]) -> Fault:
    def report(what: str, cell: str = "") -> None:
        message = f"{path}: {what}"
        faults.append(Violation(path, ViolationCode.BAD_SHAPE, message, stops=True, cell=cell))

    return report


def _shown(value: Any) -> str:
    return f"`{_cut(_json(value))}`"


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return type(value).__name__


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
