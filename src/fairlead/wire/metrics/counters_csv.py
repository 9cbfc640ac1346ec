"""The counters CSV of dcgm-exporter: `FIELD, type, help`, one row per metric.

Specification: docs/spec/telemetry.md#counters-file.

A malformed row does not affect the others: it is skipped and counted. Refusing to start because of
one is up to the user (`--strict-csv`), not this module.
"""

from __future__ import annotations

import csv
from typing import Final

from fairlead.model.devices.counter import Counter, CounterSet, RejectedRow
from fairlead.model.refusal import Refusal
from fairlead.wire.metrics.dcgm_fields import field_of, is_double, why_not

_MOST_SUGGESTIONS: Final = 20
"""How many rows get a suggestion.

A search takes milliseconds, and a long file may be no CSV at all.
"""
TYPES: Final = ("gauge", "counter", "histogram", "summary", "label")


def parse_counters(text: str) -> CounterSet:
    """The valid rows in order, and the malformed rows.

    >>> parse_counters('DCGM_FI_DEV_GPU_UTIL, gauge, "in %, integer"').counters[0].help
    'in %, integer'
    """
    counters: dict[str, Counter] = {}
    rejected: list[RejectedRow] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _parse_row(line, suggests=len(rejected) < _MOST_SUGGESTIONS)
        if isinstance(row, Counter) and row.name in counters:
            row = Refusal(f"`{row.name}` stands in an earlier row")
        if isinstance(row, Refusal):
            rejected.append(RejectedRow(number, line.strip(), row.reason))
        else:
            counters[row.name] = row
    return CounterSet(tuple(counters.values()), tuple(rejected))


def _parse_row(line: str, *, suggests: bool) -> Counter | Refusal:
    try:
        fields = [
            field.strip() for field in next(csv.reader([line], skipinitialspace=True, strict=True))
        ]
    except csv.Error as error:
        return Refusal(f"not CSV: {error}")
    if len(fields) != 3:
        return Refusal(f"{len(fields)} fields instead of 3 (a help text with a comma needs quotes)")
    name, type_, help_ = fields
    field = field_of(name)
    if field is None:
        return Refusal(why_not(name, suggests=suggests))
    if type_ not in TYPES:
        return Refusal(f"`{type_}` is none of {', '.join(TYPES)}")
    return Counter(name, field, type_, help_, is_double(field))
