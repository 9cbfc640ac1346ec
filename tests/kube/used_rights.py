"""Which rights of an account an installation has used, by the audit log of the API server."""

from __future__ import annotations

import json
from typing import NamedTuple

from tests.kube.control_plane import ControlPlane


class Right(NamedTuple):
    """`resource`: with its subresource. `name`: of the one object; "" = all."""

    group: str
    resource: str
    verb: str
    name: str = ""

    @property
    def title(self) -> str:
        place = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {place}" + (f"/{self.name}" if self.name else "")


def unused(cluster: ControlPlane, account: str, namespace: str) -> tuple[set[str], set[str]]:
    """Titles of the account's rights about kinds that the cluster serves, and of those that no
    request in the audit log used.
    """
    served = set(cluster.admin.run("api-versions").split())
    groups = {each.rpartition("/")[0] for each in served}
    granted = {each for each in _granted(cluster, account, namespace) if each.group in groups}
    used = _used(cluster, f"system:serviceaccount:{namespace}:{account}")
    return (
        {each.title for each in granted},
        {each.title for each in granted if not _is_used(each, used)},
    )


def _granted(cluster: ControlPlane, account: str, namespace: str) -> set[Right]:
    """The rights of Fairlead's own roles that are bound to the account."""
    roles = {
        (
            each["kind"],
            each["metadata"].get("namespace", ""),
            each["metadata"]["name"],
        ): each["rules"] or []
        for kind in ("clusterroles", "roles")
        for each in cluster.admin.get(kind)
        if each["metadata"]["name"].startswith("fairlead")
    }
    bound = [
        (
            each["roleRef"]["kind"],
            each["metadata"].get("namespace", "") if each["roleRef"]["kind"] == "Role" else "",
            each["roleRef"]["name"],
        )
        for kind in ("clusterrolebindings", "rolebindings")
        for each in cluster.admin.get(kind)
        if any(
            (one.get("name"), one.get("namespace")) == (account, namespace)
            for one in each.get("subjects") or ()
        )
    ]
    return {
        Right(group, resource, verb, name)
        for role in bound
        for rule in roles.get(role, ())
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or [""]
    }


def _used(cluster: ControlPlane, user: str) -> set[Right]:
    found: set[Right] = set()
    for line in cluster.audit_log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["user"]["username"] != user:
            continue
        about = event.get("objectRef") or {}
        parts = [about.get("resource", ""), about.get("subresource", "")]
        found.add(
            Right(
                about.get("apiGroup", ""),
                "/".join(filter(None, parts)),
                event["verb"],
                about.get("name", ""),
            )
        )
    return found


def _is_used(right: Right, used: set[Right]) -> bool:
    return any(each[:3] == right[:3] and right.name in ("", each.name) for each in used)
