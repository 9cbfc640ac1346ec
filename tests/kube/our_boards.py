"""Fairlead's boards as Grafana queries them: variables filled in, each panel's queries.

Grafana fills in a variable of several values in PromQL in this way: the chosen values, with special
characters of a regular expression behind two backslashes, joined in brackets. "All" is the
variable's own value for it where it has one, otherwise every value of its list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.kube.prometheus import Prometheus

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "grafana"
RATE_INTERVAL = "1m"
"""`$__rate_interval` at a scrape every 15 s: four of them."""
RANGE = "3h"
"""`$__range` of a board when it opens."""
_SPECIAL = re.compile(r"[$^*{}\[\]'+?.()|]")


class Asked(NamedTuple):
    """One query of a panel, as its board has it."""

    board: str
    panel: str
    letter: str
    kind: str
    expression: str
    legend: str

    @property
    def name(self) -> str:
        return f"{self.board} / {self.panel} / {self.letter}"


def boards() -> dict[str, dict[str, Any]]:
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(FOLDER.glob("*.json"))
    }


def asked_of(uid: str) -> Iterator[Asked]:
    for panel in boards()[uid]["panels"]:
        for target in panel.get("targets", ()):
            yield Asked(
                uid,
                panel["title"],
                target["refId"],
                panel["type"],
                target["expr"],
                target["legendFormat"],
            )


def pattern(values: list[str]) -> str:
    found = [
        _SPECIAL.sub(lambda special: "\\\\" + special.group(), value.replace("\\", "\\\\\\\\"))
        for value in values
    ]
    return found[0] if len(found) == 1 else f"({'|'.join(found)})"


def fill_in(expression: str, chosen: Mapping[str, str]) -> str:
    """The expression with values for its variables. Without a chosen cluster, `$cluster` is empty,
    as in a Prometheus of one cluster.
    """
    return re.sub(
        r"\$(\w+)",
        lambda found: {"cluster": "", **chosen, "__rate_interval": RATE_INTERVAL, "__range": RANGE}[
            found.group(1)
        ],
        expression,
    )


def choose(
    prometheus: Prometheus,
    uid: str,
    reported: Mapping[str, str] | None = None,
    *,
    only_one: bool = False,
) -> dict[str, str]:
    """The value of each variable of a board: the value in `told`, the first of its values with
    `only_one`, otherwise All.
    """
    chosen: dict[str, str] = {}
    for variable in boards()[uid]["templating"]["list"]:
        if variable["type"] != "query":
            continue
        name = variable["name"]
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert asked, variable["query"]
        values = prometheus.label_values(fill_in(asked.group(1), chosen), asked.group(2))
        if not variable["includeAll"]:
            chosen[name] = values[0] if values else ""
            continue
        assert values, f"{uid}: nothing can be chosen for `{name}`"
        if reported and name in reported:
            assert reported[name] in values
            chosen[name] = pattern([reported[name]])
        elif only_one:
            chosen[name] = pattern(values[:1])
        else:
            chosen[name] = variable.get("allValue") or pattern(values)
    return chosen


def legend_of(legend: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found.group(1), ""), legend)
