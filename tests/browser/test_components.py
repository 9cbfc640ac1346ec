"""The page Components over the laptop of document 004: Fluid (its stand-in) is deployed with a
reload in the middle, then its claim is accelerated by a click, and the laptop is killed in the
middle; the console with a real PostgreSQL; and the page with hostile texts.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from playwright.sync_api import Browser, expect
from tests.apps.still_components import StillComponents
from tests.browser.accessibility import check_axe
from tests.browser.chromium import OUTPUT, WIDE_AND_NARROW, Window, window
from tests.browser.dataset_pages import ATTACK, code_of, row
from tests.browser.people_pages import MemoryTrail
from tests.browser.signed_in import signed_in
from tests.browser.still_console import served
from tests.console.clusters import cluster, gpu_node
from tests.console.data_parts import MemoryRecords
from tests.console.sign_in_parts import ANNA, BOB, FakeSignInApi, Parts, group
from tests.console.worlds import still_world
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.servers import READY_SECONDS, run_fairlead
from tests.rules.components.plans import deployment, facts, there, written
from tests.stores.database_servers import Postgres, is_installed
from tests.turns import in_turn
from tests.waiting import wait_until

from fairlead.edge.store.look import StoreLooks
from fairlead.model.installed.component_facts import ComponentFacts, ProgramWorkload
from fairlead.model.operations.component import ComponentInventory

pytestmark = pytest.mark.turns(4, 0)

MANIFEST = Path(__file__).parents[2] / "examples" / "fashion-mnist.yaml"
CLAIM, SET = "fashion-demo-pvc", "fashion-demo-pvc-acc"
WORDS = {
    "en-US": {"title": "Components", "deploy": "Deploy", "again": "Re-check"},
    "zh-CN": {"title": "云原生AI套件", "deploy": "部署", "again": "检测"},
}


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    """It keeps its cluster, so that it can be killed."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    kept = tmp_path / "state"
    flags = ("--sign-in", "--scenario=documents-004", "--speed=10", f"--state-dir={kept}")
    with running_laptop(OUTPUT / "components.log", *flags) as it:
        it.kubectl.run("create", "ns", "demo-ns")
        it.kubectl.run("create", "-f", str(MANIFEST))
        yield it


@pytest.fixture(scope="module")
def installed() -> Iterator[Laptop]:
    """Another one, with an installation that lacks two parts."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    flags = ("--sign-in", "--scenario=empty", "--speed=10")
    with running_laptop(OUTPUT / "components-installed.log", *flags) as it:
        run_fairlead(it.kubeconfig, "install", *INSTALLED)
        yield it


@pytest.fixture(scope="module")
def session(installed: Laptop, browser: Browser) -> Any:
    """The cookies of a sign-in there: its code works once, and it serves several tests."""
    with window(browser, installed.console.url) as tab:
        tab.page.goto(f"{installed.console.url}/components#code={code_of(installed)}")
        expect(tab.at("page-components")).to_be_visible()
        return tab.page.context.cookies()


def ended(tab: Window) -> None:
    expect(tab.at("page-operation")).to_have_attribute("data-state", "Succeeded", timeout=180_000)


@pytest.mark.parametrize("locale", in_turn(list(WORDS), 2))
def test_fluid_is_deployed_from_the_page_and_the_claim_accelerated_by_a_click(
    laptop: Laptop, browser: Browser, locale: str
) -> None:
    url = laptop.console.url
    with window(browser, url, locale) as tab:
        tab.page.goto(f"{url}/components#code={code_of(laptop)}")
        deployed_and_accelerated(tab, laptop, locale)
        removed(tab, laptop)


def deployed_and_accelerated(tab: Window, laptop: Laptop, locale: str) -> None:
    """From the page Components, which is open. The page of the operation is read anew."""
    words, url = WORDS[locale], laptop.console.url
    expect(tab.at("page-components").get_by_role("heading", level=1)).to_have_text(words["title"])
    search = tab.at("filter-q").bounding_box()
    assert search is not None and search["width"] > 90, "the button leaves room for the search"
    tab.page.locator('tr[data-key="fluid"]').click()
    expect(tab.at("action-deploy")).to_have_text(words["deploy"])
    tab.keep(f"components-{locale}")
    tab.at("action-deploy").click()
    expect(tab.at("plan-checks")).to_contain_text(words["again"])
    expect(tab.at("plan-line")).to_contain_text("fairlead component deploy fluid")
    expect(tab.at("form-submit")).to_be_enabled()
    tab.keep(f"component-checks-{locale}")
    check_axe(tab)
    tab.at("form-submit").click()
    expect(tab.at("plan-changes")).to_contain_text("fluid-system/dataset-controller")
    tab.keep(f"component-plan-{locale}")
    check_axe(tab)
    tab.at("form-submit").click()

    expect(tab.at("page-operation")).to_be_visible()
    expect(tab.at("operation-steps")).to_contain_text("dataset-controller")
    tab.page.reload()
    expect(tab.at("page-operation")).to_be_visible()
    ended(tab)
    tab.page.goto(f"{url}/components?open=fluid")
    expect(tab.at("component-history")).to_be_visible()
    expect(tab.at("action-remove")).to_be_visible()
    expect(tab.at("component-objects")).to_be_visible()
    tab.keep(f"component-ready-{locale}")

    tab.page.goto(f"{url}/datasets?open=demo-ns/PersistentVolumeClaim/{CLAIM}")
    tab.at("action-accelerate").click()
    expect(tab.at("form-submit")).to_be_enabled(timeout=60_000)
    scale_controller(laptop, 0)
    tab.at("form-submit").click()
    expect(tab.at("page-operation")).to_be_visible()
    expect(tab.at("operation-steps")).to_contain_text(f"demo-ns/{SET}")
    wait_until("both objects are made", lambda: has_runtime(laptop))
    restart(tab, laptop)
    expect(tab.at("page-operation")).to_have_attribute("data-state", "Running")
    scale_controller(laptop, 1)
    ended(tab)
    phase = laptop.kubectl.run(
        *("-n", "demo-ns", "get", "datasets.data.fluid.io", SET),
        *("-o", "jsonpath={.status.phase}"),
    )
    assert phase == "Bound"


def scale_controller(laptop: Laptop, replicas: int) -> None:
    """Without a controller of Fluid the operation stays in its middle."""
    words = ("deployment/dataset-controller", f"--replicas={replicas}")
    laptop.kubectl.run("-n", "fluid-system", "scale", *words)


def has_runtime(laptop: Laptop) -> bool:
    return bool(laptop.kubectl.get("alluxioruntimes", "-n", "demo-ns"))


def restart(tab: Window, laptop: Laptop) -> None:
    """Kill the laptop, server and cluster, and start it again. The page stays open; its user is
    signed in again, since a laptop forgets sign-ins.
    """
    before, place = code_of(laptop), tab.page.url
    laptop.component.kill()
    laptop.component.start()
    laptop.component.wait_until(lambda: code_of(laptop) != before, READY_SECONDS)
    laptop.component.wait_until(laptop.console.is_ready, READY_SECONDS)
    # The same address with another code would not be loaded anew: the page that is open might go to
    # the sign-in without the code first.
    tab.page.goto("about:blank")
    tab.page.goto(f"{place}#code={code_of(laptop)}")
    expect(tab.at("page-operation")).to_be_visible()


def removed(tab: Window, laptop: Laptop) -> None:
    """The data set ends, then Fluid is uninstalled with its definitions."""
    url = laptop.console.url
    tab.page.goto(f"{url}/components?open=fluid")
    tab.at("action-remove").click()
    tab.at("plan-definitions").check()
    expect(tab.at("check-live-objects")).to_have_attribute("data-state", "fail")
    expect(tab.at("form-submit")).to_be_disabled()
    tab.page.goto(f"{url}/datasets?open=demo-ns/Dataset/{SET}")
    tab.at("action-unaccelerate").click()
    tab.at("end-name").fill(SET)
    tab.at("form-submit").click()
    expect(tab.at("page-operation")).to_be_visible()
    ended(tab)
    tab.page.goto(f"{url}/datasets")
    expect(row(tab, "Dataset", SET)).to_have_count(0)
    tab.page.goto(f"{url}/components?open=fluid")
    tab.at("action-remove").click()
    tab.at("plan-definitions").check()
    expect(tab.at("form-submit")).to_be_enabled()
    tab.at("form-submit").click()
    expect(tab.at("plan-changes")).to_be_visible()
    expect(tab.at("form-submit")).to_be_disabled()
    tab.at("plan-name").fill("fluid")
    tab.keep("component-removal")
    check_axe(tab)
    tab.at("form-submit").click()
    expect(tab.at("page-operation")).to_be_visible()
    ended(tab)


MANIFESTS = """\
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: {name}}}
"""
TOGETHER = {
    "en-US": {"tick": "Deploy 3 components", "part": "part is turned off"},
    "zh-CN": {"tick": "部署 3 个组件", "part": "关闭此组成部分"},
}
INSTALLED = ("--set=parts.quota=false", "--set=parts.console=false", "--wait=0")


@pytest.mark.parametrize("locale", in_turn(list(WORDS), 2))
def test_several_components_are_ticked_and_deployed_by_one_click(
    installed: Laptop, session: Any, browser: Browser, locale: str
) -> None:
    """A part of the installation among them; then it is uninstalled from the page, too."""
    url = installed.console.url
    with window(browser, url, locale) as tab:
        tab.page.context.add_cookies(session)
        tab.page.goto(f"{url}/components")
        deployed_together(tab, installed, locale)
        tab.page.goto(f"{url}/components?open=quota")
        tab.at("action-remove").click()
        expect(tab.at("plan-form")).to_contain_text(TOGETHER[locale]["part"])
        started(tab, "quota")
        for id in ("training-operator", "mpi-operator"):
            tab.page.goto(f"{url}/components?open={id}")
            tab.at("action-remove").click()
            started(tab, id)


def deployed_together(tab: Window, laptop: Laptop, locale: str) -> None:
    url = laptop.console.url
    ids = ("quota", "training-operator", "mpi-operator")
    for id in ids:
        tab.at(f"tick-{id}").check()
    expect(tab.at("tick-cli")).to_have_count(0)
    expect(tab.at("action-deploy-ticked")).to_have_text(TOGETHER[locale]["tick"])
    tab.at("action-deploy-ticked").click()
    expect(tab.at("check-config-complete").first).to_have_attribute("data-state", "fail")
    expect(tab.at("form-submit")).to_be_disabled()
    for id in ids[1:]:
        tab.at(f"plan-{id}-manifests").fill(MANIFESTS.format(name=id))
        tab.at(f"plan-{id}-namespace").fill(id)
    expect(tab.at("form-submit")).to_be_enabled()
    tab.keep(f"components-together-{locale}")
    check_axe(tab)
    tab.at("form-submit").click()
    expect(tab.at("planned-quota")).to_contain_text("fairlead-quota-controller")
    expect(tab.at("planned-mpi-operator")).to_contain_text("mpi-operator/mpi-operator")
    expect(tab.at("plan-line")).to_contain_text("fairlead component deploy ")
    tab.keep(f"components-together-plan-{locale}")
    check_axe(tab)
    tab.at("form-submit").click()
    expect(tab.at("page-operation")).to_be_visible()
    tab.page.reload()
    ended(tab)
    for id in ids:
        tab.page.goto(f"{url}/components?open={id}")
        expect(tab.at("component-history").locator("li").first).to_be_visible()
        expect(tab.at("action-remove")).to_be_enabled()
    values = laptop.kubectl.run(
        *("-n", "fairlead-system", "get", "configmap", "fairlead-installation"),
        *("-o", "jsonpath={.data.values}"),
    )
    assert "quota: false" not in values


def started(tab: Window, id: str) -> None:
    """The plan of a removal, from its dialog to the end of the operation."""
    expect(tab.at("form-submit")).to_be_enabled()
    tab.at("form-submit").click()
    tab.at("plan-name").fill(id)
    tab.at("form-submit").click()
    expect(tab.at("page-operation")).to_be_visible()
    ended(tab)


@pytest.mark.skipif(not is_installed("postgresql"), reason="no PostgreSQL")
def test_the_console_is_deployed_with_a_database_that_answers(
    installed: Laptop, session: Any, browser: Browser
) -> None:
    """What is checked is written into the Secret, and the page shows the password nowhere."""
    database, url = Postgres(), installed.console.url
    try:
        at = database.new_database("fairlead")
        store = f"postgresql://{at.user}@{at.host}:{at.port}/{at.database}"
        with window(browser, url) as tab:
            tab.page.context.add_cookies(session)
            tab.page.goto(f"{url}/components")
            tab.page.locator('tr[data-key="console"]').click()
            tab.at("action-deploy").click()
            tab.at("store-external").check()
            expect(tab.at("form-submit")).to_be_disabled()
            tab.at("store-url").fill(store)
            for password, is_right in (("wrong-wrong-wrong", "false"), (at.password, "true")):
                tab.at("store-password").fill(password)
                tab.at("store-check").click()
                expect(tab.at("store-answer")).to_have_attribute("data-ok", is_right)
            expect(tab.at("form-submit")).to_be_enabled()
            tab.keep("components-store-answers")
            tab.at("form-submit").click()
            expect(tab.at("plan-changes")).to_contain_text("fairlead-console")
            tab.at("form-submit").click()
            ended(tab)
            assert at.password not in tab.page.content()
    finally:
        database.end()
    kubectl = ("-n", "fairlead-system", "get")
    secret = installed.kubectl.run(*kubectl, "secret", "fairlead-console", "-o", "json")
    kept = {key: b64decode(text).decode() for key, text in json.loads(secret)["data"].items()}
    assert kept["store-password"] == at.password
    made = installed.kubectl.run(*kubectl, "deployment", "fairlead-console", "-o", "json")
    assert f"--store={store}" in made and at.password not in made
    records = installed.kubectl.run(*kubectl, "configmaps", "-o", "yaml")
    assert at.password not in records and "wrong-wrong" not in records


@pytest.fixture
def still() -> Iterator[str]:
    """Hostile texts in what other programs have made; an upgrade of the MPI operator."""
    components = StillComponents()
    before = ComponentInventory(
        id="mpi-operator",
        version="0.5.0",
        state="complete",
        namespace="fairlead-system",
        place="mpi",
    )
    components.known = ComponentFacts(
        program="0.1.0",
        workloads=(
            ProgramWorkload("Deployment", "kueue", "kueue-controller-manager", version=ATTACK),
        ),
        inventories=(before,),
    )
    old, new = deployment(ATTACK), deployment("mpi:2")
    components.plan = facts(there(new, result=written(new), found=written(old)), before=before)
    people = FakeSignInApi((ANNA, BOB), (group("a"),))
    world = structs.replace(
        still_world(cluster([gpu_node("gpu-1")])),
        components=lambda: components,
        operations=MemoryRecords(),
        stores=StoreLooks(),
    )
    with served(world, Parts(people, records=MemoryTrail()).desk()) as address:
        yield address


@pytest.mark.parametrize(("locale", "scheme", "width"), in_turn(WIDE_AND_NARROW, 2))
def test_the_page_is_accessible_and_hostile_texts_stay_texts(
    still: str, browser: Browser, locale: str, scheme: str, width: int
) -> None:
    with window(browser, still, locale, width=width, scheme=scheme) as tab:
        signed_in(tab, still, "token-of-anna", "/components?open=kueue", "components")
        expect(tab.at("component-facts")).to_contain_text(ATTACK)
        expect(tab.at("component-actions")).to_have_count(0)
        tab.keep(f"components-foreign-{locale}-{scheme}")
        check_axe(tab)
        tab.page.goto(f"{still}/components?open=mpi-operator")
        tab.at("action-upgrade").click()
        expect(tab.at("check-config-complete")).to_have_attribute("data-state", "fail")
        tab.at("plan-manifests").fill(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: mpi-operator}\n"
        )
        expect(tab.at("form-submit")).to_be_enabled()
        tab.keep(f"components-upgrade-{locale}-{scheme}")
        check_axe(tab)
        tab.at("form-submit").click()
        expect(tab.at("plan-changes")).to_contain_text(ATTACK)
        expect(tab.at("plan-changes")).to_contain_text("mpi:2")
        tab.keep(f"components-diff-{locale}-{scheme}")
        check_axe(tab)
        tab.page.goto(f"{still}/components?open=console")
        tab.at("action-deploy").click()
        tab.at("store-external").check()
        tab.at("store-url").fill("postgresql://fairlead@127.0.0.1:1/fairlead")
        tab.at("store-password").fill("hunter2-hunter2")
        tab.at("store-check").click()
        expect(tab.at("store-answer")).to_have_attribute("data-ok", "false")
        expect(tab.at("store-answer")).not_to_contain_text("hunter2")
        tab.keep(f"components-store-{locale}-{scheme}")
        check_axe(tab)
        tab.page.goto(f"{still}/components?open=fluid")
        tab.at("action-deploy").click()
        tab.at("plan-chart").fill("oci://registry.example.com/charts/fluid")
        tab.at("plan-settings").locator("summary").click()
        tab.at("plan-dataset.replicas").fill("many")
        expect(tab.at("plan-settings")).to_contain_text("value `dataset.replicas` is `many`")
        expect(tab.at("form-submit")).to_be_disabled()
        tab.keep(f"components-settings-{locale}-{scheme}")
        check_axe(tab)
        tab.at("plan-csi.tolerations").fill("- operator: Exists")
        tab.at("plan-dataset.replicas").fill("2")
        expect(tab.at("plan-line")).to_contain_text("--set dataset.replicas=2")
        expect(tab.at("plan-line")).to_contain_text("csi.tolerations=")
        assert "attacked" not in tab.page.title()


def test_a_researcher_finds_no_page(still: str, browser: Browser) -> None:
    with window(browser, still) as tab:
        signed_in(tab, still, "token-of-bob", "/mine", "mine")
        tab.page.goto(f"{still}/components")
        expect(tab.at("page-of-admins")).to_be_visible()
