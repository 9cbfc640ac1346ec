"""Whether labels and taints allow a pod on a node.

Like kube-scheduler's filters NodeAffinity, TaintToleration and NodeUnschedulable. It does not check
whether the pod fits: cpu, memory, ports, other pods and volumes are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fairlead.model.node import Node, Taint
from fairlead.model.node_choice import Expression, NodeChoice, Term, Toleration

CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_WHOLE = re.compile(r"-?\d{1,18}\Z", re.ASCII)


def may_use(choice: NodeChoice, node: Node) -> bool:
    """Whether selector, required affinity and tolerations allow the node.

    A cordoned node has kube-scheduler's taint for it; PreferNoSchedule forbids nothing.
    """
    return may_use_labelled(
        choice,
        node.name,
        node.labels,
        (*node.taints, CORDONED) if node.unschedulable else node.taints,
    )


def may_use_labelled(
    choice: NodeChoice, name: str, labels: Mapping[str, str], taints: Iterable[Taint]
) -> bool:
    """The same for a node of which only these are known."""
    if any(labels.get(key) != value for key, value in choice.selector):
        return False
    if choice.terms is not None and not any(_holds(term, name, labels) for term in choice.terms):
        return False
    return all(
        taint.effect == "PreferNoSchedule" or _is_tolerated(taint, choice) for taint in taints
    )


def _holds(term: Term, name: str, labels: Mapping[str, str]) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(holds_for(each, labels) for each in term.labels) and all(
        holds_for(each, {"metadata.name": name}) for each in term.fields
    )


def holds_for(asked: Expression, held: Mapping[str, str]) -> bool:
    """Whether the expression is true for these labels, or fields.

    An unknown operator counts as Lt.

    >>> operators = ("In", "NotIn", "Exists", "Gt", "Lt")
    >>> [holds_for(Expression("gpus", operator, ("4",)), {"gpus": "8"}) for operator in operators]
    [False, True, True, True, False]
    """
    value = held.get(asked.key)
    match asked.operator:
        case "In":
            return value in asked.values
        case "NotIn":
            return value not in asked.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    bound = asked.values[0] if asked.values else ""
    if value is None or not _WHOLE.match(value) or not _WHOLE.match(bound):
        return False
    return int(value) > int(bound) if asked.operator == "Gt" else int(value) < int(bound)


def _is_tolerated(taint: Taint, choice: NodeChoice) -> bool:
    return any(_tolerates(each, taint) for each in choice.tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or (
        toleration.key and toleration.key != taint.key
    ):
        return False
    if toleration.operator == "Exists":
        return True
    return (
        toleration.operator in ("", "Equal")
        and bool(toleration.key)
        and toleration.value == taint.value
    )
