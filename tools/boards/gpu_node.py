"""GPU Node: who uses the memory of a node's cards, and how are the cards: warm, slow, in error?"""

from __future__ import annotations

from boards.shape import (
    ANY_IS_BAD,
    CARD_KEY,
    CONTAINER_KEY,
    NO_GPU_EXPORTER,
    Board,
    Kind,
    Panel,
    Query,
    Row,
    Threshold,
    Variable,
    once,
)

_CARD = 'node_name=~"$node_name", gpu=~"$gpu"'
_LEGEND = "{{node_name}} GPU {{gpu}}"
_INSTANCE = f"{_LEGEND} {{{{mig_profile}}}} {{{{mig_gi_id}}}}"
_PARTS = f"{CARD_KEY}, mig_gi_id"


def _of_card(name: str) -> str:
    """Of a divided card, its instances together."""
    return f"sum by ({CARD_KEY}) ({once(f'fairlead_gpu_{name}{{{_CARD}}}')})"


def _of_cards(name: str) -> str:
    """Of all chosen cards together, what parts of one do not have."""
    return f"sum({once(f'fairlead_gpu_{name}{{{_CARD}}}', CARD_KEY)})"


_USED, _TOTAL = _of_card("memory_used_bytes"), _of_card("memory_total_bytes")
_ALLOCATED = (
    f"sum by ({CARD_KEY}) (max by ({_PARTS}) (fairlead_gpu_memory_total_bytes{{{_CARD}}})"
    f" * on ({_PARTS}) max by ({_PARTS}) (fairlead_gpu_allocated_ratio))"
)
_THROTTLED = f'fairlead_gpu_throttled{{{_CARD}, reason!="gpu_idle"}}'
_HELD_DOWN = f"rate(fairlead_gpu_throttle_seconds_total{{{_CARD}}}[$__rate_interval])"
_XID = f"fairlead_gpu_xid_errors_total{{{_CARD}}}"
_XID_KEY = f"{CARD_KEY}, xid"
_XIDS = (
    f"({once(_XID, _XID_KEY)} unless {once(f'{_XID} offset $__rate_interval', _XID_KEY)}"
    f" or {once(f'round(increase({_XID}[$__rate_interval]))', _XID_KEY)})"
)
"""An XID that is the first of its kind begins a series, which `increase` alone would not show.

The exporter's next pod reports the same card: that is no beginning.
"""
_OF_CONTAINERS = once(f"fairlead_container_gpu_memory_used_bytes{{{_CARD}}}", CONTAINER_KEY)


def _chart(
    title: str,
    queries: tuple[Query, ...],
    unit: str = "short",
    description: str = "",
    *,
    most: float | None = None,
) -> Panel:
    return Panel(
        title,
        queries,
        unit=unit,
        empty=NO_GPU_EXPORTER,
        description=description,
        least=0,
        most=most,
    )


def _rise(metric: str, more: str = "") -> str:
    return f"increase({metric}{{{_CARD}{more}}}[$__rate_interval])"


BOARD = Board(
    uid="fairlead-gpu-node",
    title="GPU Node",
    description=(
        "One node's cards: memory by container, use without a grant, utilization, temperature, "
        "power, throttling, errors."
    ),
    variables=(
        Variable("node_name", "fairlead_gpu_up", "node_name"),
        Variable("gpu", 'fairlead_gpu_up{node_name=~"$node_name"}', "gpu"),
    ),
    rows=(
        Row(
            "Memory",
            (
                Panel(
                    "Cards",
                    (
                        Query(
                            f"max by ({CARD_KEY}, model, mig_mode) (fairlead_gpu_info{{{_CARD}}})"
                        ),
                        Query(f"min by ({CARD_KEY}) (fairlead_gpu_up{{{_CARD}}})", "Answers"),
                        Query(f"min by ({CARD_KEY}) (fairlead_gpu_healthy{{{_CARD}}})", "Healthy"),
                        Query(_USED, "Used", "bytes"),
                        Query(f"{_ALLOCATED} / {_TOTAL}", "Allocated", "percentunit"),
                        Query(_TOTAL, "Total", "bytes"),
                        Query(
                            f"max by ({CARD_KEY}) (fairlead_gpu_containers{{{_CARD}}})",
                            "Containers",
                        ),
                    ),
                    Kind.TABLE,
                    empty=NO_GPU_EXPORTER,
                    width=24,
                    height=7,
                    labels=(
                        ("node_name", "Node"),
                        ("gpu", "GPU"),
                        ("model", "Model"),
                        ("mig_mode", "MIG"),
                        ("uuid", "UUID"),
                    ),
                ),
                Panel(
                    "GPU memory",
                    (
                        Query(_USED, f"{_LEGEND} used"),
                        Query(_ALLOCATED, f"{_LEGEND} allocated"),
                        Query(_TOTAL, f"{_LEGEND} total"),
                    ),
                    unit="bytes",
                    empty=NO_GPU_EXPORTER,
                    description="Of a divided card, its instances together.",
                    width=12,
                    least=0,
                ),
                Panel(
                    "Who uses it",
                    (
                        Query(
                            f"sum by (namespace_name, pod_name, container_name) ({_OF_CONTAINERS})",
                            "{{namespace_name}} {{pod_name}} {{container_name}}",
                        ),
                        Query(_of_cards("memory_foreign_bytes"), "processes without a grant"),
                        Query(_of_cards("memory_unattributed_bytes"), "rest"),
                        Query(f"sum({_TOTAL})", "total"),
                    ),
                    unit="bytes",
                    empty=NO_GPU_EXPORTER,
                    width=12,
                    least=0,
                    is_stacked=True,
                    draws_over=("total",),
                ),
            ),
        ),
        Row(
            "Work",
            (
                _chart(
                    "Utilization",
                    (Query(once(f"fairlead_gpu_utilization_ratio{{{_CARD}}}"), _INSTANCE),),
                    "percentunit",
                    most=1,
                ),
                Panel(
                    "Temperature",
                    (
                        Query(
                            (
                                f"max by ({CARD_KEY}, sensor) "
                                f"(fairlead_gpu_temperature_celsius{{{_CARD}}})"
                            ),
                            f"{_LEGEND} {{{{sensor}}}}",
                        ),
                    ),
                    unit="celsius",
                    empty=NO_GPU_EXPORTER,
                    thresholds=(Threshold(87, "red"),),
                ),
                _chart(
                    "Power",
                    (
                        Query(
                            f"max by ({CARD_KEY}) (fairlead_gpu_power_watts{{{_CARD}}})", _LEGEND
                        ),
                        Query(
                            f"max by ({CARD_KEY}) (fairlead_gpu_power_limit_watts{{{_CARD}}})",
                            f"{_LEGEND} limit",
                        ),
                    ),
                    "watt",
                ),
                _chart(
                    "Cards whose clocks are held down, by reason",
                    (
                        Query(
                            f"sum by (reason) ({once(_THROTTLED, f'{CARD_KEY}, reason')})",
                            "{{reason}}",
                        ),
                    ),
                    description="An idle card clocks down by itself and is left out.",
                ),
                _chart(
                    "Time held down",
                    (
                        Query(
                            f"sum by (reason) ({once(_HELD_DOWN, f'{CARD_KEY}, reason')})",
                            "{{reason}}",
                        ),
                    ),
                    "short",
                    "Seconds per second, of all chosen cards together.",
                ),
                _chart(
                    "Processes without a grant",
                    (
                        Query(
                            f"max by ({CARD_KEY}) (fairlead_gpu_foreign_processes{{{_CARD}}})",
                            _LEGEND,
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "Errors",
            (
                _chart(
                    "XID errors",
                    (Query(f"sum by (xid) ({_XIDS})", "XID {{xid}}"),),
                    description=(
                        "New ones. After a pause of the exporter also those that the kernel's log "
                        "still has."
                    ),
                ),
                Panel(
                    "Last XID errors",
                    (
                        Query(
                            (
                                "1000 * max by (node_name, gpu, model, xid) "
                                f"(fairlead_gpu_xid_last_timestamp_seconds{{{_CARD}}})"
                            ),
                            "When",
                            "dateTimeFromNow",
                        ),
                    ),
                    Kind.TABLE,
                    empty="The driver has reported no XID error.",
                    labels=(
                        ("node_name", "Node"),
                        ("gpu", "GPU"),
                        ("model", "Model"),
                        ("xid", "XID"),
                    ),
                ),
                Panel(
                    "Health checks that fail",
                    (
                        Query(
                            (
                                "max by (node_name, gpu, check) "
                                f"(fairlead_gpu_health_check{{{_CARD}}}) > "
                                "0"
                            ),
                            "Result",
                        ),
                    ),
                    Kind.TABLE,
                    empty="No check of the chosen cards fails.",
                    labels=(("node_name", "Node"), ("gpu", "GPU"), ("check", "Check")),
                    words=((1, "warning"), (2, "failed")),
                    words_of="Result",
                ),
                _chart(
                    "ECC errors",
                    (
                        Query(
                            once(
                                _rise("fairlead_gpu_ecc_errors_total", (', scope="volatile"')),
                                f"{CARD_KEY}, severity",
                            ),
                            f"{_LEGEND} {{{{severity}}}}",
                        ),
                    ),
                ),
                Panel(
                    "Rows and pages that wait for a reset",
                    (
                        Query(_of_cards("row_remap_pending"), "rows to remap"),
                        Query(_of_cards("row_remap_failed"), "remapping failed"),
                        Query(_of_cards("retired_pages_pending"), "pages to retire"),
                    ),
                    Kind.NUMBER,
                    empty=NO_GPU_EXPORTER,
                    description="Cards. Ampere and later remap rows, older ones retire pages.",
                    thresholds=ANY_IS_BAD,
                ),
                _chart(
                    "Age of the values",
                    (
                        Query(
                            (
                                "max by (node_name, gpu) "
                                f"(fairlead_exporter_sample_age_seconds{{{_CARD}}})"
                            ),
                            _LEGEND,
                        ),
                    ),
                    "s",
                ),
            ),
        ),
    ),
)
