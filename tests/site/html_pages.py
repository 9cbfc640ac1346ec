"""Built pages as what a browser would ask for: links, files of the page, anchors, text."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}


class HtmlPage(HTMLParser):
    """`links`: where a reader can go; `loads`: what a browser fetches by itself; `anchors`: names
    of places; `shape`: how many items of lists and blocks of code, in an item and elsewhere.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.shape: Counter[str] = Counter()
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(values["href"])
        if "src" in values:
            self.loads.append(values["src"])
        if tag not in VOID:
            self._open.append(tag)
        if "article" in self._open:
            depth = self._open.count("li") - (tag == "li")
            if tag in ("li", "pre"):
                self.shape[f"{tag} in li" if depth else tag] += 1

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass
