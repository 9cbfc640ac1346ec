"""Values that record which of their fields a function reads, and leave marks where it writes them.

A text is marked by its path between two characters that no object has; a function that looks into a
text whose value is not known is refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final

import msgspec
from msgspec import Struct

from chart.fields import ANY, Field, Inexpressible

_OPEN, _CLOSE = "\ue000", "\ue001"
MARK: Final = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
Point = Mapping[str, Any]
"""The alternative of each field that is distinguished, by its path."""
_POINTS_MAX: Final = 5000


def mark(path: str) -> str:
    return f"{_OPEN}{path}{_CLOSE}"


class MarkedText(str):
    """A text of a field. Written into another text it leaves its mark.

    One of a few words compares as that word; any other text is only empty, or not. `read`: notes
    the path when a function asks that.
    """

    path: str
    is_word: bool
    read: list[str]

    def __new__(cls, path: str, value: Any, read: list[str], *, is_word: bool) -> MarkedText:
        self = super().__new__(cls, mark(path) if value is ANY else value)
        self.path, self.is_word, self.read = path, is_word, read
        return self

    def __bool__(self) -> bool:
        _note(self.path, self.read)
        return str.__len__(self) > 0

    def __str__(self) -> str:
        return mark(self.path)

    def __format__(self, spec: str) -> str:
        if spec:
            raise Inexpressible(f"`{self.path}` is written in the form `{spec}`")
        return mark(self.path)

    def __add__(self, other: str) -> str:
        return f"{self}{other}"

    def __radd__(self, other: str) -> str:
        return f"{other}{self}"

    def __eq__(self, other: object) -> bool:
        if self.is_word or other == "":
            _note(self.path, self.read)
            return str.__eq__(self, other) is True
        if isinstance(other, MarkedText) and other.path == self.path:
            return True
        raise Inexpressible(f"`{self.path}` is compared with `{other}`")

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def _note(path: str, read: list[str]) -> None:
    if path not in read:
        read.append(path)


def _refused(name: str) -> Callable[..., Any]:
    def refuse(self: MarkedText, *_: Any, **__: Any) -> Any:
        raise Inexpressible(f"`{self.path}` is asked for `{name}`")

    return refuse


for _name in dir(str):
    if not _name.startswith("_") or _name in ("__contains__", "__getitem__", "__iter__", "__mod__"):
        setattr(MarkedText, _name, _refused(_name))


class MarkedNumber(int):
    """A number of a field. What is computed with it is a number of its own, without a mark."""

    path: str

    def __new__(cls, path: str, value: int) -> MarkedNumber:
        self = super().__new__(cls, value)
        self.path = path
        return self

    def __format__(self, spec: str) -> str:
        return int.__format__(self, spec) if spec else mark(self.path)

    def __str__(self) -> str:
        return mark(self.path)


def points_of(
    function: Callable[[Any], Any], type_: type[Struct], fields: Mapping[str, Field]
) -> list[tuple[dict[str, Any], Any]]:
    """What the function returns for all combinations of alternatives that it distinguishes."""
    read: list[str] = []
    while True:
        known = [path for path in read if fields[path].alternatives]
        seen = list(read)
        recorder = _Recorder(fields, seen)
        results = []
        for values in product(*(fields[path].alternatives for path in known)):
            point = dict(zip(known, values, strict=True))
            results.append((point, function(recorder.recording(type_, point))))
            if len(results) > _POINTS_MAX:
                raise Inexpressible(f"it distinguishes too much: {', '.join(known)}")
        if seen == read:
            return results
        read = seen


class _Recorder:
    """Makes values that note in `read` what a function asks them.

    Points differ in few fields, so that most structs of a value are those of an earlier point.
    """

    def __init__(self, fields: Mapping[str, Field], read: list[str]) -> None:
        self._fields = fields
        self._read = read
        self._made: dict[tuple[str, tuple[tuple[str, Any], ...]], Any] = {}

    def recording(self, type_: type[Struct], point: Point, prefix: str = "") -> Any:
        """A value of the type with the alternatives of the point, else with the first of each."""
        own = tuple(each for each in point.items() if each[0].startswith(prefix))
        if (prefix, own) not in self._made:
            self._made[prefix, own] = self._make(type_, point, prefix)
        return self._made[prefix, own]

    def _make(self, type_: type[Struct], point: Point, prefix: str) -> Any:
        values: dict[str, Any] = {}
        for each in _fields(type_):
            path = f"{prefix}{each.name}"
            values[each.name] = (
                _marked(self._fields[path], point, self._read)
                if path in self._fields
                else self.recording(each.type, point, f"{path}.")
            )
        # A text is noted when a function asks whether it is empty: one that is written only would
        # double the runs.
        paths = {
            name: f"{prefix}{name}"
            for name, value in values.items()
            if f"{prefix}{name}" in self._fields and not isinstance(value, MarkedText)
        }
        read = self._read

        def find(self: Any, name: str) -> Any:
            if name in paths:
                _note(paths[name], read)
            return object.__getattribute__(self, name)

        recording: Any = msgspec.defstruct(
            type_.__name__, (), bases=(type_,), namespace={"__getattribute__": find}, frozen=True
        )
        return recording(**values)


@functools.cache
def _fields(type_: type[Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(type_)


def _marked(field: Field, point: Point, read: list[str]) -> Any:
    is_word = ANY not in field.alternatives and bool(field.alternatives)
    is_text = not is_word and not field.is_list
    value = point.get(field.path, ANY if is_text else field.alternatives[0])
    if field.is_list:
        return (MarkedText(field.path, ANY, read, is_word=False),) if value is ANY else ()
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return MarkedNumber(field.path, value)
    return MarkedText(field.path, value, read, is_word=is_word)
