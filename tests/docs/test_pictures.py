"""The pictures of documents are drawn from the tools' output, exist in light and dark, are small,
and are all used. README.md has one, near its top, and at most 120 lines.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    README,
    *(
        page.read_text(encoding="utf-8")
        for page in (ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md")))
    ),
]
PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" '
    r'srcset="(?:docs/|../)pictures/([\w-]+)-dark\.(png|svg)">\s*'
    r'<img src="(?:docs/|../)pictures/([\w-]+)-light\.(png|svg)" alt="([^"]+)">\s*</picture>'
)
MOST_BYTES = 250_000


def flow() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "flow_picture", ROOT / "tools" / "flow_picture.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_the_flow_is_as_its_tool_draws_it(shade: str) -> None:
    module = flow()
    assert module.flow_file(shade).read_text(encoding="utf-8") == module.flow_svg(shade), (
        "stale: run `python tools/flow_picture.py`"
    )


def test_every_picture_is_shown_in_both_shades() -> None:
    shown = [found for page in PAGES for found in PICTURE.findall(page)]
    assert len(shown) == sum(page.count("<picture>") for page in PAGES)
    assert all((dark, kind) == (light, same) for dark, kind, light, same, _ in shown)
    files = {f"{name}-{shade}.{kind}" for name, kind, *_ in shown for shade in ("light", "dark")}
    assert files == {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_a_picture_is_small(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES
    if path.suffix == ".png":
        assert path.read_bytes().startswith(b"\x89PNG")


def test_the_readme_is_a_front_page() -> None:
    assert README.count("<picture>") == 1
    assert len(README.splitlines()) <= 120


def test_the_readme_begins_with_what_is_there() -> None:
    promises = README.split("\n## Start\n")[0]
    assert "docs/pictures/" in "".join(promises.splitlines(keepends=True)[:16])
    assert not re.search(r"not yet|later|will be|planned", promises, re.IGNORECASE)
