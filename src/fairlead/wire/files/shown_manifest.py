"""An object of the cluster as a page shows it: without secret values and controllers' fields.

The module checks the keys of every map and every pair of `name` or `key` with `value`; it searches
every text as a command or a file (`wire.text.secret_words`), and as YAML or JSON where it parses as
that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import yaml

from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.files.strict_yaml import load_strict_yaml
from fairlead.wire.text.secret_names import is_secret_field, is_secret_name
from fairlead.wire.text.secret_words import (
    HIDDEN,
    LONGEST_TEXT,
    NO_SECRETS,
    too_long,
    without_secrets,
    words_without_secrets,
)

_DROPPED: Final = frozenset(("managedFields", "kubectl.kubernetes.io/last-applied-configuration"))
"""Fields that repeat an earlier version of the whole object, with any secret in it."""
_REFERENCE: Final = frozenset(("name", "key", "optional", "namespace"))
MOST_CHARACTERS: Final = 256 << 10
MOST_VALUES: Final = 20_000
"""How many values of one object are checked: about a second of work. Further values are hidden."""
MOST_LEVELS: Final = 100
"""How many levels of nested objects and lists are checked; deeper values are hidden."""
_MOST_DOCUMENTS: Final = 64
_MOST_TEXTS: Final = 4
"""How many levels of text inside text (JSON in JSON) are read; deeper text is hidden."""


def shown_manifest(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The object to show, and the paths of hidden values. `manifest` itself is not changed.

    >>> shown_manifest({"env": [{"name": "HF_TOKEN", "value": "x"}]})
    ({'env': [{'name': 'HF_TOKEN', 'value': '<redacted>'}]}, ['env[0].value'])
    """
    hidden: list[str] = []
    shown: dict[str, Any] = _Walk(hidden, _Bounds()).value(manifest, "")
    return shown, hidden


class _Bounds:
    """What remains of the budget of checked values and characters of one object."""

    def __init__(self) -> None:
        self._characters = MOST_CHARACTERS
        self._values = MOST_VALUES

    def has_room(self, characters: int) -> bool:
        """Whether one more value of this length can be checked; if so it is counted."""
        if characters > self._characters or not self._values:
            return False
        self._characters -= characters
        self._values -= 1
        return True


class _Walk:
    """Walks over one object. `texts`: the number of texts inside which the present value is."""

    def __init__(self, hidden: list[str], bounds: _Bounds, texts: int = 0) -> None:
        self._hidden = hidden
        self._bounds = bounds
        self._texts = texts
        self._level = 0

    def value(self, value: Any, path: str) -> Any:
        if self._level > MOST_LEVELS or not self._bounds.has_room(
            len(value) if isinstance(value, str) else 0
        ):
            self._hidden.append(path)
            return too_long(value) if isinstance(value, str) else HIDDEN
        self._level += 1
        try:
            return self._judged(value, path)
        finally:
            self._level -= 1

    def _judged(self, value: Any, path: str) -> Any:
        if isinstance(value, Mapping):
            return {
                self._key(name): self._field(value, name, f"{path}.{name}".lstrip("."))
                for name in value
                if name not in _DROPPED
            }
        if isinstance(value, list | tuple):
            return self._list(list(value), path)
        return self._text(value, path) if isinstance(value, str) else value

    def _key(self, name: Any) -> Any:
        return without_secrets(name) if isinstance(name, str) and "://" in name else name

    def _field(self, of: Mapping[Any, Any], name: Any, path: str) -> Any:
        value = of[name]
        is_named = name == "value" and any(
            isinstance(of.get(key), str) and is_secret_name(of[key]) for key in ("name", "key")
        )
        is_of_secret = name in ("data", "stringData", "binaryData") and of.get("kind") == "Secret"
        if (
            is_named
            or is_of_secret
            or is_secret_field(str(name), is_text=not isinstance(value, Mapping | list))
        ):
            return self._hide(value, path)
        return self.value(value, path)

    def _hide(self, value: Any, path: str) -> Any:
        """Hides every value below, except references to a Secret by name."""
        if path.count(".") + path.count("[") > 2 * MOST_LEVELS:
            self._hidden.append(path)
            return HIDDEN
        if isinstance(value, Mapping):
            if "name" in value and _REFERENCE.issuperset(value):
                return self.value(value, path)
            return {self._key(name): self._hide(value[name], f"{path}.{name}") for name in value}
        if isinstance(value, list | tuple):
            return [self._hide(each, f"{path}[{index}]") for index, each in enumerate(value)]
        if (
            value is None
            or isinstance(value, bool)
            or (isinstance(value, str) and value.lower() in NO_SECRETS)
        ):
            return value
        self._hidden.append(path)
        return HIDDEN

    def _list(self, values: list[Any], path: str) -> list[Any]:
        """The words of a command, or another list."""
        if len(values) > MOST_VALUES or not self._bounds.has_room(
            sum(len(value) for value in values if isinstance(value, str))
        ):
            self._hidden.append(path)
            return [HIDDEN]
        texts = [value if isinstance(value, str) else "" for value in values]
        shown = words_without_secrets(texts) if any(texts) else texts
        walked = list[Any]()
        for index, value in enumerate(values):
            place = f"{path}[{index}]"
            if not isinstance(value, str):
                walked.append(self.value(value, place))
            elif shown[index] != HIDDEN and (read := self._structure(value)) is not None:
                walked.append(self._noted(value, read, place))
            else:
                walked.append(self._noted(value, shown[index], place))
        return walked

    def _text(self, text: str, path: str) -> str:
        read = self._structure(text)
        return self._noted(text, without_secrets(text) if read is None else read, path)

    def _noted(self, text: str, shown: str, path: str) -> str:
        if shown != text:
            self._hidden.append(path)
        return shown

    def _structure(self, text: str) -> str | None:
        """The text with values in its YAML or JSON hidden.

        None when it is neither or hides nothing.
        """
        begins = text.lstrip()[:1]
        if begins not in ("{", "[") and not ("\n" in text and ":" in text):
            return None
        if len(text) > LONGEST_TEXT:
            return too_long(text)
        parts = _documents(text)
        if len(parts) > _MOST_DOCUMENTS:
            return HIDDEN
        shown = [self._document(part, is_json=begins in ("{", "[")) for part in parts]
        if all(each is None for each in shown):
            return None
        return "---\n".join(
            without_secrets(part) if each is None else each
            for part, each in zip(parts, shown, strict=True)
        )

    def _document(self, text: str, *, is_json: bool) -> str | None:
        try:
            value = load_strict_yaml(text)
        except yaml.YAMLError:
            return None
        if not isinstance(value, Mapping | list) or not value:
            return None
        if self._texts == _MOST_TEXTS:
            return HIDDEN
        hidden: list[str] = []
        shown = _Walk(hidden, self._bounds, self._texts + 1).value(value, "")
        if not hidden and not _has_dropped(value):
            return None
        return msgspec.json.encode(shown).decode() if is_json else render_manifests([shown])


def _documents(text: str) -> list[str]:
    parts: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if line.rstrip() == "---":
            parts.append([])
        else:
            parts[-1].append(line)
    return ["".join(part) for part in parts]


def _has_dropped(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(name in _DROPPED or _has_dropped(below) for name, below in value.items())
    return isinstance(value, list) and any(map(_has_dropped, value))
