"""What a page says when the world under it is not as it was: a job deleted, a server upgraded, names that reorder the text beside them."""

from __future__ import annotations

from playwright.sync_api import Browser, expect
from tests.browser.chromium import window
from tests.browser.sight import Sight
from tests.browser.test_moving import pytorch_job


def test_a_job_that_is_deleted_while_its_page_is_open_is_said_and_comes_back_by_its_name(browser: Browser, simulated: Sight) -> None:
    name = "short-lived"
    with window(browser, simulated.url) as tab:
        simulated.kubectl.apply([pytorch_job(name)])
        tab.page.goto(f"{simulated.url}/jobs/vision/pytorchjob/{name}")
        expect(tab.at("job-tabs")).to_be_visible()
        simulated.kubectl.delete("pytorchjob", name, "-n", "vision")
        gone = tab.at("state-gone")
        expect(gone).to_contain_text("This job has been deleted (last seen at 20")
        expect(tab.at("job-tabs")).to_be_visible()
        for other in ("state-outdated", "state-error", "freshness"):
            expect(tab.at(other)).to_have_count(0)
        expect(gone.get_by_role("link", name="Back to Training jobs")).to_have_attribute("href", "/jobs")
        tab.keep("job-deleted")

        tab.page.set_viewport_size({"width": 390, "height": 800})
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
        simulated.kubectl.apply([pytorch_job(name)])
        expect(gone).to_have_count(0)
        expect(tab.at("freshness")).to_be_visible()
    simulated.kubectl.delete("pytorchjob", name, "-n", "vision")
