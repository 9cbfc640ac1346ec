"""The headings of a document, as links name them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_OWN = {".venv", "node_modules", "build", "test-output", ".git", ".pytest_cache", ".hypothesis"}


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings on GitHub; a heading that occurs twice gets `-1` the second
    time.
    """
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    seen: dict[str, int] = {}
    names = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
    return names
