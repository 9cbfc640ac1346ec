"""GPU devices: each card's sensors, as on board 12239, from Fairlead's own families.

With PCIe and NVLink.

A virtual GPU has no temperature, so the choices come from `fairlead_gpu_up`. Tensor cores have no
family of Fairlead's own: their panel asks for the field of the counters file.
"""

from __future__ import annotations

from boards.shape import (
    CARD_KEY,
    NO_GPU_EXPORTER,
    YELLOW,
    Board,
    Kind,
    Panel,
    Query,
    Row,
    Threshold,
    Variable,
    once,
)

_CARD = 'instance=~"$instance", gpu=~"$gpu"'
_LEGEND = "{{node_name}} GPU {{gpu}}"
_INSTANCE = f"{_LEGEND} {{{{mig_profile}}}} {{{{mig_gi_id}}}}"
_TEMPERATURE = once(f'fairlead_gpu_temperature_celsius{{{_CARD}, sensor="gpu"}}', CARD_KEY)
_POWER = once(f"fairlead_gpu_power_watts{{{_CARD}}}", CARD_KEY)
_HOT = (Threshold(80, YELLOW), Threshold(87, "red"))


def _chart(title: str, expression: str, unit: str, legend: str = _LEGEND, **more: float) -> Panel:
    return Panel(
        title,
        (Query(expression, legend),),
        unit=unit,
        empty=NO_GPU_EXPORTER,
        width=12,
        least=more.get("least", 0),
        most=more.get("most"),
    )


def _moved(metric: str, title: str) -> Panel:
    expression = once(f"rate({metric}{{{_CARD}}}[$__rate_interval])", f"{CARD_KEY}, direction")
    return _chart(title, expression, "Bps", "{{node_name}} GPU {{gpu}} {{direction}}")


BOARD = Board(
    uid="fairlead-dcgm",
    title="GPU devices",
    description=(
        "Each card's temperature, power, clocks, utilization, memory, tensor cores, PCIe and "
        "NVLink."
    ),
    variables=(
        Variable("instance", "fairlead_gpu_up", "instance"),
        Variable("gpu", 'fairlead_gpu_up{instance=~"$instance"}', "gpu"),
    ),
    rows=(
        Row(
            "Temperature and power",
            (
                Panel(
                    "GPU Temperature",
                    (Query(_TEMPERATURE, _LEGEND),),
                    unit="celsius",
                    empty=NO_GPU_EXPORTER,
                    width=18,
                    thresholds=_HOT,
                ),
                Panel(
                    "GPU Avg. Temp",
                    (Query(f"avg({_TEMPERATURE})"),),
                    Kind.GAUGE,
                    "celsius",
                    NO_GPU_EXPORTER,
                    width=6,
                    least=0,
                    most=100,
                    thresholds=_HOT,
                ),
                Panel(
                    "GPU Power Usage",
                    (Query(_POWER, _LEGEND),),
                    unit="watt",
                    empty=NO_GPU_EXPORTER,
                    width=18,
                    least=0,
                ),
                Panel(
                    "GPU Power Total",
                    (Query(f"sum({_POWER})"),),
                    Kind.NUMBER,
                    "watt",
                    NO_GPU_EXPORTER,
                    "Each board once, divided ones too.",
                    width=6,
                ),
            ),
        ),
        Row(
            "Work",
            (
                _chart(
                    "GPU SM Clocks",
                    once(f'fairlead_gpu_clock_hertz{{{_CARD}, clock="sm"}}', CARD_KEY),
                    "hertz",
                ),
                _chart(
                    "GPU Utilization",
                    once(f"fairlead_gpu_utilization_ratio{{{_CARD}}}"),
                    "percentunit",
                    _INSTANCE,
                    most=1,
                ),
                _chart(
                    "GPU Framebuffer Mem Used",
                    once(f"fairlead_gpu_memory_used_bytes{{{_CARD}}}"),
                    "bytes",
                    _INSTANCE,
                ),
                Panel(
                    "Tensor Core Utilization",
                    (
                        Query(
                            f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{_CARD}}}",
                            "{{Hostname}} GPU {{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}}",
                        ),
                    ),
                    unit="percentunit",
                    empty=(
                        "No card here reports its tensor cores: NVML does from Hopper on, with "
                        "this field in the counters file."
                    ),
                    width=12,
                    least=0,
                    most=1,
                ),
                _chart(
                    "Memory Bandwidth Utilization",
                    once(f"fairlead_gpu_memory_bandwidth_utilization_ratio{{{_CARD}}}", CARD_KEY),
                    "percentunit",
                    most=1,
                ),
                Panel(
                    "Video Encoder and Decoder",
                    (
                        Query(
                            once(f"fairlead_gpu_encoder_utilization_ratio{{{_CARD}}}", CARD_KEY),
                            f"{_LEGEND} encoder",
                        ),
                        Query(
                            once(f"fairlead_gpu_decoder_utilization_ratio{{{_CARD}}}", CARD_KEY),
                            f"{_LEGEND} decoder",
                        ),
                    ),
                    unit="percentunit",
                    empty=NO_GPU_EXPORTER,
                    width=12,
                    least=0,
                    most=1,
                ),
            ),
        ),
        Row(
            "PCIe and NVLink",
            (
                _moved("fairlead_gpu_pcie_bytes_total", "PCIe"),
                _moved("fairlead_gpu_nvlink_bytes_total", "NVLink"),
                _chart(
                    "PCIe Replays",
                    once(
                        f"increase(fairlead_gpu_pcie_replays_total{{{_CARD}}}[$__rate_interval])",
                        CARD_KEY,
                    ),
                    "short",
                ),
                _chart(
                    "NVLink Errors",
                    once(
                        f"increase(fairlead_gpu_nvlink_errors_total{{{_CARD}}}[$__rate_interval])",
                        f"{CARD_KEY}, type",
                    ),
                    "short",
                    "{{node_name}} GPU {{gpu}} {{type}}",
                ),
            ),
        ),
    ),
)
