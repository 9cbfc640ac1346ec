"""The editor of the quota tree against a simulated cluster whose quota controller runs: what the
preview names is what saving evicts, and two administrators edit one tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.accessibility import check_axe
from tests.browser.chromium import Window, window
from tests.run.laptop import PORTS, Laptop, post, read
from tests.waiting import wait_until

from fairlead.run.quota_demo import demo_deployment, demo_tree

pytestmark = pytest.mark.turns(2, 1)

SPACES = ("namespace1", "namespace2", "namespace3")


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """40 cores: a.1 and a.2 use all of them, and b.1, which has no guarantee, waits for 25."""
    folder = tmp_path_factory.mktemp("tree")
    started = Laptop(folder, *PORTS, "--scenario", "documents-004", "--sign-in", "--speed", "10")
    try:
        ready = started.wait_ready()
        for name in (*SPACES, "namespace4"):
            post(ready, "/api/v1/namespaces", {"metadata": {"name": name}})
        tree = demo_tree("leaf")
        b = tree["spec"]["root"]["children"][1]
        b["children"][0]["min"] = {"cpu": 0}
        post(
            ready,
            "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees",
            tree,
        )
        for number, space in enumerate(SPACES, start=1):
            path = f"/apis/apps/v1/namespaces/{space}/deployments"
            post(ready, path, demo_deployment(f"nginx{number}", space))
        yield started
    finally:
        started.close()


@pytest.fixture(scope="module")
def signed_in(laptop: Laptop) -> tuple[str, str]:
    """The console's address, and the address with its code."""
    ready = laptop.wait_ready()
    printed = re.search(rf"{re.escape(ready['console'])}#code=\S+", laptop.output())
    assert printed is not None, laptop.output()
    return ready["console"].rstrip("/"), printed[0]


def running(laptop: Laptop) -> set[str]:
    """Pods of root.a that run and are not being deleted."""
    ready = laptop.wait_ready()
    return {
        f"{space}/{each['metadata']['name']}"
        for space in SPACES[:2]
        for each in read(ready, f"/api/v1/namespaces/{space}/pods")["items"]
        if each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
    }


def editor(tab: Window) -> None:
    tab.open("/quota/tree", "quota-tree")
    tab.at("action-edit-tree").click()
    expect(tab.at("tree-editor")).to_be_visible()


def test_what_the_preview_names_is_evicted_and_a_second_editor_keeps_the_edit(
    browser: Browser, laptop: Laptop, signed_in: tuple[str, str]
) -> None:
    address, with_code = signed_in
    with window(browser, address) as tab:
        tab.page.goto(with_code)
        expect(tab.at("page-overview")).to_be_visible()
        tab.open("/quota", "quota")
        expect(tab.at("table-quota-waiting")).to_contain_text("namespace3/")
        second = Window(tab.page.context.new_page(), address)
        for each in (tab, second):
            editor(each)

        wait_until(lambda: running(laptop), lambda: len(running(laptop)) == 8, 60)
        before = running(laptop)
        cell = tab.at("edit-root.b.1-min.cpu")
        cell.fill("11")
        tab.at("action-preview").click()
        expect(tab.at("tree-refused")).to_contain_text("children-min")
        expect(cell).to_have_attribute("aria-invalid", "true")
        expect(tab.at("action-save")).to_be_disabled()

        cell.fill("10")
        expect(tab.at("action-save")).to_be_disabled()
        tab.at("action-preview").click()
        expect(tab.at("what-if-sentence")).to_have_text("2 pods would be admitted, 2 evicted.")
        victims = set(tab.column("what-if-evicted", "Pod"))
        assert len(victims) == 2
        tab.keep("quota-tree-editor")
        tab.at("action-save").click()
        expect(tab.at("tree-editor")).to_have_count(0)

        second.at("edit-root.a.2-max.cpu").fill("19")
        second.at("action-preview").click()
        clash = second.at("tree-clash")
        expect(clash).to_contain_text("root.b.1")
        expect(clash).to_contain_text("root.a.2")
        second.keep("quota-tree-clash")
        second.at("action-take-over").click()
        expect(second.at("edit-root.b.1-min.cpu")).to_have_value("10")
        expect(second.at("edit-root.a.2-max.cpu")).to_have_value("19")
        second.at("action-preview").click()
        expect(second.at("tree-changes")).to_contain_text("max.cpu: 20 → 19")
        second.at("action-save").click()
        expect(second.at("tree-editor")).to_have_count(0)

        wait_until(lambda: victims & before, lambda: not victims & running(laptop), 60)
        assert before - running(laptop) == victims, "what saving evicts is what was named"
        editor(tab)
        tab.at("action-versions").click()
        expect(tab.at("table-tree-versions")).to_contain_text("changed root.b.1")
        assert second.complaints == []
        tab.at("action-cancel").click()
        new_leaf(tab, laptop)
        cordon(tab, laptop)
        suspend_and_delete(tab, laptop)
        every_look(tab)


def new_leaf(tab: Window, laptop: Laptop) -> None:
    """A leaf with a namespace that does not exist yet, and with an attribute."""
    ready = laptop.wait_ready()
    editor(tab)
    tab.at("add-root.b").click()
    tab.at("edit-root.b.3-namespaces").fill("fresh")
    tab.at("edit-root.b.3-attributes").fill("fairlead.io/user-order=alphabetical")
    tab.at("action-preview").click()
    expect(tab.at("tree-refused")).to_contain_text("root.b.3.attributes")
    tab.at("edit-root.b.3-attributes").fill("fairlead.io/user-order=fair")
    tab.at("action-preview").click()
    expect(tab.at("tree-preview")).to_contain_text("Namespaces that do not exist")
    tab.at("create-namespaces").check()
    expect(tab.at("action-save")).to_be_disabled()
    tab.at("action-preview").click()
    expect(tab.at("tree-preview")).to_contain_text("Namespaces created")
    tab.keep("quota-tree-new-namespace")
    tab.at("action-save").click()
    expect(tab.at("tree-editor")).to_have_count(0)
    assert read(ready, "/api/v1/namespaces/fresh")["metadata"]["name"] == "fresh"
    path = "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees"
    root = read(ready, f"{path}/elasticquotatree")["spec"]["root"]
    leaf = next(each for each in root["children"][1]["children"] if each["name"] == "root.b.3")
    assert leaf["namespaces"] == ["fresh"]
    assert leaf["attributes"] == {"fairlead.io/user-order": "fair"}


def cordon(tab: Window, laptop: Laptop) -> None:
    """A dialog names the node; then the API server has it cordoned, and not before."""
    ready = laptop.wait_ready()

    def cordoned() -> list[str]:
        nodes = read(ready, "/api/v1/nodes")["items"]
        return [each["metadata"]["name"] for each in nodes if each["spec"].get("unschedulable")]

    name = read(ready, "/api/v1/nodes")["items"][0]["metadata"]["name"]
    tab.open(f"/nodes/{name}", "node")
    tab.at("action-cordon").click()
    expect(tab.at("dialog-cordon")).to_contain_text(f"Cordon {name}?")
    tab.page.keyboard.press("Escape")
    expect(tab.at("confirm-cordon")).not_to_be_visible()
    assert cordoned() == []
    tab.at("action-cordon").click()
    tab.at("confirm-cordon").click()
    expect(tab.at("action-uncordon")).to_be_visible()
    assert cordoned() == [name]


def every_look(tab: Window) -> None:
    """The editor in both themes; no finding of axe-core in either."""
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        editor(tab)
        tab.at("edit-root.a.1-max.cpu").fill("18")
        tab.at("action-preview").click()
        expect(tab.at("tree-changes")).to_be_visible()
        tab.keep(f"quota-tree-editor-{scheme}")
        check_axe(tab)


def suspend_and_delete(tab: Window, laptop: Laptop) -> None:
    """A job stops and goes on; it is deleted only after a dialog that names it."""
    ready = laptop.wait_ready()
    path = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
    container = {"name": "pytorch", "image": "train"}
    roles = {"Worker": {"replicas": 1, "template": {"spec": {"containers": [container]}}}}
    post(ready, path, {"metadata": {"name": "bert"}, "spec": {"pytorchReplicaSpecs": roles}})

    def jobs() -> list[bool]:
        found = read(ready, path)["items"]
        return [each["spec"].get("runPolicy", {}).get("suspend", False) for each in found]

    tab.open("/jobs/default/pytorchjob/bert", "job")
    for slug, after in (("suspend", [True]), ("resume", [False]), ("delete-job", [])):
        before = jobs()
        tab.at(f"action-{slug}").click()
        expect(tab.at(f"dialog-{slug}")).to_contain_text("default/bert?")
        assert jobs() == before
        tab.at(f"confirm-{slug}").click()
        wait_until(jobs, lambda wanted=after: jobs() == wanted, 60)
    expect(tab.at("page-jobs")).to_be_visible()
