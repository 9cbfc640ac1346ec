"""Whether a place suits a pod by label: node selectors, affinity and anti-affinity. Pure.

Affinity to pods is about topology: "beside" means a node with the same value of the term's
`topologyKey`. A term's namespaceSelector sees of a namespace only its name
(`kubernetes.io/metadata.name`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead_sim.scheduler.needs import selects
from fairlead_sim.scheduler.topology_spread import Spread, constraints
from fairlead_sim.scheduler.topology_spread import refusal as spread_refusal
from fairlead_sim.schema import selector as kube_selector

Object = dict[str, Any]
Labels = Mapping[str, str]
Placed = tuple[Object, Labels]
"""A pod that has its node, and the labels of that node."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_POD_KINDS = ("podAffinity", "podAntiAffinity")
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _terms(spec: Object, kind: str, strength: str) -> Any:
    return ((spec.get("affinity") or {}).get(kind) or {}).get(strength) or ()


# --- nodes ----------------------------------------------------------------------------------------


def suits_node(spec: Object, name: str, labels: Labels) -> bool:
    """Whether nodeSelector and required node affinity allow the node: one term of several must
    hold, an empty one never does.
    """
    if not selects(spec.get("nodeSelector") or {}, labels):
        return False
    required = _terms(spec, "nodeAffinity", _REQUIRED)
    return not required or any(
        _term_holds(term, name, labels) for term in required.get("nodeSelectorTerms") or ()
    )


def has_preferences(spec: Object) -> bool:
    return any(_terms(spec, kind, _PREFERRED) for kind in ("nodeAffinity", *_POD_KINDS)) or bool(
        constraints(spec, is_hard=False)
    )


def preference(spec: Object, name: str, labels: Labels) -> int:
    """The weights of the preferred terms that hold, added."""
    terms = _terms(spec, "nodeAffinity", _PREFERRED)
    return sum(term["weight"] for term in terms if _term_holds(term["preference"], name, labels))


def _term_holds(term: Object, name: str, labels: Labels) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    own = {"metadata.name": name}
    return all(_holds(item, labels) for item in expressions) and all(
        _holds(item, own) for item in fields
    )


def _holds(expression: Object, labels: Labels) -> bool:
    """
    >>> words = ("In", "NotIn", "Gt", "Lt")
    >>> asked = [{"key": "gpus", "operator": word, "values": ["4"]} for word in words]
    >>> [_holds(each, {"gpus": "8"}) for each in asked]
    [False, True, True, False]
    """
    held, operator, values = (
        labels.get(expression["key"]),
        expression["operator"],
        expression.get("values") or (),
    )
    if operator in ("In", "NotIn"):
        return bool((held in values) == (operator == "In"))
    if operator in ("Exists", "DoesNotExist"):
        return bool((held is not None) == (operator == "Exists"))
    if held is None or not re.fullmatch(r"-?\d+", held):
        return False
    bound = int(next(iter(values)))
    return int(held) > bound if operator == "Gt" else int(held) < bound


# --- other pods -----------------------------------------------------------------------------------


def keeps_others_away(spec: Object) -> bool:
    return bool(_terms(spec, "podAntiAffinity", _REQUIRED))


def has_pod_affinity(spec: Object) -> bool:
    return bool(
        keeps_others_away(spec)
        or _terms(spec, "podAffinity", _REQUIRED)
        or spec.get("topologySpreadConstraints")
    )


def prefers_others(spec: Object) -> bool:
    return any(_terms(spec, kind, _PREFERRED) for kind in _POD_KINDS)


def leanings(pod: Object, placed: Iterable[Placed]) -> dict[tuple[str, str], int]:
    """How much the pod would like to stand in a domain (key and value of a topology), for the sake
    of those who stand there.
    """
    wished = [
        (
            sign * item["weight"],
            item["podAffinityTerm"]["topologyKey"],
            _chooser(item["podAffinityTerm"], pod),
        )
        for kind, sign in zip(_POD_KINDS, (1, -1), strict=True)
        for item in _terms(pod["spec"], kind, _PREFERRED)
    ]
    found: dict[tuple[str, str], int] = {}
    for other, labels in placed:
        for weight, key, chooses in wished:
            if key in labels and chooses(other):
                found[key, labels[key]] = found.get((key, labels[key]), 0) + weight
    return found


@dataclass(frozen=True, slots=True)
class AllowedTopologies:
    """Where one waiting pod may stand for the sake of others: pairs of topology key and value."""

    near: Collection[tuple[str, frozenset[str]]] = ()
    far: frozenset[tuple[str, str]] = frozenset()
    barred: frozenset[tuple[str, str]] = frozenset()
    """What pods that already stand keep free for themselves."""
    spreads: Sequence[Spread] = ()
    leanings: Mapping[tuple[str, str], int] = field(default_factory=dict)
    evenness: Sequence[Spread] = ()
    """Spread constraints that are only wishes."""

    def refusal(self, labels: Labels) -> tuple[str, bool]:
        """Why a node with these labels is out, and whether that is final (no preemption helps); ""
        when it is not.
        """
        if self.spreads and (uneven := spread_refusal(self.spreads, labels))[0]:
            return uneven
        if any(
            key not in labels or (values and labels[key] not in values) for key, values in self.near
        ):
            return "node(s) didn't match pod affinity rules", True
        if any(labels.get(key) == value for key, value in self.far):
            return "node(s) didn't match pod anti-affinity rules", False
        if any(labels.get(key) == value for key, value in self.barred):
            return "node(s) didn't satisfy existing pods anti-affinity rules", False
        return "", False

    def liking(self, labels: Labels) -> tuple[int, int]:
        """Sort key, smaller is better.

        First the weight of preferred pod affinity, then the skew of topology spread.
        """
        wished = sum(
            weight for (key, value), weight in self.leanings.items() if labels.get(key) == value
        )
        return -wished, sum(spread.skew(labels) for spread in self.evenness if spread.key in labels)


NO_NEIGHBOURS = AllowedTopologies()
_NOWHERE = frozenset(("",))


def neighbourhood(pod: Object, placed: Iterable[Placed]) -> AllowedTopologies:
    """What the placed pods mean for `pod`.

    `placed` may be only the pods that keep others away, if the pod itself has no affinity.
    """
    near, far = (_compiled(pod, kind) for kind in ("podAffinity", "podAntiAffinity"))
    beside: list[set[str]] = [set() for _ in near]
    avoided: set[tuple[str, str]] = set()
    barred: set[tuple[str, str]] = set()
    for other, labels in placed:
        if near and all(chooses(other) for _, chooses in near):
            for values, (key, _) in zip(beside, near, strict=True):
                values |= {labels[key]} if key in labels else set()
        avoided |= {(key, labels[key]) for key, chooses in far if key in labels and chooses(other)}
        if keeps_others_away(other["spec"]):
            barred |= {
                (key, labels[key])
                for key, chooses in _compiled(other, "podAntiAffinity")
                if key in labels and chooses(pod)
            }
    is_first = not any(beside) and all(chooses(pod) for _, chooses in near)
    wanted = [frozenset(values) or (frozenset() if is_first else _NOWHERE) for values in beside]
    return AllowedTopologies(
        [(key, values) for (key, _), values in zip(near, wanted, strict=True)],
        frozenset(avoided),
        frozenset(barred),
    )


def _compiled(owner: Object, kind: str) -> list[tuple[str, Callable[[Object], bool]]]:
    """The owner's required terms: the topology key, and whether the term is about a given pod."""
    return [
        (term["topologyKey"], _chooser(term, owner))
        for term in _terms(owner["spec"], kind, _REQUIRED)
    ]


def _chooser(term: Object, owner: Object) -> Callable[[Object], bool]:
    names, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    by_labels = kube_selector.selects(term.get("labelSelector"))
    if not names and selector is None:
        names = (owner["metadata"]["namespace"],)
    by_namespace = kube_selector.selects(selector)

    def chooses(other: Object) -> bool:
        namespace = other["metadata"]["namespace"]
        labels = {"kubernetes.io/metadata.name": namespace}
        return by_labels(other) and (
            namespace in names or by_namespace({"metadata": {"labels": labels}})
        )

    return chooses
