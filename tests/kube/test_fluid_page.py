"""Document 004's click on a real control plane with Fluid's real controllers: in Chromium its claim
is accelerated, the console is killed in the middle, and the next one finishes the operation.

The console has the account and the rights of deploy/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Locator, expect
from tests.browser.chromium import PATIENCE_MS, Window, running_chromium, window
from tests.browser.signed_in import signed_in
from tests.kube.console_line import Administrator, console, install_rights
from tests.kube.fluid import Fluid
from tests.kube.kubectl import Kubectl
from tests.kube.objects import namespace
from tests.kube.outputs import record_outputs, route_outputs
from tests.kube.servers import READY_SECONDS, Server
from tests.turns import in_turn
from tests.waiting import wait_until

MANIFEST = Path(__file__).parents[2] / "examples" / "fashion-mnist.yaml"
SPACE, CLAIM = "demo-ns", "fashion-demo-pvc"
SET = f"{CLAIM}-acc"
KEY = "AKSECRET"
END_MS = 180_000
"""The Lease of a killed console ends after 30 s; Fluid needs about as long for a data set."""
OVER = re.compile("Succeeded|Failed|Cancelled")
GONE = ("datasets.data.fluid.io", "alluxioruntimes", "statefulsets", "daemonsets", "pods")
WORDS = {"en-US": ("Data sets", "Accelerate"), "zh-CN": ("数据集列表", "一键加速")}


class Line(NamedTuple):
    """`own`: who is signed in."""

    fluid: Fluid
    server: Server
    own: Administrator


@pytest.fixture(scope="module")
def line(real_fluid: Fluid) -> Iterator[Line]:
    cluster = real_fluid.cluster
    install_rights(cluster)
    cluster.admin.apply([namespace(SPACE)])
    cluster.admin.run("create", "-f", str(MANIFEST))
    wait_until("the claim is Bound", lambda: phase(cluster.admin, "pvc", CLAIM) == "Bound")
    with console(cluster, "page") as server:
        yield Line(real_fluid, server, Administrator(cluster.admin))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with running_chromium(tmp_path_factory.mktemp("chromium")) as chromium:
        yield chromium


def phase(kubectl: Kubectl, kind: str, name: str) -> str:
    words = ("-n", SPACE, "get", kind, name, "-o", "jsonpath={.status.phase}")
    return kubectl.run(*words).strip()


def row(tab: Window, kind: str, name: str) -> Locator:
    return tab.page.locator(f'tr[data-key="{SPACE}/{kind}/{name}"]')


def ended(tab: Window, line: Line) -> None:
    """The operation of the page has succeeded; a failure shows its steps and the console's log."""
    page, id = tab.at("page-operation"), tab.page.url.rpartition("/")[2]
    try:
        expect(page).to_have_attribute("data-state", OVER, timeout=END_MS)
        expect(page).to_have_attribute("data-state", "Succeeded")
    except AssertionError as error:
        _, found = line.own.read(line.server, f"/operations/{id}")
        end = line.server.component.log_tail()
        raise AssertionError("\n".join((str(error), found, end))) from error


@pytest.mark.parametrize("locale", in_turn(tuple(WORDS), 2))
def test_one_click_is_bound_although_the_console_is_killed(
    line: Line, browser: Browser, locale: str
) -> None:
    server, kubectl = line.server, line.fluid.cluster.admin
    title, button = WORDS[locale]
    with window(browser, server.url, locale) as tab:
        place = f"/datasets?open={SPACE}/PersistentVolumeClaim/{CLAIM}"
        signed_in(tab, server.url, line.own.token, place, "datasets")
        heading = tab.at("page-datasets").get_by_role("heading", level=1)
        expect(heading).to_have_text(title)
        expect(tab.at("action-accelerate")).to_have_text(button)
        tab.at("action-accelerate").click()
        expect(tab.at("form-submit")).to_be_enabled()
        tab.at("form-submit").click()

        expect(tab.at("page-operation")).to_be_visible()
        expect(tab.at("operation-steps")).to_contain_text(f"AlluxioRuntime {SPACE}/{SET}")
        wait_until("both are made", lambda: has(kubectl, "alluxioruntimes", SET))
        id = tab.page.url.rpartition("/")[2]
        server.component.kill()
        server.component.start()
        server.component.wait_until(server.is_ready, READY_SECONDS)
        assert line.own.state(server, id) == "Running"
        ended(tab, line)
        # a console that has just started answers 503 until it has read the cluster
        tab.complaints[:] = [each for each in tab.complaints if "status 503: " not in each]
        assert phase(kubectl, "datasets.data.fluid.io", SET) == "Bound"
        assert phase(kubectl, "pvc", SET) == "Bound"

        tab.page.goto(f"{server.url}/datasets?open={SPACE}/Dataset/{SET}")
        expect(row(tab, "PersistentVolumeClaim", CLAIM)).to_contain_text(SET)
        # Fluid's master and workers mount the claim that they cache
        expect(row(tab, "PersistentVolumeClaim", CLAIM)).to_contain_text(
            f"StatefulSet/{SET}-master"
        )
        expect(tab.at("dataset-cache")).to_contain_text(f"pvc://{CLAIM}")
        check_no_key(line, id)
        tab.at("action-unaccelerate").click()
        tab.at("end-name").fill(SET)
        tab.at("form-submit").click()
        expect(tab.at("page-operation")).to_be_visible()
        ended(tab, line)
    left = {kind: names(kubectl, kind) for kind in GONE}
    assert not any(left.values()), left
    assert names(kubectl, "pvc") == [CLAIM]
    assert phase(kubectl, "pvc", CLAIM) == "Bound"


def check_no_key(line: Line, id: str) -> None:
    """No route, record or log has the key of the volume; test_data_secrets asks more."""
    server, own, cluster = line.server, line.own, line.fluid.cluster
    places = {"dataset": f"/datasets/{SPACE}/{SET}", "operation": f"/operations/{id}"}
    found = {
        title: text
        for title, _, text in route_outputs(lambda path: own.read(server, path), "admin", places)
    }
    assert SET in found[f"admin: GET {places['dataset']}"]
    found |= {**dict(record_outputs(cluster.admin)), "the log": server.log()}
    assert len(found) > 50
    assert [title for title, text in found.items() if KEY in text] == []


def has(kubectl: Kubectl, kind: str, name: str) -> bool:
    return name in names(kubectl, kind)


def names(kubectl: Kubectl, kind: str) -> list[str]:
    return [each["metadata"]["name"] for each in kubectl.get(kind, "-n", SPACE)]
