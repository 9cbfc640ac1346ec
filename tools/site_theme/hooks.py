"""Hooks of MkDocs: pages look on the site as they do on GitHub.

Pictures follow the site's own switch of light and dark, which `<picture>` cannot; what belongs to
an item of a list is indented by two spaces, as GitHub allows.
"""

from __future__ import annotations

import re
from typing import Any

from markdown import Markdown
from markdown.blockprocessors import CodeBlockProcessor, ListIndentProcessor
from markdown.extensions import Extension
from markdown.extensions.sane_lists import SaneOListProcessor, SaneUListProcessor

PICTURE = re.compile(
    r'(?:<a href="[^"]+">\s*)?<picture>\s*<source media="\(prefers-color-scheme: dark\)" '
    r'srcset="([^"]+)">\s*<img src="([^"]+)" alt="([^"]*)">\s*</picture>(?:\s*</a>)?'
)
INDENT = 2
PROCESSORS = (
    ("indent", ListIndentProcessor, 90),
    ("code", CodeBlockProcessor, 80),
    ("olist", SaneOListProcessor, 40),
    ("ulist", SaneUListProcessor, 30),
)
"""Block processors that read the indentation when they are made, with their places in the order."""


class NarrowLists(Extension):  # type: ignore[misc]
    """Lists whose items are indented by INDENT spaces."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.tab_length = INDENT
        for name, processor, place in PROCESSORS:
            md.parser.blockprocessors.register(processor(md.parser), name, place)


def on_config(config: Any) -> Any:
    """Add the extension of lists, before others that read the indentation."""
    config.markdown_extensions.insert(0, NarrowLists())
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with each pair of pictures as two, of which the theme shows one."""
    return PICTURE.sub(_both, markdown)


def _both(found: re.Match[str]) -> str:
    dark, light, text = found.groups()
    return "".join(
        f'<a href="{path}"><img src="{path}#only-{scheme}" alt="{text}" loading="lazy"></a>'
        for path, scheme in ((light, "light"), (dark, "dark"))
    )
