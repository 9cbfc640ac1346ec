"""Does the console show several pods on one card? Document 003's notebooks, as kubectl and the page
show them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.chromium import OUTPUT, window
from tests.browser.sight import Sight, soon
from tests.kube.laptop import Laptop, running_laptop
from tests.waiting import wait_until

MANIFESTS = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = ("mem_deployment.yaml", "mem_deployment-2.yaml", "mem_deployment-3.yaml")
NODE = "cn-zhangjiakou.192.168.3.184"
GRANT = "fairlead.io/gpu-allocation"
REFERENCE_GRANT = "scheduler.framework.gpushare.allocation"
ASKS_FOUR = {
    "containers": [
        {"name": "pytorch", "image": "x", "resources": {"limits": {"aliyun.com/gpu-mem": "4"}}}
    ]
}
FOURTH: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "fourth", "namespace": "default"},
    "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": ASKS_FOUR}}}},
}


@pytest.fixture(scope="module")
def shared() -> Iterator[Laptop]:
    """Document 003's cluster with its three notebooks, and a fourth that waits."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with running_laptop(OUTPUT / "laptop-003.log", "--scenario=documents-003") as laptop:
        for name in NOTEBOOKS:
            laptop.kubectl.run("apply", "-f", str(MANIFESTS / name))
        wait_until("three notebooks have their card", lambda: len(granted_mib(laptop)) == 3)
        laptop.kubectl.create([FOURTH])
        yield laptop


def granted_mib(laptop: Laptop) -> dict[str, int]:
    """Pod -> MiB of its grant, from the annotation."""
    found = {}
    for pod in laptop.kubectl.get("pods"):
        grant = pod["metadata"].get("annotations", {}).get(GRANT)
        if grant:
            found[f"default/{pod['metadata']['name']}"] = sum(
                part["mib"] for parts in json.loads(grant).values() for part in parts
            )
    return found


def seats_on(sight: Sight, node: str) -> dict[str, str]:
    """`index namespace/pod` -> its units there, from the
    annotation that the reference also reads.
    """
    found: dict[str, str] = {}
    for pod in sight.kubectl.get(
        "pods",
        "--field-selector",
        f"spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed",
    ):
        metadata = pod["metadata"]
        for cards in json.loads(
            metadata.get("annotations", {}).get(REFERENCE_GRANT, "{}")
        ).values():
            found |= {
                f"{index} {metadata['namespace']}/{metadata['name']}": str(units)
                for index, units in cards.items()
            }
    return found


def seat_rows(column: dict[str, str]) -> dict[str, str]:
    """Rows of holders in the table of cards and holders: `0 namespace/pod/container`."""
    return {key: text for key, text in column.items() if " " in key}


def card_rows(column: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in column.items() if key.isdigit()}


def test_the_seats_of_every_shared_node_are_those_of_kubectl(
    browser: Browser, sight: Sight
) -> None:
    nodes = [
        node["metadata"]["name"]
        for node in sight.kubectl.get("nodes")
        if int(node["status"]["capacity"].get("aliyun.com/gpu-mem", 0))
    ]
    busy = [node for node in nodes if seats_on(sight, node)]
    assert busy
    with window(browser, sight.url) as tab:
        for node in busy:
            tab.open(f"/nodes/{node}", "node")

            def shown() -> dict[str, str]:
                return {
                    key.rsplit("/", 1)[0]: text
                    for key, text in seat_rows(tab.column("node-gpus", "Units")).items()
                }

            soon(f"who sits where on {node}", shown, lambda node=node: seats_on(sight, node))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("locale", "scheme", "memory", "units", "free", "word"),
    [
        ("en-US", "light", "Allocated GPU Memory", "Units", "Free", "units"),
        ("zh-CN", "dark", "已分配GPU显存", "单位", "空闲", "个单位"),
    ],
    ids=["English, light", "Chinese, dark"],
)
def test_the_page_of_the_node_shows_each_holders_part_of_the_card(
    browser: Browser,
    shared: Laptop,
    locale: str,
    scheme: str,
    memory: str,
    units: str,
    free: str,
    word: str,
) -> None:
    with window(browser, shared.console.url, locale, scheme=scheme) as tab:
        tab.open(f"/nodes/{NODE}", "node")
        expect(tab.at("sentence")).to_contain_text(f"14 {word}")
        reported = {pod: f"{mib:,} MiB" for pod, mib in granted_mib(shared).items()}
        assert set(reported.values()) == {"4,308 MiB"}
        page = {
            key.split()[1].rsplit("/", 1)[0]: text
            for key, text in seat_rows(tab.column("node-gpus", memory)).items()
        }
        assert page == reported
        assert card_rows(tab.column("node-gpus", units)) == {"0": "12 / 14"}
        assert card_rows(tab.column("node-gpus", free)) == {"0": f"2 {word}"}
        assert card_rows(tab.column("node-gpus", memory)) == {"0": "12.6 / 14.7 GiB"}
        tab.keep(f"shared-node-{locale}")


def test_every_row_of_the_page_is_reached_by_keys(browser: Browser, shared: Laptop) -> None:
    with window(browser, shared.console.url) as tab:
        tab.open(f"/nodes/{NODE}", "node")
        rows = tab.at("table-node-gpus").locator("tbody tr[data-row]")
        expect(rows).to_have_count(4)
        rows.first.focus()
        for at in (1, 2, 3):
            tab.page.keyboard.press("ArrowDown")
            expect(rows.nth(at)).to_be_focused()


def test_the_map_leads_to_the_card_with_its_units(browser: Browser, shared: Laptop) -> None:
    with window(browser, shared.console.url) as tab:
        tab.open("/overview", "overview")
        canvas = tab.at("panel-gpu-map").locator("canvas")
        canvas.focus()
        tab.page.keyboard.press("ArrowRight")
        tab.page.keyboard.press("ArrowLeft")
        expect(tab.at("map-card")).to_contain_text("12 of 14 units")
        expect(tab.at("map-card")).to_contain_text("4,308 MiB")
        tab.page.keyboard.press("Enter")
        expect(tab.at("page-holders")).to_be_visible()
        assert parse_qs(urlsplit(tab.page.url).query)["node"] == [NODE], (
            "several pods hold it: all that are on its node"
        )


def test_boards_count_fractions_of_cards(browser: Browser, shared: Laptop) -> None:
    with window(browser, shared.console.url) as tab:
        tab.open("/nodes?mode=share", "nodes")
        assert tab.column("nodes", "Allocated GPUs") == {NODE: "0.9"}
        assert tab.column("nodes", "Allocated GPU Memory") == {NODE: "12.6"}
        tab.open("/overview", "overview")
        expect(tab.at("panel-top-consumers")).to_contain_text("at most 2.1 GiB on one GPU")
        expect(tab.at("panel-gpu-memory-allocated-total")).to_contain_text("12.6 / 29.5 GiB")


def test_the_fourth_gets_what_the_best_card_has_free(browser: Browser, shared: Laptop) -> None:
    with window(browser, shared.console.url) as tab:
        tab.open("/jobs/default/pytorchjob/fourth", "job")
        expect(tab.at("why-no-room")).to_contain_text("need 4 GiB, largest free 2 GiB")
        expect(tab.at("sentence")).to_have_text(
            "Waiting for 4.0 GiB of shared GPU memory; 0 of 1 instance running."
        )
        tab.open("/jobs", "jobs")
        assert tab.column("jobs", "Request GPUs") == {"default/pytorchjob/fourth": "4.0 GiB"}


def test_a_card_that_changes_its_mode_is_shown_so_without_a_reload(
    browser: Browser, shared: Laptop
) -> None:
    with window(browser, shared.console.url) as tab:
        tab.open(f"/nodes/{NODE}", "node")
        expect(tab.at("notice-draining")).to_have_count(0)
        shared.kubectl.run("label", "node", NODE, "cgpu=false", "--overwrite")
        try:
            expect(tab.at("notice-draining")).to_be_visible()
            expect(tab.at("notice-closed")).to_be_visible()
            soon(
                "what is free on it",
                lambda: card_rows(tab.column("node-gpus", "Free")),
                lambda: {"0": "0 units"},
            )
        finally:
            shared.kubectl.run("label", "node", NODE, "cgpu=true", "--overwrite")
        expect(tab.at("notice-draining")).to_have_count(0)
