"""What an upgrade of Fairlead's installation would write: what its steps are made from."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.actions import Manifest
from fairlead.model.installed.component_facts import TriedObject
from fairlead.model.installed.finding import Finding


class PlannedInstallation(Struct, frozen=True, kw_only=True):
    """`tried`: all objects, in the order of writing. `removed`: those that exist and that the next
    values do not have, in the order of removal. `writing`, `complete`: the inventory from the first
    write to the last, and after it; "" of `manager`: see `ApplyStep`. `first`: the first
    administrator, if there is to be one. `is_simulated`: no server answers webhooks.
    """

    tried: tuple[TriedObject, ...]
    removed: tuple[Manifest, ...]
    writing: Manifest
    complete: Manifest
    manager: str
    first: Manifest | None = None
    is_simulated: bool = False
    findings: tuple[Finding, ...] = ()
