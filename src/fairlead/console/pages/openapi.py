"""The OpenAPI 3.1 document of the API, made from the endpoint table and the answer structs.

Every key of an answer is always sent, so every property is `required` here, defaults or not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from fairlead.console.pages.endpoints import (
    BASE,
    DRY_RUN,
    ENDPOINTS,
    ERROR_TEXTS,
    Endpoint,
    Parameter,
)
from fairlead.console.pages.envelope import ErrorAnswer, wire_key

_REF: Final = "#/components/schemas/{name}"
_JSON: Final = "application/json"


def openapi_document(version: str) -> dict[str, Any]:
    """The whole document for this program version, as plain values ready for JSON."""
    answers = [
        value
        for endpoint in ENDPOINTS
        for value in (endpoint.answer, endpoint.body, _preview_of(endpoint))
        if value is not None
    ]
    schemas, components = msgspec.json.schema_components([*answers, ErrorAnswer], ref_template=_REF)
    by_answer = dict(zip((id(answer) for answer in answers), schemas, strict=False))
    bodies = {endpoint.body.__name__ for endpoint in ENDPOINTS if endpoint.body is not None}
    for name, component in components.items():
        _tidy(component, is_answer=name not in bodies)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fairlead console",
            "version": version,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": BASE}],
        "paths": _paths(by_answer),
        "components": {"schemas": dict(sorted(components.items()))},
    }


def _paths(schemas: Mapping[int, Any]) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        schema, preview = schemas.get(id(endpoint.answer)), _preview_of(endpoint)
        if preview is not None:
            schema = {"anyOf": [schema, schemas[id(preview)]]}
        operation = _operation(endpoint, schema)
        if endpoint.body is not None:
            operation["requestBody"] = {
                "required": True,
                "content": {_JSON: {"schema": schemas[id(endpoint.body)]}},
            }
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return paths


def _preview_of(endpoint: Endpoint) -> Any:
    """What a preview answers; None = there is none."""
    has_one = any(each.name == DRY_RUN.name for each in endpoint.parameters)
    return endpoint.preview if has_one else None


def _tidy(schema: dict[str, Any], *, is_answer: bool) -> None:
    """Keys as on the wire; in an answer every property is there,
    in a body those that have no default.
    """
    if "description" in schema:
        schema["description"] = re.sub(
            r"`(\w+)`", lambda found: f"`{wire_key(found[1])}`", _unwrapped(schema["description"])
        )
    if is_answer and "properties" in schema:
        schema["required"] = sorted(schema["properties"])
        for each in schema["properties"].values():
            each.pop("default", None)


def _unwrapped(docstring: str) -> str:
    """Each paragraph in one line: where the source breaks a line is not part of the API."""
    paragraphs = re.split(r"\n\s*\n", docstring.strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _operation(endpoint: Endpoint, schema: Any) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": schema} if schema else {"schema": {"type": "string"}}
    good = {"description": endpoint.summary, "content": {endpoint.media_type: content}}
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint.path), *_query_parameters(endpoint.parameters)],
        "responses": {
            # a preview of what answers 202 is 200
            **{str(status): good for status in sorted({200, endpoint.status})},
            **_errors(endpoint),
        },
    }
    operation["x-example"] = BASE + (endpoint.example or endpoint.path)
    return operation


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query_parameters(parameters: Sequence[Parameter]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "in": "query",
            "description": each.text,
            "schema": {"type": "array", "items": {"type": each.type}}
            if each.repeated
            else {"type": each.type},
        }
        for each in parameters
    ]


def _errors(endpoint: Endpoint) -> dict[str, Any]:
    schema = {"$ref": _REF.format(name=ErrorAnswer.__name__)}
    return {
        str(status): {
            "description": f"{HTTPStatus(status).phrase}. {ERROR_TEXTS[status]}",
            "content": {_JSON: {"schema": schema}},
        }
        for status in endpoint.errors
    }
