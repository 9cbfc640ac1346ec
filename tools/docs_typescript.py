"""Writes web/src/api/schema.ts, the client's types, from docs/reference/openapi.json.

`tests/docs` compares. A small generator of our own: the answers use objects, arrays, tuples, unions
with null, maps and string literals only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairlead import __version__
from fairlead.console.pages.openapi import openapi_document

FILE = Path(__file__).parent.parent / "web" / "src" / "api" / "schema.ts"
HEAD = "// Generated from the server's types by tools/docs_typescript.py; do not edit.\n"
PRIMITIVES = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def typescript_text() -> str:
    schemas = openapi_document(__version__)["components"]["schemas"]
    return HEAD + "".join(_interface(name, schema) for name, schema in schemas.items())


def _interface(name: str, schema: dict[str, Any]) -> str:
    if schema.get("type") != "object" or "properties" not in schema:
        return f"\n{_comment(schema)}export type {name} = {_type(schema)}\n"
    required = schema.get("required", [])
    fields = "".join(
        f"  {key}{'' if key in required else '?'}: {_type(each)}\n"
        for key, each in schema["properties"].items()
    )
    return f"\n{_comment(schema)}export interface {name} {{\n{fields}}}\n"


def _comment(schema: dict[str, Any]) -> str:
    text = " ".join(str(schema.get("description", "")).split())
    return f"/** {text} */\n" if text else ""


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(repr(each) for each in schema["enum"])
    if schema.get("prefixItems"):
        return f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        return f"Array<{_type(schema.get('items') or {})}>"
    if schema.get("type") == "object":
        return (
            f"Record<string, {_type(schema['additionalProperties'])}>"
            if schema.get("additionalProperties")
            else "Record<string, unknown>"
        )
    return PRIMITIVES.get(str(schema.get("type")), "unknown")


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(typescript_text(), encoding="utf-8")
