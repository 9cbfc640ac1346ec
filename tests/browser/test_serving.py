"""The page of serving jobs shows the same as `arena serve list` and kubectl, on both clusters, and
search finds its jobs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.chromium import window
from tests.browser.sight import Sight, soon
from tests.kube.servers import run_arena
from tests.waiting import wait_until

NAMESPACE = "default"
LOCALES = {
    "en-US": ("Serving jobs", "Serving", "Ready", "NotReady"),
    "zh-CN": ("推理服务", "推理服务", "就绪", "未就绪"),
}


def arena(sight: Sight, *words: str) -> str:
    return run_arena("serve", *words, kubeconfig=sight.kubectl.kubeconfig)


def reported(sight: Sight) -> dict[str, dict[str, Any]]:
    return {
        each["name"]: each
        for each in json.loads(arena(sight, "list", "-n", NAMESPACE, "-o", "json"))
    }


@pytest.fixture
def served(sight: Sight) -> Iterator[Sight]:
    """One job that is ready on two pods, and one that requests more GPUs than any node has."""
    arena(
        sight,
        "custom",
        "--name=web",
        "--version=v1",
        "--replicas=2",
        "--restful-port=5000",
        "--image=i",
        "-n",
        NAMESPACE,
    )
    arena(
        sight,
        "custom",
        "--name=huge",
        "--version=v2",
        "--gpus=99",
        "--restful-port=5000",
        "--image=i",
        "-n",
        NAMESPACE,
    )
    try:
        wait_until(
            "both pods of web are available",
            lambda: reported(sight)["web"]["availableInstances"] == 2,
            60,
        )
        yield sight
    finally:
        for name in ("web", "huge"):
            arena(sight, "delete", name, "-n", NAMESPACE)
        selector = ("pods", "-n", NAMESPACE, "-l", "servingName in (web,huge)")
        wait_until("the pods of both jobs are gone", lambda: not sight.kubectl.get(*selector), 60)


@pytest.mark.parametrize("locale", LOCALES)
def test_the_page_shows_what_arena_prints_and_why_a_job_is_not_ready(
    browser: Browser, served: Sight, locale: str
) -> None:
    title, menu, ready, not_ready = LOCALES[locale]
    jobs = reported(served)
    pods = {
        pod["metadata"]["name"]
        for pod in served.kubectl.get("pods", "-n", NAMESPACE, "-l", "servingName=web")
    }
    with window(browser, served.url, locale) as tab:
        tab.open("/overview", "overview")
        tab.page.keyboard.press("Control+k")
        tab.page.keyboard.type(title)
        expect(tab.at("find-box").get_by_role("option", selected=True)).to_contain_text(menu)
        tab.page.keyboard.press("Enter")
        expect(tab.at("page-serving")).to_be_visible()
        assert urlsplit(tab.page.url).path == "/serving"
        keys = {
            name: f"{NAMESPACE}/Custom/{name}/{jobs[name]['version']}" for name in ("web", "huge")
        }

        def column(head: str) -> dict[str, str]:
            seen = tab.column("serving", head)
            return {name: seen.get(key, "") for name, key in keys.items()}

        soon(
            "addresses",
            lambda: column({"en-US": "Address", "zh-CN": "地址"}[locale]),
            lambda: {name: jobs[name]["ip"] for name in keys},
        )
        available = {"en-US": "Pods available", "zh-CN": "可用 Pod"}[locale]
        soon("available pods", lambda: column(available), lambda: {"web": "2 / 2", "huge": "0 / 1"})
        status = column({"en-US": "Status", "zh-CN": "状态"}[locale])
        assert status["web"] == ready
        assert status["huge"].startswith(not_ready) and "99" in status["huge"], (
            "the reason is readable without hovering"
        )
        tab.keep(f"serving-{served.name}-{locale}")
        tab.page.locator(f"tr[data-key='{keys['web']}']").click()
        expect(tab.at("side-panel").locator(".side-head h2")).to_have_text("web")
        expect(tab.at("table-serving-instances").locator("tbody tr")).to_have_count(2)
        assert set(tab.column("serving-instances", "GPUs")) == pods
        tab.keep(f"serving-panel-{served.name}-{locale}")
        tab.page.locator(f"tr[data-key='{keys['huge']}']").click(position={"x": 20, "y": 10})
        expect(tab.at("why-it-waits")).to_contain_text("99")


def test_the_commands_of_a_serving_job_run(browser: Browser, served: Sight) -> None:
    with window(browser, served.url) as tab:
        tab.open(f"/serving?open={NAMESPACE}/Custom/web/v1", "serving")
        tab.at("side-panel").get_by_test_id("action-command-serving").click()
        box = tab.at("equal-commands")
        expect(box.locator("code").first).to_be_visible()
        commands = box.locator("code").all_inner_texts()
    assert commands[0] == f"arena serve get web --version=v1 -n {NAMESPACE}"
    got = json.loads(arena(served, "get", "web", "--version=v1", "-n", NAMESPACE, "-o", "json"))
    assert got["availableInstances"] == 2
