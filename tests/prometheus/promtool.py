"""Runs Prometheus's own `promtool`: does it accept Fairlead's rules, and which alerts fire for
given series?

All questions go in one call: a start of it costs more than a hundred of them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tests.programs import run_program

RULES = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "fairlead.rules.yaml"
STEP_SECONDS = 30
FIRING = 'ALERTS{alertstate="firing"}'


class Asked(NamedTuple):
    """An expression at a moment (seconds from the start), and its
    expected vector: labels -> value.
    """

    seconds: float
    expr: str
    expected: Mapping[str, float]


class ExpectedAlert(NamedTuple):
    """An alert that fires, or none (`labels` None), with exactly these labels and annotations."""

    seconds: float
    alert: str
    labels: Mapping[str, str] | None
    annotations: Mapping[str, str] = {}


class Question(NamedTuple):
    """`series`: selector -> values, one every `step` seconds, in promtool's notation."""

    name: str
    series: Mapping[str, str]
    asked: Sequence[Asked] = ()
    alerts: Sequence[ExpectedAlert] = ()
    step: int = STEP_SECONDS


def check_rules(path: Path) -> str:
    """Complaints of `promtool check rules`."""
    answer = run_program(["promtool", "check", "rules", str(path)])
    return "" if answer.returncode == 0 else (answer.stdout + answer.stderr).strip()


def wrong_answers(questions: Iterable[Question], folder: Path) -> str:
    """Unexpected results of `promtool test rules`; empty when everything is as expected."""
    by_step: dict[int, list[dict[str, Any]]] = {}
    for each in questions:
        by_step.setdefault(each.step, []).append(_test(each))
    files = []
    for step, tests in by_step.items():
        asked = {"rule_files": [str(RULES)], "evaluation_interval": f"{step}s", "tests": tests}
        file = folder / f"questions-{step}.yaml"
        file.write_text(
            yaml.dump(asked, Dumper=yaml.CSafeDumper, width=10_000_000), encoding="utf-8"
        )
        files.append(str(file))
    answer = subprocess.run(
        ["promtool", "test", "rules", *files],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return "" if answer.returncode == 0 else (answer.stdout + answer.stderr).strip()


def selector(name: str, labels: Mapping[str, str]) -> str:
    """A series in promtool's notation."""
    inside = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
    return f"{name}{{{inside}}}"


def rendered(template: str, labels: Mapping[str, str], value: str) -> str:
    """A text of an alert with its labels filled in, and `value` wherever it prints its value."""
    text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels.get(found[1], ""), template)
    return re.sub(r"\{\{ \$value[^}]*\}\}", value, text)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _test(question: Question) -> dict[str, Any]:
    return {
        "name": question.name,
        "interval": f"{question.step}s",
        "input_series": [
            {"series": series, "values": values} for series, values in question.series.items()
        ],
        "promql_expr_test": [
            {
                "expr": each.expr,
                "eval_time": f"{each.seconds:g}s",
                "exp_samples": [
                    {"labels": labels, "value": value} for labels, value in each.expected.items()
                ],
            }
            for each in question.asked
        ],
        "alert_rule_test": [
            {
                "eval_time": f"{each.seconds:g}s",
                "alertname": each.alert,
                "exp_alerts": []
                if each.labels is None
                else [{"exp_labels": dict(each.labels), "exp_annotations": dict(each.annotations)}],
            }
            for each in question.alerts
        ],
    }
