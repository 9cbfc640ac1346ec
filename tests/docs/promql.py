"""Finds the labels of a PromQL expression, and metrics or labels in it that no page prints. Uses a
PromQL parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import promql_parser as promql

TARGET_LABELS = frozenset(
    {"job", "instance", "namespace", "pod", "container", "service", "endpoint", "cluster"}
)
"""Labels that service discovery sets on targets; with `honorLabels: false` a page's own label of
such a name becomes `exported_…`.
"""
OWN = {"ALERTS": frozenset({"alertname", "alertstate", "severity"})}
"""Series of Prometheus itself, which may have any other label as well."""
OF_INSTANCES = frozenset({"mig_gi_id", "mig_profile"})
"""Labels of MIG instances. A join may name them even where one side has whole cards without these
labels; it then matches whole cards.
"""
Labels = frozenset[str]


class Unknown(AssertionError):
    """A metric or a label that is not in the reference."""


def parse(text: str) -> promql.Expr:
    """Replaces Grafana's variables first. Raises ValueError if the text is no PromQL."""
    text = re.sub(r"\$__\w+|\$\{__\w+\}", "5m", text)
    return promql.parse(re.sub(r"\$\{?\w+(?::\w+)?\}?", "x", text))


def labels_of(node: promql.Expr, known: Mapping[str, Labels]) -> Labels:
    """The labels that the expression's series may have. `known`: labels by metric.
    Raises Unknown.
    """
    match node:
        case promql.VectorSelector():
            return _of_selector(node, known)
        case promql.MatrixSelector():
            return labels_of(node.vector_selector, known)
        case promql.AggregateExpr():
            return _of_aggregate(node, known)
        case promql.BinaryExpr():
            return _of_binary(node, known)
        case promql.Call():
            return _of_call(node, known)
        case promql.NumberLiteral() | promql.StringLiteral():
            return frozenset()
        case _:
            return labels_of(node.expr, known)


def metrics_of(node: promql.Expr) -> Iterator[str]:
    """Names of the metrics that the expression reads, except those that only a pattern selects."""
    match node:
        case promql.VectorSelector():
            yield from [node.name] if node.name else []
        case promql.MatrixSelector():
            yield from metrics_of(node.vector_selector)
        case promql.BinaryExpr():
            yield from metrics_of(node.lhs)
            yield from metrics_of(node.rhs)
        case promql.Call():
            for each in node.args:
                yield from metrics_of(each)
        case promql.NumberLiteral() | promql.StringLiteral():
            pass
        case _:
            yield from metrics_of(node.expr)


def _of_selector(node: promql.VectorSelector, known: Mapping[str, Labels]) -> Labels:
    matchers = {each.name: each for each in node.matchers.matchers}
    pattern = matchers.pop("__name__", None)
    names = (
        [node.name]
        if node.name
        else [name for name in known if pattern is not None and re.fullmatch(pattern.value, name)]
    )
    own = frozenset().union(*(known[name] for name in names if name in known))
    if not names or not all(name in known or name in OWN for name in names):
        raise Unknown(f"no page has `{node.name or (pattern and pattern.value)}`")
    if any(name in OWN for name in names):
        return frozenset().union(*known.values(), *OWN.values())
    exported = frozenset(f"exported_{label}" for label in own & TARGET_LABELS)
    _expect(
        matchers, own | exported | TARGET_LABELS, f"`{node.name or (pattern and pattern.value)}`"
    )
    return own | exported | TARGET_LABELS


def _of_aggregate(node: promql.AggregateExpr, known: Mapping[str, Labels]) -> Labels:
    there = labels_of(node.expr, known)
    if node.modifier is None:
        return frozenset()
    named = frozenset(node.modifier.labels)
    _expect(named, there, str(node.op))
    return named if node.modifier.type == promql.AggModifierType.By else there - named


def _of_binary(node: promql.BinaryExpr, known: Mapping[str, Labels]) -> Labels:
    left, right = labels_of(node.lhs, known), labels_of(node.rhs, known)
    modifier = node.modifier
    taken = frozenset(modifier.group_labels or ()) if modifier else frozenset[str]()
    if modifier and modifier.matching:
        _expect(modifier.matching.labels, left | (right & OF_INSTANCES), f"the left of `{node.op}`")
        _expect(
            modifier.matching.labels, right | (left & OF_INSTANCES), f"the right of `{node.op}`"
        )
    if str(node.op) == "or":
        return left | right
    is_of_right = modifier is not None and modifier.card == promql.VectorMatchCardinality.OneToMany
    _expect(taken, left if is_of_right else right, f"the one side of `{node.op}`")
    return (right or left if is_of_right else left or right) | taken


def _of_call(node: promql.Call, known: Mapping[str, Labels]) -> Labels:
    found = frozenset().union(*(labels_of(each, known) for each in node.args))
    texts = [each.val for each in node.args if isinstance(each, promql.StringLiteral)]
    if node.func.name == "label_replace":
        _expect([texts[2]], found, "label_replace")
    return (
        found | frozenset(texts[:1]) if node.func.name in ("label_replace", "label_join") else found
    )


def _expect(named: object, there: Labels, where: str) -> None:
    missing = sorted(frozenset(named) - there)  # type: ignore[call-overload]
    if missing:
        raise Unknown(f"{where} has no label `{'`, `'.join(missing)}`")
