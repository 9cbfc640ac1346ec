"""What pods held and nodes had, from kubectl's output."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def held_seconds(pod: dict[str, Any]) -> float:
    """From the bind to the end of its last container, as the API server shows them."""
    bound = next(
        seconds(each["lastTransitionTime"])
        for each in pod["status"]["conditions"]
        if each["type"] == "PodScheduled"
    )
    ends = [
        seconds(each["state"]["terminated"]["finishedAt"])
        for each in pod["status"]["containerStatuses"]
    ]
    return max(ends) - bound


def capacity(node: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """Allocatable cores and MiB of memory; a node of this scenario has one GPU."""
    cpu, memory = node["status"]["allocatable"]["cpu"], node["status"]["allocatable"]["memory"]
    cores = Fraction(int(cpu[:-1]), 1000) if cpu.endswith("m") else Fraction(cpu)
    units = {"Ki": Fraction(1, 1024), "Mi": Fraction(1), "Gi": Fraction(1024)}
    return cores, int(memory[:-2]) * units[memory[-2:]]
