"""What `nvidia-smi` prints in a container, in document 001's layout.

A container under the memory guard sees its share; any other sees its cards or instances. The table
has no processes, because they are in other pid namespaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from fairlead.model.devices.gpu import GpuMode
from fairlead_sim.gpus.card import Card, Hold
from fairlead_sim.gpus.readings import CUDA_VERSION, DRIVER_VERSION

_RULE: Final = f"+{'-' * 77}+"
_BLOCKS: Final = f"+{'-' * 31}+{'-' * 22}+{'-' * 22}+"
_NAME_WIDTH: Final = 18
_DRIVER: Final = f"{DRIVER_VERSION:<13}"
_HEAD: Final = f"""\
{_RULE}
| NVIDIA-SMI {_DRIVER}Driver Version: {_DRIVER}CUDA Version: {CUDA_VERSION:<9}|
|{_BLOCKS[1:]}
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|{_BLOCKS[1:-1].replace("-", "=")}|"""
_PROCESSES: Final = f"""\

{_RULE}
| Processes:                                                       GPU Memory |
|  GPU       PID   Type   Process name                             Usage      |
|{"=" * 77}|
{_RULE}"""


def nvidia_smi(held: Sequence[tuple[Card, Hold]], now: float) -> str:
    """The table of a container's cards; lines end with a newline."""
    date = f"{datetime.fromtimestamp(now, UTC):%a %b %e %H:%M:%S %Y}"
    rows = [row for at, (card, hold) in enumerate(held) for row in _rows(at, card, hold, now)]
    return "\n".join((date, _HEAD, *rows, _PROCESSES, ""))


def _rows(number: int, card: Card, hold: Hold, now: float) -> tuple[str, str, str]:
    name = card.model.name
    if len(name) > _NAME_WIDTH:
        name = f"{name[: _NAME_WIDTH - 3]}..."
    used, total = _memory(card, hold, now)
    performance = "P0" if card.live_runs(now) else "P8"
    watts = f"{card.watts(now):.0f}W / {card.model.limit_watts:.0f}W"
    memory = f"{used}MiB / {total:>5}MiB"
    return (
        f"| {number:>3}  {name:<{_NAME_WIDTH}}  On   | {card.pci_bus_id} Off |{0:>21} |",
        f"| N/A  {card.celsius(now):>3.0f}C    {performance}  {watts:>12} | {memory:>20} |"
        f"    {100 * card.level(now):>3.0f}%      Default |",
        _BLOCKS,
    )


def _memory(card: Card, hold: Hold, now: float) -> tuple[int, int]:
    """MiB in use and in all, as the container sees them."""
    if hold.counts is not None:
        return hold.used_mib(now), hold.limit_mib
    if hold.mode == GpuMode.MIG:
        (instance,) = (each for each in card.instances if each.gpu_instance == hold.gpu_instance)
        return card.instance_used_mib(instance, now), instance.total_mib
    return card.used_mib(now), card.model.total_mib
