"""The reference lists exactly the keys of arena's config file that the code reads."""

from __future__ import annotations

import re
from pathlib import Path

from fairlead.cli.frame.arena_config import SETTINGS

SOURCE = Path(__file__).parents[2] / "src" / "fairlead"
READ = re.compile(r'(?:config|read_arena_config\([^)]*\))\.get\(f?"([\w{}]+)"')


def test_every_key_that_is_read_is_reported() -> None:
    files = [*SOURCE.glob("cli/**/*.py"), *SOURCE.glob("run/*.py")]
    read = {key for file in files for key in READ.findall(file.read_text(encoding="utf-8"))}
    modes = {key.replace("{mode}", mode) for key in read for mode in ("git", "rsync")}
    assert modes == set(SETTINGS)
