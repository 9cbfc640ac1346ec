"""`make site`: every link of the built pages has its target, nothing is fetched from elsewhere, and
each document is a page with all its lists and blocks of code.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.browser.chromium import chromium_path
from tests.site.builder import ROOT, StepFailed, build_site
from tests.site.html_pages import HtmlPage


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, HtmlPage]:
    return {path: HtmlPage(path) for path in sorted(site.rglob("*.html"))}


def test_every_document_is_a_page(site: Path) -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    built = [
        site / each.relative_to(ROOT).with_name(each.name.replace("README", "index"))
        for each in documents
    ]
    assert [path for path in built if not path.with_suffix(".html").exists()] == []


def test_every_link_and_anchor_has_its_target(site: Path, pages: dict[Path, HtmlPage]) -> None:
    dead = []
    for path, page in pages.items():
        # the theme's page for an unknown address has absolute links
        if path.name == "404.html":
            continue
        for link in (*page.links, *page.loads):
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            is_page = target.suffix == ".html"
            if (
                not target.is_file()
                or not target.is_relative_to(site)
                or (anchor and is_page and anchor not in pages[target].anchors)
            ):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []


def test_no_page_loads_anything_from_elsewhere(site: Path, pages: dict[Path, HtmlPage]) -> None:
    loads = {load for page in pages.values() for load in page.loads}
    assert sorted(load for load in loads if re.match(r"(https?:)?//", load)) == []
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert styles and not [text for text in styles if re.search(r"url\([\"']?(https?:)?//", text)]


ITEM = re.compile(r"^( *)(?:[-*]|\d+\.) ", re.MULTILINE)
"""An item of a list; documents indent by two or three spaces what is inside."""
FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^\n(?: {4}.*\n(?=\n| {4}))+", re.MULTILINE)
"""Code of help texts; nothing else is indented by four spaces."""


def shape(text: str) -> Counter[str]:
    """How many items of lists and blocks of code a document has, in an item and elsewhere."""
    prose = FENCE.sub("", text)
    return Counter(
        [
            *("li in li" if indent else "li" for indent in ITEM.findall(prose)),
            *("pre in li" if indent else "pre" for indent in FENCE.findall(text)),
            *("pre" for _ in INDENTED.findall(prose)),
        ]
    )


def test_lists_and_code_are_read_as_on_github(site: Path, pages: dict[Path, HtmlPage]) -> None:
    """Each marker at the beginning of a line is an item, and each fence a block of code; what is
    indented belongs to the item above it.
    """
    differing = []
    for document in (ROOT / "docs").rglob("*.md"):
        name = document.relative_to(ROOT).with_name(document.name.replace("README", "index"))
        built = pages[site / name.with_suffix(".html")].shape
        if (expected := shape(document.read_text(encoding="utf-8"))) != built:
            differing.append(f"{name}: {dict(built)}, not {dict(expected)}")
    assert differing == []


def test_a_dead_link_ends_the_build(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    (root / "docs").mkdir(parents=True)
    (root / "README.md").write_text("# Home\n\n[all](docs/README.md)\n", encoding="utf-8")
    index = root / "docs" / "README.md"
    index.write_text("# All\n\n[here](#all)\n", encoding="utf-8")
    build_site.build_site(tmp_path / "site", tmp_path / "source", root)
    index.write_text("# All\n\n[nowhere](#no-such-heading)\n", encoding="utf-8")
    with pytest.raises(StepFailed, match="no-such-heading"):
        build_site.build_site(tmp_path / "site", tmp_path / "source", root)


def test_search_and_pictures_work_from_a_disk(site: Path) -> None:
    asked: list[str] = []
    with sync_playwright() as playwright:
        path = chromium_path(playwright)
        if not path:
            pytest.skip("no Chromium: install chromium-headless-shell or set CHROMIUM_PATH")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(color_scheme="dark")
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        expect(page.locator('article img[src$="cluster-dark.png#only-dark"]')).to_be_visible()
        expect(page.locator('article img[src$="cluster-light.png#only-light"]')).to_be_hidden()
        page.get_by_placeholder("Search").first.click()
        page.keyboard.type("elastic quota")
        found = page.locator(".md-search-result__link").first
        expect(found).to_have_attribute("href", re.compile("quota"))
        browser.close()
    assert [url for url in asked if not url.startswith("file:")] == []
