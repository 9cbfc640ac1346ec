"""What the people controller's account may write and what a policy refuses, as dry runs; typed from
docs/concepts/security.md.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Object = dict[str, Any]
PLACE: Final = "kube-ai"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
PEOPLE: Final = f"/apis/fairlead.io/v1/namespaces/{PLACE}"
ACCOUNTS: Final = f"/api/v1/namespaces/{PLACE}/serviceaccounts"
CLUSTER: Final = f"{RBAC}/clusterrolebindings"
LABEL: Final = "fairlead.io/user"
RESEARCHER: Final = "fairlead-researcher"
BINDS: Final = "the people controller binds"
CHANGES: Final = "labels a binding, and changes nothing else"
LABELLED: Final = "bindings with the label fairlead.io/user"


class Write(NamedTuple):
    """`refused`: part of the policy's message, "" = the write is allowed."""

    verb: str
    path: str
    body: Object
    refused: str = ""


def bindings(namespace: str) -> str:
    return f"{RBAC}/namespaces/{namespace}/rolebindings"


def subject(name: str = "eve", namespace: str = PLACE, kind: str = "ServiceAccount") -> Object:
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


def binding(
    *subjects: Object,
    place: str = "namespace1",
    role: str = RESEARCHER,
    label: str = "eve",
    name: str = "",
) -> Object:
    kind = "RoleBinding" if place != "clusterRole" else "ClusterRoleBinding"
    labels = {LABEL: label} if label else {}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name or f"eve:{place}:{role}", "labels": labels},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": list(subjects or (subject(),)),
    }


def account(name: str, label: str) -> Object:
    meta = {"name": name, "labels": {LABEL: label} if label else {}}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}


BEFORE: Final[tuple[tuple[str, Object], ...]] = (
    (bindings("namespace1"), binding(label="", name="theirs")),
    (bindings("namespace2"), binding(subject(kind="User", namespace=""), label="", name="theirs")),
    (bindings("namespace1"), binding(label="eve", name="labelled")),
    (ACCOUNTS, account("theirs", "")),
    (ACCOUNTS, account("labelled", "labelled")),
)
"""What exists before each write, by the list that it is in."""


def _patched(path: str, refused: str = "", **fields: Any) -> Write:
    return Write("PATCH", path, fields, refused)


NS1: Final = bindings("namespace1")
WRITES: Final[dict[str, Write]] = {
    "a researcher's binding": Write("POST", NS1, binding()),
    "a binding for all namespaces": Write(
        "POST", CLUSTER, binding(place="clusterRole", role="fairlead-admin")
    ),
    "an administrator's credentials": Write(
        "POST", bindings(PLACE), binding(place=PLACE, role="fairlead-credentials")
    ),
    "no label": Write("POST", NS1, binding(label=""), LABELLED),
    "a subject that is a user": Write(
        "POST", NS1, binding(subject(kind="User", namespace="")), BINDS
    ),
    "an account of another namespace": Write(
        "POST", NS1, binding(subject(namespace="kube-system")), BINDS
    ),
    "another user's account": Write("POST", NS1, binding(subject("ann")), BINDS),
    "two subjects": Write("POST", NS1, binding(subject(), subject("ann")), BINDS),
    "every account of a namespace": Write(
        "POST",
        CLUSTER,
        binding(
            subject(f"system:serviceaccounts:{PLACE}", "", "Group"),
            place="clusterRole",
            role="fairlead-admin",
        ),
        BINDS,
    ),
    "another name": Write("POST", NS1, binding(name="eve:namespace2:fairlead-researcher"), BINDS),
    "a namespace of Kubernetes": Write(
        "POST", bindings("kube-system"), binding(place="kube-system"), BINDS
    ),
    "a namespace of Fairlead": Write(
        "POST", bindings("fairlead-system"), binding(place="fairlead-system"), BINDS
    ),
    "a researcher in the users namespace": Write(
        "POST", bindings(PLACE), binding(place=PLACE), BINDS
    ),
    "a labelled binding removed": Write("DELETE", f"{NS1}/labelled", {}),
    "another program's binding removed": Write("DELETE", f"{NS1}/theirs", {}, LABELLED),
    "an equal binding adopted": _patched(f"{NS1}/theirs", metadata={"labels": {LABEL: "eve"}}),
    "a binding adopted for another user": _patched(
        f"{NS1}/theirs", BINDS, metadata={"labels": {LABEL: "ann"}}
    ),
    "a binding of a user adopted": _patched(
        f"{bindings('namespace2')}/theirs", BINDS, metadata={"labels": {LABEL: "eve"}}
    ),
    "another subject": _patched(f"{NS1}/labelled", CHANGES, subjects=[subject("ann")]),
    "a subject more": _patched(f"{NS1}/labelled", CHANGES, subjects=[subject(), subject("ann")]),
    "another label": _patched(
        f"{NS1}/theirs",
        CHANGES,
        metadata={"labels": {LABEL: "eve", "team": "a"}},
    ),
    "a label taken away": _patched(f"{NS1}/labelled", BINDS, metadata={"labels": {LABEL: None}}),
    "a user's account": Write("POST", ACCOUNTS, account("eve", "eve")),
    "an account without a label": Write("POST", ACCOUNTS, account("eve", ""), "ServiceAccounts"),
    "an account of another label": Write(
        "POST", ACCOUNTS, account("eve", "ann"), "ServiceAccounts"
    ),
    "a labelled account removed": Write("DELETE", f"{ACCOUNTS}/labelled", {}),
    "another program's account removed": Write(
        "DELETE", f"{ACCOUNTS}/theirs", {}, "ServiceAccounts"
    ),
    "the finalizer": _patched(f"{PEOPLE}/users/bob", metadata={"finalizers": [LABEL]}),
    "another finalizer": _patched(
        f"{PEOPLE}/users/bob", "the finalizer", metadata={"finalizers": ["example.com/held"]}
    ),
    "a user's role": _patched(f"{PEOPLE}/users/bob", "the finalizer", spec={"apiRoles": ["admin"]}),
    "a user's annotation": _patched(
        f"{PEOPLE}/users/bob",
        "the finalizer",
        metadata={"annotations": {"fairlead.io/force-delete": "true"}},
    ),
    "a user's status": _patched(f"{PEOPLE}/users/bob/status", status={"namespaces": ["a"]}),
    "a renamed leaf": _patched(f"{PEOPLE}/usergroups/team", spec={"quotaNames": ["root.new"]}),
    "a group's roles": _patched(
        f"{PEOPLE}/usergroups/team", "moves a group", spec={"defaultRoles": ["cluster-admin"]}
    ),
    "a group's label": _patched(
        f"{PEOPLE}/usergroups/team", "moves a group", metadata={"labels": {"team": "a"}}
    ),
    "a group's status": _patched(f"{PEOPLE}/usergroups/team/status", status={"users": 1}),
}
