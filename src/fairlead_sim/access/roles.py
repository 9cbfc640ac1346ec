"""The roles of a cluster in force, among them those that are gathered from others.

`install_roles` gives a cluster the roles that every cluster has and keeps those with an
`aggregationRule` up to date: their rules are those of all ClusterRoles that they select, at once
and not a moment later as on a real cluster.
"""

from __future__ import annotations

from functools import partial

from fairlead_sim.access.bootstrap_roles import bootstrap_objects
from fairlead_sim.access.operator_roles import operator_roles
from fairlead_sim.objects.resources import CLUSTER_ROLES
from fairlead_sim.objects.watch_log import LoggedChange, Object
from fairlead_sim.schema.selector import selects
from fairlead_sim.store.cluster import StoredCluster


def install_roles(cluster: StoredCluster) -> None:
    """Add what is missing; a role that was changed stays as it is."""
    cluster.subscribe(CLUSTER_ROLES, partial(_on_role, cluster))
    for obj in bootstrap_objects():
        if cluster.get(cluster.kind_of(obj), None, obj["metadata"]["name"]) is None:
            cluster.create(obj)


def install_operator_roles(cluster: StoredCluster, seed: int) -> None:
    """Add what the installation of the operators brings on a
    real cluster, after `install_roles`.
    """
    for obj in operator_roles(seed):
        if cluster.get(CLUSTER_ROLES, None, obj["metadata"]["name"]) is None:
            cluster.load(obj)


def _on_role(cluster: StoredCluster, event: LoggedChange) -> None:
    """Gather anew what the written role may be part of; a gathered role may be part of another."""
    for role in cluster.list(CLUSTER_ROLES):
        if role.get("aggregationRule"):
            rules = _gathered_rules(cluster, role)
            if rules != (role.get("rules") or []):
                cluster.update({**role, "rules": rules})


def _gathered_rules(cluster: StoredCluster, role: Object) -> list[Object]:
    rules: list[Object] = []
    for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
        is_chosen = selects(selector)
        for part in cluster.list(CLUSTER_ROLES):
            if part["metadata"]["name"] != role["metadata"]["name"] and is_chosen(part):
                rules += [rule for rule in part.get("rules") or () if rule not in rules]
    return rules
