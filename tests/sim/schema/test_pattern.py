"""Regular expressions of schemas: Go's dialect and messages, and a time that grows only with the
text.
"""

from __future__ import annotations

import time

import pytest

from fairlead_sim.schema.crd_schema import schema_errors
from fairlead_sim.schema.pattern import fault_of, fits

HOSTILE = {
    "^(a+)+$": "a" * 20_000 + "!",
    "^(a|aa)*$": "a" * 20_000 + "!",
    "^(.*?,){11}P": "1,2,3,4,5,6,7,8,9,10,11,12,13" * 500,
    r"^(\w+\s?)*$": "a " * 10_000 + "!",
}


@pytest.mark.parametrize("pattern", HOSTILE)
def test_no_pattern_takes_longer_than_its_text_is_long(pattern: str) -> None:
    before = time.process_time()
    (error,) = schema_errors({"type": "string", "pattern": pattern}, HOSTILE[pattern])
    assert time.process_time() - before < 1
    assert "should match" in error.message


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a(b", "missing closing ): `a(b`"),
        ("[a-z", "missing closing ]: `[a-z`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        (r"a\Z", r"invalid escape sequence: `\Z`"),
        (r"^\p{Greek}+$", ""),
    ],
)
def test_what_go_cannot_read_is_refused_in_its_words(pattern: str, message: str) -> None:
    assert fault_of(pattern) == message


def test_the_end_is_the_end_of_the_text() -> None:
    assert not fits("^a$", "a\n")
    assert fits("(?m)^a$", "a\n")
