"""Builds the console's pages where they are older than the sources.

It runs `npm ci` and `npm run build` in `web/`.

The pages land in `src/fairlead/web_dist/`. A stamp beside them in `build/` holds the hash of every
file of `web/`, so an edit, a pull or a switch of branches builds again, and nothing else does.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from locks import only_one
from progress import StepFailed, run_step, say, spoken_seconds
from toolchains import REPOSITORY, Toolchain, find_node

WEB = REPOSITORY / "web"
PAGES = REPOSITORY / "src" / "fairlead" / "web_dist"
BUILD = REPOSITORY / "build"
BUILT_STAMP = BUILD / "console.sha256"
MODULES_STAMP = WEB / "node_modules" / ".fairlead-lock.sha256"
NOT_SOURCES = {"node_modules", "dist", "coverage", "test-results"}


def build_console() -> None:
    """Build the pages unless they are already those of the sources."""
    if is_console_built():
        return
    with only_one(BUILD / "console.lock", "the console"):
        if is_console_built():
            return
        key = _sources_key()
        node = find_node()
        say(f"building the console (Node {node.version})")
        seconds = install_node_modules(node)
        seconds += _npm(node, ["run", "build"], "building the console")
        if not (PAGES / "index.html").exists():
            raise StepFailed(f"`npm run build` made no {PAGES / 'index.html'}")
        BUILT_STAMP.write_text(key, encoding="ascii")
        say(f"built the console in {spoken_seconds(seconds)}")


def is_console_built() -> bool:
    """Whether `web_dist` holds the pages of exactly these sources."""
    return (PAGES / "index.html").exists() and _read(BUILT_STAMP) == _sources_key()


def install_node_modules(node: Toolchain) -> float:
    """`npm ci` when package-lock.json or Node changed since the last time; returns its seconds."""
    key = hashlib.sha256(
        (WEB / "package-lock.json").read_bytes() + node.version.encode()
    ).hexdigest()
    if _read(MODULES_STAMP) == key:
        return 0.0
    seconds = _npm(
        node,
        ["ci", "--no-audit", "--no-fund", "--prefer-offline"],
        "installing the console's packages",
    )
    MODULES_STAMP.write_text(key, encoding="ascii")
    return seconds


def _npm(node: Toolchain, arguments: list[str], title: str) -> float:
    log = BUILD / "logs" / f"npm-{arguments[0]}.log"
    environment = dict(
        node.environment(),
        CI="true",
        npm_config_update_notifier="false",
        NO_COLOR="1",
        FORCE_COLOR="0",
    )
    return run_step(title, ["npm", *arguments], log, cwd=WEB, env=environment)


def _sources_key() -> str:
    key = hashlib.sha256()
    for path in _source_files():
        key.update(f"{path.relative_to(WEB)} {path.stat().st_size}\n".encode())
        key.update(path.read_bytes())
    return key.hexdigest()


def _source_files() -> list[Path]:
    if not (WEB / "package.json").exists():
        raise StepFailed(
            f"there is no {WEB / 'package.json'}, so the console cannot be built",
            "take the whole checkout",
        )
    found: list[Path] = []
    for folder, folders, names in os.walk(WEB):
        folders[:] = sorted(set(folders) - NOT_SOURCES)
        found += [Path(folder, name) for name in sorted(names)]
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


if __name__ == "__main__":
    try:
        build_console()
    except StepFailed as problem:
        say(f"error: {problem.what}")
        sys.exit(1)
