"""The page Submit at the laptop: a researcher submits a job by keyboard and clones it, and makes a
cron.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect
from tests.apps.submit_forms import FORMS
from tests.browser.accessibility import check_axe
from tests.browser.chromium import OUTPUT, Window, window
from tests.browser.signed_in import tab_to
from tests.kube.laptop import Laptop, running_laptop
from tests.turns import in_turn

pytestmark = pytest.mark.turns(4, 2)

RESEARCHER = "anna"
PLACE = "vision"


@pytest.fixture(scope="module")
def laptop() -> Iterator[Laptop]:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with running_laptop(OUTPUT / "submit.log", "--sign-in") as it:
        yield it


def test_a_researcher_submits_by_keyboard_and_clones(laptop: Laptop, browser: Browser) -> None:
    url = laptop.console.url
    code = re.findall(r"#code=(\S+)", laptop.component.log.read_text(encoding="utf-8"))[-1]
    with window(browser, url) as tab:
        tab.page.goto(f"{url}/jobs#code={code}")
        expect(tab.at("page-jobs")).to_be_visible()
        tab.at("action-person").click()
        tab.at(f"act-as-{RESEARCHER}").click()
        expect(tab.at("action-person")).to_have_text(RESEARCHER)
        tab.page.goto(f"{url}/jobs")
        expect(tab.at("action-submit")).to_be_visible()
        assert tab.page.locator(".filters").evaluate("line => line.offsetHeight") < 40
        tab.at("action-submit").click()
        expect(tab.at("page-submit")).to_be_visible()
        expect(tab.at("submit-namespace").locator("option")).to_have_text([PLACE])
        expect(tab.at("submit-outcome")).to_have_attribute("data-late", "false")
        check_axe(tab)

        tab_to(tab, "submit-name")
        tab.page.keyboard.type("walk")
        tab_to(tab, "flag-image")
        tab.page.keyboard.type("train:1h")
        tab_to(tab, "submit-command")
        tab.page.keyboard.type("python train.py")
        expect(tab.at("submit-verdict")).to_be_visible()
        tab_to(tab, "flag-cpu")
        tab.page.keyboard.type("4x")
        expect(tab.page.locator(".form-fault")).to_contain_text("--cpu is invalid")
        tab.page.keyboard.press("Backspace")
        tab_to(tab, "flag-gpus", "Shift+Tab")
        tab.page.keyboard.press("Control+a")
        tab.page.keyboard.type("4")
        tab_to(tab, "flag-workers", "Shift+Tab")
        tab.page.keyboard.press("Control+a")
        tab.page.keyboard.type("5")
        verdict = tab.at("submit-verdict")
        expect(verdict).to_contain_text("asks 20")
        expect(verdict).to_have_attribute("data-state", "waits")
        expect(tab.at("panel-command")).to_contain_text(f"--namespace={PLACE}")
        expect(tab.at("submit-manifests")).to_contain_text("kind: PyTorchJob")
        reason = verdict.locator("li").all_inner_texts()
        assert reason
        check_axe(tab)
        tab.keep("submit")
        tab_to(tab, "submit-job")
        tab.page.keyboard.press("Enter")
        expect(tab.at("page-job")).to_be_visible()
        expect(tab.page).to_have_url(f"{url}/jobs/{PLACE}/pytorchjob/walk")
        for clause in reason:  # the job waits for what the page foresaw
            expect(tab.at("page-job")).to_contain_text(clause)

        tab.at("action-clone").click()
        expect(tab.at("submit-name")).to_have_value("walk-2")
        expect(tab.at("flag-gpus")).to_have_value("4")
        expect(tab.at("flag-workers")).to_have_value("5")
        expect(tab.at("submit-command")).to_have_value("python train.py")
        tab.at("submit-name").fill("walk")
        expect(tab.page.locator(".form-fault").first).to_contain_text("already")
        tab.at("submit-job").click()
        expect(tab.at("write-fault")).to_be_visible()
        expect(tab.at("flag-gpus")).to_have_value("4")
        tab.keep("submit-clone")


def test_a_researcher_makes_a_cron(laptop: Laptop, browser: Browser) -> None:
    with window(browser, laptop.console.url) as tab:
        sign_in(tab, laptop.console.url, token_of(laptop))
        tab.at("submit-type").select_option("cron-tfjob")
        tab.at("submit-name").fill("nightly")
        tab.at("flag-image").fill("train:1m")
        tab.at("submit-command").fill("python train.py")
        tab.at("flag-schedule").fill("0 22 * *")
        expect(tab.page.locator(".form-fault")).to_contain_text("--schedule is invalid")
        tab.at("flag-schedule").fill("0 22 * * *")
        expect(tab.at("panel-verdict")).to_contain_text("The cron creates a job")
        expect(tab.at("panel-command")).to_contain_text("arena cron tfjob")
        expect(tab.at("submit-manifests")).to_contain_text("kind: Cron")
        expect(tab.at("submit-manifests")).to_have_css("overflow", "auto")
        check_axe(tab)
        tab.keep("submit-cron")
        tab.at("submit-job").click()
        expect(tab.at("submit-made")).to_contain_text(f"arena cron get nightly -n {PLACE}")
        expect(tab.at("submit-made").locator("h2")).to_be_focused()
        check_axe(tab)
        [cron] = laptop.kubectl.get("crons", "-n", PLACE)
        assert cron["spec"]["schedule"] == "0 22 * * *"
        tab.at("submit-again").click()
        expect(tab.at("submit-name")).to_have_value("")
        expect(tab.at("flag-schedule")).to_have_value("0 22 * * *")


def test_a_researcher_serves_a_model(laptop: Laptop, browser: Browser) -> None:
    with window(browser, laptop.console.url) as tab:
        sign_in(tab, laptop.console.url, token_of(laptop))
        kserve = tab.at("submit-type").locator("option[value=kserve]")
        expect(kserve).to_contain_text("not served by this cluster")
        tab.at("submit-type").select_option("custom-serving")
        version = tab.at("flag-version").input_value()
        assert re.fullmatch("[0-9]{12}", version)
        tab.at("submit-name").fill("web")
        tab.at("flag-image").fill("nginx")
        tab.at("submit-job").click()
        fault = tab.page.locator(".form-fault")
        expect(fault.filter(has_text="all  ports are 0")).to_be_visible()
        tab.at("flag-restful-port").fill("8000")
        tab.at("flag-gpus").fill("1")
        expect(tab.at("submit-verdict")).to_be_visible()
        expect(tab.at("panel-command")).to_contain_text("arena serve custom --name=web")
        expect(tab.at("panel-command")).to_contain_text(f"--version={version}")
        expect(tab.at("submit-manifests")).to_contain_text("kind: Deployment")
        check_axe(tab)
        tab.keep("submit-serving")
        tab.at("submit-job").click()
        expect(tab.at("page-serving")).to_be_visible()
        expect(tab.at("page-serving")).to_contain_text(version)
        [made] = laptop.kubectl.get("deployments", "-n", PLACE, "-l", "servingName=web")
        assert made["metadata"]["name"] == f"web-{version}-custom-serving"


@pytest.mark.parametrize(("locale", "scheme"), in_turn([("zh-CN", "dark"), ("en-US", "dark")], 2))
def test_the_page_is_accessible_in_the_dark_and_in_chinese(
    laptop: Laptop, browser: Browser, locale: str, scheme: str
) -> None:
    title = {"en-US": "Submit a job", "zh-CN": "提交任务"}[locale]
    with window(browser, laptop.console.url, locale, scheme=scheme) as tab:
        sign_in(tab, laptop.console.url, token_of(laptop))
        expect(tab.page.get_by_role("heading", level=1)).to_have_text(title)
        tab.at("submit-more").locator("summary").click()
        expect(tab.at("submit-outcome")).to_have_attribute("data-late", "false")
        check_axe(tab)
        tab.keep(f"submit-{locale}-{scheme}")
        english = tab.page.locator(".submit-form [lang=en]")
        for form in FORMS.forms() if locale == "zh-CN" else ():
            tab.at("submit-type").select_option(form.type)
            flags = tab.page.locator("[data-testid^=flag-]")
            expect(flags).to_have_count(len(form.flags))
            expect(english).to_have_count(0)
        tab.page.route(re.compile(r"/api/v1/jobs(\?|$)"), _held)
        tab.at("submit-name").fill("late")
        expect(tab.at("submit-outcome")).to_have_attribute("data-late", "true")
        check_axe(tab)


def _held(route: Route) -> None:
    """A preview is never answered, so that the one before it stays."""
    if route.request.method != "POST":
        route.continue_()


def token_of(laptop: Laptop) -> str:
    words = ("create", "token", RESEARCHER, "-n", "kube-ai", "--duration=1h")
    return laptop.kubectl.run(*words).strip()


def sign_in(tab: Window, url: str, token: str) -> None:
    tab.page.goto(f"{url}/submit")
    tab.page.locator("input[type=password]").first.fill(token)
    tab.page.keyboard.press("Enter")
    expect(tab.at("submit-name")).to_be_visible()
