"""A template of Helm as text: YAML as in `deploy/`, with conditions on lines of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from chart.fields import Field, Inexpressible
from chart.merged import Entries, Entry, Number, When
from chart.recorded import MARK
from fairlead.wire.files.manifest_yaml import render_manifests

_LINE: Final = re.compile(r'^( *)(?:- )?"?\ue002(\d+)\ue002"?(?:: null)?$', re.MULTILINE)
_WHOLE: Final = re.compile('"?\ue003(\\d+)\ue003"?')
_AGAIN: Final = re.compile('"?([^" ]*)\ue004\\d+\ue004"?:')
_BRACES: Final = re.compile(r"\{\{")


def template_text(objects: Sequence[Entry], fields: Mapping[str, Field]) -> str:
    """The documents of a file, each after a line `---`."""
    return "".join(
        f"{_opening(each.when, before)}{''.join(_Document(fields).text(one) for one in group)}"
        f"{_closing(each.when, after)}"
        for before, group, after in _groups(objects)
        for each in group[:1]
    )


class _Document:
    """One object. Lines and texts of the template are set into it after YAML is written."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = fields
        self._set_in: list[str] = []

    def text(self, entry: Entry) -> str:
        text = _BRACES.sub(
            '{{ "{{" }}', render_manifests([self._tree(entry.value)], has_blocks=True)
        )
        text = _LINE.sub(lambda found: found[1] + self._set_in[int(found[2])], text)
        text = _WHOLE.sub(lambda found: self._set_in[int(found[1])], text)
        text = _AGAIN.sub(r"\1:", text)
        return "---\n" + MARK.sub(lambda found: self._inline(found[1]), text)

    def _tree(self, node: Any) -> Any:
        if isinstance(node, Number):
            return (
                f"\ue003{self._place(f'{{{{ int {self._fields[node.path].expression} }}}}')}\ue003"
            )
        if isinstance(node, str):
            return self._written(node)
        if not isinstance(node, Entries):
            return node
        return self._mapping(node.rows) if node.is_mapping else self._list(node.rows)

    def _mapping(self, rows: Sequence[Entry]) -> dict[str, Any]:
        # A condition cannot stand between the dash of an item and its first entry.
        if rows[0].when is not None:
            first = next((each for each in rows if each.when is None), None)
            if first is None:
                raise Inexpressible(f"each of {', '.join(each.key for each in rows)} may be absent")
            rows = (first, *(each for each in rows if each is not first))
        found: dict[str, Any] = {}
        for before, group, after in _groups(rows):
            if opening := _opening(group[0].when, before):
                found[self._line(opening)] = None
            for each in group:
                key = each.key
                if key in found:
                    key += f"\ue004{len(found)}\ue004"
                found[key] = self._tree(each.value)
            if closing := _closing(group[0].when, after):
                found[self._line(closing)] = None
        return found

    def _list(self, rows: Sequence[Entry]) -> list[Any]:
        found: list[Any] = []
        for before, group, after in _groups(rows):
            if opening := _opening(group[0].when, before):
                found.append(self._line(opening))
            for each in group:
                found += self._item(each.value)
            if closing := _closing(group[0].when, after):
                found.append(self._line(closing))
        return found

    def _item(self, value: Any) -> list[Any]:
        """The item; one in which the values of a list are written is repeated for each."""
        paths = _paths(value)
        names = {each for each in paths if self._fields[each].is_list}
        if not names or any(map(_has_list, _parts(value))):
            return [self._tree(value)]
        if names != set(paths) or len(names) > 1:
            raise Inexpressible(f"an item has the values of `{min(names)}` beside others")
        opening = f"{{{{- range {self._fields[names.pop()].expression} }}}}"
        return [self._line(opening), self._tree(value), self._line("{{- end }}")]

    def _written(self, text: str) -> str:
        """The text, if the values written into it cannot end it; else a pipeline."""
        paths = MARK.findall(text)
        if all(self._fields[path].is_safe for path in paths):
            return text
        parts = MARK.split(text)
        words = [
            self._fields[each].expression if index % 2 else json.dumps(each)
            for index, each in enumerate(parts)
            if index % 2 or each
        ]
        written = words[0] if len(words) == 1 else f"print {' '.join(words)}"
        return self._in_place(f"{written} | quote")

    def _inline(self, path: str) -> str:
        return f"{{{{ {self._fields[path].written} }}}}"

    def _in_place(self, pipeline: str) -> str:
        return f"\ue003{self._place(f'{{{{ {pipeline} }}}}')}\ue003"

    def _line(self, text: str) -> str:
        return f"\ue002{self._place(text.rstrip())}\ue002"

    def _place(self, text: str) -> int:
        self._set_in.append(text)
        return len(self._set_in) - 1


def _paths(node: Any) -> list[str]:
    """The fields that are written in it, and below it."""
    if isinstance(node, Entries):
        return [path for each in node.rows for path in _paths(each.value)]
    if isinstance(node, Number):
        return [node.path]
    return MARK.findall(node) if isinstance(node, str) else []


def _parts(node: Any) -> list[Any]:
    return [each.value for each in node.rows] if isinstance(node, Entries) else []


def _has_list(node: Any) -> bool:
    """Whether there is a list in it: then an item of that list is repeated, not a larger one."""
    if not isinstance(node, Entries):
        return False
    return not node.is_mapping or any(map(_has_list, _parts(node)))


def _groups(
    rows: Sequence[Entry],
) -> Iterable[tuple[When | None, Sequence[Entry], When | None]]:
    """Neighbours under one condition, with the conditions before and after them."""
    groups: list[list[Entry]] = []
    for each in rows:
        if groups and groups[-1][0].when == each.when:
            groups[-1].append(each)
        else:
            groups.append([each])
    conditions = [None, *(each[0].when for each in groups), None]
    return zip(conditions, groups, conditions[2:], strict=False)


def _opening(when: When | None, before: When | None) -> str:
    if when is None:
        return ""
    return "{{- else }}\n" if _is_other(before, when) else f"{{{{- if {when.expression} }}}}\n"


def _closing(when: When | None, after: When | None) -> str:
    return "" if when is None or _is_other(when, after) else "{{- end }}\n"


def _is_other(first: When | None, second: When | None) -> bool:
    """Whether the second condition holds where the first does not."""
    return (
        first is not None
        and second is not None
        and first.among == second.among == first.on | second.on
        and not first.on & second.on
    )
