"""The page "My work" in the browser: the user is chosen by keyboard and remembered; the command
beside what could start now starts it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect
from tests.browser.chromium import Window, window
from tests.browser.sight import JOB_KINDS, Sight, soon
from tests.kube.laptop import Laptop
from tests.waiting import HANG_SECONDS, wait_until


def answer(sight: Sight, query: str = "") -> dict[str, Any]:
    with urllib.request.urlopen(f"{sight.url}/api/v1/mine{query}", timeout=HANG_SECONDS) as found:
        return dict(json.load(found))


def choose(tab: Window, name: str, value: str) -> None:
    tab.at(f"one-{name}").locator("input").focus()
    tab.page.keyboard.type(value)
    # Enter closes the list where no choice is active yet
    option = tab.page.locator(f'.ant-select-item-option-active[title="{value}"]')
    expect(option).to_be_visible()
    tab.page.keyboard.press("Enter")


def test_the_users_own_name_is_chosen_and_kept(browser: Browser, simulated: Sight) -> None:
    users = answer(simulated)["users"]
    with window(browser, simulated.url) as tab:
        tab.open("/overview", "overview")
        tab.page.keyboard.type("gm")
        expect(tab.at("page-mine")).to_be_visible()
        tab.page.get_by_role("button", name=users[0], exact=True).click()
        expect(tab.at("panel-starts")).to_be_visible()
        choose(tab, "user", users[-1])
        expect(tab.page).to_have_url(f"{simulated.url}/mine?user={users[-1]}")
        soon(
            "my jobs",
            lambda: {key.split("/")[2] for key in tab.column("jobs", "Job Name")},
            lambda: jobs_of(simulated, users[-1]),
        )
        tab.open("/nodes", "nodes")
        tab.open("/mine", "mine")
        expect(tab.page).to_have_url(f"{simulated.url}/mine?user={users[-1]}")
        choose(tab, "namespace", answer(simulated)["allNamespaces"][0])
        expect(tab.page).to_have_url(
            f"{simulated.url}/mine?namespace={answer(simulated)['allNamespaces'][0]}"
        )


def jobs_of(sight: Sight, user: str) -> set[str]:
    """Names of jobs whose own metadata name the user, according to kubectl."""
    jobs = [job for kind in JOB_KINDS for job in sight.kubectl.get(kind)]
    return {
        job["metadata"]["name"]
        for job in jobs
        if job["metadata"].get("annotations", {}).get("arena.kubeflow.org/username") == user
    }


def test_the_line_beside_what_could_start_now_starts_it(
    browser: Browser, laptop: Laptop, simulated: Sight, tmp_path: Path
) -> None:
    """Tries shared memory, where the laptop's own jobs change least: the line unchanged, in a shell
    of the user's own.
    """
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "KUBECONFIG": str(laptop.kubeconfig),
        "HOME": str(tmp_path),
    }

    def shell(command: str) -> str:
        done = subprocess.run(
            command,
            shell=True,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    place = next(space for space in answer(simulated)["allNamespaces"] if starts(simulated, space))
    with window(browser, simulated.url) as tab:
        tab.open(f"/mine?namespace={place}", "mine")
        line = tab.at("start-aliyun.com/gpu-mem").first.locator("code").inner_text()
    shell(line)
    try:
        wait_until("the job runs", lambda: "RUNNING" in shell(f"arena get first -n {place}"), 60)
    finally:
        shell(f"arena delete first -n {place}")


def starts(sight: Sight, place: str) -> list[dict[str, Any]]:
    return [
        each
        for each in answer(sight, f"?namespace={place}")["starts"]
        if each["resource"] == "aliyun.com/gpu-mem" and each["amount"]
    ]
