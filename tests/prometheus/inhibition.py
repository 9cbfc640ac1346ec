"""The alerts that Alertmanager would send: those that fire, without those that another one
inhibits.
"""

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


def not_inhibited(firing: Iterable[Alert]) -> list[Alert]:
    """The alerts that are sent. As in Alertmanager, an inhibited alert still inhibits others, and a
    label that both lack counts as equal.
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
