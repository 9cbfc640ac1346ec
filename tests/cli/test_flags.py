"""Arguments in any order give the same result (pflag's rules), and argparse never sees what it would misread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cli.flags import BooleanFlag
from fairlead.cli.parser import Parser
from fairlead.errors import UserError

SPELLINGS = (
    (("--details",), "details", True),
    (("-d",), "details", True),
    (("--details=true",), "details", True),
    (("--mode", "e"), "mode", "e"),
    (("--mode=e",), "mode", "e"),
    (("-m", "e"), "mode", "e"),
    (("-m=e",), "mode", "e"),
    (("-me",), "mode", "e"),
    (("-dm", "e"), "mode", "e"),
    (("--gpus", "-1"), "gpus", "-1"),
    (("--env", "A=1"), "env", ["A=1"]),
)
WORDS = st.lists(st.sampled_from(["a", "b", "node-1", "é"]), max_size=3)


def parser() -> Parser:
    made = Parser(prog="p", allow_abbrev=False, add_help=False)
    made.add_argument("names", nargs="*")
    made.add_argument("--details", "-d", action=BooleanFlag)
    made.add_argument("--mode", "-m", default="")
    made.add_argument("--gpus", default="")
    made.add_argument("--env", action="append", default=[])
    return made


@given(WORDS, st.sampled_from(SPELLINGS), st.data())
def test_a_flag_means_the_same_wherever_it_stands(words: list[str], flag: tuple[tuple[str, ...], str, object], data: st.DataObject) -> None:
    spelling, name, value = flag
    place = data.draw(st.integers(0, len(words)))
    args = parser().parse([*words[:place], *spelling, *words[place:]])
    assert (getattr(args, name), args.names) == (value, words)


@given(st.lists(st.text(min_size=1, max_size=5), max_size=4))
def test_after_two_dashes_everything_is_an_argument(words: list[str]) -> None:
    args = parser().parse(["-d", "--", *words])
    assert (args.details, args.names) == (True, words)


def test_the_last_mention_of_a_boolean_wins_and_repeatable_flags_collect() -> None:
    args = parser().parse(["-d", "--details=false", "--env", "A=1", "--env=B=2"])
    assert (args.details, args.env) == (False, ["A=1", "B=2"])


@given(st.text(max_size=8))
def test_any_value_reaches_its_flag_as_it_is(value: str) -> None:
    assert parser().parse(["--mode", value]).mode == value
    assert parser().parse([f"--mode={value}"]).mode == value


def test_a_parser_error_is_a_sentence() -> None:
    made = parser()
    made.add_argument("--port", type=int)
    with pytest.raises(UserError) as refusal:
        made.parse(["--port", "x"])
    assert str(refusal.value) == "argument --port: invalid int value: `x`\nhint: `p --help` shows what it takes"
