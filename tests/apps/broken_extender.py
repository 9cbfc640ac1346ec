"""Extenders with a deliberate fault, which storms, the fuzz test and scenes must find."""

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


def patient(*args: Any, **options: Any) -> Extender:
    """Fault: a binding may be decided ten seconds after it was sent, whatever is left of the Lease
    (as before 2026-11).
    """
    api, *others = args
    apply = api.apply
    api.apply = lambda step, left: apply(step, left and (lambda: 10.0 if left() else 0.0))
    extender = Extender(api, *others, **options)
    extender.leader.left = lambda: 10.0  # type: ignore[method-assign]
    return extender
