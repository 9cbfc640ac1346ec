"""Rules of the house that ruff does not know: `python tools/house_lint.py`.

Each rule reads files of the checkout and yields what breaks it. A run prints each finding with its
place and ends with status 1 where there is any.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parent.parent
ROOMS: Final = ("src/fairlead", "src/fairlead_sim")
SLEEPS: Final = "tests/sleeps.toml"
"""Which tests may sleep, how many times and why."""

MOST_MODULES: Final = 20
"""Modules in one folder of a room, without `__init__`: what a reader takes in at a glance."""

SPELLED_FOLDERS: Final = (
    "src",
    "docs",
    "web/src",
    "web/dev",
    "web/test",
    "deploy",
    "bench",
    "tools",
    "man",
    "tests",
)
SPELLED_KINDS: Final = frozenset(
    (".py", ".md", ".ts", ".tsx", ".css", ".json", ".yaml", ".prom", ".csv", ".1")
)
OTHER_SPELLING: Final = "utili" + "s"
NOT_READ: Final = frozenset(("web_dist", "guard_dist", "node_modules", "__pycache__"))

QUOTING: Final = frozenset(
    (
        *("KubectlError", "ApiStatus", "Forbidden", "Conflict", "NotServed", "Gone"),
        *("SSLError", "OSError", "HTTPError", "AssertionError"),
    )
)
"""Exceptions whose text is another program's: kubectl's, the API server's, OpenSSL's, a test's."""

FUNCTION_INTERNALS: Final = frozenset(
    ("__closure__", "__code__", "__defaults__", "__globals__", "__kwdefaults__", "__wrapped__")
)
PUBLIC_UNDERSCORES: Final = frozenset(("_replace",))
"""Documented names: `_replace` of every NamedTuple."""
BY_NAME: Final = frozenset(("getattr", "setattr", "delattr", "hasattr", "setitem", "delitem"))

WAITING: Final = frozenset(
    (
        *("run", "check_call", "check_output", "communicate"),
        *("join", "wait", "result", "Barrier"),
    )
)
"""Calls that wait for a program, a thread or an event."""
SHORTEST_LIMIT: Final = 10.0
"""Seconds. A shorter limit is part of what a test checks."""
WAITING_MODULE: Final = "tests/waiting.py"

_PUBLIC_CLASS = re.compile(r"^ *class ([A-Za-z]\w*)[:(]", re.MULTILINE)
_DOCSTRING = re.compile(r'\A(?:#.*\n)*r?"""(.*?)"""', re.DOTALL)
"""Both read the text: to parse every module takes ten times as long."""
_SENTENCE = re.compile(r"[A-Za-z][a-z]+ [a-z]+")
_QUOTED = re.compile(r"`[^`]*`")
_QUESTION = re.compile(r"\?(\s|$)")
_TEST_MODULE = re.compile(
    r"^ *(?:from|import) (?:[\w.]*\.)?(test_\w+)|^ *from [\w.]+ import .*\b(test_\w+)", re.MULTILINE
)
_HANG_SECONDS = re.compile(r"^HANG_SECONDS: Final = ([\d.]+)$", re.MULTILINE)
_LIMIT = re.compile(r"timeout=\d|\.(?:join|wait|result)\(\d")
_MAY_TOUCH = re.compile(r"""[.'"]_|import .*\b_[a-z]|^ +_[a-z]\w*,$""", re.MULTILINE)
"""Most files match nothing of it; a syntax tree of each file would take a second."""


@dataclass(frozen=True)
class Finding:
    """`path` is relative to the checkout; line 0 = the whole file or folder."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}" if self.line else f"{self.path}: {self.what}"


Check = Callable[[Path], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    name: str
    check: Check


def openings(root: Path) -> Iterator[Finding]:
    """A module of `src` opens with a statement of what it holds;
    `__init__` does it for the folder.
    """
    for path in _modules(root):
        opening_text = _DOCSTRING.match(path.read_text(encoding="utf-8"))
        docstring = opening_text[1].strip() if opening_text else ""
        opening = docstring.partition("\n\n")[0]
        if not docstring:
            yield _finding(root, path, 1, "the module has no docstring")
        elif _QUESTION.search(opening):
            yield _finding(root, path, 1, f"the module opens with a question: {opening}")
        elif "newcomer" in docstring.lower():
            yield _finding(root, path, 1, "the docstring mentions a newcomer: address every reader")


def class_names(root: Path) -> Iterator[Finding]:
    """One public class per name: a search finds one."""
    places = defaultdict(list)
    for path in _modules(root):
        text = path.read_text(encoding="utf-8")
        for found in _PUBLIC_CLASS.finditer(text):
            places[found[1]].append((path, text[: found.start(1)].count("\n") + 1))
    for name, defined in places.items():
        for path, line in defined[1:]:
            first = defined[0][0].relative_to(root)
            yield _finding(root, path, line, f"class `{name}` is defined in {first} as well")


def room_sizes(root: Path) -> Iterator[Finding]:
    """A folder of a room has at most MOST_MODULES modules."""
    counts: defaultdict[Path, int] = defaultdict(int)
    for path in _modules(root):
        counts[path.parent] += path.name != "__init__.py"
    for folder, count in counts.items():
        if count > MOST_MODULES:
            yield _finding(
                root, folder, 0, f"{count} modules in one folder, at most {MOST_MODULES}"
            )


def spelling(root: Path) -> Iterator[Finding]:
    """`utilization`, as the field's metrics spell it."""
    for folder in SPELLED_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SPELLED_KINDS or NOT_READ & set(path.parts):
                continue
            text = path.read_text(encoding="utf-8").lower()
            if OTHER_SPELLING in text:
                line = text[: text.index(OTHER_SPELLING)].count("\n") + 1
                yield _finding(root, path, line, "spell it `utilization`")


def sleeps(root: Path) -> Iterator[Finding]:
    """A test waits for a condition (`tests/waiting.py`); tests/sleeps.toml lists the exceptions."""
    table = tomllib.loads((root / SLEEPS).read_text(encoding="utf-8"))
    jumping: list[str] = table["jumping_clock"]["files"]
    allowed: dict[str, int] = {path: row["sleeps"] for path, row in table["allowed"].items()}
    tests = root / "tests"
    for path in _python(tests):
        name = str(path.relative_to(tests))
        if name in jumping:
            continue
        count, most = count_sleeps(path.read_text(encoding="utf-8")), allowed.pop(name, 0)
        if count > most:
            hint = f"wait for a condition (tests/waiting.py), or name the reason in {SLEEPS}"
            yield _finding(root, path, 0, f"{count} sleeps, {most} allowed: {hint}")
        elif count < most:
            yield _finding(root, path, 0, f"{count} sleeps, {SLEEPS} has {most}: lower it")
    for name in allowed:
        yield Finding(SLEEPS, 0, f"`{name}` does not exist: take it out")


def count_sleeps(source: str) -> int:
    """Calls of a `sleep`. `sleep(0)` is none: it only gives other tasks a turn."""
    if "sleep(" not in source:
        return 0
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = [call for call in calls if _called(call) == "sleep"]
    return sum(
        not (call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0)
        for call in named
    )


def front_doors(root: Path) -> Iterator[Finding]:
    """A test touches no underscored name of a module or object of others.

    A clock, a period or a patience is a parameter instead.
    """
    for path in _python(root / "tests"):
        for name in sorted(private_names(path.read_text(encoding="utf-8"))):
            yield _finding(root, path, 0, f"touches `{name}`, which is not the file's own")


def private_names(source: str) -> set[str]:
    """Underscored names of others that the source touches."""
    if not _MAY_TOUCH.search(source):
        return set()
    nodes = list(ast.walk(ast.parse(source)))
    return {name for name in _touched(nodes) if _is_private(name)} - _own_names(nodes)


def sentences(root: Path) -> Iterator[Finding]:
    """A test compares a whole sentence of Fairlead (`caught.value.what == …`), or values and codes.

    A part of a sentence (`match="is not"`) matches others as well, and hides what a user reads.
    """
    for path in _python(root / "tests"):
        text = path.read_text(encoding="utf-8")
        if "match=" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and _called(call) == "raises":
                for part in _matched_sentences(call):
                    yield _finding(
                        root,
                        path,
                        call.lineno,
                        f"matches a part of a sentence, `{part}`: compare the whole, or values",
                    )


def time_limits(root: Path) -> Iterator[Finding]:
    """A test waits for a program or a thread for `HANG_SECONDS` (tests/waiting.py), and not for a
    shorter time of its own, which a busy machine reaches.
    """
    (hang_seconds,) = _HANG_SECONDS.findall((root / WAITING_MODULE).read_text(encoding="utf-8"))
    for path in _python(root / "tests"):
        text = path.read_text(encoding="utf-8")
        if not _LIMIT.search(text):
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and _called(call) in WAITING:
                for limit in _limits(call):
                    if SHORTEST_LIMIT <= limit < float(hang_seconds):
                        yield _finding(
                            root,
                            path,
                            call.lineno,
                            f"`{_called(call)}` ends after {limit:g} s: take `HANG_SECONDS`",
                        )


def _limits(call: ast.Call) -> Iterator[float]:
    """The numbers of seconds in a waiting call: `timeout=`, and the one argument of `join`."""
    values = [keyword.value for keyword in call.keywords if keyword.arg == "timeout"]
    if _called(call) in ("join", "wait", "result") and len(call.args) == 1:
        values += call.args
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
            yield value.value


def _matched_sentences(call: ast.Call) -> Iterator[str]:
    names = {
        each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "")
        for each in ast.walk(call.args[0])
    }
    if names & QUOTING:
        return
    for keyword in call.keywords:
        if keyword.arg == "match":
            texts = (text.replace("\\", "") for text in _texts_of(keyword.value))
            yield from (text for text in texts if _SENTENCE.search(_QUOTED.sub("", text)))


def _texts_of(node: ast.AST) -> Iterator[str]:
    """The strings of an expression; a value of an f-string is `0`."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        parts = (each.value if isinstance(each, ast.Constant) else "0" for each in node.values)
        yield "".join(map(str, parts))
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts_of(child)


def helpers(root: Path) -> Iterator[Finding]:
    """No file takes anything from a test module: what two files need is a module of its own."""
    for path in [*_python(root / "tests"), *_python(root / "bench"), *_python(root / "tools")]:
        text = path.read_text(encoding="utf-8")
        for found in _TEST_MODULE.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            name = found[1] or found[2]
            yield _finding(root, path, line, f"imports the test module `{name}`: move the helper")


RULES: Final = (
    Rule("openings", openings),
    Rule("class names", class_names),
    Rule("room sizes", room_sizes),
    Rule("spelling", spelling),
    Rule("sleeps", sleeps),
    Rule("front doors", front_doors),
    Rule("sentences", sentences),
    Rule("helpers", helpers),
    Rule("time limits", time_limits),
)


def findings(root: Path) -> Iterator[Finding]:
    """What breaks a rule in the checkout at `root`."""
    for rule in RULES:
        yield from rule.check(root)


def _is_private(name: str) -> bool:
    if name in FUNCTION_INTERNALS:
        return True
    is_underscored = name.startswith("_") and not name.startswith("__") and name != "_"
    return is_underscored and name not in PUBLIC_UNDERSCORES


def _own_names(nodes: list[ast.AST]) -> set[str]:
    """What the file defines: functions, classes, fields, and attributes of `self`."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def _touched(nodes: list[ast.AST]) -> Iterator[str]:
    """Attributes, imports, and words in the calls that reach by name."""
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
            yield from (node.module or "").split(".")
        elif isinstance(node, ast.Call) and _called(node) in BY_NAME:
            constants = [each.value for each in node.args if isinstance(each, ast.Constant)]
            yield from (
                part for word in constants if isinstance(word, str) for part in word.split(".")
            )


def _called(call: ast.Call) -> str:
    name = getattr(call.func, "attr", "") or getattr(call.func, "id", "")
    return name if isinstance(name, str) else ""


def _modules(root: Path) -> list[Path]:
    return [path for room in ROOMS for path in _python(root / room)]


def _python(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _finding(root: Path, path: Path, line: int, what: str) -> Finding:
    return Finding(str(path.relative_to(root)), line, what)


def main() -> int:
    found = list(findings(REPOSITORY))
    for each in found:
        print(each)
    if found:
        print(f"{len(found)} findings; the rules are in tools/house_lint.py", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
