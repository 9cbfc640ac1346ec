"""The tables of kinds that are only stored: the columns of `objects/stored_kinds.toml`.

Also the functions that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlead_sim.objects.stored_kinds import STORED
from fairlead_sim.schema.cells import (
    NONE,
    Fill,
    Layout,
    Object,
    age,
    containers_of,
    count_of,
    created_at,
    first_few,
    labels_of,
    layout,
    part,
    selector_of,
)
from fairlead_sim.tables.core import default_marked

_UNSET = "<unset>"
_UNKNOWN = "<unknown>"


def _reference(obj: Object, now: float) -> str:
    target = part(obj, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _metrics(obj: Object, now: float) -> str:
    current, metrics = (
        part(obj, "status", "currentMetrics") or (),
        part(obj, "spec", "metrics") or (),
    )
    shown = [
        _metric(metric, current[index] if index < len(current) else {})
        for index, metric in enumerate(metrics)
    ]
    return first_few(shown, 2, NONE, ", ")


def _metric(metric: Object, reached: Object) -> str:
    kind = str(metric.get("type", ""))
    key = kind[:1].lower() + kind[1:]
    source, current = metric.get(key) or {}, part(reached, key, "current") or {}
    target = source.get("target") or {}
    if kind in ("Resource", "ContainerResource"):
        if target.get("averageValue"):
            return (
                f"{source.get('name')}: "
                f"{current.get('averageValue', _UNKNOWN)}/{target['averageValue']}"
            )
        wanted, found = target.get("averageUtilization"), current.get("averageUtilization")
        left = _UNKNOWN if found is None else f"{found}%"
        right = "<auto>" if wanted is None else f"{wanted}%"
        return f"{source.get('name')}: {left}/{right}"
    if target.get("averageValue"):
        average = "" if kind == "Pods" else " (avg)"
        return f"{current.get('averageValue', _UNKNOWN)}/{target['averageValue']}{average}"
    return (
        f"{current.get('value', _UNKNOWN)}/{target.get('value')}"
        if key in metric
        else "<unknown type>"
    )


def _hosts(obj: Object, now: float) -> str:
    return first_few(
        [str(rule["host"]) for rule in part(obj, "spec", "rules") or () if rule.get("host")], 3, "*"
    )


def _addresses(obj: Object, now: float) -> str:
    return ",".join(
        sorted(
            {
                entry.get("ip") or entry.get("hostname", "")
                for entry in part(obj, "status", "loadBalancer", "ingress") or ()
            }
        )
    )


def _parameters(obj: Object, now: float) -> str:
    cell = part(obj, "spec", "parameters")
    if not cell:
        return NONE
    group = f".{cell['apiGroup']}" if cell.get("apiGroup") else ""
    return f"{cell.get('kind', '')}{group}/{cell.get('name', '')}"


def _slice_ports(obj: Object, now: float) -> str:
    return first_few(
        [str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ()],
        3,
        _UNSET,
    )


def _endpoints(obj: Object, now: float) -> str:
    return first_few(
        [
            str(address)
            for endpoint in obj.get("endpoints") or ()
            for address in endpoint.get("addresses") or ()
        ],
        3,
        _UNSET,
    )


def _audiences(obj: Object, now: float) -> str:
    requests = part(obj, "spec", "tokenRequests")
    return (
        _UNSET
        if requests is None
        else ",".join(str(request.get("audience", "")) for request in requests)
    )


def _param_kind(obj: Object, now: float) -> str:
    kind = part(obj, "spec", "paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else _UNSET


def _param_ref(obj: Object, now: float) -> str:
    cell = part(obj, "spec", "paramRef") or {}
    return f"{cell.get('namespace') or '*'}/{cell['name']}" if cell.get("name") else _UNSET


def _quota(*, is_limit: bool) -> Fill:
    def amounts(obj: Object, now: float) -> str:
        hard, used = part(obj, "status", "hard") or {}, part(obj, "status", "used") or {}
        return ", ".join(
            f"{name}: {used.get(name, 0)}/{hard[name]}"
            for name in sorted(hard)
            if name.startswith("limits.") is is_limit
        )

    return amounts


_FUNCTIONS: Mapping[str, Fill] = {
    "age": age,
    "created_at": created_at,
    "reference": _reference,
    "metrics": _metrics,
    "hosts": _hosts,
    "addresses": _addresses,
    "ingress_ports": lambda obj, now: "80, 443" if part(obj, "spec", "tls") else "80",
    "default_ingress_class": default_marked("ingressclass.kubernetes.io/is-default-class"),
    "parameters": _parameters,
    "slice_ports": _slice_ports,
    "endpoints": _endpoints,
    "audiences": _audiences,
    "modes": lambda obj, now: ",".join(part(obj, "spec", "volumeLifecycleModes") or ()) or NONE,
    "param_kind": _param_kind,
    "param_ref": _param_ref,
    "requests": _quota(is_limit=False),
    "limits": _quota(is_limit=True),
}
_FUNCTIONS_OF_PATHS: Mapping[str, Callable[[str], Fill]] = {
    "count": count_of,
    "labels": labels_of,
    "selector": selector_of,
    "names": lambda path: containers_of(path, "name"),
    "images": lambda path: containers_of(path, "image"),
}


def _fill(cell: str) -> str | Fill:
    if not cell.startswith("="):
        return cell
    name, _, path = cell[1:].partition(":")
    return _FUNCTIONS_OF_PATHS[name](path) if path else _FUNCTIONS[name]


LAYOUTS: Mapping[str, Layout] = {
    ref.group_resource: layout({title: _fill(cell) for title, cell in kind.columns.items()})
    for ref, kind in STORED.items()
    if kind.columns
}
