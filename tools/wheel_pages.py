"""Builds the console's pages for a wheel or an sdist.

So `pip install .` from a clone has a console.

hatchling calls it (`[tool.hatch.build.hooks.custom]` of pyproject.toml). An sdist brings its pages
along and needs no Node. An editable install takes the pages that the checkout has:
`tools/environment.py` builds those.
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
        is_from_sdist = (root / "PKG-INFO").exists() and (
            root / "src" / "fairlead" / "web_dist" / "index.html"
        ).exists()
        if version == EDITABLE or is_from_sdist:
            return
        sys.path.insert(0, str(TOOLS))
        from console_pages import build_console
        from progress import StepFailed

        try:
            build_console()
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
