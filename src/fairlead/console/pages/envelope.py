"""What every answer of the console's API has: keys, times, warnings, state, error.

Keys are camelCase with the unit last (`gpuMemoryUsedMiB`); unknown is null and never 0. Every key
is always present: clients test for null, not for absence.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

from msgspec import Meta, Struct

from fairlead.model.occupancy import rounded_gpus


def wire_key(name: str) -> str:
    """The JSON key of a Python field.

    >>> [wire_key(name) for name in ("gpu_memory_used_mib", "name", "temperature_c", "power_w")]
    ['gpuMemoryUsedMiB', 'name', 'temperatureC', 'powerW']
    """
    head, *tail = name.split("_")
    return head + "".join("MiB" if word == "mib" else word.capitalize() for word in tail)


Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339, UTC."""

Scalar = str | int | float | None


class Json(Struct, frozen=True, gc=False, rename=wire_key):
    """Sets the style of keys; holds nothing.

    Rows have no circles: the collector passes over them.
    """


class Sentence(Json, frozen=True):
    """One sentence of state: `code` and `values`
    for the catalogues of the client, `text` in English.
    """

    code: str
    values: dict[str, Scalar]
    text: str


class Warning(Json, frozen=True):
    """What is missing in this answer, where it would come from, and what to do.

    `message` and `hint` are English.
    """

    code: str
    source: str
    message: str
    hint: str
    values: dict[str, Scalar] = {}


class Envelope(Json, frozen=True):
    """`version`: of the topic, as in `/versions` and `/changes`.

    `stale`: the newest good read of a needed source is over 30 s old.
    """

    generated_at: Timestamp
    stale: bool
    version: str
    warnings: list[Warning]


class ListAnswer(Envelope, frozen=True):
    """One page of rows. `total` counts after filtering.

    `facets` are the choices of each filter before filtering (at most 500 each).
    """

    total: int
    page: int
    size: int
    sentence: Sentence
    facets: dict[str, list[str]]


class FieldFault(Json, frozen=True):
    """What is wrong with one field of a body. `rule`: which rule it breaks, `code`: the same as the
    rule's own part of the program names it, "" = there is no other name.
    """

    path: str
    rule: str
    error: str
    code: str = ""


class ErrorAnswer(Json, frozen=True):
    """Every answer from 400 up.

    `request_id` is also in the header `X-Request-Id` and in the server's log. `current`: with
    `conflict` the object as it is now, else null.
    """

    ok: bool
    status: int
    code: str
    error: str
    hint: str
    fields: list[FieldFault]
    request_id: str
    current: Any = None


def timestamp(at: float | None) -> str | None:
    """RFC 3339 in UTC, whole seconds, as the API server prints them.

    >>> timestamp(1767600000.4), timestamp(None)
    ('2026-01-05T08:00:00Z', None)
    """
    return (
        None if at is None else datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    )


def parse_timestamp(text: str | None) -> float | None:
    """The epoch seconds of `timestamp`'s text.

    >>> parse_timestamp("2026-01-05T08:00:00Z"), parse_timestamp(None)
    (1767600000.0, None)
    """
    return None if text is None else datetime.fromisoformat(text).timestamp()


def exact_timestamp(at: float) -> str:
    """The same with milliseconds, for the time of an answer.

    >>> exact_timestamp(1767600000.25)
    '2026-01-05T08:00:00.250Z'
    """
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(number: float, noun: str) -> str:
    """A number with its noun in English.

    >>> counted(1, "GPU"), counted(2.5, "GPU"), counted(0, "node")
    ('1 GPU', '2.5 GPUs', '0 nodes')
    """
    return f"{round(number, 1):g} {noun}{'' if number == 1 else 's'}"


def listed(names: Collection[str], most: int) -> str:
    """Names of many things, the first of them.

    >>> listed("abcde", 3), listed("ab", 3)
    ('a, b, c, …', 'a, b')
    """
    return ", ".join([*islice(names, most), *(["…"] if len(names) > most else [])])


def neat(value: float, digits: int = 4) -> float:
    """A number without noise: whole ones as integers, others to four decimals.

    >>> neat(2.0), neat(0.1 + 0.2)
    (2, 0.3)
    """
    if not math.isfinite(value):
        return value  # JSON has no word for it: it is written as null
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) else rounded


def gpu_count(gpus: float) -> float:
    """GPUs of a sentence: one decimal, halves up, as `arena top node` and the meters of the page
    round them.

    >>> gpu_count(24.95), gpu_count(2.25), gpu_count(8.0)
    (25, 2.3, 8)
    """
    return neat(rounded_gpus(gpus), 1) if math.isfinite(gpus) else gpus


def neat_or_null(value: float | None, digits: int = 4) -> float | None:
    """The same; unknown, and what is no number, stays unknown."""
    return None if value is None or not math.isfinite(value) else neat(value, digits)


def percent(ratio: float | None) -> float | None:
    """A ratio 0..1 as percent, unknown stays unknown.

    >>> percent(0.3333), percent(None)
    (33.33, None)
    """
    return None if ratio is None else neat_or_null(ratio * 100, 2)


def percent_of(part: float | None, whole: float | None) -> float | None:
    """Percent of a total; of nothing it is unknown, never a division by zero.

    >>> percent_of(1, 4), percent_of(0, 0), percent_of(None, 4)
    (25, None, None)
    """
    return neat_or_null(100 * part / whole, 2) if part is not None and whole else None
