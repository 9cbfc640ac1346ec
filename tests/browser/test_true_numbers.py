"""Are the numbers right that were once wrong? The page is compared with kubectl's JSON of a
simulated and of a real cluster.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import datetime
from typing import Any

from playwright.sync_api import Browser, expect
from tests.browser.chromium import Window, window
from tests.browser.sight import Sight, soon
from tests.kube.objects import GPU, GPU_COUNT, GPU_MEMORY

BESIDE = ("Allocated, 0%", "No reading")
ALLOCATION = "scheduler.framework.gpushare.allocation"


def bound_at(pod: dict[str, Any]) -> str:
    """When the scheduler bound it, according to kubectl; "" for a pod that waits."""
    conditions = pod["status"].get("conditions") or []
    return next(
        (
            each["lastTransitionTime"]
            for each in conditions
            if each["type"] == "PodScheduled" and each["status"] == "True"
        ),
        "",
    )


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def held(pod: dict[str, Any]) -> int:
    return sum(
        int(each.get("resources", {}).get("limits", {}).get(GPU, 0))
        for each in pod["spec"]["containers"]
    )


def holding(sight: Sight) -> list[dict[str, Any]]:
    """Pods that hold whole cards and run, on nodes that report."""
    received = {name for name, node in sight.counts().nodes.items() if node.is_ready}
    running = [pod for pod in sight.kubectl.get("pods") if pod["status"]["phase"] == "Running"]
    return [
        pod
        for pod in running
        if held(pod) and bound_at(pod) and pod["spec"]["nodeName"] in received
    ]


def free_cards(sight: Sight) -> int:
    """Whole cards that the next pod could get: on nodes that are Ready and take pods."""
    free = 0
    pods = [
        pod
        for pod in sight.kubectl.get("pods")
        if pod["status"]["phase"] not in ("Succeeded", "Failed")
    ]
    for node in sight.kubectl.get("nodes"):
        ready = any(
            each["type"] == "Ready" and each["status"] == "True"
            for each in node["status"]["conditions"]
        )
        if not ready or node["spec"].get("unschedulable"):
            continue
        here = [pod for pod in pods if pod["spec"].get("nodeName") == node["metadata"]["name"]]
        allocatable = node["status"]["allocatable"]
        if GPU_MEMORY in allocatable:
            free += int(allocatable[GPU_COUNT]) - len(given_cards(here))
        elif GPU in allocatable:
            free += int(allocatable[GPU]) - sum(held(pod) for pod in here)
    return free


def given_cards(pods: list[dict[str, Any]]) -> set[str]:
    """Indexes of the cards of which any pod has a part."""
    given: dict[str, int] = defaultdict(int)
    for pod in pods:
        for parts in json.loads(
            pod["metadata"].get("annotations", {}).get(ALLOCATION, "{}")
        ).values():
            for index, units in parts.items():
                given[index] += units
    return {index for index, units in given.items() if units}


def number(text: str) -> int:
    found = re.search(r"\d+", text.replace(",", ""))
    assert found, f"no number in {text!r}"
    return int(found[0])


def shown_free(tab: Window) -> int:
    """What the pools show: free cards of each, and those of which it is unknown which they are."""
    pools = tab.page.locator(".pools .rank")
    named = [number(text) for text in pools.locator("> .num:not(.note)").all_inner_texts()]
    unnamed = [
        number(text) for text in pools.locator("> .note").filter(has_text="more").all_inner_texts()
    ]
    return sum(named) + sum(unnamed)


def test_cards_are_held_since_their_pod_was_bound(browser: Browser, sight: Sight) -> None:
    pods = holding(sight)
    waited = [pod for pod in pods if bound_at(pod) != pod["metadata"]["creationTimestamp"]]
    pod = (waited or pods)[0]
    with window(browser, sight.url, height=1600) as tab:
        tab.open(f"/nodes/{pod['spec']['nodeName']}", "node")
        row = (
            tab.page.locator("main tr")
            .filter(has_text=pod["metadata"]["name"])
            .filter(has=tab.page.locator("time"))
            .first
        )
        expect(row).to_be_visible()
        name = f"--field-selector=metadata.name={pod['metadata']['name']}"

        def bound() -> list[float]:
            """A pod that was created again under its name was bound later than the one that was
            seen first.
            """
            return [
                seconds(bound_at(each))
                for each in sight.kubectl.get("pods", "-n", pod["metadata"]["namespace"], name)
            ]

        soon(
            "bound",
            lambda: [seconds(row.locator("time").first.get_attribute("datetime") or "")],
            bound,
        )


def test_free_is_what_the_next_pod_could_have(browser: Browser, sight: Sight) -> None:
    with window(browser, sight.url, height=1600) as tab:
        tab.open("/overview", "overview")
        expect(tab.page.locator(".pools .rank").first).to_be_visible()
        soon("free cards", lambda: shown_free(tab), lambda: free_cards(sight))


def test_the_legend_has_a_place_for_every_card(browser: Browser, sight: Sight) -> None:
    with window(browser, sight.url, height=1600) as tab:
        tab.open("/overview", "overview")
        legend = tab.page.locator(".legend")
        expect(legend).to_be_visible()
        soon(
            "cards in the legend",
            lambda: cards_in(legend.locator(".legend-item").all_inner_texts()),
            lambda: sight.counts().gpus,
        )


def cards_in(items: list[str]) -> int:
    """Notes on some of the cards beside their state are left out; a scale counts none."""
    counted = [
        text
        for text in items
        if re.search(r"[a-z]\s*\d[\d,]*$", text.strip()) and not text.startswith(BESIDE)
    ]
    return sum(number(text) for text in counted)
