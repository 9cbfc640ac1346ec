"""What a step has to do about a release of Helm, whatever an interrupted process left.

Specification: docs/spec/operations.md#steps.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from fairlead.model.operations.operation import HelmRelease, HelmStep

_PENDING: Final = ("pending-install", "pending-upgrade", "pending-rollback")
_FIRST: Final = ("pending-install", "failed")


class ReleaseTurn(Struct, frozen=True):
    """`run`: the step's own verb. `rollback` (to `revision`) and `uninstall` clear what a killed
    process left; then the step is asked again. `refuse`: with the reason as `message`.
    """

    do: Literal["run", "done", "rollback", "uninstall", "refuse"]
    revision: int = 0
    message: str = ""


DONE: Final = ReleaseTurn("done")
RUN: Final = ReleaseTurn("run")


def release_turn(
    step: HelmStep, found: HelmRelease | None, operation: str, *, is_undo: bool = False
) -> ReleaseTurn:
    """`operation`: the id. `is_undo`: only what this operation made is touched."""
    if is_undo and (found is None or found.operation != operation):
        return DONE
    if found is None:
        return _of_absent(step)
    if not found.is_own:
        return ReleaseTurn("refuse", message=_foreign(found))
    if step.verb == "uninstall":
        return RUN
    if found.status in _PENDING or (found.status in _FIRST and not found.deployed):
        if found.deployed:
            return ReleaseTurn("rollback", found.deployed)
        return ReleaseTurn("uninstall")
    is_deployed = found.status == "deployed"
    if step.verb == "rollback":
        return DONE if is_deployed and found.rolled_back_to == step.revision else RUN
    if is_deployed and found.operation == operation:
        return DONE
    if step.verb == "install" and is_deployed:
        what = f"release `{found.namespace}/{found.name}` is deployed already ({_chart(found)})"
        return ReleaseTurn("refuse", message=f"{what}; upgrade it instead")
    return RUN


def _of_absent(step: HelmStep) -> ReleaseTurn:
    if step.verb == "install":
        return RUN
    if step.verb == "uninstall":
        return DONE
    return ReleaseTurn(
        "refuse", message=f"release `{step.namespace}/{step.release}` does not exist any more"
    )


def _foreign(found: HelmRelease) -> str:
    what = f"release `{found.namespace}/{found.name}` ({_chart(found)}) is of another program"
    if found.status in _PENDING:
        return (
            f"{what} and is {found.status}: another `helm` works on it, or was killed; "
            f"`helm -n {found.namespace} rollback {found.name}` frees it"
        )
    return f"{what}; remove it with `helm -n {found.namespace} uninstall {found.name}`"


def _chart(found: HelmRelease) -> str:
    return f"chart {found.chart or 'unknown'} {found.chart_version}".strip()
