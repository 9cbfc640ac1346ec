"""A table as CSV: UTF-8 with BOM, raw numbers, no cell that a spreadsheet would run.

Text that starts like a formula gets a leading apostrophe: names and labels come from strangers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, Final, get_args, get_origin

import msgspec

from fairlead.console.pages.envelope import Sentence

ROWS_MAX: Final = 100_000
BOM: Final = "\ufeff"
_FORMULA_STARTS: Final = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
"""The last four are wide forms, which spreadsheets of East Asian languages read alike."""


def render_csv(rows: Sequence[Any], row_type: Any, keys: Sequence[str] = ()) -> bytes:
    """The rows (structs of `row_type`) under `keys` (all when empty), at most `ROWS_MAX` of them.

    Nested structs become columns like `instances.running`.
    """
    columns = columns_of(row_type, keys)
    text = io.StringIO()
    text.write(BOM)
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(_record(msgspec.to_builtins(row), columns) for row in rows[:ROWS_MAX])
    return text.getvalue().encode()


def columns_of(row_type: Any, keys: Sequence[str] = ()) -> list[str]:
    """Column heads of a row type, nested structs flattened one level.

    Translatable sentences are omitted: their text is in other columns.
    """
    columns: list[str] = []
    for field in msgspec.structs.fields(row_type):
        if (keys and field.encode_name not in keys) or _is_sentence(field.type):
            continue
        nested = next(
            (part for part in get_args(field.type) or (field.type,) if _is_struct(part)), None
        )
        if nested is None or get_origin(field.type) is list:
            columns.append(field.encode_name)
        else:
            parts = (part for part in msgspec.structs.fields(nested) if not _is_sentence(part.type))
            columns.extend(f"{field.encode_name}.{part.encode_name}" for part in parts)
    return columns


def _is_sentence(annotation: Any) -> bool:
    return Sentence in (annotation, *get_args(annotation))


def _is_struct(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, msgspec.Struct)


def _record(values: dict[str, Any], columns: Sequence[str]) -> list[Any]:
    return [_cell(_value(values, column)) for column in columns]


def _value(values: dict[str, Any], column: str) -> Any:
    key, dot, part = column.partition(".")
    return (values[key] or {}).get(part) if dot else values[key]


def _cell(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else guarded(_text(value))


def _text(value: Any) -> str:
    """Null is empty, as a cell of its own and within one.

    >>> _text(["a", "b"])
    'a; b'
    >>> _text([{"user": "ann", "used": 4}, {"user": None, "used": 7}])
    'ann=4;=7'
    >>> _text({"a": 1})
    'a=1'
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ";".join(f"{key}={_text(each)}" for key, each in value.items())
    if isinstance(value, list):
        return (";" if any(isinstance(each, dict) for each in value) else "; ").join(
            map(_item, value)
        )
    return str(value)


def _item(value: Any) -> str:
    """Of a struct with two keys the one and the other; of a larger one what each value is."""
    if not isinstance(value, dict):
        return _text(value)
    return (
        "=".join(map(_text, value.values()))
        if len(value) == 2
        else " ".join(f"{key}={_text(each)}" for key, each in value.items())
    )


def guarded(text: str) -> str:
    """The text so that no spreadsheet takes it for a formula.

    >>> guarded("=HYPERLINK(1)"), guarded("gpu-1")
    ("'=HYPERLINK(1)", 'gpu-1')
    """
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
