"""Templates of functions: what a reader sees of a value, and what no template can do."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

TOOLS = Path(__file__).resolve().parents[2] / "tools"
Object = dict[str, Any]
Word = Annotated[str, Meta(pattern="^[a-z]+$")]


class Inner(Struct, frozen=True, rename="camel"):
    is_on: bool = True
    is_many: bool = False


class Chosen(Struct, frozen=True, rename="camel"):
    inner: Inner = Inner()
    kind: Literal["", "big", "small", "none"] = ""
    copies: Annotated[int, Meta(ge=1, le=4)] = 2
    place: Word = "here"
    image: Annotated[str, Meta(min_length=1)] = "x"
    extra: str = ""


class Endless(Struct, frozen=True):
    number: int = 0


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))


def module(name: str) -> types.ModuleType:
    return importlib.import_module(f"chart.{name}")


def template(function: Callable[[Any], list[Object]]) -> str:
    fields = module("fields").fields_of(Chosen, {"place": ".Release.Namespace"})
    points = module("recorded").points_of(function, Chosen, fields)
    text: str = module("template").template_text(
        module("merged").merged_objects(points, fields), fields
    )
    return text


def one(name: str = "one", **entries: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Kind", "metadata": {"name": name}, **entries}


HEAD = "---\napiVersion: v1\nkind: Kind\nmetadata:\n  name: one\n"


def test_texts_and_numbers_are_written_in_place() -> None:
    def objects(chosen: Chosen) -> list[Object]:
        flags = [chosen.image, f"--image={chosen.image}", f"at {chosen.place}:{chosen.copies}"]
        return [one(copies=chosen.copies, flags=flags, note="{{ no template }}")]

    assert template(objects) == HEAD + (
        "copies: {{ int .Values.copies }}\n"
        "flags:\n"
        "- {{ .Values.image | quote }}\n"
        '- {{ print "--image=" .Values.image | quote }}\n'
        '- "at {{ .Release.Namespace }}:{{ .Values.copies }}"\n'
        'note: "{{ "{{" }} no template }}"\n'
    )


def test_what_depends_on_a_value_has_a_condition() -> None:
    def objects(chosen: Chosen) -> list[Object]:
        found = one(list=["first", *(["maybe"] if chosen.kind else []), "last"])
        if chosen.extra:
            found["extra"] = chosen.extra
        found["size"] = "large" if chosen.copies > 2 else "small"
        return [found] if chosen.inner.is_on or chosen.kind == "big" else []

    assert template(objects) == (
        '{{- if or .Values.inner.isOn (eq .Values.kind "big") }}\n' + HEAD + "list:\n"
        "- first\n"
        "{{- if .Values.kind }}\n"
        "- maybe\n"
        "{{- end }}\n"
        "- last\n"
        "{{- if .Values.extra }}\n"
        "extra: {{ .Values.extra | quote }}\n"
        "{{- end }}\n"
        "{{- if le (int .Values.copies) 2 }}\n"
        "size: small\n"
        "{{- else }}\n"
        "size: large\n"
        "{{- end }}\n"
        "{{- end }}\n"
    )


def test_objects_under_one_condition_share_it_and_words_may_be_several() -> None:
    def objects(chosen: Chosen) -> list[Object]:
        rare = [one("n1"), one("n2")] if chosen.kind in ("big", "small") else []
        return [*rare, *([one("n3")] if not chosen.inner.is_on else []), one("n4")]

    text = template(objects)
    assert [line for line in text.splitlines() if "{{" in line or "name:" in line] == [
        '{{- if has .Values.kind (list "big" "small") }}',
        "  name: n1",
        "  name: n2",
        "{{- end }}",
        "{{- if not .Values.inner.isOn }}",
        "  name: n3",
        "{{- end }}",
        "  name: n4",
    ]


@pytest.mark.parametrize(
    "objects, words",
    [
        (lambda chosen: [one(tag=chosen.image.split(":")[0])], "`image` is asked for `split`"),
        (lambda chosen: [one()] if chosen.image == "x" else [], "`image` is compared with `x`"),
        (
            lambda chosen: [one(labels={chosen.image: "x"})],
            'a value is written as the key "\\ue000image\\ue001"',
        ),
        (lambda chosen: [one(text=f"{chosen.image:>9}")], "`image` is written in the form `>9`"),
        (
            lambda chosen: [one(list=["a", "b"] if chosen.inner.is_on else ["b", "a"])],
            "the place of (\"'b'\", 0) depends on a value",
        ),
    ],
)
def test_what_no_template_can_do_is_refused(
    objects: Callable[[Chosen], list[Object]], words: str
) -> None:
    with pytest.raises(module("fields").Inexpressible) as caught:
        template(objects)
    assert str(caught.value) == words


def test_a_field_without_bounds_is_refused() -> None:
    with pytest.raises(module("fields").Inexpressible, match="`number`"):
        module("fields").fields_of(Endless, {})
