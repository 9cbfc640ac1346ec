"""GPU APP: what does each pod of an application use of GPU memory and compute, and is it well?"""

from __future__ import annotations

from boards.shape import (
    CONTAINER_KEY,
    FULL,
    NO_GPU_EXPORTER,
    Board,
    Kind,
    Link,
    Panel,
    Query,
    Row,
    Variable,
    once,
)

_POD = 'namespace_name=~"$namespace_name", pod_name=~"$pod_name"'
_PODS = f'fairlead_gpu_pod_info{{{_POD}, workload=~"$app"}}'
_LEGEND = "{{pod_name}} {{container_name}} GPU {{gpu}} {{mig_profile}} {{mig_gi_id}}"
_KEY = "namespace_name, pod_name"


def _of_app(series: str) -> str:
    """Containers' series do not name the application; the pod's
    series does, while the pod exists.
    """
    return f"({series} and on ({_KEY}) {_PODS})"


_USED = _of_app(once(f"fairlead_container_gpu_memory_used_bytes{{{_POD}}}", CONTAINER_KEY))
_LIMIT = _of_app(once(f"fairlead_container_gpu_memory_limit_bytes{{{_POD}}}", CONTAINER_KEY))
_UTILIZATION = _of_app(once(f"fairlead_container_gpu_utilization_ratio{{{_POD}}}", CONTAINER_KEY))
_RESTARTS = f"fairlead_gpu_pod_restarts_total{{{_POD}}}"
_DENIED = f"fairlead_container_gpu_allocations_denied_total{{{_POD}}}"
_UNKNOWN = f"fairlead_container_gpu_unknown_allocators_total{{{_POD}}}"
_UNKNOWN_KEY = f"{_KEY}, container_name"
_UNKNOWN_LOOKUPS = (
    f"({once(_UNKNOWN, _UNKNOWN_KEY)} unless "
    f"{once(f'{_UNKNOWN} offset $__rate_interval', _UNKNOWN_KEY)}"
    f" or {once(f'round(increase({_UNKNOWN}[$__rate_interval]))', _UNKNOWN_KEY)})"
)
"""A program looks its functions up when it starts, often before the first scrape of its container.

`increase` does not show a series that begins at 1 or more.
"""
_REFUSED = 'increase(fairlead_gpushare_allocate_total{result!="ok"}[$__rate_interval])'

BOARD = Board(
    uid="fairlead-gpu-app",
    title="GPU APP",
    description=(
        "Applications on GPUs: memory of each container against what it may use, compute, power, "
        "restarts, refusals."
    ),
    variables=(
        Variable("namespace_name", "fairlead_gpu_pod_info", "namespace_name"),
        Variable("app", 'fairlead_gpu_pod_info{namespace_name=~"$namespace_name"}', "workload"),
        Variable(
            "pod_name",
            'fairlead_gpu_pod_info{namespace_name=~"$namespace_name", workload=~"$app"}',
            "pod_name",
        ),
    ),
    rows=(
        Row(
            "Memory and compute",
            (
                Panel(
                    "GPU memory used",
                    (Query(_USED, _LEGEND),),
                    unit="bytes",
                    empty=NO_GPU_EXPORTER,
                    least=0,
                ),
                Panel(
                    "GPU memory used / limit",
                    (Query(f"{_USED} / {_LIMIT}", _LEGEND),),
                    unit="percentunit",
                    empty=NO_GPU_EXPORTER,
                    description=(
                        "The limit of an exclusive GPU is the card's memory, of a shared one the "
                        "grant."
                    ),
                    least=0,
                    most=1,
                    thresholds=FULL,
                ),
                Panel(
                    "SM utilization",
                    (Query(_UTILIZATION, _LEGEND),),
                    unit="percentunit",
                    empty=NO_GPU_EXPORTER,
                    least=0,
                    most=1,
                ),
                Panel(
                    "Power of the pods' cards",
                    (
                        Query(
                            (
                                "max by (node_name, gpu, uuid) (fairlead_gpu_power_watts) and on "
                                f"(node_name, uuid) {_LIMIT}"
                            ),
                            "{{node_name}} GPU {{gpu}}",
                        ),
                    ),
                    unit="watt",
                    empty=NO_GPU_EXPORTER,
                    description="Of the whole card, with all its other users.",
                    least=0,
                ),
                Panel(
                    "Pods by phase",
                    (
                        Query(
                            f"sum by (phase) ({once(_PODS, 'namespace_name, pod_name, phase')})",
                            "{{phase}}",
                        ),
                    ),
                    empty="No pod that asks for a GPU matches the choice above.",
                    least=0,
                    is_stacked=True,
                ),
                Panel(
                    "Restarts",
                    (
                        Query(
                            _of_app(
                                f"max by ({_KEY}) (round(increase({_RESTARTS}[$__rate_interval])))"
                            ),
                            "{{pod_name}}",
                        ),
                    ),
                    empty="No pod that asks for a GPU matches the choice above.",
                    description="New ones.",
                    least=0,
                ),
            ),
        ),
        Row(
            "Refusals",
            (
                Panel(
                    "Memory above the grant",
                    (
                        Query(
                            _of_app(
                                f"max by ({_KEY}, container_name, uuid) "
                                f"(fairlead_gpushare_over_grant_bytes{{{_POD}}})"
                            ),
                            "{{pod_name}} {{container_name}}",
                        ),
                    ),
                    unit="bytes",
                    empty=(
                        "No container is above its grant. (The node agent reports this: is it "
                        "scraped?)"
                    ),
                    width=6,
                    least=0,
                ),
                Panel(
                    "Allocations refused by the memory guard",
                    (
                        Query(
                            _of_app(
                                f"sum by ({_KEY}, container_name) "
                                f"(max by ({_KEY}, container_name, uuid) "
                                f"(increase({_DENIED}[$__rate_interval])))"
                            ),
                            "{{pod_name}} {{container_name}}",
                        ),
                    ),
                    empty="No container here has the memory guard, which is cooperative.",
                    width=6,
                    least=0,
                ),
                Panel(
                    "Allocators that the memory guard does not know",
                    (
                        Query(
                            _of_app(_UNKNOWN_LOOKUPS),
                            "{{pod_name}} {{container_name}}",
                        ),
                    ),
                    empty="No container here has the memory guard, which is cooperative.",
                    description=(
                        "Look-ups. Memory of such an allocator is neither limited nor accounted."
                    ),
                    width=6,
                    least=0,
                ),
                Panel(
                    "Containers refused a device",
                    (
                        Query(
                            f"sum by (result) ({once(_REFUSED, 'node_name, result')})",
                            "{{result}}",
                        ),
                    ),
                    empty=(
                        "Nothing is known of refusals. Is the node agent scraped? "
                        "docs/how-to/boards.md"
                    ),
                    description=(
                        "On all nodes, of all applications: the node agent's counter knows no pods."
                    ),
                    width=6,
                    least=0,
                ),
            ),
        ),
        Row(
            "Pods",
            (
                Panel(
                    "Pods",
                    (
                        Query(
                            f"max by ({_KEY}, node_name, phase, reason, workload, gpu_mode) "
                            f"({_PODS})"
                        ),
                        Query(
                            f"max by ({_KEY}) (round(increase({_RESTARTS}[$__range])))",
                            "Restarts",
                        ),
                        Query(f"sum by ({_KEY}) ({_USED})", "Used", "bytes"),
                        Query(f"sum by ({_KEY}) ({_LIMIT})", "Limit", "bytes"),
                        Query(
                            f"sum by ({_KEY}) ({_USED}) / sum by ({_KEY}) ({_LIMIT})",
                            "Used / limit",
                            "percentunit",
                        ),
                        Query(f"avg by ({_KEY}) ({_UTILIZATION})", "SM utilization", "percentunit"),
                    ),
                    Kind.TABLE,
                    empty="No pod that asks for a GPU matches the choice above.",
                    width=24,
                    height=9,
                    labels=(
                        ("namespace_name", "Namespace"),
                        ("pod_name", "Pod"),
                        ("workload", "App"),
                        ("node_name", "Node"),
                        ("gpu_mode", "GPU Mode"),
                        ("phase", "Phase"),
                        ("reason", "Reason"),
                    ),
                    links=(("Node", Link("fairlead-gpu-node", "node_name")),),
                ),
            ),
        ),
    ),
)
