"""Documents that are small to send but large in memory: each is refused with an error before it
costs anything.
"""

from __future__ import annotations

import sys

import pytest
import yaml
from tests.programs import run_program

from fairlead.wire.files.bounded import MAX_LEVELS, is_too_deep, load_yaml

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + step)}: &{chr(98 + step)} [{','.join([f'*{chr(97 + step)}'] * 9)}]\n"
    for step in range(12)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 1000, "nested more than 200 levels deep"),
        ("- " * 1000, "nested more than 200 levels deep"),
        ("{a: " * 1000, "nested more than 200 levels deep"),
        (LAUGHS, "aliases repeat more than"),
        (f"a: &a {'x' * 1000}\nb: [{','.join(['*a'] * 5000)}]", "aliases repeat more than"),
        ("a: &a [*a]", "alias `a` stands inside what it repeats"),
        ("a: 2026-13-45", "month must be in 1..12"),
        ("a: " + "1" * 9999, "a value cannot be read"),
        ("a: !!bool maybe", "a value cannot be read"),
    ],
    ids=[
        "lists",
        "block lists",
        "mappings",
        "laughs",
        "long text",
        "recursive",
        "no date",
        "digits",
        "no bool",
    ],
)
def test_what_cannot_be_built_is_refused(text: str, words: str) -> None:
    with pytest.raises(yaml.YAMLError) as refusal:
        load_yaml(text)
    assert words in str(refusal.value)


def test_a_hundred_kilobytes_of_brackets_do_not_end_the_process() -> None:
    """In a process of its own: without the limit this is a SIGSEGV."""
    script = "import yaml\n"
    script += (
        "from fairlead.wire.files.bounded import load_yaml\ntry: load_yaml('[' * 100_000)\nexcept "
        "yaml.YAMLError: print('refused')"
    )
    ended = run_program([sys.executable, "-c", script])
    assert (ended.returncode, ended.stdout) == (0, "refused\n")


def test_ordinary_aliases_and_merges_and_the_deepest_document_pass() -> None:
    assert load_yaml("a: &a {x: 1}\nb: *a\nc:\n  <<: *a\n  y: 2") == {
        "a": {"x": 1},
        "b": {"x": 1},
        "c": {"x": 1, "y": 2},
    }
    deepest = load_yaml("[" * MAX_LEVELS + "]" * MAX_LEVELS)
    assert not is_too_deep(deepest)
    assert is_too_deep([deepest])


def test_aliases_cannot_build_what_brackets_may_not() -> None:
    steps = [
        f"a{step}: &a{step} {'[' * 150}{f'*a{step - 1}' if step else ''}{']' * 150}"
        for step in range(10)
    ]
    assert is_too_deep(load_yaml("\n".join(steps)))
