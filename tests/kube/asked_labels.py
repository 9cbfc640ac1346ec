"""The labels that Fairlead's boards, rules and autoscaling query.

They are read from the shipped files by Prometheus's own parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from tests.kube.deployed import DEPLOY
from tests.kube.our_boards import asked_of, boards, fill_in
from tests.kube.prometheus import Prometheus

_RULES = DEPLOY / "prometheus" / "fairlead.rules.yaml"
_ADAPTER = DEPLOY / "autoscaling" / "adapter-rules.yaml"


class Question(NamedTuple):
    """An expression of a shipped file, and the labels of its result that the file shows."""

    name: str
    expression: str
    shown: frozenset[str] = frozenset()


def questions() -> Iterator[Question]:
    """All expressions of the shipped files; a variable of a board matches everything."""
    yield from of_boards()
    yield from of_rules()
    yield from of_adapter()


def of_boards() -> Iterator[Question]:
    for uid, board in boards().items():
        chosen = {variable["name"]: ".*" for variable in board["templating"]["list"]}
        for query in asked_of(uid):
            yield Question(
                query.name,
                fill_in(query.expression, chosen),
                frozenset(re.findall(r"\{\{\s*(\w+)\s*\}\}", query.legend)),
            )
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
                assert asked, variable["query"]
                yield Question(
                    f"{uid} / ${variable['name']}",
                    fill_in(asked.group(1), chosen),
                    frozenset({asked.group(2)}),
                )


def of_rules() -> Iterator[Question]:
    for group in yaml.safe_load(_RULES.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            annotations = " ".join(rule.get("annotations", {}).values())
            yield Question(
                rule.get("alert") or rule["record"],
                rule["expr"],
                frozenset(re.findall(r"\$labels\.(\w+)", annotations)),
            )


def of_adapter() -> Iterator[Question]:
    for number, rule in enumerate(yaml.safe_load(_ADAPTER.read_text(encoding="utf-8"))["rules"], 1):
        yield Question(
            f"adapter rule {number}",
            rule["seriesQuery"],
            frozenset(rule["resources"]["overrides"]),
        )


def labels_of(prometheus: Prometheus, question: Question) -> set[str]:
    """All labels that the expression selects by, groups by, joins on or shows."""
    return {*question.shown, *_labels(prometheus.parsed(question.expression))} - {"__name__"}


def _labels(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _labels(each)
    elif isinstance(node, dict):
        yield from (matcher["name"] for matcher in node.get("matchers") or ())
        yield from node.get("grouping") or ()
        matching = node.get("matching") or {}
        yield from (*(matching.get("labels") or ()), *(matching.get("include") or ()))
        for name, each in node.items():
            if name not in ("matchers", "grouping", "matching"):
                yield from _labels(each)
