"""Does every way through the console lead on? Esc, a click without a move, `j`, a wrong address, a
filter, a server that is gone.
"""

from __future__ import annotations

import csv
import json
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Request, Route, expect
from tests.browser.chromium import Window, window
from tests.browser.sight import Sight, soon
from tests.kube.laptop import Laptop
from tests.kube.programs import program
from tests.kube.servers import running
from tests.waiting import HANG_SECONDS, wait_until

pytestmark = pytest.mark.turns(4, 1)

CLICK_A_CELL = """canvas => {
    const { left, top } = canvas.getBoundingClientRect();
    const at = { clientX: left + 8, clientY: top + 50 };
    canvas.dispatchEvent(new MouseEvent('click', { bubbles: true, ...at }));
}"""
"""Clicks the first cell, below the head of its group and its node's name. The click comes without
any pointer event before it, as after a page that scrolled under a resting pointer.
"""


def path(tab: Window) -> str:
    return urlsplit(tab.page.url).path


def test_esc_leads_from_a_detail_page_to_its_board_as_it_was_left(
    browser: Browser, simulated: Sight
) -> None:
    node = sorted(simulated.counts().nodes)[0]
    with window(browser, simulated.url) as tab:
        tab.open(f"/nodes/{node}", "node")
        tab.page.keyboard.press("Escape")
        expect(tab.at("page-nodes")).to_be_visible()
        tab.open(f"/nodes?q={node}&open={node}", "nodes")
        tab.at("action-full-page").click()
        expect(tab.at("page-node")).to_be_visible()
        tab.page.keyboard.press("Escape")
        expect(tab.at("page-nodes")).to_be_visible()
        assert parse_qs(urlsplit(tab.page.url).query)["q"] == [node]


def test_esc_leads_whence_one_came_over_all_steps_on_the_page(
    browser: Browser, faults: Sight
) -> None:
    with window(browser, faults.url) as tab:
        tab.open("/overview", "overview")
        tab.page.locator("main a[href*='/nodes/']").first.click()
        expect(tab.at("page-node")).to_be_visible()
        tab.page.evaluate("document.activeElement.blur()")
        tab.page.keyboard.press("Escape")
        expect(tab.at("page-overview")).to_be_visible()
        assert path(tab) == "/overview"


def test_an_open_panel_goes_along_with_the_rows(browser: Browser, simulated: Sight) -> None:
    names = sorted(simulated.counts().nodes)
    with window(browser, simulated.url) as tab:
        tab.open("/nodes", "nodes")
        expect(tab.page.locator("tr[data-row]").first).to_be_visible()
        tab.page.keyboard.press("j")
        expect(tab.page.locator("tr[data-row='0']")).to_be_focused()
        tab.page.keyboard.press("Enter")
        head = tab.at("side-panel").locator(".side-head h2")
        expect(head).to_have_text(names[0])
        tab.page.keyboard.press("j")
        expect(head).to_have_text(names[1])
        tab.page.keyboard.press("Tab")
        expect(tab.at("action-full-page")).to_be_focused()
        tab.page.keyboard.press("k")
        expect(head).to_have_text(names[0])
        tab.page.keyboard.press("Escape")
        expect(tab.at("side-panel")).to_have_count(0)
        expect(tab.page.locator("tr[data-row='0']")).to_be_focused()


def test_the_legend_lights_up_what_it_counts_and_the_address_contains_it(
    browser: Browser, faults: Sight
) -> None:
    with window(browser, faults.url) as tab:
        tab.open("/overview", "overview")
        broken = tab.at("legend-broken")
        broken.click()
        expect(broken).to_have_attribute("aria-pressed", "true")
        assert parse_qs(urlsplit(tab.page.url).query)["light"] == ["broken"]
        tab.page.reload()
        expect(broken).to_have_attribute("aria-pressed", "true")
        broken.press("Enter")
        expect(broken).to_have_attribute("aria-pressed", "false")
        assert "light" not in parse_qs(urlsplit(tab.page.url).query)
        tab.open("/overview?light=draining", "overview")
        gone = tab.at("legend-draining")
        expect(gone).to_contain_text("0")
        gone.click()
        expect(gone).to_have_count(0)


def test_one_box_finds_everything_by_keyboard_alone(browser: Browser, simulated: Sight) -> None:
    node = sorted(simulated.counts().nodes)[0]
    with window(browser, simulated.url) as tab:
        tab.open("/overview", "overview")
        tab.page.keyboard.press("Control+k")
        box = tab.at("find-box")
        expect(box.get_by_role("combobox")).to_be_focused()
        tab.page.keyboard.type(node)
        expect(box.get_by_role("option", selected=True)).to_contain_text(node)
        expect(
            box.get_by_role("option").filter(has_text=f"kubectl describe node {node}")
        ).to_be_visible()
        tab.page.keyboard.press("Enter")
        expect(tab.at("page-node")).to_be_visible()
        assert path(tab) == f"/nodes/{node}"
        tab.page.keyboard.press("/")
        tab.page.keyboard.type("holders")
        expect(box.get_by_role("option", selected=True)).to_contain_text("GPU holders")
        tab.page.keyboard.press("Escape")
        expect(box).to_be_hidden()
        expect(tab.at("page-node")).to_be_visible()


def test_a_click_on_the_map_needs_no_move_before_it(browser: Browser, simulated: Sight) -> None:
    with window(browser, simulated.url) as tab:
        tab.open("/nodes", "nodes")
        canvas = tab.at("panel-gpu-map").locator("canvas")
        expect(canvas).to_be_visible()
        canvas.evaluate(CLICK_A_CELL)
        expect(tab.at("map-card")).to_have_attribute("data-chosen", "true")
        chosen = canvas.inner_text()
        assert path(tab) == "/nodes"
        canvas.evaluate(CLICK_A_CELL)
        expect(tab.page).not_to_have_url(f"{simulated.url}/nodes")
        assert (
            path(tab).startswith(("/jobs/", "/gpus"))
            or path(tab) == f"/nodes/{chosen.split(' ')[0]}"
        )


def test_the_map_is_a_grid_for_keys_and_screen_readers(browser: Browser, faults: Sight) -> None:
    """The cell with the keyboard's focus is announced by name; Enter opens the pods that hold the
    card.
    """
    broken = "gpu-1 GPU 0"
    with window(browser, faults.url, height=1200) as tab:
        tab.open("/overview", "overview")
        canvas = tab.at("panel-gpu-map").get_by_role("grid")
        canvas.focus()
        cell = canvas.get_by_role("gridcell", include_hidden=True)
        tab.page.keyboard.press("Control+Home")
        expect(cell).to_contain_text(f"{broken}, unhealthy")
        assert canvas.get_attribute("aria-activedescendant") == cell.get_attribute("id")
        tab.page.keyboard.press("End")
        expect(cell).to_contain_text("GPU 3")
        tab.page.keyboard.press("Control+End")
        last = cell.inner_text()
        tab.page.keyboard.press("ArrowRight")
        assert cell.inner_text() == last
        tab.page.keyboard.press("Control+Home")
        tab.page.keyboard.press("ArrowRight")
        expect(cell).to_contain_text("research")
        expect(tab.at("map-card")).to_contain_text("research/")
        tab.page.keyboard.press("Enter")
        expect(tab.at("page-job").or_(tab.at("page-holders"))).to_be_visible()


def test_keys_walk_through_the_quotas(browser: Browser, simulated: Sight) -> None:
    row = "document.activeElement.dataset.row"
    with window(browser, simulated.url) as tab:
        tab.open("/quota", "quota")
        expect(tab.page.locator("tr[data-row]").first).to_be_visible()
        for key, at in (("j", "0"), ("j", "1"), ("k", "0")):
            tab.page.keyboard.press(key)
            soon(f"the row in focus after {key}", lambda: tab.page.evaluate(row), lambda at=at: at)  # type: ignore[misc]


def test_a_table_with_the_focus_stays_when_it_is_scrolled_out_of_sight(
    browser: Browser, simulated: Sight
) -> None:
    row = "document.activeElement.dataset.row"
    with window(browser, simulated.url, height=400) as tab:
        tab.open("/quota", "quota")
        first, last = tab.at("panel-quota-cpu"), tab.at("panel-quota-nvidia-com-gpu")
        first.scroll_into_view_if_needed()
        first.locator("tr[data-row='0']").focus()
        last.scroll_into_view_if_needed()
        expect(last.locator("tr[data-row='0']")).to_be_visible()
        expect(first).not_to_be_in_viewport()
        tab.page.keyboard.press("j")
        soon("the row in focus after j", lambda: tab.page.evaluate(row), lambda: "1")
        expect(first.locator("tr[data-row='1']")).to_be_focused()


@pytest.mark.parametrize(
    ("address", "board"),
    [
        ("/nodes/absent", "/nodes"),
        ("/jobs/a/mpijob/absent", "/jobs"),
        ("/nodes?sort=nonsense", "/nodes"),
    ],
)
def test_a_wrong_address_leads_to_a_right_one(
    browser: Browser, simulated: Sight, address: str, board: str
) -> None:
    with window(browser, simulated.url, "zh-CN") as tab:
        tab.page.goto(simulated.url + address)
        error = tab.at("state-error").first
        expect(error).to_be_visible()
        expect(error.locator(".actions").get_by_role("button")).to_have_count(0)
        error.get_by_role("link").click()
        expect(tab.page).to_have_url(simulated.url + board)
        expect(tab.page.locator("tr[data-row]").first).to_be_visible()


def test_filters_of_the_nodes_are_those_of_the_charts(browser: Browser, simulated: Sight) -> None:
    asked: list[list[str]] = []

    def receive(request: Request) -> None:
        url = urlsplit(request.url)
        if url.path.endswith("/charts/gpu-duty-cycle"):
            asked.append(sorted(parse_qs(url.query).get("gpu_node", [])))

    with window(browser, simulated.url, height=1800) as tab:
        tab.page.on("request", receive)
        tab.open("/nodes?mode=share", "nodes")
        soon("nodes of the chart", lambda: asked[-1:], lambda: [sorted(shared(tab))])
        assert shared(tab), "no shared node in this world: the test shows nothing"
        assert [] not in asked, "a chart of all nodes was asked for first"


def shared(tab: Window) -> list[str]:
    return [name for name, mode in tab.column("nodes", "GPU Mode").items() if mode == "share"]


@pytest.mark.parametrize("address", ["/nodes?status=Ready", "/jobs?job_status=Running", "/quota"])
def test_filters_stand_on_one_line(browser: Browser, simulated: Sight, address: str) -> None:
    with window(browser, simulated.url) as tab:
        tab.open(address, address[1:].split("?")[0])
        height = cast(int, tab.page.locator(".filters").evaluate("line => line.offsetHeight"))
        assert height < 40
        assert tab.page.locator(".filters").evaluate("line => line.scrollWidth <= line.clientWidth")


def test_a_server_that_is_gone_is_noticed_within_seconds(
    browser: Browser, laptop: Laptop, tmp_path: Path
) -> None:
    with (
        running(
            "console", f"--kubeconfig={laptop.kubeconfig}", log=tmp_path / "console.log"
        ) as server,
        window(browser, server.url, height=1800) as tab,
    ):
        tab.open("/overview", "overview")
        jobs = tab.at("panel-chart-jobs")
        expect(
            jobs.locator(".chart-canvas").or_(jobs.get_by_test_id("state-empty"))
        ).to_be_visible()
        server.component.stop()
        expect(tab.at("state-server")).to_be_visible(timeout=15_000)
        assert [tab.at(f"state-{word}").count() for word in ("error", "outdated", "server")] == [
            0,
            0,
            1,
        ]


def test_why_a_range_cannot_be_chosen_is_read_without_a_mouse(
    browser: Browser, simulated: Sight
) -> None:
    with window(browser, simulated.url, height=1800) as tab:
        tab.open("/overview", "overview")
        why = tab.at("choices-window-why")
        expect(why).to_have_text("Without Prometheus, only the last 60 minutes are kept.")
        week = tab.at("choices-window").get_by_role("radio", name="7d")
        expect(week).to_be_disabled()
        assert (
            week.evaluate(
                "radio => "
                "document.getElementById(radio.getAttribute('aria-describedby')).textContent"
            )
            == why.text_content()
        )
        tab.at("choices-window").get_by_role("radio", checked=True).focus()
        for _ in range(9):
            tab.page.keyboard.press("ArrowRight")
        assert "window=7d" not in tab.page.url


TABLES = {
    "nodes": "/nodes",
    "devices": "/devices",
    "jobs": "/jobs?job_status=Running",
    "holders": "/gpus",
    "quota": "/quota",
    "waiting": "/quota",
}


@pytest.mark.parametrize("table", TABLES)
def test_the_equal_commands_run(
    browser: Browser, laptop: Laptop, simulated: Sight, tmp_path: Path, table: str
) -> None:
    """The commands run unchanged, in a shell of the user's own: with the laptop's kubeconfig and
    Fairlead's programs on the path.
    """
    with window(browser, simulated.url, height=1600) as tab:
        tab.page.goto(simulated.url + TABLES[table])
        tab.at(f"action-command-{table}").first.click()
        box = tab.at("equal-commands")
        expect(box.locator("code").first).to_be_visible()
        commands = box.locator("code").all_inner_texts()
    assert all_run(commands, laptop, tmp_path)["total"] >= 0


def all_run(commands: list[str], laptop: Laptop, folder: Path) -> dict[str, Any]:
    """The API's answer; every other command must have succeeded and printed something."""
    *clients, curl = commands
    (folder / "kubectl").symlink_to(program("kubectl"))
    environment = {
        "PATH": f"{folder}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "KUBECONFIG": str(laptop.kubeconfig),
        "HOME": str(folder),
    }
    for command in clients:
        done = subprocess.run(
            command,
            shell=True,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            env=environment,
            check=False,
        )
        assert (done.returncode, done.stdout == "") == (0, False), f"{command}: {done.stderr}"
    words = shlex.split(curl)
    assert words[:2] == ["curl", "-s"], "a machine may have no curl: its address is asked here"
    with urllib.request.urlopen(words[2], timeout=HANG_SECONDS) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def test_the_equal_commands_of_an_object_run(
    browser: Browser, laptop: Laptop, simulated: Sight, tmp_path: Path
) -> None:
    """The first running job of the list, its node, and a pod that holds a card: its page and its
    panel show the same commands.
    """
    with window(browser, simulated.url, height=1600) as tab:
        tab.open("/jobs?job_status=Running", "jobs")
        key = str(tab.page.locator("tr[data-row='0']").get_attribute("data-key"))
        open_first(tab)
        beside = commands_of(tab, "job")
        tab.open(f"/jobs/{key}", "job")
        whole = commands_of(tab, "job")
        assert beside == whole
        assert all_run(whole, laptop, folder(tmp_path, "job"))["job"]["name"] == key.split("/")[-1]
        node = sorted(simulated.counts().nodes)[0]
        tab.open(f"/nodes/{node}", "node")
        assert (
            all_run(commands_of(tab, "node"), laptop, folder(tmp_path, "node"))["node"]["name"]
            == node
        )
        tab.open("/gpus?status=Running", "holders")
        open_first(tab)
        pod = tab.at("side-panel").locator("h2").inner_text()
        held = all_run(commands_of(tab, "holder"), laptop, folder(tmp_path, "pod"))
        assert f"{held['items'][0]['namespace']}/{held['items'][0]['name']}" == pod
        tab.open("/overview", "overview")
        for panel, key in (
            ("pools", "pools"),
            ("map", "nodes"),
            ("consumers", "items"),
            ("warnings", "recentWarnings"),
        ):
            assert all_run(commands_of(tab, panel), laptop, folder(tmp_path, panel))[key]
        tab.open("/quota", "quota")
        assert all_run(commands_of(tab, "tree"), laptop, folder(tmp_path, "tree"))["items"]


def open_first(tab: Window) -> None:
    row = tab.page.locator("tr[data-row='0']")
    expect(row).to_be_visible()
    row.press("Enter")
    expect(tab.at("side-panel")).to_be_visible()


def folder(above: Path, name: str) -> Path:
    (above / name).mkdir()
    return above / name


def commands_of(tab: Window, kind: str) -> list[str]:
    """By keyboard: Enter opens the list and moves the focus into
    it, Escape moves the focus back.
    """
    button = tab.at(f"action-command-{kind}")
    button.focus()
    tab.page.keyboard.press("Enter")
    box = tab.at("equal-commands")
    expect(box.get_by_role("button").first).to_be_focused()
    commands = box.locator("code").all_inner_texts()
    tab.page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(button).to_be_focused()
    return commands


PRINTED = """globalThis.printed = [];
const statuses = () => [...document.querySelectorAll("[role=status]")];
new MutationObserver(() => printed.push(...statuses().map((each) => each.textContent)))
  .observe(document, { subtree: true, childList: true, characterData: true })"""
"""An announcement is visible for a moment, and disappears when the banner changes, so each one is
recorded.
"""


def copy_by_keyboard(tab: Window, box: Locator) -> None:
    tab.page.evaluate("printed = []")
    box.get_by_role("button").press("Enter")
    wait_until("it is announced", lambda: bool(tab.page.evaluate("printed.includes('Copied')")))


def test_names_uuids_and_request_ids_are_copied_by_keyboard_and_announced(
    browser: Browser, simulated: Sight
) -> None:
    node = sorted(simulated.counts().nodes)[0]
    with window(browser, simulated.url, height=1600) as tab:
        tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        tab.page.add_init_script(PRINTED)
        tab.open(f"/nodes/{node}", "node")
        uuid = tab.at("table-node-gpus").locator("tr[data-row='0'] .copied", has_text="GPU-")
        for box, text in ((tab.page.locator("h1 + .copy"), node), (uuid, str(uuid.text_content()))):
            copy_by_keyboard(tab, box)
            assert tab.page.evaluate("navigator.clipboard.readText()") == text
        assert text.startswith("GPU-")
        tab.page.goto(f"{simulated.url}/nodes/absent")
        of_error = tab.at("request-id")
        shown = [of_error.locator(".mono").text_content()]
        copy_by_keyboard(tab, of_error)
        # the page sends the request again by itself, and each answer has an id
        shown.append(of_error.locator(".mono").text_content())
        assert tab.page.evaluate("navigator.clipboard.readText()") in shown
        trouble = (
            '{"code": "not-ready", "error": "the cluster is still being read", "requestId": "r-77"}'
        )
        tab.page.route(
            "**/api/v1/nodes*",
            lambda route: route.fulfill(status=404, content_type="application/json", body=trouble),
        )
        tab.page.goto(f"{simulated.url}/nodes")
        of_server = tab.at("state-server").get_by_test_id("request-id")
        copy_by_keyboard(tab, of_server)
        assert tab.page.evaluate("navigator.clipboard.readText()") == "r-77"


@pytest.mark.parametrize(
    ("code", "shown"), [("not-ready", "state-server"), ("unknown-column", "state-error")]
)
def test_an_error_stays_while_the_request_is_sent_again(
    browser: Browser, simulated: Sight, code: str, shown: str
) -> None:
    trouble = f'{{"code": "{code}", "error": "it does not work", "requestId": "r-77"}}'
    held: list[Route] = []
    is_holding = False

    def answer(route: Route) -> None:
        if is_holding:
            held.append(route)
        else:
            route.fulfill(status=409, content_type="application/json", body=trouble)

    with window(browser, simulated.url) as tab:
        tab.page.route("**/api/v1/nodes*", answer)
        tab.page.goto(f"{simulated.url}/nodes")
        error = tab.at(shown).first
        expect(error).to_be_visible()
        is_holding = True
        error.get_by_role("button", name="Retry").click()
        wait_until("the request is sent again", lambda: tab.page.evaluate("1") and bool(held))
        expect(error).to_be_visible()
        expect(error).to_contain_text("r-77")


@pytest.mark.parametrize("way", ["by selection", "not at all"])
def test_a_clipboard_that_may_not_be_written_is_worked_around_or_reported(
    browser: Browser, simulated: Sight, way: str
) -> None:
    """A page that is not served over https has no clipboard; a browser may refuse the other way,
    too.
    """
    with window(browser, simulated.url) as tab:
        tab.page.add_init_script(
            "Object.defineProperty(Navigator.prototype, 'clipboard', { get: () => undefined })"
        )
        tab.page.add_init_script(
            "addEventListener('copy', () => { window.taken = "
            "String(document.activeElement.value) "
            "})"
        )
        if way == "not at all":
            tab.page.add_init_script("Document.prototype.execCommand = () => false")
        node = sorted(simulated.counts().nodes)[0]
        tab.open(f"/nodes/{node}", "node")
        copy = tab.page.locator("h1 + .copy")
        copy.get_by_role("button").press("Enter")
        if way == "by selection":
            expect(copy.get_by_role("status")).to_have_text("Copied")
            assert tab.page.evaluate("window.taken") == node
        else:
            expect(copy.get_by_role("status")).to_contain_text("does not allow this page to copy")
            assert tab.page.evaluate("String(getSelection())") == node
        expect(copy.get_by_role("button")).to_be_focused()


def test_a_browser_that_keeps_nothing_shows_the_page_and_obeys(
    browser: Browser, simulated: Sight
) -> None:
    refuse = (
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('off', "
        "'SecurityError') } })"
    )
    with window(browser, simulated.url) as tab:
        tab.page.add_init_script(refuse)
        tab.open("/nodes", "nodes")
        tab.at("action-theme").click()
        expect(tab.page.locator("html")).to_have_attribute("data-theme", "dark")
        tab.at("action-language").click()
        expect(tab.page.locator("html")).to_have_attribute("lang", "zh-CN")


def test_the_box_shows_no_hits_of_an_older_question(browser: Browser, simulated: Sight) -> None:
    node = sorted(simulated.counts().nodes)[0]
    with window(browser, simulated.url) as tab:
        tab.open("/overview", "overview")
        tab.page.keyboard.press("/")
        tab.page.keyboard.type(node)
        options = tab.at("find-box").get_by_role("option")
        expect(options.first).to_contain_text(node)
        tab.page.route("**/api/v1/*?q=zzzz*", lambda route: None)
        tab.page.keyboard.press("Control+a")
        tab.page.keyboard.type("zzzz")
        expect(options).to_have_count(0)
        tab.page.unroute_all(behavior="ignoreErrors")


def test_a_panel_asks_for_its_pod_by_name_wherever_the_rows_are(
    browser: Browser, simulated: Sight
) -> None:
    with window(browser, simulated.url) as tab:
        tab.open("/gpus?sort=name&size=1", "holders")
        pod = str(tab.page.locator("tr[data-row='0']").get_attribute("data-key"))
        for elsewhere in ("status=Nothing", "size=1&page=2&sort=name", "by=owner"):
            tab.open(f"/gpus?{elsewhere}&open={pod}", "holders")
            expect(tab.at("side-panel")).to_contain_text("Running")
        tab.open("/gpus?open=research/absent", "holders")
        expect(tab.at("side-panel")).to_contain_text("research/absent no longer holds a GPU")


@pytest.mark.parametrize("key", ["/", "Control+k", "?"])
def test_esc_leaves_a_dialog_and_not_the_panel_behind_it(
    browser: Browser, simulated: Sight, key: str
) -> None:
    with window(browser, simulated.url) as tab:
        tab.open("/nodes", "nodes")
        open_first(tab)
        button = tab.at("side-panel").get_by_role("button", name="Close")
        for where in (button, tab.page.locator("tr[aria-selected=true]")):
            where.focus()
            tab.page.keyboard.press(key)
            expect(tab.page.locator("dialog[open]")).to_be_visible()
            tab.page.keyboard.press("Escape")
            expect(tab.page.locator("dialog[open]")).to_have_count(0)
            expect(tab.at("side-panel")).to_be_visible()
            expect(where).to_be_focused()


@pytest.mark.parametrize("key", ["/", "?"])
def test_a_key_that_follows_esc_at_once_opens_the_dialog_again(
    browser: Browser, simulated: Sight, key: str
) -> None:
    """The browser reports a closed dialog later than it closes it."""
    with window(browser, simulated.url) as tab:
        tab.open("/nodes", "nodes")
        tab.page.keyboard.press(key)
        dialog = tab.page.locator("dialog[open]")
        expect(dialog).to_be_visible()
        for _ in range(20):
            tab.page.keyboard.press("Escape")
            tab.page.keyboard.press(key)
        expect(dialog).to_be_visible()
        tab.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)


def test_g_leads_to_every_board_from_a_row_of_a_table(browser: Browser, simulated: Sight) -> None:
    with window(browser, simulated.url) as tab:
        for letter, page in (("n", "nodes"), ("j", "jobs"), ("q", "quota"), ("o", "overview")):
            tab.open("/nodes", "nodes")
            row = tab.page.locator("tr[data-row='0']")
            row.focus()
            tab.page.keyboard.press("g")
            tab.page.keyboard.press(letter)
            expect(tab.at(f"page-{page}")).to_be_visible()


def test_a_page_of_the_address_is_the_page_that_is_announced(
    browser: Browser, simulated: Sight
) -> None:
    with window(browser, simulated.url) as tab:
        tab.open("/devices?size=7&page=2", "devices")
        expect(tab.at("table-range")).to_contain_text("8–14 of ")
        expect(tab.page.locator(".table-foot")).to_contain_text("2 / ")
        for wrong in ("page=abc", "page=0&size=501", "size=1e999"):
            tab.open(f"/devices?{wrong}", "devices")
            expect(tab.at("table-range")).to_contain_text("1–")
            expect(tab.page.locator("tr[data-row='0']")).to_be_visible()


def test_an_order_that_is_refused_loses_no_rows(browser: Browser, simulated: Sight) -> None:
    refusal = (
        '{"code": "malformed", "error": "rows have no order by `gpusTotal`", "requestId": "r-78"}'
    )
    with window(browser, simulated.url) as tab:
        tab.page.route(
            "**/api/v1/nodes?*gpusTotal*",
            lambda route: route.fulfill(status=400, content_type="application/json", body=refusal),
        )
        tab.open("/nodes?sort=-name", "nodes")
        rows = tab.page.locator("tr[data-row]")
        expect(rows.first).to_be_visible()
        before = rows.evaluate_all("rows => rows.map(row => row.dataset.key)")
        head = tab.at("table-nodes").get_by_role("columnheader", name="Total GPUs")
        head.get_by_role("button").click()
        expect(tab.at("state-outdated")).to_contain_text("r-78")
        assert rows.evaluate_all("rows => rows.map(row => row.dataset.key)") == before
        expect(tab.at("state-error")).to_have_count(0)
        expect(head).not_to_have_attribute("aria-sort", "descending")
        sorted_head = tab.at("table-nodes").locator("th[aria-sort=descending]")
        expect(sorted_head).to_contain_text("Name")
        sorted_head.get_by_role("button").click()
        expect(tab.at("state-outdated")).to_have_count(0)


def test_a_table_that_is_there_whole_is_taken_along_as_a_file(
    browser: Browser, simulated: Sight
) -> None:
    """Lists that come in pages are exported by the server; of
    these tables the page has every row.
    """

    def saved(name: str) -> list[dict[str, str]]:
        with tab.page.expect_download() as download:
            tab.at(f"csv-{name}").click()
        assert download.value.suggested_filename == f"{name}.csv"
        return list(
            csv.DictReader(download.value.path().read_text(encoding="utf-8-sig").splitlines())
        )

    with window(browser, simulated.url) as tab:
        node = sorted(simulated.counts().nodes)[0]
        tab.open(f"/nodes/{node}", "node")
        uuids = tab.at("table-node-gpus").locator("tr[data-row] .copied", has_text="GPU-")
        expect(uuids.first).to_be_visible()
        assert {row["uuid"] for row in saved(f"{node}-gpus")} >= set(uuids.all_text_contents())
        tab.open("/jobs?job_status=Running", "jobs")
        key = str(tab.page.locator("tr[data-row='0']").get_attribute("data-key"))
        tab.open(f"/jobs/{key}", "job")
        names = tab.at("table-job-instances").locator("tr[data-row] td:first-child .copied")
        expect(names.first).to_be_visible()
        assert {row["name"] for row in saved(f"{key.split('/')[-1]}-instances")} >= set(
            names.all_text_contents()
        )
