"""The object of a write that was refused before it was planned, by its address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.kinds.registry import kind_by_type
from fairlead.model.records.audit import AuditTarget
from fairlead.rules.quota.validate import TREE_NAME, TREE_NAMESPACE
from fairlead.settings import USERS_NAMESPACE

_TREE: Final = AuditTarget("ElasticQuotaTree", TREE_NAMESPACE, TREE_NAME)
_CLAIM: Final = "PersistentVolumeClaim"
_NAME_MAX: Final = 253
_IN_USERS_NAMESPACE: Final = {"users": "User", "groups": "UserGroup", "credentials": "User"}


def named_target(action: str, path: Mapping[str, str], own: str) -> AuditTarget:
    """`action`: of the endpoint. `path`: the parameters of the address. `own`: id of the user who
    asks, whose credentials are meant where the address names no user. What only the body names is
    "".

    >>> named_target("jobs.update", {"namespace": "a", "type": "mpijob", "name": "bert"}, "bob")
    AuditTarget(kind='MPIJob', namespace='a', name='bert')
    >>> named_target("credentials.delete", {"token": "bob-1"}, "bob")
    AuditTarget(kind='Credential', namespace='kube-ai', name='bob-1')
    """
    about = action.partition(".")[0]
    name = (path.get("name") or path.get("id") or "")[:_NAME_MAX]
    if about == "quota":
        return _TREE
    if about == "nodes":
        return AuditTarget("Node", "", name)
    if about == "operations":
        return AuditTarget("Operation", "", name)
    if about == "prices":
        return AuditTarget("Price", "", "")
    if about == "plans":
        return AuditTarget("Component", "", "")
    if about == "components":
        return AuditTarget("Secret", "", "")
    if about == "datasets":
        kind, name = (_CLAIM, path["claim"][:_NAME_MAX]) if "claim" in path else ("Dataset", name)
        return AuditTarget(kind, path.get("namespace", "")[:_NAME_MAX], name)
    if token := path.get("token"):
        return AuditTarget("Credential", USERS_NAMESPACE, token[:_NAME_MAX])
    if about in _IN_USERS_NAMESPACE:
        is_own = about == "credentials" and not name
        return AuditTarget(_IN_USERS_NAMESPACE[about], USERS_NAMESPACE, own if is_own else name)
    job = kind_by_type(path.get("type", ""))
    return AuditTarget(job.KIND if job else "", path.get("namespace", "")[:_NAME_MAX], name)
