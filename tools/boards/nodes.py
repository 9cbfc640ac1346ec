"""Nodes: what has each GPU node, how much of it is granted, and how busy is each of its cards?"""

from __future__ import annotations

from boards.shape import NO_GPU_EXPORTER, Board, Kind, Link, Panel, Query, Row, Variable, once

_NODE = 'node_name=~"$gpu_node"'
_CARD = f'{_NODE}, uuid=~"$GPU"'
_LEGEND = "{{node_name}} GPU {{gpu}} {{mig_profile}} {{mig_gi_id}}"
_BY = "max by (node_name)"


def _of_node(name: str, heading: str, unit: str = "") -> Query:
    return Query(f"{_BY} (fairlead_node_{name}{{{_NODE}}})", heading, unit)


def _of_card(name: str) -> str:
    return once(f"fairlead_gpu_{name}{{{_CARD}}}")


BOARD = Board(
    uid="fairlead-nodes",
    title="Nodes",
    description=(
        "GPU nodes: state, GPUs and memory in all, granted and used; each card's utilization and "
        "memory."
    ),
    variables=(
        Variable("gpu_node", "fairlead_node_gpus", "node_name"),
        Variable("GPU", 'fairlead_gpu_up{node_name=~"$gpu_node"}', "uuid"),
    ),
    rows=(
        Row(
            "Nodes",
            (
                Panel(
                    "GPU Node Details",
                    (
                        Query(
                            "max by (node_name, node_ip, node_role, gpu_mode) "
                            f"(fairlead_node_info{{{_NODE}}})"
                        ),
                        _of_node("ready", "Status"),
                        _of_node("gpus", "Total GPUs"),
                        _of_node("gpu_memory_bytes", "Total GPU Memory", "bytes"),
                        _of_node("gpus_allocated", "Allocated GPUs"),
                        _of_node("gpu_memory_allocated_bytes", "Allocated GPU Memory", "bytes"),
                        _of_node("gpu_memory_used_bytes", "Used GPU Memory", "bytes"),
                        _of_node("gpu_utilization_ratio", "GPU Utilization", "percentunit"),
                    ),
                    Kind.TABLE,
                    width=24,
                    height=9,
                    labels=(
                        ("node_name", "Name"),
                        ("node_ip", "IP"),
                        ("node_role", "Role"),
                        ("gpu_mode", "GPU Mode"),
                    ),
                    order=(
                        *(
                            "Name",
                            "IP",
                            "Role",
                            "Status",
                            "GPU Mode",
                            "Total GPUs",
                            "Total GPU Memory",
                            "Allocated GPUs",
                        ),
                        *("Allocated GPU Memory", "Used GPU Memory", "GPU Utilization"),
                    ),
                    links=(("Name", Link("fairlead-gpu-node", "node_name")),),
                    words=((0, "NotReady"), (1, "Ready")),
                    words_of="Status",
                ),
            ),
        ),
        Row(
            "Cards",
            (
                Panel(
                    "GPU Duty Cycle",
                    (Query(_of_card("utilization_ratio"), _LEGEND),),
                    unit="percentunit",
                    empty=NO_GPU_EXPORTER,
                    least=0,
                    most=1,
                ),
                Panel(
                    "GPU Memory Usage",
                    (Query(_of_card("memory_used_bytes"), _LEGEND),),
                    unit="bytes",
                    empty=NO_GPU_EXPORTER,
                    least=0,
                ),
                Panel(
                    "GPU Memory Usage Percentage",
                    (
                        Query(
                            f"{_of_card('memory_used_bytes')} / {_of_card('memory_total_bytes')}",
                            _LEGEND,
                        ),
                    ),
                    unit="percentunit",
                    empty=NO_GPU_EXPORTER,
                    least=0,
                    most=1,
                ),
                Panel(
                    "Allocated GPUs Per Node",
                    (_of_node("gpus_allocated", "{{node_name}}"),),
                    least=0,
                ),
                Panel("GPU Number Per Node", (_of_node("gpus", "{{node_name}}"),), least=0),
                Panel(
                    "Total GPU Memory Per Node",
                    (_of_node("gpu_memory_bytes", "{{node_name}}"),),
                    unit="bytes",
                    least=0,
                ),
            ),
        ),
    ),
)
