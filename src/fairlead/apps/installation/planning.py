"""Plans of the installation for a server: its own loop writes nothing, an operation does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from fairlead import __version__
from fairlead.apps.installation.installer import Installer, Wanted, inventories
from fairlead.errors import UserError
from fairlead.model.actions import ObjectRef, object_ref
from fairlead.model.installation import SYSTEM_NAMESPACE, Installation
from fairlead.model.installed.component_facts import TriedObject
from fairlead.model.installed.facts import InstallationFacts
from fairlead.model.installed.planned_installation import PlannedInstallation
from fairlead.ports import InstallationTarget
from fairlead.rules.installation.doctor import examine
from fairlead.settings import HELM_CHART
from fairlead.wire.installation.inventory import Inventory, render_inventory
from fairlead.wire.installation.values import merged, parse_values, part_key, read_values

Facts = Callable[[Callable[[str], Installation]], InstallationFacts]


class InstallationPlanning:
    """`ports.InstallationPlans`. `target`: a new one for each use, because it remembers which kinds
    are served. `facts`: what `fairlead doctor` judges. `manager`: of the fields that are written.
    """

    def __init__(
        self, target: Callable[[], InstallationTarget], facts: Facts, manager: str
    ) -> None:
        self._target = target
        self._facts = facts
        self._manager = manager

    def plan(self, parts: Mapping[str, bool], values: Mapping[str, Any]) -> PlannedInstallation:
        cluster = self._target()
        installer = Installer(cluster, lambda _line: None, time.time, time.sleep)
        before = _installed(installer, cluster)
        chosen = _chosen(before, parts, values)
        plan = installer.plan(Wanted(__version__, chosen))
        writing, complete = map(render_inventory, inventories(plan))
        found = [cluster.get(object_ref(each)) for each in plan.objects]
        tried = (
            TriedObject(manifest, old, result)
            for manifest, old, result in zip(plan.objects, found, plan.results, strict=True)
        )
        removed = (cluster.get(each) for each in plan.removed)
        return PlannedInstallation(
            tried=tuple(tried),
            removed=tuple(each for each in removed if each is not None),
            writing=writing,
            complete=complete,
            manager=self._manager,
            first=plan.first,
            is_simulated=cluster.is_simulated(),
            findings=tuple(examine(self._facts(lambda _before: chosen))),
        )

    def console_secret(self) -> ObjectRef:
        cluster = self._target()
        installer = Installer(cluster, lambda _line: None, time.time, time.sleep)
        before = _installed(installer, cluster)
        chosen = parse_values(read_values(before.values, "the inventory"))
        return ObjectRef("v1", "Secret", chosen.sign_in.secret, chosen.namespace, plural="secrets")


def _installed(installer: Installer, cluster: InstallationTarget) -> Inventory:
    before = installer.inventory()
    if before is not None:
        return before
    releases = cluster.helm_releases(SYSTEM_NAMESPACE, HELM_CHART)
    if releases:
        what = f"Fairlead is installed by the Helm release `{releases[0]}`"
        raise UserError(what, f"`helm upgrade {releases[0]}` with the value `parts` changes it")
    raise UserError("there is no installation", "`fairlead install` makes one")


def _chosen(
    before: Inventory, parts: Mapping[str, bool], values: Mapping[str, Any]
) -> Installation:
    words: dict[str, Any] = {
        part_key(part).removeprefix("parts."): is_on for part, is_on in parts.items()
    }
    given = merged(read_values(before.values, "the inventory"), values)
    found = parse_values(merged(given, {"parts": words}))
    if not any(getattr(found.parts, each) for each in found.parts.__struct_fields__):
        raise UserError(
            f"{', '.join(f'`{each}`' for each in words)} is the last part of the installation",
            "`fairlead uninstall` removes the installation",
        )
    return found
