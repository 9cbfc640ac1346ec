"""An extender with a deliberate fault, which the storm and the fuzz test must find."""

from __future__ import annotations

from typing import Any

from fairlead.apps.extender import Extender
from fairlead.model.pod import Pod


def without_reservation(*args: Any, **options: Any) -> Extender:
    """`bind` gets cards, but releases the reservation at once."""
    extender = Extender(*args, **options)
    reserve = extender.ledger.reserve

    def forget(pod: Pod, node: str) -> Any:
        grants = reserve(pod, node)
        extender.ledger.roll_back(pod.uid)
        return grants

    extender.ledger.reserve = forget  # type: ignore[method-assign]
    return extender
