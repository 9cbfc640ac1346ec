"""Every shipped or printed expression uses only metrics and labels of the metrics reference: rules,
boards, adapter rules, pages.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from tests.docs.promql import Labels, Unknown, labels_of, parse

from fairlead.apps.configuration.counters_file import built_in_counters

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PAGE = ROOT / "docs" / "reference" / "alerts.md"
DCGM = frozenset(
    {
        "gpu",
        "UUID",
        "pci_bus_id",
        "device",
        "modelName",
        "Hostname",
        "container",
        "namespace",
        "pod",
        "err_code",
        "err_msg",
    }
)


class Asked(NamedTuple):
    """An expression and its place."""

    where: str
    text: str


def reference() -> dict[str, Labels]:
    spec = importlib.util.spec_from_file_location(
        "docs_metrics", ROOT / "tools" / "docs_metrics.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    labels: dict[str, Labels] = {}
    for metric in module.all_names():
        labels[metric.name] = labels.get(metric.name, frozenset()) | frozenset(metric.labels)
    return {**labels, **{counter.name: DCGM for counter in built_in_counters().counters}}


VALUES = re.compile(r"label_values\((.+),\s*(\w+)\)$")
"""A variable of Grafana."""


def expressions(value: Any) -> Iterator[str]:
    """The expressions of a manifest or a board: rules, queries of panels and variables, selections
    of the adapter, metrics of an HPA.
    """
    match value:
        case {"seriesQuery": str(text)}:
            yield text
        case {"type": "Pods" | "Object" | "External", **rest}:
            yield from (
                metric["metric"]["name"]
                for metric in rest.values()
                if isinstance(metric, dict) and "metric" in metric
            )
        case dict():
            for key, inner in value.items():
                if key == "expr" and isinstance(inner, str):
                    yield inner
                elif (
                    key in ("query", "definition")
                    and isinstance(inner, str)
                    and (found := VALUES.match(inner))
                ):
                    yield f"group by ({found[2]}) ({found[1]})"
                else:
                    yield from expressions(inner)
        case list():
            for inner in value:
                yield from expressions(inner)
        case str() if "seriesQuery:" in value:
            yield from expressions(yaml.safe_load(value))


def documents(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8")
    return [json.loads(text)] if path.suffix == ".json" else list(yaml.safe_load_all(text))


CHART = DEPLOY / "chart"
"""Templates of Helm, which are no YAML and have the objects of deploy/*.yaml."""
FILES = sorted(
    path
    for path in DEPLOY.rglob("*")
    if path.suffix in (".yaml", ".json") and CHART not in path.parents
)
SHIPPED = [
    Asked(str(path.relative_to(ROOT)), text)
    for path in FILES
    for text in expressions(documents(path))
]
PRINTED = [
    Asked("docs/reference/alerts.md", line)
    for block in re.findall(
        (
            r"To see "
            r"it:.*?```promql\n(.+?)```"
        ),
        PAGE.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    for line in block.splitlines()
]


def recorded(known: dict[str, Labels]) -> dict[str, Labels]:
    """The labels by metric, with those of the recording rules added in their order."""
    found = dict(known)
    for group in yaml.safe_load(
        (DEPLOY / "prometheus" / "fairlead.rules.yaml").read_text(encoding="utf-8")
    )["groups"]:
        for rule in group["rules"]:
            if "record" in rule:
                found[rule["record"]] = labels_of(parse(rule["expr"]), found)
    return found


KNOWN = recorded(reference())


@pytest.mark.parametrize("where", sorted({each.where for each in (*SHIPPED, *PRINTED)}))
def test_what_is_asked_for_is_printed_by_a_page_of_fairlead(where: str) -> None:
    wrong = [
        f"{text}: {problem}"
        for place, text in (*SHIPPED, *PRINTED)
        if place == where and (problem := trouble(text))
    ]
    assert wrong == []


def test_there_is_something_to_check() -> None:
    assert len([each for each in SHIPPED if each.where.endswith("fairlead.rules.yaml")]) == 45
    assert len(PRINTED) >= 28


def trouble(text: str) -> str:
    try:
        labels_of(parse(text), KNOWN)
    except (ValueError, Unknown) as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("fairlead_gpu_uptime", "no page has `fairlead_gpu_uptime`"),
        ('fairlead_gpu_up{node="n"}', "`fairlead_gpu_up` has no label `node`"),
        ("sum by (pod_name) (fairlead_gpu_up)", "sum has no label `pod_name`"),
        (
            "fairlead_gpu_up == 0 unless on (path) fairlead_gpu_healthy",
            "the left of `unless` has no label `path`",
        ),
        (
            "fairlead_gpu_up and on (uuid) fairlead_node_ready",
            "the right of `and` has no label `uuid`",
        ),
        ("sum by (gpu) (sum by (node_name) (fairlead_gpu_up))", "sum has no label `gpu`"),
        (
            "fairlead_gpu_up * on (node_name) group_left (rack) fairlead_node_ready",
            "the one side of `*` has no label `rack`",
        ),
        ("rate(fairlead_gpu_energy_joules_total[$__rate_interval]", "unclosed left parenthesis"),
        ('{__name__=~"^DCGM_XX_.*",pod!=""}', "no page has `^DCGM_XX_.*`"),
    ],
)
def test_what_no_page_has_is_found(text: str, problem: str) -> None:
    assert problem in trouble(text)


@pytest.mark.parametrize(
    "text",
    [
        (
            'sum(rate(fairlead_gpu_pcie_bytes_total{node_name=~"$node",'
            'direction="tx"}[$__rate_interval])) by (node_name)'
        ),
        '{__name__=~"^DCGM_FI_.*",exported_pod!="",exported_namespace!=""}',
        'max_over_time(fairlead_node_ready{instance="x"}[5m:1m]) > bool 0 or vector(0)',
        'topk(3, label_replace(fairlead_gpu_up, "node", "$1", "node_name", "(.*)"))',
        'count(ALERTS{alertname="x",uuid="y"})',
    ],
)
def test_what_pages_have_is_taken(text: str) -> None:
    assert trouble(text) == ""
