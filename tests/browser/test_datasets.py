"""The pages Data sets and Operations over the laptop, with the stand-in of Fluid: a claim is
accelerated by a click, the page is read anew in the middle, and the acceleration ends again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec import structs
from playwright.sync_api import Browser, Route, expect
from tests.apps.tree_writes import FakeWrites
from tests.browser.accessibility import check_axe
from tests.browser.chromium import OUTPUT, WIDE_AND_NARROW, Window, window
from tests.browser.dataset_pages import ATTACK, SPACE, code_of, row
from tests.browser.people_pages import MemoryTrail
from tests.browser.signed_in import signed_in
from tests.browser.still_console import served
from tests.console.clusters import EPOCH, cluster, gpu_node
from tests.console.data_parts import (
    MemoryHistory,
    MemoryRecords,
    StillData,
    claim,
    data_set,
    runtime,
)
from tests.console.sign_in_parts import ANNA, BOB, FakeSignInApi, Parts, group
from tests.console.worlds import still_world
from tests.kube.laptop import Laptop, running_laptop
from tests.turns import in_turn
from tests.waiting import wait_until

from fairlead.model.jobs.acceleration import DataUser
from fairlead.model.jobs.datasets import DataMount
from fairlead.model.operations.operation import (
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    RemoveStep,
    StepProgress,
    StepState,
)
from fairlead.wire.data.stand_in import stand_in_objects
from fairlead.wire.operations.document import history_row

pytestmark = pytest.mark.turns(4, 3)

CLAIM = "fashion-demo-pvc"
SET = f"{CLAIM}-acc"
KEY = "the-key-of-the-object-store"


def volume_objects() -> list[dict[str, Any]]:
    """A namespace, a volume and a claim that many nodes may mount."""
    size, modes = {"storage": "2Gi"}, ["ReadWriteMany"]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "fashion-demo-pv"},
            "spec": {
                "capacity": size,
                "accessModes": modes,
                "storageClassName": "",
                "nfs": {"server": "nfs.example", "path": "/fashion"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM, "namespace": SPACE},
            "spec": {
                "accessModes": modes,
                "storageClassName": "",
                "volumeName": "fashion-demo-pv",
                "resources": {"requests": size},
            },
        },
    ]


@pytest.fixture(scope="module")
def laptop() -> Iterator[Laptop]:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with running_laptop(
        OUTPUT / "datasets.log", "--sign-in", "--scenario=empty", "--speed=10"
    ) as it:
        it.kubectl.apply(volume_objects())
        yield it


def install_stand_in(laptop: Laptop) -> None:
    laptop.kubectl.apply(stand_in_objects())
    laptop.kubectl.run(
        *("-n", "fluid-system", "rollout", "status", "deployment/dataset-controller"),
        "--timeout=120s",
    )


def ended(tab: Window) -> None:
    expect(tab.at("page-operation")).to_have_attribute("data-state", "Succeeded", timeout=120_000)


def test_a_claim_is_accelerated_by_a_click_and_the_acceleration_ends(
    laptop: Laptop, browser: Browser
) -> None:
    with window(browser, laptop.console.url) as tab:
        tab.page.goto(f"{laptop.console.url}/datasets#code={code_of(laptop)}")
        expect(tab.at("page-datasets")).to_be_visible()
        expect(row(tab, "PersistentVolumeClaim", CLAIM)).to_contain_text("No")
        expect(tab.page.get_by_text("datasets.data.fluid.io").first).to_be_visible()

        row(tab, "PersistentVolumeClaim", CLAIM).click()
        tab.at("action-accelerate").click()
        expect(tab.at("check-fluid-crds")).to_have_attribute("data-state", "fail")
        expect(tab.at("form-submit")).to_be_disabled()
        tab.keep("datasets-without-fluid")
        install_stand_in(laptop)
        wait_until(
            "a node has Fluid's driver",
            lambda: "fuse.csi.fluid.io" in json.dumps(laptop.kubectl.get("csinodes")),
        )
        tab.at("action-recheck").click()
        expect(tab.at("check-fluid-crds")).to_have_attribute("data-state", "ok")
        expect(tab.at("accelerate-line")).to_contain_text(
            f"fairlead dataset accelerate {CLAIM} -n {SPACE}"
        )
        tab.at("accelerate-workers").fill("1")
        expect(tab.at("form-submit")).to_be_enabled()
        tab.keep("datasets-accelerate")
        check_axe(tab)
        tab.at("form-submit").click()

        expect(tab.at("page-operation")).to_be_visible()
        expect(tab.at("operation-steps")).to_contain_text(f"Create Dataset {SPACE}/{SET}")
        tab.page.reload()
        expect(tab.at("page-operation")).to_be_visible()
        ended(tab)
        tab.keep("operation-succeeded")
        check_axe(tab)
        phase = laptop.kubectl.run(
            *("-n", SPACE, "get", "datasets.data.fluid.io", SET, "-o", "jsonpath={.status.phase}")
        )
        assert phase == "Bound"

        tab.page.goto(f"{laptop.console.url}/datasets")
        expect(row(tab, "Dataset", SET)).to_contain_text("Ready")
        expect(row(tab, "PersistentVolumeClaim", CLAIM)).to_contain_text(SET)
        row(tab, "Dataset", SET).click()
        expect(tab.at("dataset-cache")).to_contain_text(f"pvc://{CLAIM}")
        tab.keep("dataset-open")

        tab.at("action-scale").click()
        tab.at("scale-workers").fill("2")
        tab.at("form-submit").click()
        expect(tab.at("scale-form")).to_have_count(0)
        expect(tab.at("dataset-cache")).to_contain_text("2 of 2 workers ready", timeout=120_000)

        tab.at("action-preheat").click()
        expect(tab.at("form-submit")).to_be_enabled()
        tab.keep("dataset-preheat")
        tab.at("form-submit").click()
        expect(tab.at("page-operation")).to_be_visible()
        ended(tab)

        tab.page.goto(f"{laptop.console.url}/datasets?open={SPACE}/Dataset/{SET}")
        tab.at("action-unaccelerate").click()
        expect(tab.at("form-submit")).to_be_disabled()
        tab.at("end-name").fill(SET)
        expect(tab.at("form-submit")).to_be_enabled()
        tab.keep("dataset-end")
        tab.at("form-submit").click()
        expect(tab.at("page-operation")).to_be_visible()
        ended(tab)
        tab.page.goto(f"{laptop.console.url}/datasets")
        expect(row(tab, "PersistentVolumeClaim", CLAIM)).to_contain_text("No")
        expect(row(tab, "Dataset", SET)).to_have_count(0)
        add_object_store(laptop, tab)
        tab.page.goto(f"{laptop.console.url}/operations")
        expect(tab.at("table-operations").locator("tbody tr[data-key]")).to_have_count(4)
        tab.keep("operations")


def add_object_store(laptop: Laptop, tab: Window) -> None:
    """Over a Secret that is made while the dialog is open."""
    tab.page.goto(f"{laptop.console.url}/datasets?namespace={SPACE}")
    tab.at("action-add").click()
    tab.at("add-name").fill("faces")
    tab.at("add-place").fill("bucket/faces")
    tab.at("add-endpoint").fill("oss.example")
    tab.at("add-secret").fill("oss-keys")
    tab.at("add-workers").fill("1")
    expect(tab.at("check-secret")).to_have_attribute("data-state", "fail")
    keys = {"accessKeyId": "an-id", "accessKeySecret": KEY}
    meta = {"name": "oss-keys", "namespace": SPACE}
    laptop.kubectl.apply(
        [{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": keys}]
    )
    tab.at("action-recheck").click()
    expect(tab.at("check-secret")).to_have_attribute("data-state", "ok")
    expect(tab.at("form-submit")).to_be_enabled()
    tab.at("form-submit").click()
    expect(tab.at("page-operation")).to_be_visible()
    ended(tab)
    tab.page.goto(f"{laptop.console.url}/datasets?open={SPACE}/Dataset/faces")
    expect(tab.at("dataset-cache")).to_contain_text("fs.oss.accessKeySecret: oss-keys/accessKey")
    tab.keep("dataset-added")
    assert KEY not in tab.page.content()
    made = laptop.kubectl.get("datasets.data.fluid.io", "-n", SPACE)
    assert made and KEY not in json.dumps(made)


def failed_operation() -> Operation:
    step = OperationStep("Remove Dataset a-ns/raw-acc", RemoveStep(()))
    return Operation(
        id="failed1",
        kind=OperationKind.UNACCELERATE,
        subject="dataset/a-ns/raw-acc",
        steps=(step, step),
        progress=(
            StepProgress(
                StepState.FAILED,
                EPOCH - 90,
                EPOCH - 30,
                message=ATTACK,
                object="Dataset a-ns/raw-acc",
                event=ATTACK,
            ),
            StepProgress(StepState.SKIPPED),
        ),
        state=OperationState.FAILED,
        created_by=ATTACK,
        created_at=EPOCH - 100,
        updated_at=EPOCH - 30,
        message=ATTACK,
    )


@contextmanager
def still_console(data: StillData) -> Iterator[str]:
    """A console over these data, at which Anna is an administrator and Bob a researcher."""
    people = FakeSignInApi((ANNA, BOB), (group("a"),))
    rows = [
        history_row(structs.replace(failed_operation(), id=f"old{at}", created_at=EPOCH - at))
        for at in range(60)
    ]
    world = structs.replace(
        still_world(cluster([gpu_node("gpu-1"), gpu_node("gpu-2")])),
        data=data,
        operations=MemoryRecords(failed_operation()),
        writes=FakeWrites(),
    )
    desk = Parts(people, records=MemoryTrail()).desk(history=MemoryHistory(*rows))
    with served(world, desk) as address:
        yield address


@pytest.fixture
def still() -> Iterator[str]:
    """Over data with hostile texts."""
    hostile = structs.replace(
        data_set("raw-acc", "raw"), mounts=(DataMount(ATTACK, ATTACK, ATTACK),), message=ATTACK
    )
    data = StillData(claim("raw"), claim("cold", phase="Pending"), hostile, runtime("raw-acc"))
    data.pods.append(DataUser("a-ns", "trainer-0", "raw-acc", "gpu-1"))
    data.secrets["a-ns/keys"] = True
    with still_console(data) as address:
        yield address


def test_the_page_of_an_end_follows_although_its_data_set_is_gone_at_once(
    browser: Browser,
) -> None:
    """Before the answer arrives, the list is without it, and its panel has no form."""
    data = StillData(claim("raw"), data_set("raw-acc", "raw"), runtime("raw-acc"))
    with still_console(data) as address, window(browser, address) as tab:
        signed_in(tab, address, "token-of-anna", "/datasets?open=a-ns/Dataset/raw-acc", "datasets")
        tab.at("action-unaccelerate").click()
        tab.at("end-name").fill("raw-acc")
        expect(tab.at("form-submit")).to_be_enabled()
        held: list[Route] = []

        def hold(route: Route) -> None:
            if route.request.method == "DELETE" and "dryRun" not in route.request.url:
                held.append(route)
            else:
                route.fallback()

        tab.page.route("**/api/v1/datasets/**", hold)
        tab.at("form-submit").click()
        wait_until("it is sent", lambda: bool(held or tab.page.wait_for_timeout(20)))
        answer = held[0].fetch()
        data.rows[:] = [claim("raw")]
        tab.at("page-datasets").get_by_role("button", name="Refresh").first.dispatch_event("click")
        expect(tab.at("end-form")).to_have_count(0)
        held[0].fulfill(response=answer)
        expect(tab.at("page-operation")).to_be_visible()


@pytest.mark.parametrize(("locale", "scheme", "width"), in_turn(WIDE_AND_NARROW, 2))
def test_the_pages_are_accessible_and_hostile_texts_stay_texts(
    still: str, browser: Browser, locale: str, scheme: str, width: int
) -> None:
    with window(browser, still, locale, width=width, scheme=scheme) as tab:
        signed_in(tab, still, "token-of-anna", "/datasets?open=a-ns/Dataset/raw-acc", "datasets")
        expect(tab.at("dataset-cache")).to_contain_text(ATTACK)
        tab.keep(f"datasets-{locale}-{scheme}")
        check_axe(tab)
        tab.at("action-unaccelerate").click()
        expect(tab.at("end-blocked")).to_contain_text("trainer-0")
        expect(tab.at("form-submit")).to_be_disabled()
        check_axe(tab)
        tab.page.goto(f"{still}/datasets?open=a-ns/PersistentVolumeClaim/cold")
        tab.at("action-accelerate").click()
        expect(tab.at("check-claim-bound")).to_have_attribute("data-state", "fail")
        tab.keep(f"accelerate-{locale}-{scheme}")
        check_axe(tab)
        tab.page.goto(f"{still}/operations/failed1")
        expect(tab.at("operation-steps")).to_contain_text(ATTACK)
        expect(tab.at("action-retry-operation")).to_be_visible()
        tab.keep(f"operation-{locale}-{scheme}")
        check_axe(tab)
        tab.page.goto(f"{still}/operations")
        expect(tab.at("table-operations")).to_be_visible()
        tab.at("action-earlier").click()
        earlier = tab.at("table-earlier-operations")
        expect(earlier).to_contain_text("old0")
        expect(earlier).to_contain_text(ATTACK)
        tab.keep(f"operations-{locale}-{scheme}")
        check_axe(tab)
        tab.at("action-older").click()
        expect(earlier.locator('tr[data-key="old59"]')).to_be_visible()
        expect(tab.at("action-older")).to_have_count(0)
        earlier.locator('tr[data-key="old59"]').click()
        expect(tab.at("page-operation")).to_have_attribute("data-state", "Failed")
        expect(tab.at("operation-steps")).to_contain_text(ATTACK)
        expect(tab.at("action-retry-operation")).to_have_count(0)
        tab.page.go_back()
        tab.at("action-newest").click()
        expect(earlier).to_contain_text("old0")
        assert "attacked" not in tab.page.title()


@pytest.mark.parametrize(("locale", "scheme", "width"), in_turn(WIDE_AND_NARROW, 2))
def test_an_object_store_is_added_and_workers_are_scaled(
    still: str, browser: Browser, locale: str, scheme: str, width: int
) -> None:
    with window(browser, still, locale, width=width, scheme=scheme) as tab:
        signed_in(tab, still, "token-of-anna", "/datasets?namespace=a-ns", "datasets")
        tab.at("action-add").click()
        expect(tab.at("add-namespace")).to_have_value("a-ns")
        expect(tab.at("form-submit")).to_be_disabled()
        tab.at("add-name").fill("faces")
        tab.at("add-place").fill("bucket/faces?key=1")
        expect(tab.at("add-form").get_by_role("alert")).to_contain_text("Secret")
        expect(tab.at("form-submit")).to_be_disabled()
        tab.at("add-place").fill("bucket/faces")
        expect(tab.at("check-secret")).to_have_attribute("data-state", "warn")
        tab.at("add-secret").fill("no-such")
        expect(tab.at("check-secret")).to_have_attribute("data-state", "fail")
        expect(tab.at("form-submit")).to_be_disabled()
        tab.keep(f"add-{locale}-{scheme}")
        check_axe(tab)
        tab.at("add-secret").fill("keys")
        tab.at("add-idKey").fill("id")
        expect(tab.at("add-line")).to_contain_text(
            "fairlead dataset add faces -n a-ns --mount oss://bucket/faces "
            "--from-secret keys:id,accessKeySecret --workers 2 --quota 16Gi"
        )
        tab.at("add-kind").select_option("pvc")
        expect(tab.at("add-secret")).to_have_count(0)
        tab.at("add-place").fill("cold")
        expect(tab.at("check-claim-bound")).to_have_attribute("data-state", "fail")
        tab.at("add-kind").select_option("other")
        tab.at("add-place").fill("https://example.org/data")
        expect(tab.at("add-line")).to_contain_text("--mount https://example.org/data")
        expect(tab.at("form-submit")).to_be_enabled()
        tab.at("form-submit").click()
        expect(tab.at("page-operation")).to_be_visible()
        expect(tab.at("operation-steps")).to_contain_text("Create Dataset a-ns/faces")

        tab.page.goto(f"{still}/datasets?open=a-ns/Dataset/raw-acc")
        tab.at("action-scale").click()
        expect(tab.at("form-submit")).to_be_disabled()
        tab.at("scale-workers").fill("three")
        expect(tab.at("scale-form").get_by_role("alert")).to_contain_text("no number of workers")
        tab.at("scale-workers").fill("3")
        expect(tab.at("check-nodes")).to_have_attribute("data-state", "fail")
        expect(tab.at("form-submit")).to_be_disabled()
        tab.at("scale-workers").fill("1")
        expect(tab.at("scale-line")).to_contain_text("dataset scale raw-acc -n a-ns --workers 1")
        expect(tab.at("form-submit")).to_be_enabled()
        tab.keep(f"scale-{locale}-{scheme}")
        check_axe(tab)
        tab.at("form-submit").click()
        expect(tab.at("scale-form")).to_have_count(0)


def test_a_researcher_reads_and_finds_no_button(still: str, browser: Browser) -> None:
    with window(browser, still) as tab:
        signed_in(tab, still, "token-of-bob", "/datasets?open=a-ns/Dataset/raw-acc", "datasets")
        expect(tab.at("dataset-cache")).to_be_visible()
        expect(tab.at("dataset-actions")).to_have_count(0)
        expect(tab.at("action-add")).to_have_count(0)
        tab.page.goto(f"{still}/operations")
        expect(tab.at("page-of-admins")).to_be_visible()
