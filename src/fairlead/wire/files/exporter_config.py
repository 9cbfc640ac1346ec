"""dcgm-exporter's configuration file (YAML, version 1 or 2): its counters, its interval.

The file is read as strictly as dcgm-exporter reads it: an unknown key, a repeated key, or a second
source of counters is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct

from fairlead.model.refusal import Refusal
from fairlead.wire.files.strict_yaml import load_strict_yaml, yaml_trouble
from fairlead.wire.text.go_duration import parse_go_duration

EVERY: Final = "*"
"""The pattern that matches all fields."""


class ExporterConfig(Struct, frozen=True):
    """`file`: path of a counters CSV, or `rows`: CSV text of the inline counters; "" = not given.

    `interval_ms`: sampling interval in milliseconds, None = not given. `groups`: names of groups of
    fields for which the file asks an interval of their own.
    """

    file: str = ""
    rows: str = ""
    interval_ms: int | None = None
    groups: tuple[str, ...] = ()


class _Field(Struct, forbid_unknown_fields=True):
    name: str = ""
    prometheusType: str = ""
    help: str = ""


class _Metrics(Struct, forbid_unknown_fields=True):
    file: str = ""
    fields: list[_Field] = []
    enableExporterMetrics: bool = False


class _WatchGroup(Struct, forbid_unknown_fields=True):
    name: str = ""
    interval: str = ""
    fields: list[str] = []


class _Interval(Struct, frozen=True, forbid_unknown_fields=True):
    interval: str = ""
    watchGroups: list[_WatchGroup] = []


class _Include(Struct, frozen=True, forbid_unknown_fields=True):
    include: list[str] = []


class _Collection(Struct, forbid_unknown_fields=True):
    name: str = ""
    every: str = ""
    metrics: _Include = _Include()
    sources: dict[str, Any] = {}


class _ConfigVersion1(Struct, forbid_unknown_fields=True):
    version: int = 0
    metrics: _Metrics | None = None
    collection: _Interval = _Interval()


class _ConfigVersion2(Struct, forbid_unknown_fields=True):
    version: int = 0
    metrics: _Metrics | None = None
    collections: list[_Collection] = []
    sources: dict[str, Any] = {}
    server: dict[str, Any] = {}


def parse_exporter_config(text: str | bytes) -> ExporterConfig | Refusal:
    """The configuration, or a Refusal with the reason.

    >>> parse_exporter_config("{version: 1, collection: {interval: 1m30s}}").interval_ms
    90000
    >>> parse_exporter_config("{version: 3}").reason
    '`version` is 3, and must be 1 or 2'
    """
    try:
        value = load_strict_yaml(text)
        version = value.get("version") if isinstance(value, dict) else None
        if version not in (1, 2):
            return Refusal(
                f"`version` is {'missing' if version is None else version}, and must be 1 or 2"
            )
        found: _ConfigVersion1 | _ConfigVersion2 = (
            msgspec.convert(value, _ConfigVersion1)
            if version == 1
            else msgspec.convert(value, _ConfigVersion2)
        )
    except yaml.YAMLError as error:
        return Refusal(f"it is no YAML of this kind: {yaml_trouble(error)}")
    except msgspec.ValidationError as error:
        return Refusal(str(error))
    metrics = found.metrics or _Metrics()
    file = metrics.file.strip()
    if (file and metrics.fields) or (
        version == 1 and found.metrics is not None and not file and not metrics.fields
    ):
        return Refusal("`metrics` needs one of `file` and `fields`")
    rows = _rows(metrics.fields)
    if isinstance(rows, Refusal):
        return rows
    interval_text, groups = (
        _first_interval(found) if isinstance(found, _ConfigVersion1) else _second_interval(found)
    )
    interval = _milliseconds(*interval_text) if interval_text[1].strip() else None
    return (
        interval if isinstance(interval, Refusal) else ExporterConfig(file, rows, interval, groups)
    )


def _first_interval(found: _ConfigVersion1) -> tuple[tuple[str, str], tuple[str, ...]]:
    """The key and text of the interval, and the names of the other groups."""
    return ("collection.interval", found.collection.interval), tuple(
        each.name for each in found.collection.watchGroups
    )


def _second_interval(found: _ConfigVersion2) -> tuple[tuple[str, str], tuple[str, ...]]:
    """The same for version 2: the interval of the first collection of all fields counts."""
    every = next((each for each in found.collections if EVERY in each.metrics.include), None)
    interval_text = (f"collections `{every.name}` every", every.every) if every else ("", "")
    return interval_text, tuple(each.name for each in found.collections if each is not every)


def _rows(fields: Sequence[_Field]) -> str | Refusal:
    """The CSV text of inline counters."""
    rows = []
    for place, field in enumerate(fields):
        for key, value in (
            ("name", field.name),
            ("prometheusType", field.prometheusType),
            ("help", field.help),
        ):
            if not value.strip() or "\n" in value:
                return Refusal(
                    f"`metrics.fields[{place}].{key}` is "
                    f"{'empty' if not value.strip() else 'more than a line'}"
                )
        rows.append(
            f"{field.name.strip()}, {field.prometheusType.strip()}, "
            f'"{field.help.strip().replace(chr(34), chr(34) * 2)}"\n'
        )
    return "".join(rows)


def _milliseconds(key: str, text: str) -> int | Refusal:
    try:
        count = round(parse_go_duration(text.strip()) * 1000, 6)
    except ValueError as error:
        return Refusal(f"`{key}`: {error}")
    if count < 1 or count != int(count):
        return Refusal(f"`{key}` is `{text}`: write whole milliseconds, 1 or more")
    return int(count)
