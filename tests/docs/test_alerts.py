"""Rules, alerts and their pages are up to date and equal those of
docs/spec/telemetry.md#recording-rules-and-alerts, and each link leads to a section.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.frame.verbs import find_verb

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
try:
    TOOL = importlib.import_module("prometheus_rules")
finally:
    sys.path.remove(str(ROOT / "tools"))
PAGE = (ROOT / "docs" / "reference" / "alerts.md").read_text(encoding="utf-8")
DEPLOY = ROOT / "deploy" / "prometheus"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DEPLOY / "fairlead.rules.yaml").read_text(encoding="utf-8"))[
        "groups"
    ]
    for rule in group["rules"]
]
ALERTS = {rule["alert"].removeprefix("Fairlead"): rule for rule in RULES if "alert" in rule}
CONTRACT = {
    "GpuXidCritical": ("0", "critical"),
    "GpuXidWarning": ("0", "warning"),
    "GpuEccUncorrected": ("0", "critical"),
    "GpuEccCorrectedHigh": ("0", "warning"),
    "GpuRowRemapFailed": ("0", "critical"),
    "GpuRowRemapPending": ("1h", "warning"),
    "GpuPagesPending": ("1h", "warning"),
    "GpuThermalThrottle": ("5m", "warning"),
    "GpuPowerBrake": ("5m", "warning"),
    "GpuHot": ("10m", "warning"),
    "GpuNvlinkErrors": ("0", "warning"),
    "GpuPcieReplays": ("0", "warning"),
    "GpuDown": ("2m", "critical"),
    "GpuUnhealthy": ("2m", "critical"),
    "GpuRecoveryNeeded": ("2m", "critical"),
    "GpuIdleAllocated": ("2h", "warning"),
    "ContainerNearLimit": ("10m", "info"),
    "ContainerOverGrant": ("1m", "critical"),
    "GpuForeignProcess": ("10m", "warning"),
    "ExporterMissing": ("5m", "critical"),
    "GpuNodeNotReady": ("5m", "critical"),
    "ExporterCollectorFailing": ("5m", "warning"),
    "ExporterStale": ("5m", "warning"),
    "PodMapStale": ("5m", "warning"),
    "QuotaExhausted": ("30m", "warning"),
    "QuotaGuaranteeStarved": ("15m", "critical"),
    "JobPendingLong": ("0", "info"),
    "JobFailed": ("0", "info"),
}
"""docs/spec/telemetry.md#recording-rules-and-alerts: `for`, severity."""
LATER = {
    "ExporterRowsRejected": ("5m", "warning"),
    "ExporterReloadFailed": ("5m", "warning"),
    "GpuPcieNarrow": ("15m", "warning"),
    "GpuPcieSlow": ("15m", "warning"),
    "GpuNvlinkDown": ("5m", "warning"),
    "GpuEccOff": ("1h", "warning"),
    "GpuPodPendingLong": ("0", "info"),
    "GuardUnknownAllocator": ("0", "warning"),
    "UsageNotRecorded": ("5m", "warning"),
}
"""Alerts that were added after the specification; alerts about a node or a card that is down
inhibit them, too.
"""
EXPECTED = {**CONTRACT, **LATER, "ClusterExporterMissing": ("5m", "critical")}
"""With the alert that the specification does not contain."""
RECORDINGS = {
    "fairlead:gpu_memory_used:ratio",
    "fairlead:container_gpu_memory_used:ratio",
    "fairlead:gpu_utilization:avg30m",
    "fairlead:cluster_gpu_utilization:avg1h",
    "fairlead:quota_used:ratio_max",
    "fairlead:quota_used:ratio_min",
    "fairlead:namespace_gpus_allocated:sum",
}


@pytest.mark.parametrize("name", sorted(TOOL.written()))
def test_a_manifest_is_fresh(name: str) -> None:
    assert (DEPLOY / name).read_text(encoding="utf-8") == TOOL.written()[name], (
        "stale: run `python tools/prometheus_rules.py`"
    )


def test_the_page_is_fresh_and_nothing_else_lies_beside_the_manifests() -> None:
    assert TOOL.page() == PAGE, "stale: run `python tools/prometheus_rules.py`"
    assert {path.name for path in DEPLOY.iterdir()} == {
        *TOOL.written(),
        "scrape.yaml",
        "servicemonitor.yaml",
    }


def test_alerts_and_recording_rules_are_those_of_the_contract() -> None:
    assert {
        name: (str(rule.get("for", "0")), rule["labels"]["severity"])
        for name, rule in ALERTS.items()
    } == EXPECTED
    assert {rule["record"] for rule in RULES if "record" in rule} == RECORDINGS


def test_the_operators_rules_are_the_same() -> None:
    operator = yaml.safe_load((DEPLOY / "prometheusrule.yaml").read_text(encoding="utf-8"))
    assert (operator["apiVersion"], operator["kind"]) == (
        "monitoring.coreos.com/v1",
        "PrometheusRule",
    )
    assert operator["spec"] == yaml.safe_load(
        (DEPLOY / "fairlead.rules.yaml").read_text(encoding="utf-8")
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_an_alert_states_what_is_wrong_and_leads_to_its_section(name: str) -> None:
    reported = ALERTS[name]["annotations"]
    assert set(reported) == {"summary", "description", "runbook_url"}
    assert reported["runbook_url"] == f"docs/reference/alerts.md#fairlead{name.lower()}"
    section = re.search(rf"^## Fairlead{name}\n(.+?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section, f"docs/reference/alerts.md has no section of {name}"
    assert "To see it:" in section[1]
    assert re.search(r"What to do: \S", section[1])


def test_links_lead_to_where_the_page_is_kept(tmp_path: Path) -> None:
    """The links lead to the file in this repository as shipped. With an address, the tool and the
    command on the page give the same result.
    """
    shipped = {name: text for name, text in TOOL.written().items() if "runbook_url" in text}
    assert set(shipped) == {"fairlead.rules.yaml", "prometheusrule.yaml"}
    for text in shipped.values():
        links = re.findall(r"runbook_url: (.+)", text)
        assert len(links) == len(EXPECTED)
        assert {link.partition("#")[0] for link in links} == {"docs/reference/alerts.md"}
    base = "https://git.example.com/fairlead/docs/reference/alerts.md"
    (script,) = re.findall(
        (
            r"^\$ sed -i '(.+)' "
            r"deploy/prometheus/\*rule\*\.yaml$"
        ),
        PAGE,
        re.MULTILINE,
    )
    for name, text in shipped.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        subprocess.run(["sed", "-i", script, str(tmp_path / name)], check=True)
        changed = (tmp_path / name).read_text(encoding="utf-8")
        assert yaml.safe_load(changed) == yaml.safe_load(TOOL.written(base)[name])
        assert changed.count(f"runbook_url: {base}#fairlead") == len(EXPECTED)


def test_no_xid_is_in_both_classes() -> None:
    critical, warning = (
        set(re.findall(r"\d+", ALERTS[name]["expr"].split('"')[1]))
        for name in ("GpuXidCritical", "GpuXidWarning")
    )
    assert critical == {"48", "62", "64", "74", "79", "95", "119", "120", "140"}
    assert warning == {"63", "92", "94", "154"}


def test_inhibition_names_alerts_that_exist_and_never_goes_round() -> None:
    rules = yaml.safe_load((DEPLOY / "alertmanager-inhibition.yaml").read_text(encoding="utf-8"))[
        "inhibit_rules"
    ]
    holds: dict[str, set[str]] = {}
    for rule in rules:
        sources, targets = (_names(rule[key]) for key in ("source_matchers", "target_matchers"))
        assert not sources & targets
        for source in sources:
            holds.setdefault(source, set()).update(targets)
    assert {name for each in holds.items() for name in (each[0], *each[1])} <= {
        *CONTRACT,
        *LATER,
    }, "what the contract does not know holds nothing back"
    for name in holds:
        assert name not in _reached(holds, name), f"{name} would silence itself"


def test_commands_of_the_page_exist() -> None:
    typed = re.findall(r"^\$ (fairlead|arena) (.+)", PAGE, re.MULTILINE)
    assert typed
    assert [line for program, line in typed if find_verb(line.split()[:2], program) is None] == []


def _names(matchers: list[str]) -> set[str]:
    (matcher,) = matchers
    found = re.fullmatch(r'alertname=~"Fairlead\(([\w|]+)\)"', matcher)
    assert found, matcher
    return set(found[1].split("|"))


def _reached(holds: dict[str, set[str]], name: str) -> set[str]:
    seen: set[str] = set()
    ahead = [*holds[name]]
    while ahead:
        if (each := ahead.pop()) not in seen:
            seen.add(each)
            ahead += holds.get(each, ())
    return seen
