"""What a command does, compared with a real shell: the same lines, the same exit code; a command
that is not understood is reported as such.
"""

from __future__ import annotations

import subprocess
import time

import pytest
from hypothesis import strategies as st
from tests.examples import examples

from fairlead_sim.kubelet.program import INSTANT_SECONDS, Program, program_of

ENVIRONMENT = {"WORD": "ship", "TWO": "two  words", "EMPTY": "", "STAR": "*"}

UNDERSTOOD = [
    "echo hi",
    "true",
    ":",
    "false",
    "exit 3",
    "exit",
    "exit 256",
    "exit 511",
    "echo hi; sleep 0.01; exit 3",
    "echo a && echo b || echo c",
    "false && echo a || echo b",
    "false || exit 7; echo never",
    "true || echo never; echo after",
    "false; echo after",
    "echo one\necho two\n\necho three;",
    "true &&\n echo next line",
    "echo 'single  $quoted' \"double ; && $WORD\" pl'a'i\"n\"",
    'echo "$TWO" ${WORD}s $WORD',
    'echo "{$WORD}" "${WORD}}" "$STAR"',
    "echo -n begun; echo ' and ended'",
    "echo -n left open",
    "echo",
    "/bin/echo path; /bin/true",
    "echo a,b.c/d:e=f@g+h%i-j_k! 你好 Grüße",
]
NOT_UNDERSTOOD = [
    "echo hi | cat",
    "echo hi > file",
    "echo hi &",
    "echo *",
    "echo ~",
    "echo $UNKNOWN",
    "echo $TWO",
    "echo $EMPTY",
    "echo $STAR",
    "echo $(date)",
    "echo `date`",
    "echo $((1 + 1))",
    "echo a\\ b",
    "echo # comment",
    "for i in 1 2 3; do echo $i; done",
    "if true; then echo a; fi",
    "(echo a)",
    "{ echo a; }",
    "NAME=x echo a",
    "python train.py",
    "python train.py || true",
    "true && mpirun python train.py",
    "date +%s",
    "sleep",
    "sleep soon",
    "sleep ３",
    "exit now",
    "exit ３",
    "./echo a",
    "/app/echo a",
    "bin/true",
    "while true; do echo a; break; done",
    "while test -f x; do sleep 1; done",
]


def shell(text: str, flags: str = "-c") -> Program | None:
    return program_of(["/bin/sh", flags, text], [], ENVIRONMENT)


def really(text: str, flags: str = "-c") -> tuple[str, int]:
    """What bash prints, and how it ends."""
    done = subprocess.run(
        ["bash", flags, text],
        env={"PATH": "/usr/bin:/bin", **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout, done.returncode


def reported(program: Program) -> tuple[list[str | None], int]:
    return [text for _, text in program.lines], program.exit_code


@pytest.mark.parametrize("text", UNDERSTOOD)
@pytest.mark.parametrize("flags", ["-c", "-ec"])
def test_a_one_liner_prints_and_ends_as_in_a_shell(text: str, flags: str) -> None:
    program = shell(text, flags)
    assert program is not None, "not understood"
    printed, exit_code = really(text, flags)
    assert reported(program) == (
        printed.removesuffix("\n").split("\n") if printed else [],
        exit_code,
    )


@pytest.mark.parametrize("text", NOT_UNDERSTOOD)
def test_what_it_does_not_know_it_does_not_guess(text: str) -> None:
    assert shell(text) is None


SIMPLE = st.sampled_from(["true", "false", "echo a", "echo b", "exit 2", "exit", ":", "echo -n c"])


@examples(
    40,
    400,
    st.lists(
        st.tuples(SIMPLE, st.sampled_from([" ; ", " && ", " || ", "\n"])),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(["-c", "-ec"]),
)
def test_any_chain_of_them_does_what_a_shell_does(chain: list[tuple[str, str]], flags: str) -> None:
    text = "".join(command + sign for command, sign in chain[:-1]) + chain[-1][0]
    program = shell(text, flags)
    assert program is not None
    printed, exit_code = really(text, flags)
    assert reported(program) == (
        printed.removesuffix("\n").split("\n") if printed else [],
        exit_code,
    ), text


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (["sleep", "5"], 5.0),
        (["sleep", "0.5"], 0.5),
        (["sleep", "1m"], 60.0),
        (["sleep", "1m", "30"], 90.0),
        (["sleep", "1.5h"], 5400.0),
        (["sleep", "1d"], 86400.0),
        (["sleep", "infinity"], None),
        (["tail", "-f", "/dev/null"], None),
        (["sh", "-c", "sleep 2 && sleep 3; echo done"], 5.0),
        (["sh", "-c", "false && sleep 9; sleep 1"], 1.0),
        (["sh", "-c", "sleep infinity; exit 3"], None),
        (["sh", "-c", "exit 1; sleep 9"], INSTANT_SECONDS),
        (["sleep", "0"], INSTANT_SECONDS),
        (["true"], INSTANT_SECONDS),
    ],
)
def test_how_long_it_takes(words: list[str], seconds: float | None) -> None:
    for command, arguments in ((words, []), ([], words), (words[:1], words[1:])):
        program = program_of(command, arguments, {})
        assert program is not None
        assert program.run_seconds == seconds


def test_a_line_is_printed_when_its_turn_comes() -> None:
    program = shell("echo a; sleep 5; echo b; date")
    assert program is not None
    assert program.printed(4.9) == [(0.0, "a")]
    assert program.printed(5.0) == [(0.0, "a"), (5.0, "b"), (5.0, None)]


def test_a_loop_goes_on_and_prints_once_a_round() -> None:
    program = shell("echo begin; sleep 2; while true; do date; echo tick; sleep 10; done")
    assert program is not None
    assert program.run_seconds is None
    assert program.printed(1.0) == [(0.0, "begin")]
    assert program.printed(12.5) == [
        (0.0, "begin"),
        (2.0, None),
        (2.0, "tick"),
        (12.0, None),
        (12.0, "tick"),
    ]
    assert len(program.printed(1e6)) < 6000, "a loop of days is not printed whole"


@pytest.mark.parametrize("body", ["echo $i; i=$((i+1)); sleep 1", "curl -s web | head; sleep 1"])
def test_a_loop_goes_on_whatever_it_does(body: str) -> None:
    program = shell(f"i=0; while true; do {body}; done")
    assert program == Program(None)


def test_a_loop_in_quotes_is_no_loop() -> None:
    program = shell("echo 'while true; do x; done'")
    assert program is not None
    assert reported(program) == (["while true; do x; done"], 0)


def test_kubernetes_substitutes_values_before_a_program_reads_its_arguments() -> None:
    greeting = program_of(["echo"], ["$(WORD) $(TWO) $(UNKNOWN) $$(WORD)"], ENVIRONMENT)
    assert greeting is not None
    assert reported(greeting) == (["ship two  words $(UNKNOWN) $(WORD)"], 0)


@pytest.mark.parametrize("words", [["/app/echo"], ["./sleep", "5"], ["/srv/sh", "-c", "exit 3"]])
def test_a_users_own_program_is_not_taken_for_the_systems(words: list[str]) -> None:
    assert program_of(words, [], {}) is None


def test_a_text_that_is_not_understood_is_given_up_at_once() -> None:
    """Names within an open quote, cut in pieces in every way, would keep the whole laptop busy for
    years.
    """
    text = 'echo "' + "/".join(["$TRAINING_DIR"] * 7) + ' \\"quoted\\""'
    began = time.process_time()
    assert shell(text) is None
    assert time.process_time() - began < 1


def test_no_words_mean_nothing() -> None:
    assert program_of([], [], {}) is None
    assert program_of(["sh"], [], {}) is None
