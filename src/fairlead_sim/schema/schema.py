"""Objects of the built-in kinds as the API server reads them: known fields only, each of its type.

Unknown fields are dropped and reported, wrong types refused in Go's words, nulls omitted,
quantities made canonical. Of custom resources only the metadata has types here; the rest passes as
it is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any

from fairlead.wire.kube.fields import Field, fields_by_name, message_of
from fairlead.wire.kube.time import parse_time
from fairlead_sim.schema.crd_schema import Schema, defaulted, pruned
from fairlead_sim.schema.quantity import canonical_quantity
from fairlead_sim.schema.status import ApiStatus

Object = dict[str, Any]

_TYPE_META = ("kind", "apiVersion")
_GO_NAMES = {
    "s": "string",
    "x": "[]string",
    "b": "bool",
    "i": "int32",
    "l": "int64",
    "d": "float64",
    "y": "[]uint8",
}
_GO_QUANTITY_RULE = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class _SchemaError(Exception):
    """Why the object is not of its kind, in the decoder's words."""


def typed(
    api_version: str, kind: str, obj: Object, schema: Schema | None = None
) -> tuple[Object, list[str]]:
    """The object as the server keeps it, and the paths of the fields that it does not know.

    Raises 400 for wrong types.

    `schema` is a custom resource's: what it does not describe goes, what it has a default for
    comes.
    """
    message = message_of(api_version, kind)
    unknown: list[str] = []
    try:
        body = {key: value for key, value in obj.items() if key not in _TYPE_META}
        read = _message(message, body, "", "", unknown) if message else _custom(kind, body, unknown)
    except _SchemaError as error:
        raise UnexpectedKind(api_version, kind, kind, str(error)) from error
    if schema is not None:
        read = defaulted(schema, pruned(schema, read, unknown))
    return {"kind": kind, "apiVersion": api_version, **read}, unknown


def _custom(kind: str, body: Object, unknown: list[str]) -> Object:
    """A custom resource: its metadata is everybody's."""
    metadata = body.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise _wrong(metadata, f"{kind}.metadata", "v1.ObjectMeta")
    return {
        **body,
        "metadata": _message("meta.ObjectMeta", metadata, "metadata", "metadata", unknown),
    }


class UnexpectedKind(ApiStatus):
    """400: the object is not of the kind `wanted`.

    `why` alone is what other messages repeat.
    """

    def __init__(self, api_version: str, kind: str, wanted: str, why: str) -> None:
        self.why = why
        version = api_version.rpartition("/")[2]
        super().__init__(
            400,
            "BadRequest",
            (f'{kind} in version "{version}" cannot be handled as a {wanted}: {why}'),
        )


def strict_error(api_version: str, kind: str, faults: Sequence[str]) -> UnexpectedKind:
    """The 400 of `fieldValidation=Strict`."""
    return UnexpectedKind(api_version, kind, kind, f"strict decoding error: {', '.join(faults)}")


def check_kind(obj: Object, api_version: str, kind: str) -> None:
    """Raise 400 if an object has another kind than its path."""
    found = (obj.get("apiVersion") or api_version, obj.get("kind") or kind)
    if found != (api_version, kind):
        raise UnexpectedKind(*found, kind, f"the path is that of {api_version} {kind}")


def _message(message: str, obj: Object, path: str, place: str, unknown: list[str]) -> Object:
    """The value of a message, field by field.

    `path` names the field in errors (without indices), `place` in the list of unknown fields (with
    them).
    """
    fields, read = fields_by_name(message), {}
    for key, value in obj.items():
        field = fields.get(key)
        here = f"{place}.{key}" if place else key
        if field is None:
            unknown.append(here)
        elif value is not None:
            detail = f"{path}.{key}" if path else key
            read[key] = _field(
                field, value, f"{message.rpartition('.')[2]}.{detail}", detail, here, unknown
            )
    return read


def _field(field: Field, value: Any, struct: str, path: str, place: str, unknown: list[str]) -> Any:
    if field.shape == "*":
        if not isinstance(value, list):
            raise _wrong(value, struct, f"[]{_go_name(field.type)}")
        return [
            _one(field.type, item, struct, path, f"{place}[{index}]", unknown)
            for index, item in enumerate(value)
        ]
    if field.shape == "%":
        if not isinstance(value, dict):
            raise _wrong(value, struct, f"map[string]{_go_name(field.type)}")
        return {
            key: _one(field.type, item, struct, path, f"{place}.{key}", unknown)
            for key, item in value.items()
        }
    return _one(field.type, value, struct, path, place, unknown)


def _one(kind: str, value: Any, struct: str, path: str, place: str, unknown: list[str]) -> Any:
    # a schema within a schema: its unknown fields are not reported
    if kind == "j" and isinstance(value, dict):
        return _message("apiextensions.JSONSchemaProps", value, path, place, [])
    if kind == "j" and not isinstance(value, bool | list):
        raise _SchemaError("boolean or JSON schema expected")
    read = _SCALARS.get(kind)
    if read is not None:
        return read(kind, value, struct)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong(value, struct, _go_name(kind))
    return _message(kind, value, path, place, unknown)


def _go_name(kind: str) -> str:
    return _GO_NAMES.get(kind) or f"v1.{kind.rpartition('.')[2]}"


def _wrong(value: Any, struct: str, wanted: str) -> _SchemaError:
    if isinstance(value, bool):
        found = "bool"
    elif isinstance(value, int | float):
        found = (
            f"number {value}" if isinstance(value, float) and wanted.startswith("int") else "number"
        )
    else:
        found = (
            "string"
            if isinstance(value, str)
            else "array"
            if isinstance(value, list)
            else "object"
            if value is not None
            else "null"
        )
    return _SchemaError(
        f"json: cannot unmarshal {found} into Go struct field {struct} of type {wanted}"
    )


# --- scalars --------------------------------------------------------------------------------------


def _text(kind: str, value: Any, struct: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(value, struct, "string")
    return value


def _whole(kind: str, value: Any, struct: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    bits = 31 if kind == "i" else 63
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or not -(1 << bits) <= value < 1 << bits
    ):
        raise _wrong(value, struct, _GO_NAMES[kind])
    return value


def _boolean(kind: str, value: Any, struct: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, struct, "bool")
    return value


def _fraction(kind: str, value: Any, struct: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(value, struct, "float64")
    return value


def _bytes(kind: str, value: Any, struct: str) -> str:
    text = _text(kind, value, struct)
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise _SchemaError("illegal base64 data at input byte 0") from error
    return text


def _quantity(kind: str, value: Any, struct: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _SchemaError(_GO_QUANTITY_RULE)
    try:
        return canonical_quantity(str(value).strip())
    except ValueError as error:
        raise _SchemaError(_GO_QUANTITY_RULE) from error


def _moment(kind: str, value: Any, struct: str) -> str:
    text = _text(kind, value, struct)
    try:
        parse_time(text)
    except ValueError as error:
        cause = (
            f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
        )
        raise _SchemaError(cause) from error
    return text


def _int_or_string(kind: str, value: Any, struct: str) -> int | str:
    return value if isinstance(value, str) else _whole("i", value, struct)


def _strings(kind: str, value: Any, struct: str) -> list[str]:
    if not isinstance(value, list):
        raise _wrong(value, struct, "[]string")
    return [_text("s", item, struct) for item in value]


def _anything(kind: str, value: Any, struct: str) -> Any:
    return value


_SCALARS: dict[str, Callable[[str, Any, str], Any]] = {
    "s": _text,
    "i": _whole,
    "l": _whole,
    "b": _boolean,
    "d": _fraction,
    "y": _bytes,
    "q": _quantity,
    "t": _moment,
    "T": _moment,
    "o": _int_or_string,
    "f": _anything,
    "r": _anything,
    "j": _anything,
    "x": _strings,
}
