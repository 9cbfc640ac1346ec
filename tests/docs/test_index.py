"""docs/README.md names every document, and every link in a document leads to a file or heading that
exists.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.docs.anchors import NOT_OWN, ROOT, anchors

INDEX = ROOT / "docs" / "README.md"
PAGES = sorted(
    page for page in ROOT.rglob("*.md") if not NOT_OWN & set(page.relative_to(ROOT).parts)
)
FRAGMENTS = {
    page for page in PAGES if page.parent.name == "newsfragments" and page.name != "README.md"
}
LINK = re.compile(r'\]\(([^)\s]+)\)|(?:href|src|srcset)="([^"]+)"')
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """Where the links of a page lead on this disk: relative paths, some with a heading
    (`cli.md#submit`).
    """
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    found = [markdown or html for markdown, html in LINK.findall(text)]
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def test_every_document_is_in_the_index() -> None:
    named = {(INDEX.parent / link.partition("#")[0]).resolve() for link in links(INDEX)}
    documents = {
        page for page in (ROOT / "docs").rglob("*") if page.suffix in (".md", ".json")
    } | set(PAGES) - FRAGMENTS
    assert sorted(str(page.relative_to(ROOT)) for page in documents - named - {INDEX}) == []


def test_the_readme_leads_to_the_index() -> None:
    assert "docs/README.md" in links(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = []
    for link in links(page):
        path, _, heading = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (heading and heading not in anchors(target)):
            dead.append(link)
    assert dead == []
