"""The CustomResourceDefinitions of users and user groups, for `deploy/people.yaml`.

Specification: docs/spec/people.md#objects.

The schemas are strict: a field that they do not have is pruned, or refused where a client asks for
strict validation. A group's leaf never changes, but by a rename of the leaf, which the people
controller first writes into the status.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.wire.names import PEOPLE_GROUP, PEOPLE_VERSION, USER_GROUPS, USERS

Object = dict[str, Any]

_ID: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 63,
    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
}
_TEXT: Final = {"type": "string", "maxLength": 253}
_ROLE_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[^/%]+$"}
_AMOUNT: Final = {
    "type": "string",
    "maxLength": 32,
    "pattern": r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$",
}
"""A Kubernetes quantity that is not negative."""
_GROUPS_MAX: Final = 256
_ROLES_MAX: Final = 32
_COUNT: Final = {"type": "integer", "format": "int64"}


def people_definitions() -> list[Object]:
    return [
        _definition(
            USERS,
            "User",
            "user",
            ("fluser",),
            _user_schema(),
            (
                ("User", "string", ".spec.userName"),
                ("Roles", "string", ".spec.apiRoles"),
                ("Groups", "string", ".spec.groups"),
                ("Ready", "string", _ready("status")),
                ("Reason", "string", _ready("reason")),
            ),
        ),
        _definition(
            USER_GROUPS,
            "UserGroup",
            "usergroup",
            ("flgroup",),
            _group_schema(),
            (
                ("Group", "string", ".spec.groupName"),
                ("Leaf", "string", ".spec.quotaNames[0]"),
                ("Users", "integer", ".status.users"),
                ("Ready", "string", _ready("status")),
                ("Reason", "string", _ready("reason")),
            ),
        ),
    ]


def _ready(field: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{field}'


def _definition(
    plural: str,
    kind: str,
    singular: str,
    short: tuple[str, ...],
    schema: Object,
    columns: tuple[tuple[str, str, str], ...],
) -> Object:
    shown = (*columns, ("Age", "date", ".metadata.creationTimestamp"))
    version = {
        "name": PEOPLE_VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": name, "type": type_, "jsonPath": path} for name, type_, path in shown
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{PEOPLE_GROUP}"},
        "spec": {
            "group": PEOPLE_GROUP,
            "names": {
                "plural": plural,
                "singular": singular,
                "kind": kind,
                "listKind": f"{kind}List",
                "shortNames": list(short),
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _user_schema() -> Object:
    spec = {
        "userName": {
            "type": "string",
            "minLength": 1,
            "maxLength": 253,
            "description": "The user's name, any text.",
        },
        "userId": {
            **_ID,
            "description": "The name of this object and of the user's ServiceAccount.",
            "x-kubernetes-validations": [
                _rule("self == oldSelf", "userId may not be changed"),
                _rule("self != 'default'", "every namespace has a ServiceAccount `default`"),
            ],
        },
        "apiRoles": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "x-kubernetes-list-type": "set",
            "items": {"type": "string", "enum": ["admin", "researcher"]},
            "description": "An admin may do all that a researcher may.",
        },
        "groups": {
            "type": "array",
            "maxItems": _GROUPS_MAX,
            "x-kubernetes-list-type": "set",
            "items": _ID,
            "description": "Names of UserGroup objects.",
        },
        "externalUser": {
            "type": "object",
            "properties": {"authType": _TEXT, "uid": _TEXT, "name": _TEXT},
            "description": "The user in another system, for example an OIDC provider.",
        },
        "aliuid": {**_TEXT, "description": "Kept from an import, and not used."},
        "deletable": {
            "type": "boolean",
            "default": True,
            "description": "False: `fairlead user delete` refuses to delete the user.",
        },
        "disabled": {
            "type": "boolean",
            "default": False,
            "description": "True: the user has no binding, and no token of the user works.",
        },
    }
    return _schema(
        "A user of the cluster: a ServiceAccount of the same name, and its rights.",
        {"type": "object", "required": ["userName", "userId", "apiRoles"], "properties": spec},
        {
            "serviceAccount": {
                "type": "object",
                "properties": {"name": _TEXT, "namespace": _TEXT},
            },
            "namespaces": _list(_TEXT),
            "used": _list(
                {
                    "type": "object",
                    "properties": {
                        "leaf": {"type": "string"},
                        "resources": {
                            "type": "object",
                            "additionalProperties": {"type": "string"},
                        },
                    },
                }
            ),
            "roleBindings": _list(_bound("namespace")),
            "clusterRoleBindings": _list(_bound()),
        },
        [
            _rule(
                "self.metadata.name == self.spec.userId",
                "metadata.name and spec.userId must be equal",
            )
        ],
    )


def _group_schema() -> Object:
    spec = {
        "groupName": {
            "type": "string",
            "minLength": 1,
            "maxLength": 63,
            "pattern": "^[0-9a-zA-Z][0-9a-zA-Z-]*$",
        },
        "quotaNames": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {"type": "string", "minLength": 1, "maxLength": 1024},
            "description": "The full name of the one leaf of the quota tree that the group has.",
        },
        "defaultRoles": {
            "type": "array",
            "maxItems": _ROLES_MAX,
            "x-kubernetes-list-type": "set",
            "items": _ROLE_NAME,
            "description": "More ClusterRoles that users get in the leaf's namespaces.",
        },
        "defaultClusterRoles": {
            "type": "array",
            "maxItems": _ROLES_MAX,
            "x-kubernetes-list-type": "set",
            "items": _ROLE_NAME,
            "description": "More ClusterRoles that users get cluster-wide.",
        },
        "userCaps": {
            "type": "object",
            "maxProperties": 1024,
            "additionalProperties": {
                "type": "object",
                "maxProperties": 16,
                "additionalProperties": _AMOUNT,
            },
            "description": (
                "By user and resource: the most that the user may have admitted in the leaf; it "
                "comes before the leaf's fairlead.io/user-cap."
            ),
        },
    }
    message = "quotaNames may not be changed; rename the leaf, or make another group"
    kept = "self.spec.quotaNames == oldSelf.spec.quotaNames"
    renamed = (
        "has(oldSelf.status) && has(oldSelf.status.renamedTo) "
        "&& self.spec.quotaNames == [oldSelf.status.renamedTo]"
    )
    return _schema(
        "A group of users: it brings them the namespaces of one leaf of the quota tree.",
        {"type": "object", "required": ["groupName", "quotaNames"], "properties": spec},
        {
            "leaf": {"type": "string"},
            "namespaces": _list(_TEXT),
            "renamedTo": {"type": "string", "maxLength": 1024},
            "users": _COUNT,
        },
        [_rule(f"{kept} || ({renamed})", message)],
    )


def _schema(description: str, spec: Object, status: Object, rules: list[Object]) -> Object:
    texts = ("type", "status", "reason", "message")
    condition = {
        **{text: {"type": "string"} for text in texts},
        "observedGeneration": _COUNT,
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    }
    conditions = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type", "status"], "properties": condition},
    }
    found = {**status, "observedGeneration": _COUNT, "conditions": conditions}
    return {
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {
            "metadata": {"type": "object", "properties": {"name": _ID}},
            "spec": spec,
            "status": {"type": "object", "properties": found},
        },
        "x-kubernetes-validations": rules,
    }


def _bound(*more: str) -> Object:
    fields = ("name", *more, "roleName")
    return {"type": "object", "properties": {field: {"type": "string"} for field in fields}}


def _list(items: Object) -> Object:
    return {"type": "array", "items": items}


def _rule(rule: str, message: str) -> Object:
    return {"rule": rule, "message": message}
