"""The installation of Fairlead that a cluster has, made by `fairlead install` or by Helm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.queries.installation_target import KubeInstallationTarget
from fairlead.errors import Forbidden
from fairlead.model.installation import SYSTEM_NAMESPACE
from fairlead.settings import HELM_CHART
from fairlead.wire.installation.inventory import Inventory, parse_inventory
from fairlead.wire.installation.release import parse_release

if TYPE_CHECKING:
    from fairlead.ports import InstallationTarget


def read_installed(cluster: InstallationTarget) -> Inventory | None:
    """The inventory, else the objects of the Helm release; None without either.

    Raises OutsideError when one may not be read, or when it is damaged.
    """
    found = cluster.inventory(SYSTEM_NAMESPACE)
    if found is not None:
        return parse_inventory(found)
    found = cluster.release(SYSTEM_NAMESPACE, HELM_CHART)
    return None if found is None else parse_release(found)


def own_namespace(target: KubeInstallationTarget) -> str:
    """The namespace of an installation, known by its label; the default if none is labelled, or if
    this user may not list namespaces.
    """
    try:
        return next(iter(target.system_namespaces()), SYSTEM_NAMESPACE)
    except Forbidden:
        return SYSTEM_NAMESPACE


def records_namespace(api: KubeBlocking) -> str:
    """Where the records of operations are (docs/spec/operations.md#record)."""
    return own_namespace(KubeInstallationTarget(api))
