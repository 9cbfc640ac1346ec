"""Reads field values of one card: one call for all fields of a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pynvml
from pynvml import NVMLError

from fairlead.edge.nvml.absences import Absences, Failures
from fairlead.wire.devices.nvml_values import (
    SUCCESS,
    FieldValue,
    NvmlField,
    field_number,
    parse_field_values,
)

COLLECTOR: Final = "fieldvalues"
_CALL: Final = "nvmlDeviceGetFieldValues"


def read_fields(
    handle: Any, rows: Iterable[NvmlField], absences: Absences, failures: Failures
) -> dict[str, int | float]:
    """The values by the rows' fields; fields that this card does not have are not asked for.

    Raises NVMLError when the card is lost or the driver is gone.
    """
    asked = [row for row in rows if not absences.has(_key(row))]
    if not asked or absences.has(_CALL):
        return {}
    answered: tuple[FieldValue, ...] = ()
    with failures.caught(COLLECTOR, _CALL):
        answered = parse_field_values(
            bytes(pynvml.nvmlDeviceGetFieldValues(handle, [(row.id, row.scope) for row in asked]))
        )
    fields: dict[str, int | float] = {}
    for row, value in zip(asked, answered, strict=False):
        if value.code != SUCCESS:
            why = absences.judge(_key(row), NVMLError(value.code))
            failures.add(COLLECTOR, row.field, why)
        elif (number := field_number(row, value)) is not None:
            fields[row.field] = number
    return fields


def _key(row: NvmlField) -> tuple[int, int]:
    return row.id, row.scope
