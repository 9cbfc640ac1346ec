"""Each rule of tools/house_lint.py finds its fault and passes correct text, in a small checkout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.house_lint import MOST_MODULES, REPOSITORY, RULES, SLEEPS, WAITING_MODULE, findings

MODULE = "src/fairlead/rules/a.py"
TEST = "tests/rules/test_a.py"
NO_SLEEPS = '[jumping_clock]\nfiles = ["rules/test_jumping.py"]\n[allowed]\n'
ONE_SLEEP = NO_SLEEPS + '"rules/test_a.py" = { sleeps = 1, why = "real time is its subject" }\n'
OTHER = "utili" + "sation"  # the British spelling; the rule reads this file, too
FAULTS = {
    "no docstring": ({MODULE: "import re\n"}, "no docstring"),
    "nothing": ({MODULE: ""}, "no docstring"),
    "blanks": ({MODULE: '"""  """'}, "no docstring"),
    "a question": (
        {MODULE: ('"""What does a page show?"""')},
        "opens with a question: What does a page show?",
    ),
    "a question and its answer": (
        {MODULE: ('"""What does a page show? Rows."""')},
        "opens with a question",
    ),
    "a question of two lines": (
        {MODULE: ('"""Which of two\nlines is it?\n\nThe second."""')},
        "opens with a question",
    ),
    "a newcomer": (
        {MODULE: ('"""Rows.\n\nWhat a newcomer gets wrong: a row is no node."""')},
        "a newcomer",
    ),
    "a class twice": (
        {
            MODULE: ('"""A."""\nclass Twice: ...'),
            "src/fairlead_sim/b.py": ('"""B."""\nclass Twice: ...'),
        },
        "class `Twice` is defined in src/fairlead/rules/a.py as well",
    ),
    "a full folder": (
        {f"src/fairlead/rules/m{number}.py": '"""One."""' for number in range(MOST_MODULES + 1)},
        f"{MOST_MODULES + 1} modules",
    ),
    "another spelling": (
        {"docs/page.md": f"# One\n\nThe GPU {OTHER}.\n"},
        "spell it `utilization`",
    ),
    "another spelling of a name": (
        {"web/src/page.tsx": f"const {OTHER.title()} = 1\n"},
        "spell it `utilization`",
    ),
    "a sleep": (
        {TEST: "time.sleep(0.1)\nawait asyncio.sleep(0)\ndef sleep(): ...\n"},
        "1 sleeps, 0 allowed",
    ),
    "a sleep more": ({TEST: "sleep(a)\nsleep(b)\n", SLEEPS: ONE_SLEEP}, "2 sleeps, 1 allowed"),
    "a sleep less": ({TEST: "pass\n", SLEEPS: ONE_SLEEP}, f"0 sleeps, {SLEEPS} has 1"),
    "a file that is gone": ({SLEEPS: ONE_SLEEP}, "`rules/test_a.py` does not exist"),
    "a part of a sentence": (
        {TEST: 'with raises(UserError, match=r"it is no\\b" if a else f"`{b}`"): ...'},
        "matches a part of a sentence, `it is no",
    ),
    "an attribute of others": ({TEST: "world.timers._heap.clear()"}, "touches `_heap`"),
    "an import": ({TEST: "from a.b import _c, d"}, "touches `_c`"),
    "a name in a string": (
        {TEST: "monkeypatch.setattr('a.b.c.__defaults__', ())"},
        "touches `__defaults__`",
    ),
    "an attribute by name": ({TEST: "setattr(thing, '_x', 1)"}, "touches `_x`"),
    "an attribute of a base": (
        {TEST: "class A(Base):\n    def f(self):\n        return self._x"},
        "touches `_x`",
    ),
    "a helper of a test module": (
        {TEST: "from tests.sim.test_b import one\n"},
        "imports the test module `test_b`",
    ),
    "a helper of a test module nearby": ({TEST: "import a\nfrom .test_b import one\n"}, "`test_b`"),
    "a test module as a whole": ({TEST: "from tests.sim import a, test_b\n"}, "`test_b`"),
    "a limit of a program": (
        {TEST: "subprocess.run(a,\n    timeout=60,\n    check=True)"},
        "`run` ends after 60 s: take `HANG_SECONDS`",
    ),
    "a limit of a thread": ({TEST: "thread.join(20)"}, "`join` ends after 20 s"),
    "a test module by its path": ({TEST: "import tests.sim.test_b\n"}, "`test_b`"),
}
RIGHT = {
    "a helper": {TEST: "from tests.sim.latest_rows import test, contest_a\n"},
    "a statement": {MODULE: '"""Why a job waits."""'},
    "a word that asks": {MODULE: '"""The query `?sort=-gpus` of a list.\n\nIs it checked? Yes."""'},
    "a private class twice": {
        MODULE: ('"""A."""\nclass _B: ...'),
        "src/fairlead/c.py": ('"""C."""\nclass _B: ...'),
    },
    "as many modules as may be": {
        **{f"src/fairlead/rules/m{number}.py": '"""One."""' for number in range(MOST_MODULES)},
        "src/fairlead/rules/__init__.py": '"""Rules."""',
    },
    "our spelling": {"docs/page.md": "GPU utilization"},
    "a built page": {"src/fairlead/web_dist/page.css": OTHER},
    "a sleep that is allowed": {TEST: "sleep(1)", SLEEPS: ONE_SLEEP},
    "a clock that jumps": {"tests/rules/test_jumping.py": "sleep(1)"},
    "a limit of a test's own": {
        TEST: "run(a, timeout=HANG_SECONDS); ended.wait(2 * b); c.wait(0.5); d.wait(timeout=900)"
    },
    "its own attribute": {TEST: "class A:\n    def __init__(self):\n        self._x = 1\nA()._x"},
    "a value of a sentence": {TEST: "with raises(UserError, match=re.escape(f'`{a} b`')): ..."},
    "a sentence of kubectl": {TEST: "with raises(kube.KubectlError, match='is no pod'): ..."},
    "documented names": {TEST: "point._replace(x=1); thing.__class__"},
}


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "tests").mkdir()
    (tmp_path / SLEEPS).write_text(NO_SLEEPS)
    (tmp_path / WAITING_MODULE).write_text("HANG_SECONDS: Final = 240.0\n")
    yield tmp_path


def write(checkout: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_found_once(case: str, checkout: Path) -> None:
    files, what = FAULTS[case]
    write(checkout, files)
    (found,) = findings(checkout)
    assert what in str(found)


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right_passes(case: str, checkout: Path) -> None:
    write(checkout, RIGHT[case])
    assert list(findings(checkout)) == []


def test_each_rule_has_files_to_read() -> None:
    """In an empty folder every rule would pass."""
    assert len(list((REPOSITORY / "src").rglob("*.py"))) > 700
    assert len(list((REPOSITORY / "tests").rglob("*.py"))) > 300
    assert len({rule.check for rule in RULES}) == len(RULES) == 9
