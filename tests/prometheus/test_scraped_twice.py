"""Where an exporter is scraped twice (by a job of Fairlead's, and by one that follows annotations
of pods), nothing is counted twice.

Every expression of the boards is evaluated on a scenario's own pages, once unchanged and once with
each series twice, as another job would store it. Lines may be drawn double; no number may change,
and no query may fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from tests.docs.promql import metrics_of, parse
from tests.prometheus.promtool import Asked, Question, wrong_answers
from tests.prometheus.recorded import STEP_SECONDS, recorded

BOARDS = sorted((Path(__file__).resolve().parents[2] / "deploy" / "grafana").glob("*.json"))
MINUTES = 45
"""By then `telemetry` has had an XID, a lost card and a hang."""


def expressions() -> Iterable[str]:
    """The expressions of all boards, with everything chosen, in a Prometheus of one cluster."""
    filled = {"$__rate_interval": "5m", "$__range": "30m", "$cluster": ""}
    for board in BOARDS:
        for panel in json.loads(board.read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", ()):
                yield re.sub(r"\$\w+", lambda found: filled.get(found[0], ".*"), target["expr"])


def answers(series: Mapping[str, str], asked: Iterable[str], folder: Path) -> dict[str, set[str]]:
    """The vector of each expression, without the labels of targets."""
    nothing = [Asked(MINUTES * 60, expression, {'{never="there"}': 0.0}) for expression in asked]
    reported = wrong_answers([Question("boards", series, nothing, step=STEP_SECONDS)], folder)
    found = re.findall(r'expr: (".*"), time: .*\n +exp: .*\n +got: (.*)', reported)
    assert len(found) == len(nothing), reported[-2000:]
    return {
        json.loads(expression): {
            _rounded(each)
            for each in re.split(
                (
                    r", "
                    r"(?=\{)"
                ),
                got,
            )
        }
        for expression, got in found
    }


def _rounded(reported: str) -> str:
    """Rounded values: the order in which a sum is made changes its last digits."""
    labels = re.sub(r'(instance|job)="[^"]*"(, )?', "", reported)
    return re.sub(r"(?<= )[-\d.]+E[-+]\d+$", lambda found: f"{float(found[0]):.9g}", labels)


@pytest.mark.parametrize("scenario", ["default", "telemetry"])
def test_the_boards_agree(scenario: str, tmp_path: Path) -> None:
    asked = sorted({*expressions()})
    kept = frozenset(name for expression in asked for name in metrics_of(parse(expression)))
    once = recorded(scenario, MINUTES * 60, kept=kept)
    twice = once | {
        re.sub(r'job="(gpu|cluster)"', 'job="of-annotations"', name): values
        for name, values in once.items()
    }
    assert len(twice) == 2 * len(once)
    reported, reported_twice = answers(once, asked, tmp_path), answers(twice, asked, tmp_path)
    assert {
        expression: (reported[expression], got)
        for expression, got in reported_twice.items()
        if got != reported[expression]
    } == {}
    assert sum(got != {"nil"} for got in reported.values()) > len(asked) / 2
