"""Arguments in any order give the same result (pflag's rules), and argparse never gets arguments
that it would misread.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.frame.parser import Parser, split_verb
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
TEXTS = st.text(max_size=8) | st.text("-=mdx ", max_size=4)
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
def test_a_flag_means_the_same_wherever_it_stands(
    words: list[str], flag: tuple[tuple[str, ...], str, object], data: st.DataObject
) -> None:
    spelling, name, value = flag
    place = data.draw(st.integers(0, len(words)))
    args = parser().parse([*words[:place], *spelling, *words[place:]])
    assert (getattr(args, name), args.names) == (value, words)


@given(st.lists(TEXTS, max_size=4))
@example(["--", "-d"])
@example(["-d", "--"])
def test_after_two_dashes_everything_is_an_argument(words: list[str]) -> None:
    args = parser().parse(["-d", "--", *words])
    assert (args.details, args.names) == (True, words)


def test_the_last_mention_of_a_boolean_wins_and_repeatable_flags_collect() -> None:
    args = parser().parse(["-d", "--details=false", "--env", "A=1", "--env=B=2"])
    assert (args.details, args.env) == (False, ["A=1", "B=2"])


@given(TEXTS)
@example("--")
@example("")
@example("-x")
@example("--details")
@example("-")
@example("=")
@example("a b")
def test_any_value_reaches_its_flag_as_it_is(value: str) -> None:
    """As in pflag, the word after a flag is its value, whatever it looks like."""
    for spelling in (
        ["--mode", value],
        [f"--mode={value}"],
        ["-m", value],
        ["-dm", value],
        [f"-m={value}"] if value else ["-m", ""],
    ):
        args = parser().parse([*spelling, "a", "--", "b"])
        assert (args.mode, args.names) == (value, ["a", "b"]), spelling
        assert parser().parse(["--env", value, f"--env={value}"]).env == [value, value]


def test_a_short_flag_before_a_bare_equals_sign_has_it_as_its_value() -> None:
    """As in pflag: `-m=x` contains a value; `-m=` has no room for one, so it is `-m` with the value
    `=`.
    """
    assert parser().parse(["-m="]).mode == "="


@pytest.mark.parametrize(
    "words", [["--"], ["a", "--"], ["--", "--"], ["sh", "--", "-c"], ["--mode", "--", "--", "x"]]
)
def test_of_two_dashes_only_the_first_ends_the_flags(words: list[str]) -> None:
    args = parser().parse(["-d", "--mode", "--", "--", *words])
    assert (args.details, args.mode, args.names) == (True, "--", words)


@pytest.mark.parametrize("words", [["--"], ["--", "--"], ["x", "--"]])
def test_two_dashes_are_an_argument_for_options_that_take_one_by_one(words: list[str]) -> None:
    made = Parser(prog="p", allow_abbrev=False, add_help=False)
    made.add_argument("one")
    made.add_argument("two", nargs="?", default="")
    args = made.parse(["--", *words])
    assert [args.one, args.two] == [*words, ""][:2]


def test_an_argument_too_many_is_named_as_it_was_written() -> None:
    made = Parser(prog="p", allow_abbrev=False, add_help=False)
    made.add_argument("one")
    with pytest.raises(UserError) as caught:
        made.parse(["--", "a", "--"])
    assert caught.value.what == "it takes no argument `--`"


@pytest.mark.parametrize(
    "argv",
    [
        ["-n", "--", "list"],
        ["--namespace", "--", "list"],
        ["--loglevel", "--", "list"],
        ["list", "-n", "--"],
    ],
    ids=" ".join,
)
def test_two_dashes_as_the_value_of_a_global_flag_do_not_hide_the_verb(argv: list[str]) -> None:
    verb, rest = split_verb(argv, "arena")
    assert verb is not None and verb.words == ("list",)
    assert rest == [word for word in argv if word != "list"]


def test_a_parser_error_is_a_sentence() -> None:
    made = parser()
    made.add_argument("--port", type=int)
    with pytest.raises(UserError) as refusal:
        made.parse(["--port", "x"])
    assert str(refusal.value) == (
        "argument --port: invalid int value: `x`\nhint: `p --help` shows what it takes"
    )
