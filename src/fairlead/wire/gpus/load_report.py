"""Lines that dcgmproftester prints (document 002), and `fairlead gpu-load` with it."""

from __future__ import annotations

from typing import Final

from fairlead.model.devices.gpu_chip import Chip
from fairlead.model.devices.gpu_load import DRAM, FP16, FP32, FP64, TENSOR, WorkDone

SUBJECTS: Final = {
    1001: "GrActivity",
    1002: "SmActivity",
    1003: "SmOccupancy",
    1004: "TensorEngineActive",
    1005: "DramUtil",
    1006: "Fp64EngineActive",
    1007: "Fp32EngineActive",
    1008: "Fp16EngineActive",
    1009: "PcieTxBytes",
    1010: "PcieRxBytes",
    1011: "NvLinkTxBytes",
    1012: "NvLinkRxBytes",
}
"""The first word of a report by field. Document 002 shows only that of the tensor cores."""
_COMPUTING: Final = (TENSOR, FP64, FP32, FP16)
_UNKNOWN: Final = "???"


def render_chip(chip: Chip) -> tuple[str, ...]:
    """The lines about a card's CUDA attributes, printed when the program begins."""
    attributes = {
        "MAX_THREADS_PER_MULTIPROCESSOR": chip.threads,
        "MULTIPROCESSOR_COUNT": chip.processors,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": chip.shared_memory,
        "COMPUTE_CAPABILITY_MAJOR": chip.capability[0],
        "COMPUTE_CAPABILITY_MINOR": chip.capability[1],
        "GLOBAL_MEMORY_BUS_WIDTH": chip.bus_bits,
        "MEMORY_CLOCK_RATE": chip.memory_khz,
    }
    bandwidth = chip.memory_bandwidth
    return (
        *(f"CU_DEVICE_ATTRIBUTE_{name}: {value}" for name, value in attributes.items()),
        f"Max Memory bandwidth: {bandwidth} bytes ({bandwidth / 1e9:.2f} GiB)",
        "CudaInit completed successfully.",
        "",
    )


def render_skipped(step: str) -> str:
    """The line for a step that is skipped: `CreateDcgmGroups`, `WatchFields` or `UnwatchFields`.

    >>> render_skipped("WatchFields")
    'Skipping WatchFields() since DCGM validation is disabled'
    """
    return f"Skipping {step}() since DCGM validation is disabled"


def render_report(field: int, done: WorkDone, measured: float | None) -> str:
    """One report line. `measured` None = not measured; dcgmproftester prints 0 then.

    >>> render_report(1004, WorkDone(1.0, flops=27_605_200_000_000), None)
    'TensorEngineActive: generated ???, dcgm 0.000 (27605.2 gflops)'
    >>> render_report(1001, WorkDone(1.0, generated=0.25), 0.2481)
    'GrActivity: generated 0.250, dcgm 0.248'
    """
    generated = _UNKNOWN if done.generated is None else f"{done.generated:.3f}"
    line = f"{SUBJECTS[field]}: generated {generated}, dcgm {measured or 0.0:.3f}"
    if field in _COMPUTING:
        reached = _UNKNOWN if done.flops is None else f"{done.flops / done.seconds / 1e9:.1f}"
        return f"{line} ({reached} gflops)"
    if field == DRAM:
        moved = (
            _UNKNOWN
            if done.moved_bytes is None
            else f"{done.moved_bytes / done.seconds / (1 << 30):.1f}"
        )
        return f"{line} ({moved} GiB/sec)"
    return line


def render_unknown(field: int) -> str:
    """
    >>> render_unknown(1999)
    'A test for fieldId 1999 has not been implemented yet.'
    """
    return f"A test for fieldId {field} has not been implemented yet."
