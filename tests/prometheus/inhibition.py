"""What Alertmanager would tell people: of alerts that fire, those that no other holds back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from tests.prometheus.promtool import RULES

Alert = Mapping[str, str]
"""Its labels, `alertname` among them."""
INHIBIT: list[dict[str, Any]] = yaml.safe_load(
    (RULES.parent / "alertmanager-inhibition.yaml").read_text(encoding="utf-8")
)["inhibit_rules"]


def told(firing: Iterable[Alert]) -> list[Alert]:
    """As Alertmanager has it: what is held back itself holds back, too, and a label that both lack
    is equal.
    """
    alerts = list(firing)
    return [
        each
        for each in alerts
        if not any(_holds_back(rule, source, each) for rule in INHIBIT for source in alerts)
    ]


def _holds_back(rule: Mapping[str, Any], source: Alert, target: Alert) -> bool:
    return (
        source is not target
        and _is_of(rule["source_matchers"], source)
        and _is_of(rule["target_matchers"], target)
        and all(source.get(label, "") == target.get(label, "") for label in rule["equal"])
    )


def _is_of(matchers: Iterable[str], alert: Alert) -> bool:
    return all(re.fullmatch(_pattern(matcher), alert["alertname"]) for matcher in matchers)


def _pattern(matcher: str) -> str:
    found = re.fullmatch(r'alertname=~"(.+)"', matcher)
    assert found, matcher
    return found[1]
