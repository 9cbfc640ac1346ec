"""The status of an ElasticQuotaTree as the API server stores it, written and read.

See docs/spec/quota.md#status-of-the-tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlead.model.actions import WriteTreeStatus
from fairlead.model.moment import Moment
from fairlead.model.quota.plan import QuotaNodeUse
from fairlead.model.quota.tree import AdmittedUse, QuotaNode, QuotaTree, Violation
from fairlead.wire.kube.quantity import parse_amounts, render_amounts
from fairlead.wire.kube.time import render_time
from fairlead.wire.quota.plan_json import render_node_use

VALID: Final = "Valid"
ENFORCED: Final = "Enforced"
TREE_INVALID: Final = "TreeInvalid"
MOST_BYTES: Final = 400_000
"""Bytes of all rows together: etcd accepts 1.5 MiB, and the tree itself is in the same object."""

MOST_CAPS_BYTES: Final = 100_000
"""Bytes of all caps of users together: more than a thousand rows."""
MOST_USE_BYTES: Final = 200_000
"""Bytes of what users use together: more than two thousand rows."""

Object = dict[str, Any]


def render_tree_status(action: WriteTreeStatus) -> Object:
    """The status.

    Columns of `kubectl get` show `leaves` and `waiting` (pods). A condition keeps the time of its
    last change. For a large tree only the first rows are written; the rest is counted.
    """
    tree = action.tree
    root, leaves = tree.root, {leaf.name for leaf in tree.root.leaves()} if tree.root else set()
    rows = _that_fit([render_node_use(use) for use in action.nodes])
    left_out = len(action.nodes) - len(rows)
    errors = [each for each in action.violations if each.is_error]
    return {
        "observedGeneration": tree.generation,
        "conditions": [
            _condition(tree, action.at, VALID, *_valid(errors, action.violations)),
            _condition(
                tree,
                action.at,
                ENFORCED,
                not action.not_enforced,
                "NotEnforced" if action.not_enforced else "Enforced",
                action.not_enforced,
            ),
        ],
        "leaves": sum(1 for _ in root.leaves()) if root else 0,
        "waiting": sum(use.waiting_pods for use in action.nodes if use.name in leaves),
        **({"nodesLeftOut": left_out} if left_out else {}),
        "userCaps": _user_caps(root),
        "userUse": _user_use(action.users),
        "nodes": rows,
    }


def parse_node_uses(status: Mapping[str, Any]) -> tuple[QuotaNodeUse, ...]:
    """What each node uses, from the tree's status, in its order. A row has the fields that
    `render_node_use` writes; what is malformed is left out: the controller wrote none of it.
    """
    found = []
    rows = status.get("nodes")
    for row in rows if isinstance(rows, list) else []:
        try:
            found.append(_parse_node_use(row))
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError):
            continue
    return tuple(found)


def _parse_node_use(row: Object) -> QuotaNodeUse:
    waiting = row.get("waiting") or {}
    return QuotaNodeUse(
        str(row["name"]),
        tuple(map(str, row.get("namespaces") or ())),
        tuple(map(str, row.get("children") or ())),
        used=parse_amounts(row["used"]),
        request=parse_amounts(row.get("request")),
        guaranteed=parse_amounts(row.get("guaranteed")),
        borrowed=parse_amounts(row.get("borrowed")),
        claimed=parse_amounts(row.get("claimed")),
        lost=parse_amounts(row.get("lost")),
        firm_used=parse_amounts(row.get("nonPreemptibleUsed")),
        firm_request=parse_amounts(row.get("nonPreemptibleRequest")),
        waiting_units=int(waiting.get("units", 0)),
        waiting_pods=int(waiting.get("pods", 0)),
        counted_min=parse_amounts(row.get("countedMin")),
        over_max=parse_amounts(row.get("overMax")),
    )


def _user_caps(root: QuotaNode | None) -> list[Object]:
    """The caps of user groups that are enforced, for readers that do not follow groups."""
    rows = [
        {"leaf": leaf.name, "user": user, "resources": render_amounts(caps)}
        for leaf in (root.leaves() if root is not None else ())
        for user, caps in sorted(leaf.user_caps.items())
    ]
    return _that_fit(rows, MOST_CAPS_BYTES)


def _user_use(users: Sequence[AdmittedUse]) -> list[Object]:
    rows = [
        {"leaf": use.leaf, "user": use.user, "used": render_amounts(use.used)}
        for use in sorted(users, key=lambda each: (each.leaf, each.user))
    ]
    return _that_fit(rows, MOST_USE_BYTES)


def _that_fit(rows: Sequence[Object], left: int = MOST_BYTES) -> list[Object]:
    """The first rows, as many as fit into `left` bytes of the object."""
    fitting: list[Object] = []
    for row in rows:
        left -= len(msgspec.json.encode(row)) + 1
        if left < 0:
            break
        fitting.append(row)
    return fitting


def _valid(errors: Sequence[Violation], violations: Sequence[Violation]) -> tuple[bool, str, str]:
    """Whether the tree is valid, a reason, and a sentence.

    The sentence has the first violation and the number of others.
    """
    stopping = [each for each in errors if each.stops]
    first = (stopping or errors or violations)[:1]
    more = f" (and {len(errors or violations) - 1} more)" if len(errors or violations) > 1 else ""
    message = f"{first[0].message}{more}" if first else ""
    if stopping:
        return False, TREE_INVALID, message
    if errors:
        return False, errors[0].code, message
    return True, "TreeValid", message


def _condition(
    tree: QuotaTree, at: Moment, kind: str, is_true: bool, reason: str, message: str
) -> Object:
    status = "True" if is_true else "False"
    old = _old_condition(tree, kind)
    since = old.get("lastTransitionTime") if old.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": tree.generation,
        "lastTransitionTime": since if isinstance(since, str) else render_time(at),
    }


def _old_condition(tree: QuotaTree, kind: str) -> Object:
    """The condition in the present status, which may hold anything."""
    found = tree.status.get("conditions")
    rows = found if isinstance(found, list) else []
    return next((each for each in rows if isinstance(each, dict) and each.get("type") == kind), {})
