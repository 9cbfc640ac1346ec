"""Compares an answer with the API's description (OpenAPI)."""

from __future__ import annotations

import functools
from typing import Any

from fairlead.console.pages.openapi import openapi_document

OF_PEOPLE = ("users", "user", "user_tokens", "my_tokens", "groups", "group", "audit")


@functools.cache
def description() -> dict[str, Any]:
    """The API's description; to make it costs more than many requests."""
    return openapi_document("0")


def check_against(value: Any, schema: dict[str, Any], components: dict[str, Any]) -> None:
    """A small JSON-schema check: exact keys of objects, types of scalars, items of lists."""
    if "$ref" in schema:
        return check_against(value, components[schema["$ref"].rsplit("/", 1)[-1]], components)
    if "anyOf" in schema:
        assert any(is_of(value, each) for each in schema["anyOf"]), (value, schema)
        match = next(each for each in schema["anyOf"] if is_of(value, each))
        return check_against(value, match, components) if match.get("type") != "null" else None
    if "properties" in schema:
        assert set(value) == set(schema["properties"])
        for key, each in schema["properties"].items():
            check_against(value[key], each, components)
    elif "prefixItems" in schema:
        assert len(value) == len(schema["prefixItems"])
        for part, each in zip(value, schema["prefixItems"], strict=True):
            check_against(part, each, components)
    elif schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        for each in value:
            check_against(each, schema["items"], components)
    elif schema.get("type") in ("string", "integer", "number", "boolean"):
        assert is_of(value, schema), (value, schema)
    return None


def is_of(value: Any, schema: dict[str, Any]) -> bool:
    kinds: dict[str, Any] = {
        "string": str,
        "boolean": bool,
        "null": type(None),
        "array": list,
        "object": dict,
    }
    if "$ref" in schema:
        return isinstance(value, dict)
    if schema["type"] in ("integer", "number"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kinds[schema["type"]])
