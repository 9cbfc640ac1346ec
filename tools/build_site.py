"""`make site`: the documents as a site in build/site, made by MkDocs with the theme Material.

The site has the folders of the repository: what a document links to is copied to the same place,
so that links need no change. `docs/README.md` gives the order of the navigation. After the packages
of requirements/site.txt are installed no network is needed, neither to build nor to read it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from locks import only_one
from progress import StepFailed, cache_home, run_step, say, spoken_seconds
from toolchains import LOCKS_DIR, REPOSITORY, find_uv

SITE = REPOSITORY / "build" / "site"
SOURCE = REPOSITORY / "build" / "site-source"
THEME = Path(__file__).resolve().parent / "site_theme"
ASSETS = ("site.css", "iframe-worker.js")
LOGO = REPOSITORY / "web" / "public" / "favicon.svg"
LOG = REPOSITORY / "build" / "logs" / "site.log"
LOCK = LOCKS_DIR / "site.txt"
INDEX = Path("docs", "README.md")
HOME = Path("README.md")
TABS = (
    ("Get started", "docs/get-started"),
    ("How-to", "docs/how-to"),
    ("Concepts", "docs/concepts"),
    ("Reference", "docs/reference"),
    ("Specification", "docs/spec"),
    ("Project", "docs/project"),
)
"""Folders of docs/ with their names; what lies elsewhere belongs to the last."""
LINK = re.compile(r'\]\(([^)\s]+)\)|(?:href|src|srcset)="([^"]+)"')
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def links(page: Path) -> Iterator[Path]:
    """The files and folders to which the links of a document lead."""
    for markdown, html in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        path = unquote((markdown or html).partition("#")[0])
        if path and not re.match(r"[a-z]+:", path):
            yield (page.parent / path).resolve()


def pages_and_files(root: Path = REPOSITORY) -> tuple[list[Path], list[Path]]:
    """Documents, and other files that they link to, relative to `root`; documents in the order in
    which they are first linked to, from README.md and docs/README.md on.
    """
    pages: dict[Path, None] = {root / HOME: None, root / INDEX: None}
    files: dict[Path, None] = {}
    waiting = list(pages)
    while waiting:
        for target in links(waiting.pop(0)):
            if target.suffix == ".md" and target not in pages:
                pages[target] = None
                waiting.append(target)
            elif target.is_file() and target not in pages:
                files[target] = None
    return [each.relative_to(root) for each in pages], [each.relative_to(root) for each in files]


def navigation(pages: list[Path]) -> list[object]:
    """MkDocs' `nav`: a tab for each folder of docs/, each page once."""
    tabs: dict[str, list[object]] = {name: [] for name, _ in TABS}
    for page in pages:
        if page in (HOME, INDEX):
            continue
        names = [name for name, folder in TABS if page.is_relative_to(folder)]
        tabs[names[0] if names else TABS[-1][0]].append(str(page))
    first = [{"Home": str(HOME)}, {"All documents": str(INDEX)}]
    return [*first, *({name: listed} for name, listed in tabs.items() if listed)]


def write_source(folder: Path, root: Path = REPOSITORY) -> list[Path]:
    """Copy what the site is made of into `folder`, which is emptied; returns the documents."""
    pages, files = pages_and_files(root)
    shutil.rmtree(folder, ignore_errors=True)
    for each in (*pages, *files):
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / each, folder / each)
    look = folder / THEME.name
    look.mkdir()
    for path in (*(THEME / name for name in ASSETS), LOGO):
        shutil.copyfile(path, look / path.name)
    return pages


def build_site(site: Path = SITE, source: Path = SOURCE, root: Path = REPOSITORY) -> float:
    """Build the site of the checkout `root` into the folder `site`, which is replaced; returns the
    seconds.

    Raises StepFailed, also at a warning of MkDocs.
    """
    pages = write_source(source, root)
    configuration = source.with_suffix(".json")
    settings = {
        "INHERIT": str(THEME / "mkdocs.yml"),
        "docs_dir": str(source),
        "site_dir": str(site),
        "hooks": [str(THEME / "hooks.py")],
        "nav": navigation(pages),
    }
    # JSON is YAML
    configuration.write_text(json.dumps(settings, indent=1), encoding="utf-8")
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", NO_MKDOCS_2_WARNING="1")
    argv = [str(_python()), "-m", "mkdocs", "build", "--strict"]
    argv += ["--config-file", str(configuration)]
    return run_step("building the site", argv, LOG, env=environment)


def _python() -> Path:
    """The interpreter of an environment with the packages of the lock file."""
    key = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = cache_home() / "toolchains" / f"site-{key}"
    python = folder / "bin" / "python"
    finished = folder / "finished"
    with only_one(folder.parent / f"{folder.name}.lock", "the packages of the site"):
        if not finished.exists():
            shutil.rmtree(folder, ignore_errors=True)
            uv = str(find_uv().program)
            log = cache_home() / "logs" / "site-packages.log"
            argv = [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
            run_step("making an environment for the site", argv, log)
            argv = [uv, "pip", "install", "--quiet", "--python", str(python), "--require-hashes"]
            run_step("installing the packages of the site", [*argv, "-r", str(LOCK)], log)
            finished.touch()
    return python


def main() -> int:
    try:
        seconds = build_site()
    except StepFailed as failed:
        say(f"error: {failed.what}")
        if failed.hint:
            say(f"hint: {failed.hint}")
        return 1
    say(f"wrote {(SITE / 'index.html').relative_to(REPOSITORY)} in {spoken_seconds(seconds)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
