"""The API description and the client's types are generated from the server's types and up to date;
every route has a full description.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fairlead.console.pages.endpoints import ENDPOINTS, ERROR_TEXTS
from fairlead.console.pages.openapi import openapi_document

TOOLS = Path(__file__).parent.parent.parent / "tools"


@functools.cache
def description() -> dict[str, Any]:
    return openapi_document("0")


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs_openapi", "openapi_text"),
        ("docs_typescript", "typescript_text"),
        ("docs_cli", "cli_text"),
        ("docs_man", "man_text"),
        ("docs_differences", "differences_text"),
    ],
)
def test_a_generated_file_is_fresh(name: str, text: str) -> None:
    module = tool(name)
    assert module.FILE.read_text(encoding="utf-8") == getattr(module, text)(), (
        f"stale: run `python tools/{name}.py`"
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_every_route_has_a_summary_its_errors_and_an_example(endpoint) -> None:  # type: ignore[no-untyped-def]
    operation = description()["paths"][endpoint.path][endpoint.method.lower()]
    assert operation["summary"]
    good = {200, endpoint.status}
    assert set(operation["responses"]) == {str(status) for status in (*good, *endpoint.errors)}
    assert all(status in ERROR_TEXTS for status in endpoint.errors)
    assert "{" not in operation["x-example"]


def test_every_key_of_an_answer_is_required_because_it_is_always_sent() -> None:
    schemas = description()["components"]["schemas"]
    assert schemas["NodeRow"]["required"] == sorted(schemas["NodeRow"]["properties"])
    assert "gpuMemoryUsedMiB" in schemas["NodeRow"]["properties"]
