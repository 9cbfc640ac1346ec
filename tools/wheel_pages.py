"""Builds the console's pages and the memory guard for a wheel or an sdist.

So `pip install .` from a clone has a console. It has the guard only where there are C compilers for
both machines; `tools/distributions.py` refuses to build without it.

hatchling calls it (`[tool.hatch.build.hooks.custom]` of pyproject.toml). An sdist brings its pages
and libraries along and needs neither Node nor a compiler. An editable install takes what the
checkout has: `tools/environment.py` builds the pages, `tools/shipped_guard.py` the libraries.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TOOLS = Path(__file__).resolve().parent
EDITABLE = "editable"


class WheelPages(BuildHookInterface):  # type: ignore[misc, type-arg, unused-ignore]
    """The build hook.

    The build fails, with a message about what is missing, if the pages can neither be found nor
    built.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == EDITABLE:
            return
        sys.path.insert(0, str(TOOLS))
        from console_pages import build_console
        from progress import StepFailed, say
        from shipped_guard import guard_paths, place_guards

        is_from_sdist = (root / "PKG-INFO").exists()
        package = root / "src" / "fairlead"
        try:
            if not (is_from_sdist and (package / "web_dist" / "index.html").exists()):
                build_console()
            if not (is_from_sdist and all(path.exists() for path in guard_paths(root).values())):
                try:
                    place_guards()
                except StepFailed as failed:
                    say(f"warning: {failed.what}; nodes have no memory guard of this distribution")
        except StepFailed as failed:
            hint = failed.hint or (
                "building the console needs Node 24, or a registry of Python packages from which "
                "Node can be fetched"
            )
            raise SystemExit(
                f"error: the console's pages were not built: {failed.what}\nhint: {hint}"
            ) from None
        finally:
            sys.path.remove(str(TOOLS))
