"""No regular expression of the source takes long for any text: the time grows linearly with the
length.

The deadline is in processor time: a hundred times what a linear pattern takes, and less than what a
quadratic pattern takes.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.properties.hostile_texts import Found, Unread, hostile_texts, patterns

from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.files.shown_manifest import shown_manifest

LENGTH = 15_000
SECONDS = 0.15

MADE_LATER = {
    "fairlead.apps.owner_names:text": (
        "the operator's own flag, over keys of labels, which Kubernetes bounds to 317 letters"
    ),
    "fairlead.cli.submit.cloned:pattern": (
        "those of tables of this source, over the names of arena's own flags"
    ),
    "fairlead.console.http.writing.jobs:pattern": (
        "those of a table of this source, over at most `PATH_MAX` characters"
    ),
    "fairlead.kinds.parts.companions:re.escape(self.name) + suffix": (
        "a name as it is, and a suffix of this source without repeats"
    ),
    "fairlead.wire.helm.failures:form": (
        "those of a table of this source, over at most 600 letters of a program's errors"
    ),
}
"""Patterns that the program composes at run time, and why no text takes them a long time."""

HOSTILE = {
    "flags": "-token" * 10_000,
    "long flag": "-" * 60_000,
    "names": "token=" * 10_000,
    "names and spaces": "token " * 10_000,
    "flags and spaces": "--token " * 8_000,
    "spaces": " " * 60_000,
    "colons": "token:" * 10_000,
    "lines": "token:\n" * 9_000,
    "blocks": "token: |\n" * 7_000,
    "blocks in blocks": "".join(f"{' ' * (n % 250)}token: |\n" for n in range(450)),
    "quotes": "'\"" * 30_000,
    "quotes that stay open": "token='\"" * 7_000,
    "escaped quotes": 'token=\\"' * 7_000,
    "backslashes": "\\" * 60_000,
    "addresses": "a://b:c/" * 8_000,
    "addresses and signs": "a://" + "@:" * 30_000,
    "schemes": "://" * 20_000,
    "bearers": "bearer " * 9_000,
    "a long bearer": "bearer " + "a" * 60_000,
    "private keys": "-----BEGIN PRIVATE KEY-----" * 2_000,
    "long private key": "-----BEGIN " + "A " * 30_000 + "PRIVATE KEY",
    "brackets": "[" * 60_000,
    "braces": "{" * 60_000,
    "deep JSON": "[" * 30_000 + "]" * 30_000,
    "maps": "{a: " * 15_000,
    "JSON in JSON": '{"a": "' * 8_000,
    "aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(
        f"{c}: &{c} [*{b},*{b},*{b},*{b},*{b}]\n"
        for b, c in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "capitals": "AaAaAA" * 10_000,
    "subshells": "token=$(" * 8_000,
    "shell signs": "token=;|&" * 7_000,
    "users": "-u a:b " * 8_000,
    "heads": "a=" * 30_000,
    "dashes": "- " * 30_000 + "token: x",
    "documents": "---\n" * 15_000 + ":",
    "longer than is judged": "-token" * 200_000,
}


@contextmanager
def deadline(what: str, seconds: float = SECONDS) -> Iterator[None]:
    def end(*_: Any) -> None:
        raise AssertionError(f"{what} takes more than {seconds} s")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


FOUND = list(patterns())


@pytest.mark.parametrize(
    "found", [each for each in FOUND if isinstance(each, Found)], ids=lambda found: found.place
)
def test_time_grows_with_the_length_of_a_text(found: Found) -> None:
    for text in hostile_texts(found.pattern, LENGTH):
        for method in sorted(found.methods):
            with deadline(f"`{method}` of `{text[:40]!r}…`"):
                ask(found.pattern, method, text)


def ask(pattern: re.Pattern[Any], method: str, text: Any) -> None:
    if method in ("sub", "subn"):
        pattern.sub(text[:0], text)
    elif method == "finditer":
        list(pattern.finditer(text))
    else:
        getattr(pattern, method)(text)


def test_what_cannot_be_tried_here_is_known() -> None:
    assert {each.place for each in FOUND if isinstance(each, Unread)} == set(MADE_LATER)


def test_of_a_large_object_the_rest_is_hidden() -> None:
    with deadline("to show it", 4.0):
        shown, hidden = shown_manifest(
            {
                "a": ["x y" * 1_000] * 400,
                "b": [{"c": "d"}] * 40_000,
                "spec": ["-token" * 700] * 300,
                "z": "first",
            }
        )
        render_manifests([shown])
    assert hidden


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_manifest_is_shown_in_time(text: str) -> None:
    """Each text is in a place that a tenant can write. A manifest that takes long to show would
    delay the page's other answers.
    """
    with deadline("to show it", 3.0):
        shown_manifest({"args": [text, "x"], "spec": text, text[:300]: text[:300]})


def test_a_pattern_that_tries_long_is_seen() -> None:
    for source in ("(-{1,2}[a-z.-]*token[a-z.-]*)=", r"(a+)+\Z", r"\s*(.*?)\s*\Z"):
        found = Found("x", re.compile(source), frozenset(("search",)))
        with pytest.raises(AssertionError, match="takes more than"):
            test_time_grows_with_the_length_of_a_text(found)
