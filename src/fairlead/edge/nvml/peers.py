"""The NVLink status between a card and the others of its node (`DCGM_EXP_P2P_STATUS`).

Specification: docs/spec/telemetry.md#dcgm-metrics-made-by-the-exporter.

The call involves two cards: when the other card hangs, the call for this card hangs too. It is made
only when the counters file has the field.
"""

from __future__ import annotations

from typing import Final

import pynvml
from pynvml import NVMLError

from fairlead.edge.nvml.absences import Absences, Failures
from fairlead.edge.nvml.cards import ShownCard
from fairlead.edge.nvml.library import is_down

PEERS: Final = "DCGM_EXP_P2P_STATUS"
_CALL: Final = "nvmlDeviceGetP2PStatus"


def read_peers(card: ShownCard, absences: Absences, failures: Failures) -> dict[int, int]:
    """NVML's status by the index of each other card that can be asked.

    Raises NVMLError when the driver is gone. A lost card has no link.
    way.
    """
    found: dict[int, int] = {}
    if absences.has(_CALL):
        return found
    with failures.caught("device", _CALL):
        for index in range(pynvml.nvmlDeviceGetCount()):
            if index == card.index:
                continue
            try:
                other = pynvml.nvmlDeviceGetHandleByIndex(index)
                found[index] = int(
                    pynvml.nvmlDeviceGetP2PStatus(
                        card.handle, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK
                    )
                )
            except NVMLError as error:
                if not is_down(error):
                    raise
    return found
