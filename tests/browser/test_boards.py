"""Do the four boards show the same as kubectl, for the simulated and for a real cluster, in both
languages?
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.chromium import Window, window
from tests.browser.sight import PART_OF_REAL, SIGHTS, Sight, shown, soon
from tests.turns import in_turn

LOCALES = {"en": "en-US", "zh": "zh-CN"}
TITLES = {
    "en": (
        "GPU Summary Of Cluster",
        "Total GPU Nodes",
        "Unhealthy GPU Nodes",
        "GPU Memory(Used/Total)",
        "GPU Memory(Allocated/Total)",
        "GPU Utilization",
        "GPUs(Allocated/Total)",
        "Training Job Summary Of Cluster",
    ),
    "zh": (
        "集群GPU概览",
        "GPU节点总数",
        "不健康GPU节点数",
        "GPU显存（已使用/总量）",
        "GPU显存（已分配/总量）",
        "GPU平均利用率",
        "GPU卡（已分配/总量）",
        "训练任务概览",
    ),
}
HEADS = {
    "en": {
        "total": "Total GPUs",
        "allocated": "Allocated GPUs",
        "status": "Status",
        "job status": "Job Status",
        "used": "Used Quota",
        "quota": "Quota({})",
    },
    "zh": {
        "total": "总GPU卡数",
        "allocated": "已分配GPU卡数",
        "status": "状态",
        "job status": "任务状态",
        "used": "Used Quota",
        "quota": "配额（{}）",
    },
}
BOTH = pytest.mark.parametrize("language", ["en", "zh"])
EACH_SIGHT = pytest.mark.parametrize(
    ("sight", "language"),
    [(name, language) for name in SIGHTS for language in in_turn(("en", "zh"), 2)],
    indirect=["sight"],
)


def number(text: str) -> float:
    found = re.search(r"-?\d+(\.\d+)?", text.replace(",", ""))
    assert found, f"no number in {text!r}"
    return float(found[0])


def summary(tab: Window, name: str) -> tuple[float, ...]:
    """Total, allocated, unhealthy of one line of the summary panel."""
    return tuple(number(text) for text in tab.at(f"summary-{name}").locator("b").all_inner_texts())


@EACH_SIGHT
def test_the_cluster_board(browser: Browser, sight: Sight, language: str) -> None:
    with window(browser, sight.url, LOCALES[language]) as tab:
        tab.open("/overview", "overview")
        assert (
            tab.page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-CN"}[language]
        )
        for title in TITLES[language]:
            expect(tab.page.get_by_role("heading", name=title, exact=True).first).to_be_visible()
        soon(
            "GPU nodes",
            lambda: summary(tab, "nodes"),
            lambda: (
                len(sight.counts().nodes),
                sight.counts().allocated_nodes,
                sight.counts().unhealthy_nodes,
            ),
        )
        soon(
            "GPUs",
            lambda: tuple(round(each, 1) for each in summary(tab, "gpus")),
            lambda: (sight.counts().gpus, sight.counts().allocated, sight.counts().unhealthy),
        )
        soon(
            "all GPU nodes",
            lambda: number(tab.at("panel-total-gpu-nodes").locator(".big").inner_text()),
            lambda: len(sight.counts().nodes),
        )
        for word in ("Running", "Pending", "Succeeded", "Failed"):
            soon(
                f"{word} jobs",
                lambda word=word: int(number(tab.at(f"jobs-{word.lower()}").inner_text())),  # type: ignore[misc]
                lambda word=word: sight.job_counts()[word],  # type: ignore[misc]
            )
        expect(tab.at("badge-simulated")).to_have_count(1 if sight.name == "simulated" else 0)
        tab.keep(f"{sight.name}-cluster-{language}")


def test_what_needs_attention_stands_first_and_leads_there(browser: Browser, faults: Sight) -> None:
    """The scenario `faults` has two silent nodes, and two cards with an XID."""
    silent = {name for name, node in faults.counts().nodes.items() if node.status == "Unknown"}
    with window(browser, faults.url, height=1400) as tab:
        tab.open("/overview", "overview")
        line = tab.at("attention-node-silent")
        expect(line).to_be_visible()
        assert silent and set(line.locator("a").all_inner_texts()) == silent
        assert str(len(silent)) in tab.at("sentence").inner_text()
        assert (
            tab.page.locator("main [data-testid^=panel-]").first.get_attribute("data-testid")
            == "panel-attention"
        )
        broken = tab.at("attention-gpu-broken").first
        name = broken.locator("a").first.inner_text().split(" GPU ")[0]
        broken.locator("a").first.click()
        expect(tab.page.get_by_role("heading", level=1)).to_contain_text(name)
        expect(tab.page.get_by_text("XID").first).to_be_visible()


def test_every_card_is_listed_with_its_holder_and_its_health(
    browser: Browser, simulated: Sight
) -> None:
    """The exporter's own page has each card's temperature, kubectl has the number of each node's
    cards; a single node has a chart of its own.
    """
    with window(browser, simulated.url, height=1600) as tab:
        tab.open("/devices?size=100", "devices")
        soon(
            "cards of each node",
            lambda: Counter(tab.column("devices", "Node").values()),
            lambda: Counter({name: node.total for name, node in simulated.counts().nodes.items()}),
        )
        warm = [
            text
            for text in tab.column("devices", "GPU Temperature").values()
            if text.endswith(" °C")
        ]
        assert len(warm) >= simulated.counts().gpus - simulated.counts().unhealthy
        node = sorted(simulated.counts().nodes)[0]
        tab.open(f"/devices?gpu_node={node}", "devices")
        soon("cards of one", lambda: set(tab.column("devices", "Node").values()), lambda: {node})
        for slug in ("gpu-duty-cycle", "gpu-temperature", "gpu-power"):
            panel = tab.at(f"panel-{slug}")
            panel.scroll_into_view_if_needed()
            expect(panel.locator(".chart-canvas")).to_be_visible()
        expect(tab.at("charts-unkept")).to_contain_text("NVLink Traffic")
        expect(tab.at("panel-nvlink")).to_have_count(0)
        tab.keep("simulated-devices")


@BOTH
def test_everybody_who_holds_a_gpu_is_listed_and_the_greatest_lead_there(
    browser: Browser, simulated: Sight, language: str
) -> None:
    def holding(namespace: str) -> set[str]:
        pods = [pod for pod in simulated.kubectl.get("pods") if pod["spec"].get("nodeName")]
        live = [
            pod
            for pod in pods
            if pod["status"]["phase"] not in ("Succeeded", "Failed") and _asks_gpu(pod)
        ]
        return {
            pod["metadata"]["name"] for pod in live if pod["metadata"]["namespace"] == namespace
        }

    with window(browser, simulated.url, LOCALES[language], height=1400) as tab:
        tab.open("/overview", "overview")
        first = tab.at("panel-top-consumers").locator("a.rank").first
        expect(first).to_be_visible()
        namespace = first.locator(".mono").inner_text()
        first.click()
        expect(tab.at("page-holders")).to_be_visible()
        soon(
            "holders",
            lambda: {key.split("/")[1] for key in tab.column("holders", "Pod")},
            lambda: holding(namespace),
        )
        used = tab.at("panel-container-gpu-memory")
        used.scroll_into_view_if_needed()
        expect(used.locator(".chart-canvas")).to_be_visible()
        tab.keep(f"simulated-holders-{language}")


def _asks_gpu(pod: dict[str, Any]) -> bool:
    limits = [
        container.get("resources", {}).get("limits", {}) for container in pod["spec"]["containers"]
    ]
    return any(
        int(each.get(name, 0))
        for each in limits
        for name in ("nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu")
    )


@EACH_SIGHT
def test_the_nodes_board(browser: Browser, sight: Sight, language: str) -> None:
    heads = HEADS[language]
    with window(browser, sight.url, LOCALES[language], height=1400) as tab:
        tab.open("/nodes", "nodes")
        counts = sight.counts().nodes
        soon(
            "GPU nodes in the table",
            lambda: set(tab.column("nodes", heads["total"])) & set(counts),
            lambda: set(sight.counts().nodes),
        )
        soon(
            "GPUs of each node",
            lambda: {name: tab.column("nodes", heads["total"])[name] for name in counts},
            lambda: {name: str(node.total) for name, node in sight.counts().nodes.items()},
        )
        soon(
            "allocated GPUs of each node",
            lambda: {name: tab.column("nodes", heads["allocated"])[name] for name in counts},
            lambda: {name: shown(node.allocated) for name, node in sight.counts().nodes.items()},
        )
        tab.keep(f"{sight.name}-nodes-{language}")


@EACH_SIGHT
def test_the_jobs_board(browser: Browser, sight: Sight, language: str) -> None:
    with window(browser, sight.url, LOCALES[language], height=1400) as tab:
        tab.open("/jobs?size=500", "jobs")
        soon(
            "jobs",
            lambda: len(tab.column("jobs", HEADS[language]["job status"])),
            lambda: len(sight.jobs()),
        )
        if language == "en":
            soon(
                "states of the jobs",
                lambda: sorted(statuses(tab)),
                lambda: sorted(sight.jobs().values()),
            )
        tab.keep(f"{sight.name}-jobs-{language}")


def statuses(tab: Window) -> list[str]:
    return [text.split()[0] for text in tab.column("jobs", HEADS["en"]["job status"]).values()]


@BOTH
def test_the_quota_board(browser: Browser, simulated: Sight, language: str) -> None:
    with window(browser, simulated.url, LOCALES[language], height=1800) as tab:
        tab.open("/quota", "quota")
        for resource in ("cpu", "memory", "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu"):
            expect(
                tab.page.get_by_role(
                    "heading", name=HEADS[language]["quota"].format(resource), exact=True
                )
            ).to_be_visible()
        soon(
            "GPUs used by namespaces of the tree",
            lambda: used_gpus(tab, language),
            lambda: {
                name: used
                for name, used in simulated.used_gpus_by_namespace().items()
                if name in used_gpus(tab, language)
            },
        )
        tab.keep(f"simulated-quota-{language}")


def used_gpus(tab: Window, language: str) -> dict[str, int]:
    """Namespace -> used GPUs, from the rows of leaves."""
    box = tab.at("panel-quota-nvidia-com-gpu")
    heads = box.locator("thead th").evaluate_all("cells => cells.map(cell => cell.title)")
    used = next(
        index for index, text in enumerate(heads) if text.startswith(HEADS[language]["used"])
    )
    rows = box.locator("tbody tr[data-key]").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return {
        row[1]: int(number(row[used])) for row in rows if row[1] and row[1] not in ("-", "(all)")
    }


@pytest.mark.turns(2, PART_OF_REAL)
@BOTH
def test_a_cluster_without_a_quota_tree_is_reported(
    browser: Browser, real: Sight, language: str
) -> None:
    with window(browser, real.url, LOCALES[language]) as tab:
        tab.page.goto(f"{real.url}/quota")
        expect(tab.at("page-quota")).to_be_visible()
        expect(tab.at("state-empty").or_(tab.at("state-partial")).first).to_be_visible()
        tab.keep(f"real-quota-{language}")
