"""Writes docs/reference/openapi.json, the console's HTTP API, from the server's own types.

`tests/docs` compares.
"""

from __future__ import annotations

import json
from pathlib import Path

from fairlead import __version__
from fairlead.console.pages.openapi import openapi_document

FILE = Path(__file__).parent.parent / "docs" / "reference" / "openapi.json"


def openapi_text() -> str:
    return json.dumps(openapi_document(__version__), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(openapi_text(), encoding="utf-8")
