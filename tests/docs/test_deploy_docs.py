"""Everything that the page about sharing GPUs names exists: files, objects, commands, events,
metrics. Its diff is the shipped configuration.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.frame.verbs import find_verb
from fairlead.model.installation import NODE_NAMESPACE, SYSTEM_NAMESPACE
from fairlead.rules.sharing.admission import GRANT_WRITERS, SCHEDULER
from fairlead.settings import (
    CLUSTER_EXPORTER_LEASE,
    PEOPLE_LEASE,
    QUOTA_LEASE,
    SCHEDULER_EXTENDER_PORT,
    SHARE_LEASE,
    USAGE_RECORDER_LEASE,
    USERS_NAMESPACE,
)

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DOCS = sorted(page for page in (ROOT / "docs").rglob("*.md") if "spec" not in page.parts)
PAGE = (ROOT / "docs" / "how-to" / "gpu-sharing.md").read_text(encoding="utf-8")
QUOTA_PAGE = (ROOT / "docs" / "how-to" / "quota-operations.md").read_text(encoding="utf-8")
USAGE_PAGE = (ROOT / "docs" / "how-to" / "usage.md").read_text(encoding="utf-8")
PEOPLE_PAGE = (ROOT / "docs" / "how-to" / "users.md").read_text(encoding="utf-8")
NODE_PAGE = (ROOT / "docs" / "how-to" / "gpu-node.md").read_text(encoding="utf-8")
HELM_PAGE = (ROOT / "docs" / "how-to" / "helm.md").read_text(encoding="utf-8")
BOARDS_PAGE = (ROOT / "docs" / "how-to" / "boards.md").read_text(encoding="utf-8")
FILES = sorted(str(path.relative_to(DEPLOY)) for path in DEPLOY.rglob("*") if path.is_file())
OBJECTS: list[dict[str, Any]] = [
    each
    for path in sorted(DEPLOY.glob("*.yaml"))
    for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    if each
]
NAMES = {(each["kind"].lower(), each["metadata"]["name"]) for each in OBJECTS}


def test_every_file_is_named_and_every_named_file_exists() -> None:
    named = {
        name
        for page in DOCS
        for name in re.findall(
            r"deploy/((?:[\w-]+/)*[\w.-]+\.[\w]+)", page.read_text(encoding="utf-8")
        )
    }
    assert named == {name for name in FILES if not name.startswith(("grafana/", "chart/"))}
    assert "deploy/grafana/" in BOARDS_PAGE, "a folder of boards is named as one"
    assert "deploy/chart/" in HELM_PAGE, "so is the chart"


def test_a_prometheus_that_follows_annotations_scrapes_nothing_twice() -> None:
    """Pods have no `prometheus.io/scrape` annotations, because the jobs of deploy/prometheus find
    the same pods.
    """
    templates = [
        each["spec"]["template"]["metadata"]
        for each in OBJECTS
        if "template" in each.get("spec", {})
    ]
    assert len(templates) > 5
    assert [
        each for each in templates if "prometheus.io/scrape" in each.get("annotations", {})
    ] == []


def test_workloads_of_the_commands_exist() -> None:
    asked = re.findall(r"-n (\S+) deploy/(fairlead-\S+?)[\s`]", PAGE)
    assert {name for _, name in asked} == {
        SCHEDULER,
        "fairlead-admission-webhook",
        "fairlead-console",
    }
    assert {namespace for namespace, _ in asked} == {SYSTEM_NAMESPACE}
    assert all(("deployment", name) in NAMES for _, name in asked)


def test_commands_exist() -> None:
    typed = re.findall(r"^\$ fairlead (.+)", PAGE, re.MULTILINE)
    assert typed
    assert [line for line in typed if find_verb(line.split()[:2], "fairlead") is None] == []
    run = [
        word[1]
        for each in OBJECTS
        for part in _containers(each)
        if (word := part["command"])[0] == "fairlead"
    ]
    assert sorted(set(run)) == [
        "admission-webhook",
        "cluster-exporter",
        "console",
        "device-plugin",
        "gpu-exporter",
        "people-controller",
        "quota-controller",
        "scheduler-extender",
        "usage-recorder",
    ]
    assert all(find_verb([word], "fairlead") for word in run)


def _containers(obj: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        obj.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
    )
    return found


def test_the_extender_has_one_port_in_manifests_and_pages() -> None:
    """12345 is the shipped port, 39999 that of a process without a port flag.

    See docs/spec/gpu-sharing.md#endpoints-of-the-extender.
    """
    commands = [
        part["command"]
        for each in OBJECTS
        for part in _containers(each)
        if part["command"][1:2] == ["scheduler-extender"]
    ]
    listening = {
        word.rpartition(":")[2]
        for command in commands
        for word in command
        if word.startswith("--listen=")
    }
    asked = {
        port
        for path in (*map(DEPLOY.joinpath, FILES), *DOCS)
        for port in re.findall(r"127\.0\.0\.1:(\d+)/gpushare-scheduler", path.read_text())
    }
    assert len(commands) == 2
    assert listening == asked == {"12345"}
    for page in DOCS:
        text = page.read_text(encoding="utf-8")
        assert "39999" not in text or "12345" in text or page.name == "cli.md", (
            f"{page.name} does not contain the shipped port"
        )
    assert f"else {SCHEDULER_EXTENDER_PORT}" in PAGE


def test_accounts_leases_and_namespace_are_those_of_the_rules() -> None:
    accounts = {name for kind, name in NAMES if kind == "serviceaccount"}
    assert SCHEDULER in {user.rpartition(":")[2] for user in GRANT_WRITERS} & accounts
    assert {each["metadata"].get("namespace", SYSTEM_NAMESPACE) for each in OBJECTS} == {
        SYSTEM_NAMESPACE,
        NODE_NAMESPACE,
        USERS_NAMESPACE,
        "kube-system",
    }
    leases = {
        name
        for each in OBJECTS
        for rule in each.get("rules", ())
        if "leases" in rule["resources"]
        for name in rule.get("resourceNames", ())
    }
    assert leases == {
        *(SHARE_LEASE, QUOTA_LEASE, PEOPLE_LEASE, CLUSTER_EXPORTER_LEASE, SCHEDULER),
        USAGE_RECORDER_LEASE,
    }
    assert all(f"`{name}`" in PAGE + QUOTA_PAGE + PEOPLE_PAGE + USAGE_PAGE for name in leases)


@pytest.mark.parametrize(
    "word",
    [
        "GPUModeConflict",
        "GPUShareNotPlaced",
        "fairlead_gpushare_",
        "unhealthy-gpu-",
        "Insufficient aliyun.com/gpu-mem on one GPU",
    ],
)
def test_words_of_the_page_are_words_of_the_code(word: str) -> None:
    assert word in PAGE
    sources = (
        path.read_text(encoding="utf-8") for path in (ROOT / "src" / "fairlead").rglob("*.py")
    )
    assert any(
        word in text or word.replace("aliyun.com/gpu-mem", "{GPU_MEMORY}") in text
        for text in sources
    )


def test_the_diff_is_the_shipped_block_of_extenders() -> None:
    (config,) = (each for each in OBJECTS if each["kind"] == "ConfigMap")
    shipped = yaml.safe_load(config["data"]["scheduler.yaml"])
    diff = next(
        block
        for block in re.findall(r"```diff\n(.+?)```", PAGE, re.DOTALL)
        if "KubeSchedulerConfiguration" in block
    )
    added = yaml.safe_load(
        "\n".join(line[1:] for line in diff.splitlines() if line.startswith("+"))
    )
    assert added == {"extenders": shipped["extenders"]}
    assert (shipped["apiVersion"], shipped["profiles"]) == (
        "kubescheduler.config.k8s.io/v1",
        [{"schedulerName": SCHEDULER}],
    )
