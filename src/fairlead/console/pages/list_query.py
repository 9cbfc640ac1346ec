"""What a page asks of a list: query parameters, parsed strictly.

An unknown one is refused, not passed over.

Every fault is a UserError that names the parameter, its value and what is known, and becomes a 400.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.console.pages.endpoints import AT, Endpoint
from fairlead.errors import UserError

SIZE_DEFAULT: Final = 50
SIZE_MAX: Final = 500
_KNOWN_SHOWN: Final = 40


class SortKey(Struct, frozen=True):
    key: str
    descending: bool = False


class ListQuery(Struct, frozen=True):
    """`filters`: parameter -> values in lower case; several values mean "or", several parameters
    "and".

    `fields` empty = all.
    """

    q: str = ""
    filters: Mapping[str, frozenset[str]] = {}
    sort: tuple[SortKey, ...] = ()
    page: int = 1
    size: int = SIZE_DEFAULT
    fields: tuple[str, ...] = ()
    as_csv: bool = False


_LIST_WORDS: Final = frozenset(("q", "sort", "page", "size", "fields", "format", AT.name))


def check_known(parameters: Iterable[tuple[str, str]], endpoint: Endpoint) -> None:
    """Refuse parameters the endpoint does not have, and a single one given twice."""
    by_name = {each.name: each for each in endpoint.parameters}
    seen: set[str] = set()
    for name, _ in parameters:
        if name not in by_name:
            known = ", ".join(f"`{each}`" for each in by_name) or "none"
            raise UserError(
                f"unknown query parameter `{_short(name)}`", f"this route knows: {known}"
            )
        if name in seen and not by_name[name].repeated:
            raise UserError(f"query parameter `{name}` is given twice", "give it once")
        seen.add(name)


def parse_list_query(parameters: Sequence[tuple[str, str]], endpoint: Endpoint) -> ListQuery:
    """Parameters of a list route, checked against its endpoint."""
    check_known(parameters, endpoint)
    single = {name: text for name, text in parameters if name in _LIST_WORDS}
    form = single.get("format") or "json"
    if form not in ("json", "csv"):
        raise UserError(f"`format` is `{_short(form)}`", "use `format=json` or `format=csv`")
    return ListQuery(
        q=single.get("q", "").strip(),
        filters=parse_filters(parameters),
        sort=tuple(_sort_key(word) for word in _words(single.get("sort", ""))),
        page=parse_whole("page", single.get("page"), 1, 1, 1_000_000),
        size=parse_whole("size", single.get("size"), SIZE_DEFAULT, 1, SIZE_MAX),
        fields=tuple(_words(single.get("fields", ""))),
        as_csv=form == "csv",
    )


def parse_filters(parameters: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Everything that is no list word, empty values left out ("all")."""
    filters: dict[str, set[str]] = {}
    for name, text in parameters:
        if name not in _LIST_WORDS and text:
            filters.setdefault(name, set()).add(text.lower())
    return {name: frozenset(values) for name, values in filters.items()}


def parse_whole(name: str, text: str | None, default: int, lowest: int, highest: int) -> int:
    """A whole number within limits; absent or empty is the default.

    >>> parse_whole("page", "3", 1, 1, 100), parse_whole("page", None, 1, 1, 100)
    (3, 1)
    """
    if not text:
        return default
    if (
        not (text.isascii() and text.isdigit() and len(text) < 13)
        or not lowest <= int(text) <= highest
    ):
        raise UserError(
            f"`{name}` is `{_short(text)}`", f"give a whole number from {lowest} to {highest}"
        )
    return int(text)


def check_keys(name: str, asked: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a key of `sort` or `fields` that the rows do not have."""
    for key in asked:
        if key not in known:
            shown = ", ".join(f"`{each}`" for each in known[:_KNOWN_SHOWN])
            raise UserError(
                f"`{name}` names `{_short(key)}`, which the rows do not have",
                f"known keys: {shown}",
            )


def _sort_key(word: str) -> SortKey:
    return SortKey(word.removeprefix("-"), word.startswith("-"))


def _words(text: str) -> list[str]:
    return [word for word in (part.strip() for part in text.split(",")) if word]


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
