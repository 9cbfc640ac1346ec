"""The CustomResourceDefinition of the ElasticQuotaTree.

For `deploy/quota-crd.yaml`, and for the simulated cluster. Specification:
docs/spec/quota.md#the-elasticquotatree-object.

A schema cannot refer to itself, so six levels are typed and deeper levels accept anything. The
validation rules cover on the upper levels what the API server can check in bounded time;
`rules/quota/validate` checks everything.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.wire.names import QUOTA_GROUP, QUOTA_PLURAL, QUOTA_TREE_NAME, QUOTA_VERSION

TYPED_LEVELS: Final = 6

Object = dict[str, Any]

_CHILDREN_MAX: Final = 1000
_RESOURCES_MAX: Final = 16
_NAME_MAX: Final = 1024
_QUANTITY_MAX: Final = 60
_ANYTHING: Final = {"x-kubernetes-preserve-unknown-fields": True}
_APPROVED: Final = "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"
_QUANTITY: Final = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
    "maxLength": _QUANTITY_MAX,
}
_UNLIMITED: Final = "string({0}).matches('^[+]?0*2147483647([^0-9.].*)?$')"
_AT_MOST: Final = "quantity(string({0})).compareTo(quantity(string({1}))) <= 0"
_WORDS: Final = {"type": "array", "items": {"type": "string"}}
_COLUMNS: Final = (
    ("Valid", "string", '.status.conditions[?(@.type=="Valid")].status'),
    ("Leaves", "integer", ".status.leaves"),
    ("Waiting", "integer", ".status.waiting"),
    ("Age", "date", ".metadata.creationTimestamp"),
)


def quota_tree_definition() -> Object:
    version = {
        "name": QUOTA_VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _schema()},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": name, "type": type_, "jsonPath": path} for name, type_, path in _COLUMNS
        ],
    }
    names = {
        "plural": QUOTA_PLURAL,
        "singular": "elasticquotatree",
        "kind": "ElasticQuotaTree",
        "listKind": "ElasticQuotaTreeList",
        "shortNames": ["eqtree", "eqtrees"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{QUOTA_PLURAL}.{QUOTA_GROUP}",
            "annotations": {"api-approved.kubernetes.io": _APPROVED},
        },
        "spec": {
            "group": QUOTA_GROUP,
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _schema() -> Object:
    message = f"the one tree of a cluster is kube-system/{QUOTA_TREE_NAME}"
    return {
        "type": "object",
        "description": (
            "The quota tree of the cluster: what every group of namespaces is guaranteed, and "
            "what it may use at most."
        ),
        "required": ["spec"],
        "properties": {
            "spec": {"type": "object", "required": ["root"], "properties": {"root": _node(1)}},
            "status": _status(),
        },
        "x-kubernetes-validations": [
            {"rule": f"self.metadata.name == '{QUOTA_TREE_NAME}'", "message": message}
        ],
    }


def _node(level: int) -> Object:
    if level > TYPED_LEVELS:
        return {"type": "object", **_ANYTHING}
    bounds = {"type": "object", "maxProperties": _RESOURCES_MAX, "additionalProperties": _QUANTITY}
    spaces = "Of a leaf: the namespaces that it serves."
    name = "One name, not used anywhere else in the tree."
    at_most = (
        "What it may use at most. A resource that is not named, or is 2147483647, is unlimited."
    )
    children = {
        "type": "array",
        "items": _node(level + 1),
        **({"maxItems": _CHILDREN_MAX} if level == 1 else {}),
    }
    return {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": _NAME_MAX, "description": name},
            "min": {**bounds, "description": "What the node is guaranteed."},
            "max": {**bounds, "description": at_most},
            "namespaces": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "description": spaces,
            },
            "attributes": {"type": "object", "additionalProperties": {"type": "string"}},
            "children": children,
            "resourceflavors": _ANYTHING,
        },
        **({"x-kubernetes-validations": _rules(level)} if level <= 2 else {}),
    }  # fmt: skip


def _rules(level: int) -> list[Object]:
    own = f"r in self.max && !{_UNLIMITED.format('self.max[r]')}"
    at_most = _AT_MOST.format("self.min[r]", "self.max[r]")
    numbers = (
        "'min of ' + r + ' is ' + string(self.min[r]) + ', more than its own max ' + "
        "string(self.max[r])"
    )
    rules = [
        _rule(
            (
                "!has(self.children) || !has(self.namespaces) || size(self.children) == 0 || "
                "size(self.namespaces) == 0"
            ),
            "has children and namespaces; only a leaf has namespaces",
        ),
        _rule(
            f"!has(self.min) || !has(self.max) || self.min.all(r, !({own}) || {at_most})",
            "min is more than max",
            f"self.name + ': ' + self.min.filter(r, {own} && !({at_most})).map(r, {numbers})[0]",
        ),
    ]
    if level == 1:
        rules += _root_rules()
    else:
        message = "min is unlimited; only the root's may be"
        unlimited = _UNLIMITED.format("self.min[r]")
        named = (
            f"self.name + ': min of ' + self.min.filter(r, {unlimited})[0] + ' is unlimited; only "
            "the root\\'s may be'"
        )
        rules.append(_rule(f"!has(self.min) || self.min.all(r, !{unlimited})", message, named))
    return rules


def _root_rules() -> list[Object]:
    both = f"{_UNLIMITED.format('self.min[r]')} && {_UNLIMITED.format('self.max[r]')}"
    same = "quantity(string(self.min[r])).compareTo(quantity(string(self.max[r]))) == 0"
    job_count = "r == 'kube-queue/max-jobs'"
    equal = (
        "(!has(self.min) || self.min.size() == 0) == (!has(self.max) || self.max.size() == 0) "
        "&& (!has(self.min) || !has(self.max) || "
        f"(self.min.all(r, r in self.max && (({both}) || {same})) && self.max.all(r, r in "
        f"self.min || {job_count})))"
    )
    is_free = f"{_UNLIMITED.format('self.max[r]')} || {_UNLIMITED.format('c.max[r]')}"
    ceiling = f"!(r in self.max) || {is_free} || {_AT_MOST.format('c.max[r]', 'self.max[r]')}"
    named = (
        "self.children.all(c, (!has(c.min) || c.min.all(r, r in self.min)) && (!has(c.max) "
        f"|| c.max.all(r, r in self.max || {job_count})))"
    )
    return [
        _rule(equal, "min and max differ; they must be equal at the root"),
        _rule(
            (
                "!has(self.children) || !has(self.max) || self.children.all(c, !has(c.max) || "
                f"c.max.all(r, {ceiling}))"
            ),
            "max of a child is more than its own max",
            (
                f"self.children.filter(c, has(c.max) && !c.max.all(r, {ceiling}))[0].name + ': "
                "max is more than the max of ' + self.name"
            ),
        ),
        _rule(
            f"!has(self.children) || (has(self.min) && has(self.max) ? {named} : true)",
            "a child names a resource that the root does not",
        ),
    ]


def _rule(rule: str, message: str, sentence: str = "") -> Object:
    """`sentence`: a CEL expression for a more exact message than the node's name with `message`."""
    quoted = message.replace("'", "\\'")
    return {
        "rule": rule,
        "message": message,
        "messageExpression": sentence or f"self.name + ': {quoted}'",
    }


def _status() -> Object:
    amounts = {"type": "object", "additionalProperties": {"type": "string"}}
    firm = "nonPreemptibleUsed", "nonPreemptibleRequest"
    lists = (
        "used",
        "request",
        "guaranteed",
        "borrowed",
        "claimed",
        "lost",
        *firm,
        "countedMin",
        "overMax",
    )
    waiting = {
        "type": "object",
        "properties": {"units": {"type": "integer"}, "pods": {"type": "integer"}},
    }
    node = {
        "name": {"type": "string"},
        "namespaces": _WORDS,
        "children": _WORDS,
        "waiting": waiting,
        **dict.fromkeys(lists, amounts),
    }
    texts = ("type", "status", "reason", "message")
    condition = {
        **{text: {"type": "string"} for text in texts},
        "observedGeneration": {"type": "integer"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    }
    return {
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer"},
            "conditions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type", "status"],
                    "properties": condition,
                },
            },
            "leaves": {"type": "integer"},
            "waiting": {"type": "integer", "description": "Pods that wait for quota."},
            "nodesLeftOut": {
                "type": "integer",
                "description": (
                    "The number of nodes without a row, which did not fit into the object."
                ),
            },
            "userCaps": {
                "type": "array",
                "description": "The caps of user groups that are enforced.",
                "items": {
                    "type": "object",
                    "properties": {
                        "leaf": {"type": "string"},
                        "user": {"type": "string"},
                        "resources": amounts,
                    },
                },
            },
            "userUse": {
                "type": "array",
                "description": "What each user has admitted in each leaf.",
                "items": {
                    "type": "object",
                    "properties": {
                        "leaf": {"type": "string"},
                        "user": {"type": "string"},
                        "used": amounts,
                    },
                },
            },
            "nodes": {"type": "array", "items": {"type": "object", "properties": node}},
        },
    }
