"""Scenarios read from TOML files, and messages about errors in them.

Every error names the file, the line and the key: `tomllib` drops lines, so `locate_keys` reads them
from the text. Checks of more than one key (an unknown namespace, a card that does not exist) are in
`rules`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from fairlead.errors import UserError
from fairlead.wire.text.time_span import parse_span
from fairlead_sim.scenario.rules import KeyPath, contradictions
from fairlead_sim.scenario.scenario import COUNTED, Duration, Scenario, expanded

_HEADER = re.compile(r"\s*+(\[\[?+)([^\]]++)\]")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_.-]+)\s*=""")


def known_scenarios() -> list[str]:
    """Names of the scenarios that come with Fairlead."""
    folder = files("fairlead_sim") / "scenarios"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def load_scenario(name: str) -> Scenario:
    """A scenario by name, or by the path of a file (with a slash, or ending in `.toml`)."""
    return parse_scenario(*read_scenario(name))


def read_scenario(name: str) -> tuple[str, str]:
    """The text of a scenario, and what to call it in messages."""
    if "/" not in name and not name.endswith(".toml"):
        return _built_in(name), f"{name}.toml"
    try:
        return Path(name).read_text(encoding="utf-8"), name
    except OSError as error:
        raise UserError(
            f"scenario file `{name}` cannot be read: {error.strerror or error}",
            "give the path of a TOML file",
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"scenario file `{name}` is not UTF-8 text (byte {error.start})", "save it as UTF-8"
        ) from error


def parse_scenario(text: str, source: str) -> Scenario:
    """The scenario of a TOML text; `source` names it in messages.

    Raises UserError with line and key.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(
            f"scenario `{source}` is not valid TOML: {error}",
            "see docs/how-to/scenarios.md for an example",
        ) from error
    try:
        scenario = msgspec.convert(raw, Scenario, dec_hook=_decode)
    except msgspec.ValidationError as error:
        what, path = _from_msgspec(str(error))
        raise _refusal(text, source, path, what) from error
    for path, what in _bad_counts(scenario):
        raise _refusal(text, source, path, what)
    whole = expanded(scenario)
    for path, what in contradictions(whole):
        raise _refusal(text, source, _written(scenario, path), what)
    return whole


def _bad_counts(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    for section in COUNTED:
        for index, item in enumerate(getattr(scenario, section)):
            if not 1 <= item.count <= 5000:
                yield (section, index, "count"), f"{item.count} is not between 1 and 5000"


def _written(scenario: Scenario, path: KeyPath) -> KeyPath:
    """Where the text has what stands at `path` of the expanded scenario."""
    if path[0] not in COUNTED:
        return path
    origins = [
        index
        for index, item in enumerate(getattr(scenario, str(path[0])))
        for _ in range(item.count)
    ]
    return (path[0], origins[int(path[1])], *path[2:])


def locate_keys(text: str) -> dict[KeyPath, int]:
    """Line (from 1) of every table and key that stands at the beginning of a line. Good enough for
    messages, not a parser.

    >>> locate_keys('a = 1\\n[[b]]\\nc = 2')
    {('a',): 1, ('b', 0): 2, ('b', 0, 'c'): 3}
    """
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _table_path(header[1] == "[[", _split_key(header[2].strip() or " "), counts)
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_split_key(key[1])), number)
    return lines


def _table_path(is_array: bool, keys: KeyPath, counts: dict[KeyPath, int]) -> KeyPath:
    path: KeyPath = ()
    for depth, key in enumerate(keys):
        path = (*path, key)
        if is_array and depth == len(keys) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _split_key(text: str) -> KeyPath:
    if text[0] in "\"'":
        return (text[1:-1],)
    return tuple(part.strip().strip("\"'") for part in text.split("."))


def _built_in(name: str) -> str:
    known = known_scenarios()
    if name not in known:
        raise UserError(
            f"there is no scenario `{name}`",
            f"choose one of: {', '.join(known)}; or give the path of a TOML file",
        )
    return (files("fairlead_sim") / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")


def _decode(kind: type, value: Any) -> Any:
    if kind is Duration:
        if not isinstance(value, str):
            raise ValueError(f'`{value}` is not a length of time in quotes, such as `"20m"`')
        return Duration(parse_span(value))
    raise NotImplementedError(kind)


def _from_msgspec(message: str) -> tuple[str, KeyPath]:
    """Its sentence and the path it names; an unknown or missing field belongs to the path."""
    what, _, where = message.partition(" - at `$")
    path: KeyPath = tuple(
        int(index) if index else key for key, index in re.findall(r"\.(\w+)|\[(\d+)\]", where)
    )
    field = re.search(r"(?:unknown|missing required) field `([^`]+)`", what)
    return what, (*path, field[1]) if field else path


def _refusal(text: str, source: str, path: KeyPath, what: str) -> UserError:
    lines = locate_keys(text)
    line = next(
        (lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), 1
    )
    return UserError(
        f"scenario `{source}` line {line}, key `{_spell(path)}`: {what}",
        "see docs/how-to/scenarios.md for every key and an example",
    )


def _spell(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "(the whole file)"
