"""The Grafana boards are up to date and complete, and use only metrics and labels that Fairlead's
pages have.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from fairlead.apps.configuration.counters_file import built_in_counters
from fairlead.model.devices.exporter_pod import EXPORTER_CONTAINERS
from fairlead_sim.scenario.file import known_scenarios, load_scenario

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "grafana"
FILES = sorted(FOLDER.iterdir())
BOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES
}
TARGET_LABELS = {"job", "instance", "cluster"}
"""`cluster`: for a Prometheus with several clusters."""
ALERT_LABELS = {"alertname", "alertstate", "severity"}
DCGM_LABELS = {"gpu", "UUID", "Hostname", "GPU_I_PROFILE", "GPU_I_ID"}
OWN_OF_PROMETHEUS = {"ALERTS"}
NOT_NATIVE = {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"}
"""Ratios from GPM, for which Fairlead has no family of its own."""


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return module


LABELS: dict[str, set[str]] = {}
for _metric in tool("docs_metrics").all_names():
    LABELS.setdefault(_metric.name, set()).update(_metric.labels)
LABELS |= {each.name: DCGM_LABELS for each in built_in_counters().counters}


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def targets() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for uid, board in BOARDS.items():
        for panel in panels(board):
            for target in panel["targets"]:
                yield uid, panel["title"], target


TARGETS = [
    pytest.param(target, id=f"{uid} {title} {target['refId']}") for uid, title, target in targets()
]


def metrics_of(expression: str) -> set[str]:
    return set(
        re.findall(
            r"\b(?:fairlead_\w+|DCGM_\w+|arena_\w+|nvidia_\w+|ALERTS)\b",
            re.sub(r'"[^"]*"', '""', expression),
        )
    )


def labels_of(expression: str) -> set[str]:
    """Labels in matchers, groupings and joins."""
    without_values = re.sub(r'"[^"]*"', '""', expression)
    named = set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*""', without_values))
    for group in re.findall(
        r"\b(?:by|on|group_left|group_right|without|ignoring)\s*\(([^)]*)\)", without_values
    ):
        named |= {label.strip() for label in group.split(",") if label.strip()}
    return named


def known_labels(expression: str) -> set[str]:
    of_alerts = (
        ALERT_LABELS | set().union(*LABELS.values())
        if "ALERTS" in metrics_of(expression)
        else set()
    )
    return set().union(
        TARGET_LABELS, of_alerts, *(LABELS.get(name, set()) for name in metrics_of(expression))
    )


def test_the_files_are_fresh() -> None:
    made: dict[str, str] = tool("deploy_boards").boards_texts()
    assert {path.name: path.read_text(encoding="utf-8") for path in FILES} == made, (
        "stale: run `python tools/deploy_boards.py`"
    )


def test_the_seven_boards_are_there_with_their_uids_and_variables() -> None:
    """docs/spec/telemetry.md#grafana-boards."""
    asked = {
        uid: [each["name"] for each in board["templating"]["list"] if each["type"] == "query"]
        for uid, board in BOARDS.items()
    }
    assert {names.pop(0) for names in asked.values()} == {"cluster"}, (
        "before all others, as in kubernetes-mixin"
    )
    assert asked == {
        "fairlead-cluster": [],
        "fairlead-nodes": ["gpu_node", "GPU"],
        "fairlead-jobs": ["job_namespace", "job_type", "job_name", "job_status"],
        "fairlead-quota": ["Organization", "QuotaName", "ResourceName"],
        "fairlead-gpu-app": ["namespace_name", "app", "pod_name"],
        "fairlead-gpu-node": ["node_name", "gpu"],
        "fairlead-dcgm": ["instance", "gpu"],
    }
    assert all(board["uid"] == uid for uid, board in BOARDS.items())
    titles = ["Cluster", "GPU APP", "GPU Node", "GPU devices", "Nodes", "Quota", "TrainingJobs"]
    assert sorted(board["title"].removeprefix("Fairlead / ") for board in BOARDS.values()) == titles


TITLES_OF_DOCUMENT_000 = {
    "fairlead-cluster": (
        *(
            "GPU Summary Of Cluster",
            "Total GPU Nodes",
            "Unhealthy GPU Nodes",
            "GPU Memory(Used/Total)",
            "GPU Memory(Allocated/Total)",
        ),
        *("GPU Utilization", "GPUs(Allocated/Total)", "Training Job Summary Of Cluster"),
    ),
    "fairlead-nodes": (
        *(
            "GPU Node Details",
            "GPU Duty Cycle",
            "GPU Memory Usage",
            "GPU Memory Usage Percentage",
            "Allocated GPUs Per Node",
        ),
        *("GPU Number Per Node", "Total GPU Memory Per Node"),
    ),
    "fairlead-jobs": (
        *(
            "Training Jobs",
            "Job Instance Used GPU Memory",
            "Job Instance Used GPU Memory Percentage",
            "Job Instance GPU Duty Cycle",
        ),
    ),
    "fairlead-quota": (
        *(
            "Quota(cpu)",
            "Quota(memory)",
            "Quota(nvidia.com/gpu)",
            "Quota(aliyun.com/gpu-mem)",
            "Quota(aliyun.com/gpu)",
        ),
    ),
}
NODE_COLUMNS = (
    *(
        "Name",
        "IP",
        "Role",
        "Status",
        "GPU Mode",
        "Total GPUs",
        "Total GPU Memory",
        "Allocated GPUs",
        "Allocated GPU Memory",
    ),
    *("Used GPU Memory", "GPU Utilization"),
)
JOB_COLUMNS = (
    *(
        "Namespace",
        "Job Name",
        "Job Type",
        "Job Status",
        "Duration",
        "Request GPUs",
        "Allocated GPU Memory",
        "Used GPU Memory",
    ),
    "GPU Utilization",
)
QUOTA_COLUMNS = (
    "Elastic Quota Name",
    "Namespace",
    "Resource Name",
    "Max Quota",
    "Min Quota",
    "Used Quota",
)
COLUMNS_OF_DOCUMENT_000 = {
    "GPU Node Details": NODE_COLUMNS,
    "Training Jobs": JOB_COLUMNS,
    **dict.fromkeys(TITLES_OF_DOCUMENT_000["fairlead-quota"], QUOTA_COLUMNS),
}


def test_titles_and_columns_are_those_of_document_000() -> None:
    for uid, titles in TITLES_OF_DOCUMENT_000.items():
        assert tuple(panel["title"] for panel in panels(BOARDS[uid]))[: len(titles)] == titles
    for board in BOARDS.values():
        for panel in panels(board):
            if columns := COLUMNS_OF_DOCUMENT_000.get(panel["title"]):
                headings = panel["transformations"][-1]["options"]
                assert (
                    tuple(headings["renameByName"][name] for name in headings["indexByName"])
                    == columns
                )
                assert list(headings["indexByName"].values()) == list(range(len(columns)))


def test_no_chart_cuts_off_what_is_above_its_axis() -> None:
    """A container at 120 % of its limit must be visible."""
    charts = [
        panel
        for board in BOARDS.values()
        for panel in panels(board)
        if panel["type"] == "timeseries"
    ]
    defaults = {panel["title"]: panel["fieldConfig"]["defaults"] for panel in charts}
    assert [title for title, each in defaults.items() if "max" in each] == []
    for title in (
        "GPU memory used / limit",
        "Job Instance Used GPU Memory Percentage",
        "GPU Memory Usage Percentage",
    ):
        assert defaults[title]["custom"]["axisSoftMax"] == 1


def test_a_quota_without_a_max_is_shown_so_in_every_version_of_grafana() -> None:
    """In Grafana `+Inf` is JavaScript's Infinity; some versions compare a range without an end with
    0.
    """
    mappings = [
        each
        for panel in panels(BOARDS["fairlead-quota"])
        for each in panel["fieldConfig"]["defaults"].get("mappings", ())
    ]
    assert {each["type"] for each in mappings} == {"value"}
    assert all(each["options"]["Infinity"]["text"] == "N/A" for each in mappings)


def test_each_board_keeps_the_rules_of_the_schema() -> None:
    for board in BOARDS.values():
        assert (board["schemaVersion"], board["refresh"]) == (39, "30s")
        assert board["links"][0]["tags"] == board["tags"] == ["fairlead"]
        assert [each["type"] for each in board["templating"]["list"]].count("datasource") == 1
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)
        for panel in panels(board):
            assert panel["type"] in {"timeseries", "stat", "gauge", "bargauge", "table"}, (
                "no panel of Angular's time"
            )
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert len(panel["fieldConfig"]["defaults"]["noValue"]) > 10, panel["title"]
            own_words = [
                each["properties"]
                for each in panel["fieldConfig"]["overrides"]
                if each["matcher"]["id"] == "byRegexp"
            ]
            assert own_words == (
                [[{"id": "noValue", "value": "–"}]] if panel["type"] == "table" else []
            )
            references = [target["refId"] for target in panel["targets"]]
            assert references and len(set(references)) == len(references)
            assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["value"] is None


def test_panels_do_not_overlap_and_stay_within_the_page() -> None:
    for uid, board in BOARDS.items():
        taken: dict[tuple[int, int], str] = {}
        for panel in board["panels"]:
            place = panel["gridPos"]
            for cell in (
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            ):
                assert cell[0] < 24 and cell not in taken, (
                    f"{uid}: {panel['title']} lies on {taken.get(cell)}"
                )
                taken[cell] = panel["title"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_query_asks_for_metrics_and_labels_that_are_there(target: dict[str, Any]) -> None:
    expression = target["expr"]
    names = metrics_of(expression)
    assert names and names <= LABELS.keys() | OWN_OF_PROMETHEUS
    assert all(name.startswith("fairlead_") for name in names - NOT_NATIVE - OWN_OF_PROMETHEUS), (
        "boards use native metrics only"
    )
    legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    assert labels_of(expression) | legend <= known_labels(expression)


def test_a_legend_names_only_labels_that_an_aggregation_leaves() -> None:
    for uid, title, target in targets():
        outer = re.match(
            (
                r"(?:1000 \* )?(?:sum|max|min|avg|count)(?: "
                r"by \(([^)]*)\))? ?\("
            ),
            target["expr"],
        )
        if outer:
            left = {label.strip() for label in (outer.group(1) or "").split(",")}
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= left, (
                f"{uid}: {title}"
            )


def test_columns_of_tables_come_from_their_queries() -> None:
    for board in BOARDS.values():
        for panel in panels(board):
            if panel["type"] != "table":
                continue
            known = set().union(*(known_labels(target["expr"]) for target in panel["targets"]))
            values = (
                {"Value"}
                if len(panel["targets"]) == 1
                else {f"Value #{target['refId']}" for target in panel["targets"]}
            )
            assert set(panel["transformations"][-1]["options"]["renameByName"]) <= known | values, (
                panel["title"]
            )


def test_variables_are_asked_of_metrics_that_are_there_and_used() -> None:
    for uid, board in BOARDS.items():
        text = json.dumps(board["panels"])
        for variable in board["templating"]["list"]:
            assert f"${variable['name']}" in text or f"${{{variable['name']}}}" in text, (
                f"{uid} does not use {variable['name']}"
            )
            if variable["type"] == "query":
                asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
                assert asked and metrics_of(asked.group(1)) <= LABELS.keys()
                assert {asked.group(2), *labels_of(asked.group(1))} <= known_labels(asked.group(1))


def test_every_selector_is_of_the_chosen_cluster() -> None:
    """As in kubernetes-mixin: one cluster, never several together. In a Prometheus with one cluster
    the choice is empty, like the label.
    """
    for board in BOARDS.values():
        first, *others = [each for each in board["templating"]["list"] if each["type"] == "query"]
        assert (first["name"], first["multi"], first["includeAll"]) == ("cluster", False, False)
        assert re.fullmatch(r"label_values\((\w+), cluster\)", first["query"]["query"])
        asked = [each["query"]["query"] for each in others]
        asked += [target["expr"] for panel in panels(board) for target in panel["targets"]]
        for expression in asked:
            selected = re.findall(
                r'\b(?:fairlead_\w+|DCGM_\w+|ALERTS)\b(\{cluster="\$cluster"[,}])?',
                re.sub(r'="[^"$]*"', '=""', expression),
            )
            assert selected and all(selected), expression


def test_all_of_a_choice_is_anything() -> None:
    """Not the list of current values: a query would contain thousands of pods, and none of
    yesterday's.
    """
    for uid, board in BOARDS.items():
        chosen = {
            each["name"]: each.get("allValue")
            for each in board["templating"]["list"]
            if each.get("includeAll")
        }
        assert set(chosen.values()) <= {".*"}, uid


COUNTERS = {each.name for each in tool("docs_metrics").all_names() if each.type == "counter"}


def test_no_counter_is_drawn_as_it_is() -> None:
    """`x unless x offset …` shows a series that begins, which `increase` does not show."""
    for uid, title, target in targets():
        begins = r"(max by \([^)]*\)) \((\w+\{[^}]*\})\) unless \1 \(\2 offset \$__rate_interval\)"
        named = re.sub(begins, "", target["expr"])
        raw = re.sub(r"\b(?:increase|rate)\([^()]*\)", "", named)
        assert not metrics_of(raw) & COUNTERS, f"{uid}: {title}"


def test_links_lead_to_boards_and_variables_that_are_there() -> None:
    for uid, board in BOARDS.items():
        for path, names in re.findall(r"/d/([\w-]+)\?([^\"\\]*)", json.dumps(board)):
            variables = {each["name"] for each in BOARDS[path]["templating"]["list"]}
            assert set(re.findall(r"var-(\w+)=", names)) <= variables, f"{uid} leads to {path}"


def test_no_board_names_a_thing_of_one_cluster() -> None:
    scenarios = [load_scenario(name) for name in known_scenarios()]
    names = {
        name
        for scenario in scenarios
        for pool in scenario.node_pools
        for name in (*pool.names, f"{pool.name}-1")
    }
    names |= {
        space for scenario in scenarios for team in scenario.teams for space in team.namespaces
    }
    assert len(names) > 10
    asked = [target["expr"] for _, _, target in targets()]
    asked += [each["query"] for board in BOARDS.values() for each in board["templating"]["list"]]
    assert [
        name for name in names if any(f'"{name}' in str(expression) for expression in asked)
    ] == []


def test_autoscalers_ask_for_metrics_that_the_adapters_rules_serve() -> None:
    folder = ROOT / "deploy" / "autoscaling"
    rules = yaml.safe_load((folder / "adapter-rules.yaml").read_text(encoding="utf-8"))["rules"]
    for rule in rules:
        names = re.search(r'__name__=~"([^"]+)"', rule["seriesQuery"])
        assert names and any(re.match(names.group(1), metric) for metric in LABELS)
        if "fairlead" in names.group(1):
            assert labels_of(rule["seriesQuery"]) - {"__name__"} == set(
                rule["resources"]["overrides"]
            )
            assert all(
                set(rule["resources"]["overrides"]) <= LABELS[metric]
                for metric in LABELS
                if re.match(names.group(1), metric)
            )
    (own,) = (
        found.group(1)
        for rule in rules
        if (found := re.search(r'container!~"([^"]+)"', rule["seriesQuery"]))
    )
    assert set(own.split("|")) == set(EXPORTER_CONTAINERS)
    scalers = list(yaml.safe_load_all((folder / "hpa.yaml").read_text(encoding="utf-8")))
    asked = [
        metric["pods"]["metric"]["name"]
        for scaler in scalers
        for metric in scaler["spec"]["metrics"]
    ]
    assert asked == ["DCGM_FI_DEV_GPU_UTIL", "fairlead_container_gpu_utilization_ratio"]
    assert set(asked) <= LABELS.keys()
