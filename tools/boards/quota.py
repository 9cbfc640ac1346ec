"""Quota: each leaf's guaranteed part, its limit, what its namespaces use, and what waits."""

from __future__ import annotations

from boards.shape import Board, Kind, Panel, Query, Row, Variable, once

RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu")
_CHOSEN = 'path=~"$Organization", quota=~"$QuotaName", resource=~"$ResourceName"'
_KEY = "path, quota, resource"
_WAITING = 'fairlead_quota_waiting_pods{path=~"$Organization", quota=~"$QuotaName"}'
_EMPTY = "No leaf of the quota tree names this resource. docs/concepts/quota.md"


def _unit(resource: str) -> str:
    return "bytes" if resource == "memory" else "short"


def _table(resource: str) -> Panel:
    """One row per leaf and namespace; what the leaf has stands in each of its rows."""
    namespaces = f'fairlead_quota_namespace_used{{{_CHOSEN}, resource="{resource}"}}'
    of_namespaces = f"max by ({_KEY}, namespace_name) ({namespaces})"

    def of_leaf(name: str) -> str:
        leaf = f'fairlead_quota_{name}{{{_CHOSEN}, resource="{resource}"}}'
        return f"0 * {of_namespaces} + on ({_KEY}) group_left () max by ({_KEY}) ({leaf})"

    return Panel(
        f"Quota({resource})",
        (
            Query(of_leaf("max"), "Max Quota"),
            Query(of_leaf("min"), "Min Quota"),
            Query(of_namespaces, "Used Quota"),
        ),
        Kind.TABLE,
        _unit(resource),
        _EMPTY,
        "Max and min are the leaf's, used is the namespace's part.",
        width=24 if resource == RESOURCES[-1] else 12,
        height=7,
        labels=(
            ("quota", "Elastic Quota Name"),
            ("namespace_name", "Namespace"),
            ("resource", "Resource Name"),
        ),
        no_limit="N/A",
    )


def _chart(title: str, matcher: str, unit: str) -> Panel:
    def of(name: str) -> str:
        return f"max by ({_KEY}) (fairlead_quota_{name}{{{_CHOSEN}, {matcher}}})"

    legend = "{{path}}" if matcher.startswith("resource=") else "{{path}} {{resource}}"
    return Panel(
        title,
        (
            Query(of("used"), f"{legend} used"),
            Query(of("min"), f"{legend} min"),
            Query(f"{of('max')} < Inf", f"{legend} max"),
            Query(of("pending"), f"{legend} pending"),
        ),
        unit=unit,
        empty="No node of the quota tree names this resource.",
        description="Without a max there is no line of it.",
        width=12,
        least=0,
    )


BOARD = Board(
    uid="fairlead-quota",
    title="Quota",
    description=(
        "Elastic quota: max, min and use of each leaf and namespace; what is used, borrowed and "
        "waits over time."
    ),
    variables=(
        Variable("Organization", "fairlead_quota_used", "path"),
        Variable("QuotaName", 'fairlead_quota_used{path=~"$Organization"}', "quota"),
        Variable(
            "ResourceName",
            ('fairlead_quota_used{path=~"$Organization", quota=~"$QuotaName"}'),
            "resource",
        ),
    ),
    rows=(
        Row("Leaves", tuple(_table(resource) for resource in RESOURCES)),
        Row(
            "Over time",
            (
                *(
                    _chart(f"{resource} over time", f'resource="{resource}"', _unit(resource))
                    for resource in RESOURCES
                ),
                _chart("Other resources over time", f'resource!~"{"|".join(RESOURCES)}"', "short"),
            ),
        ),
        Row(
            "Who waits",
            (
                Panel(
                    "Waiting pods by reason",
                    (
                        Query(
                            f"sum by (reason) ({once(_WAITING, 'path, quota, reason')})",
                            "{{reason}}",
                        ),
                    ),
                    empty="No quota tree is there. docs/concepts/quota.md",
                    width=12,
                    least=0,
                    is_stacked=True,
                ),
                Panel(
                    "Borrowed GPUs",
                    (
                        Query(
                            (
                                f"max by ({_KEY}) (fairlead_quota_borrowed{{{_CHOSEN}, "
                                f'resource=~".*/gpu.*"}})'
                            ),
                            "{{path}} {{resource}}",
                        ),
                    ),
                    empty="No quota tree is there. docs/concepts/quota.md",
                    description="Above the leaf's own min; others may take it back.",
                    width=12,
                    least=0,
                ),
            ),
        ),
    ),
)
