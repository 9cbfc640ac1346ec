"""The installation of Fairlead that a cluster has, made by `fairlead install` or by Helm."""

from __future__ import annotations

from fairlead.model.installation import SYSTEM_NAMESPACE
from fairlead.ports import InstallationTarget
from fairlead.settings import HELM_CHART
from fairlead.wire.installation.inventory import Inventory, parse_inventory
from fairlead.wire.installation.release import parse_release


def read_installed(cluster: InstallationTarget) -> Inventory | None:
    """The inventory, else the objects of the Helm release; None without either.

    Raises OutsideError when one may not be read, or when it is damaged.
    """
    found = cluster.inventory(SYSTEM_NAMESPACE)
    if found is not None:
        return parse_inventory(found)
    found = cluster.release(SYSTEM_NAMESPACE, HELM_CHART)
    return None if found is None else parse_release(found)
