"""What the structural schema of a CustomResourceDefinition prunes, fills in and refuses.

The words are those of the real server's validator. Not here: CEL (`x-kubernetes-validations`) and
string formats but `date-time`. Nothing is changed in place: what did not change is shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.schema.pattern import fits
from fairlead_sim.schema.status import (
    FieldError,
    duplicate,
    required,
    shown,
    too_long,
    unsupported,
    wrong_value,
)

Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
_META = ("apiVersion", "kind", "metadata")


# --- pruning --------------------------------------------------------------------------------------


def pruned(schema: Schema, obj: Mapping[str, Any], unknown: list[str]) -> dict[str, Any]:
    """The object without fields that its schema lacks; adds their paths to `unknown`, sorted."""
    found: list[str] = []
    kept = _pruned({**schema, EMBEDDED: True}, obj, "", found)
    unknown.extend(sorted(found))
    return dict(kept)


def _pruned(schema: Schema | None, value: Any, path: str, unknown: list[str]) -> Any:
    if isinstance(value, list):
        items = schema.get("items") if schema else None
        if items is None and schema and schema.get(PRESERVE):
            return value
        return [
            _pruned(items, item, f"{path}[{index}]", unknown) for index, item in enumerate(value)
        ]
    if not isinstance(value, Mapping):
        return value
    kept = {}
    for key, item in value.items():
        here = f"{path}.{key}" if path else key
        known, inner = _field_schema(schema, key)
        if not known:
            unknown.append(here)
        else:
            kept[key] = item if inner is _ANYTHING else _pruned(inner, item, here, unknown)
    return kept


_ANYTHING: Schema = {PRESERVE: True}


def _field_schema(schema: Schema | None, key: str) -> tuple[bool, Schema | None]:
    """Whether the schema has such a field, and the field's own; None for one whose content is not
    described (all of it is pruned)."""
    if schema is None:
        return False, None
    if schema.get(EMBEDDED) and key in _META:
        return True, _ANYTHING
    if key in (schema.get("properties") or {}):
        return True, schema["properties"][key]
    more = schema.get("additionalProperties")
    if more:
        return True, more if isinstance(more, Mapping) else None
    return bool(schema.get(PRESERVE)), _ANYTHING


# --- defaults -------------------------------------------------------------------------------------


def defaulted(schema: Schema | None, value: Any) -> Any:
    """The value with the schema's defaults where nothing was given, and without nulls that the
    schema does not allow.
    """
    if not schema:
        return value
    if isinstance(value, list):
        items = schema.get("items")
        new_items = [defaulted(items, _unless_null(items, item)) for item in value]
        return (
            new_items
            if any(new is not old for new, old in zip(new_items, value, strict=True))
            else value
        )
    if not isinstance(value, Mapping):
        return value
    filled = dict(_without_nulls(schema, value))
    for key, field in (schema.get("properties") or {}).items():
        if (
            "default" in field
            and filled.get(key) is None
            and not (key in filled and field.get("nullable"))
        ):
            filled[key] = field["default"]
    for key, item in filled.items():
        filled[key] = defaulted(_described(schema, key), item)
    is_same = len(filled) == len(value) and all(
        key in value and filled[key] is value[key] for key in filled
    )
    return value if is_same else filled


def _described(schema: Schema, key: str) -> Schema | None:
    field = (schema.get("properties") or {}).get(key)
    more = schema.get("additionalProperties")
    return field if field is not None else more if isinstance(more, Mapping) else None


def _without_nulls(schema: Schema, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        field = _described(schema, key)
        if item is None and field is not None and not field.get("nullable"):
            if "default" in field:
                yield key, field["default"]
            continue
        yield key, item


def _unless_null(schema: Schema | None, item: Any) -> Any:
    return (
        schema["default"]
        if item is None and schema and "default" in schema and not schema.get("nullable")
        else item
    )


def null_errors(schema: Schema | None, value: Any, path: str = "") -> list[FieldError]:
    """The nulls that the schema neither allows nor has a default for.

    In a body they count as absent; what an apply leaves of an object is no body.
    """
    if not schema:
        return []
    if isinstance(value, list):
        items = schema.get("items")
        return [
            error
            for index, item in enumerate(value)
            for error in null_errors(items, item, f"{path}[{index}]")
        ]
    errors: list[FieldError] = []
    for key, item in value.items() if isinstance(value, Mapping) else ():
        field, here = _described(schema, key), f"{path}.{key}" if path else key
        if item is not None:
            errors += null_errors(field, item, here)
        elif field is not None and "default" not in field:
            errors += schema_errors(field, None, here)
    return errors


# --- validation -----------------------------------------------------------------------------------


def schema_errors(schema: Schema, value: Any, path: str = "") -> list[FieldError]:
    """Every fault of the value, in the words of the real server."""
    kind = json_type(value)
    errors = _type_errors(schema, value, kind, path)
    if value is None:
        return errors
    errors += _composed_errors(schema, value, path)
    check = _CHECKS.get("number" if kind == "integer" else kind)
    errors += check(schema, value, path) if check else []
    if schema.get("enum") and value not in schema["enum"]:
        errors.append(unsupported(path, value, schema["enum"]))
    return errors


def json_type(value: Any) -> str:
    """`object`, `array`, `string`, `boolean`, `integer`, `number` or `null`."""
    if isinstance(value, bool):
        return "boolean"
    return next((name for kind, name in _TYPES.items() if isinstance(value, kind)), "null")


_TYPES = {str: "string", int: "integer", float: "number", Mapping: "object", list: "array"}


def _type_errors(schema: Schema, value: Any, kind: str, path: str) -> list[FieldError]:
    wanted = (
        ["integer", "string"]
        if schema.get(INT_OR_STRING)
        else [schema["type"]]
        if schema.get("type")
        else []
    )
    if not wanted or kind in wanted or (value is None and schema.get("nullable")):
        return []
    if (kind == "integer" and "number" in wanted) or (
        kind == "number" and "integer" in wanted and value.is_integer()
    ):
        return []
    return [_mistyped(path, kind, ",".join(wanted))]


def _mistyped(path: str, value: str, wanted: str) -> FieldError:
    return FieldError(
        path,
        "FieldValueTypeInvalid",
        f"Invalid value: {shown(value)}: {path} in body must be of type {wanted}: {shown(value)}",
    )


def _composed_errors(schema: Schema, value: Any, path: str) -> list[FieldError]:
    errors = [
        error for part in schema.get("allOf") or () for error in schema_errors(part, value, path)
    ]
    if schema.get("anyOf"):
        failures = [schema_errors(part, value, path) for part in schema["anyOf"]]
        if all(failures):
            errors += [
                _nameless(f"{shown(path)} must validate at least one schema (anyOf)"),
                *_nearest(failures),
            ]
    if schema.get("oneOf"):
        failures = [schema_errors(part, value, path) for part in schema["oneOf"]]
        fitting = failures.count([])
        if fitting != 1:
            found = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
            errors.append(
                _nameless(f"{shown(path)} must validate one and only one schema (oneOf). {found}")
            )
            errors += _nearest(failures)
    if schema.get("not") and not schema_errors(schema["not"], value, path):
        errors.append(_nameless(f"{shown(path)} must not validate the schema (not)"))
    return errors


def _nearest(failures: list[list[FieldError]]) -> list[FieldError]:
    """The faults of the alternative that has the fewest."""
    return min(failures, key=len)


def _nameless(why: str) -> FieldError:
    """The real server does not name the field of this error."""
    return wrong_value("<nil>", "", why)


def _object_errors(schema: Schema, value: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = _size_errors(schema, len(value), path, "Properties", "properties")
    for key in value:
        inner = _described(schema, key)
        if inner is not None:
            errors += schema_errors(inner, value[key], f"{path}.{key}" if path else key)
    missing = [key for key in schema.get("required") or () if key not in value]
    return [*errors, *(required(f"{path}.{key}" if path else key) for key in missing)]


def _array_errors(schema: Schema, value: list[Any], path: str) -> list[FieldError]:
    items = schema.get("items") or {}
    errors = [
        error
        for index, item in enumerate(value)
        for error in schema_errors(items, item, f"{path}[{index}]")
    ]
    return [
        *errors,
        *_size_errors(schema, len(value), path, "Items", "items"),
        *_duplicates(schema, value, path),
    ]


def _size_errors(schema: Schema, size: int, path: str, bound: str, things: str) -> list[FieldError]:
    lowest, highest = schema.get(f"min{bound}"), schema.get(f"max{bound}")
    if lowest is not None and size < lowest:
        return [_unfit(path, size, f"should have at least {lowest} {things}")]
    if highest is not None and size > highest:
        items = "item" if highest == 1 else "items"
        return [
            FieldError(
                path,
                "FieldValueTooMany",
                f"Too many: {size}: must have at most {highest} {items}",
            )
        ]
    return []


def _duplicates(schema: Schema, value: list[Any], path: str) -> list[FieldError]:
    """What `x-kubernetes-list-type` forbids: the same value
    (`set`) or the same keys (`map`) twice.
    """
    kind, keys = (
        schema.get("x-kubernetes-list-type"),
        schema.get("x-kubernetes-list-map-keys") or (),
    )
    if kind not in ("set", "map"):
        return []
    seen, errors = [], []
    for index, item in enumerate(value):
        mark = (
            {key: item[key] for key in keys if key in item}
            if kind == "map" and isinstance(item, Mapping)
            else item
        )
        if mark in seen:
            errors.append(duplicate(f"{path}[{index}]", mark))
        seen.append(mark)
    return errors


def _text_errors(schema: Schema, value: str, path: str) -> list[FieldError]:
    shortest, longest, pattern = (
        schema.get("minLength"),
        schema.get("maxLength"),
        schema.get("pattern"),
    )
    errors = []
    if longest is not None and len(value) > longest:
        errors.append(too_long(path, longest))
    if shortest is not None and len(value) < shortest:
        errors.append(_unfit(path, value, f"should be at least {shortest} chars long"))
    if pattern and not fits(pattern, value):
        errors.append(_unfit(path, value, f"should match '{pattern}'"))
    if schema.get("format") == "date-time" and not _is_time(value):
        errors.append(_mistyped(path, value, "date-time"))
    return errors


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except ValueError:
        return False
    return True


def _number_errors(schema: Schema, value: float, path: str) -> list[FieldError]:
    lowest, highest, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    errors = []
    if step and value % step:
        errors.append(_unfit(path, value, f"should be a multiple of {_number(step)}"))
    if highest is not None and (
        value >= highest if schema.get("exclusiveMaximum") else value > highest
    ):
        rule = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        errors.append(_unfit(path, value, f"should be {rule} {_number(highest)}"))
    if lowest is not None and (
        value <= lowest if schema.get("exclusiveMinimum") else value < lowest
    ):
        rule = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        errors.append(_unfit(path, value, f"should be {rule} {_number(lowest)}"))
    return errors


_CHECKS: Mapping[str, Any] = {
    "object": _object_errors,
    "array": _array_errors,
    "string": _text_errors,
    "number": _number_errors,
}


def _unfit(path: str, value: Any, why: str) -> FieldError:
    return wrong_value(path, value, f"{path} in body {why}")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)
