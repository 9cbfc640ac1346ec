"""How a card reaches the others of its node over NVLink
(docs/spec/telemetry.md#dcgm-metrics-made-by-the-exporter: `DCGM_EXP_P2P_STATUS`).

The question is of two cards: where the other one hangs, this one's answer does, too. It is asked only where
somebody prints the answer.
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
    """NVML's status by the index of each card that can be asked.

    Raises NVMLError when the driver is gone. Where a card is lost, the other one or this one, there is no
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
                found[index] = int(pynvml.nvmlDeviceGetP2PStatus(card.handle, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK))
            except NVMLError as error:
                if not is_down(error):
                    raise
    return found
