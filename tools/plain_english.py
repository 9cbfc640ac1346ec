"""Prints words that docs/glossary.md asks to avoid: `python tools/plain_english.py [PATH …]`.

It reads docstrings, comments, string constants with a space, and names in Python; the text of
Markdown outside code; lines of TOML; comments and strings with a space in TypeScript. The name of a
test is a sentence. It ends with status 1 where it finds any.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
GLOSSARY = REPOSITORY / "docs" / "glossary.md"
HEADING = "## Words to use, words to avoid"
PLACES = (
    "src",
    "tools",
    "bench",
    "tests",
    "docs",
    "web/src",
    "deploy",
    "examples",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
)
KINDS = frozenset((".py", ".md", ".toml", ".ts", ".tsx"))
IGNORED = frozenset(("node_modules", "web_dist", "__pycache__", "golden"))
TEST = "test_"
VALUE = "0"
"""Stands for a value of an f-string."""
MARK = "plain-english: quoted"
"""A line with this comment quotes another program's words."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_BETWEEN = re.compile(r"[\s_\"']+([frFR]{1,2}[\"']+)?")
"""What stands between words in a name, and in a string that continues on the next line."""
_CODE_SPAN = re.compile(r"`[^`\n]*`")


@dataclass(frozen=True)
class Avoided:
    """One row of the table. `names`: words that names in code must not contain, in lower case."""

    use: str
    pattern: re.Pattern[str]
    names: frozenset[str]


@dataclass(frozen=True)
class Finding:
    path: Path
    line: int
    word: str
    use: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(REPOSITORY)}:{self.line}: `{self.word}`: use {self.use}"


def read_table(text: str) -> list[Avoided]:
    """The rows below the heading. Raises ValueError where there are none."""
    rows = []
    for line in text.partition(HEADING)[2].splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)][1:-1]
        if len(cells) == 4 and cells[2].startswith("`"):
            pattern = cells[2].strip("`")
            plain = pattern.replace(r"\b", " ")
            words = re.findall(r"[a-z]+", plain) + re.findall(r"([a-z]+)[a-z]\?", plain)
            expanded = words if cells[3] == "yes" else cells[3].split()
            rows.append(
                Avoided(
                    cells[0],
                    re.compile(pattern, re.IGNORECASE),
                    frozenset(expanded) - {"s", "un"},
                )
            )
    if not rows:
        raise ValueError(f"{GLOSSARY} has no rows below `{HEADING}`")
    return rows


def files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (
            each for each in found if each.suffix in KINDS and not IGNORED & set(each.parts)
        )


def texts(path: Path, source: str, tree: ast.AST | None) -> Iterator[tuple[int, str]]:
    """Line numbers and texts that a person reads. `tree`: that of a Python module."""
    if tree is not None:
        yield from _python_texts(source, tree)
    elif path.suffix == ".md":
        yield from _markdown_texts(source)
    elif path.suffix == ".toml":
        yield from _toml_texts(source)
    else:
        yield from _script_texts(source)


def _python_texts(source: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    lines = source.splitlines()
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [(each.start[0], each.string) for each in tokens if each.type == tokenize.COMMENT]
    found += _strings(tree)
    for number, text in found:
        if MARK not in lines[min(number, len(lines)) - 1]:
            yield number, _CODE_SPAN.sub("", text)


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings with a space, by line. The parts of an f-string are one text, so that backticks
    around a value enclose the value alone.
    """
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(node.values)
            text = "".join(
                str(each.value) if isinstance(each, ast.Constant) else VALUE for each in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            text = node.value
        else:
            continue
        if " " in text:
            yield from enumerate(text.splitlines(), node.lineno)


def _markdown_texts(source: str) -> Iterator[tuple[int, str]]:
    is_code = False
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif line.startswith(HEADING) and "plain_english" in source:
            return
        elif not is_code and MARK not in line:
            yield number, _CODE_SPAN.sub("", line)


def _toml_texts(source: str) -> Iterator[tuple[int, str]]:
    """All lines but those of a quoted program or manifest, which are between triple quotes."""
    is_quoted = False
    for number, line in enumerate(source.splitlines(), 1):
        if len(re.findall(r"\"\"\"|\'\'\'", line)) == 1:
            is_quoted = not is_quoted
        elif not is_quoted and " " in line and MARK not in line:
            yield number, _CODE_SPAN.sub("", line)


def _script_texts(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.splitlines(), 1):
        found = re.findall(r"//.*|/?\*.*|\"[^\"]* [^\"]*\"|'[^']* [^']*'", line)
        if found and MARK not in line:
            yield number, _CODE_SPAN.sub("", " ".join(found))


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names that a Python module defines: classes, functions, arguments, attributes, variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def findings(paths: Iterable[Path], table: Iterable[Avoided]) -> Iterator[Finding]:
    table = list(table)
    may_have = _Sieve(table)
    for path in files(paths):
        source = path.read_text(encoding="utf-8")
        if not may_have(source):
            continue
        tree = ast.parse(source) if path.suffix == ".py" else None
        for number, text in texts(path, source, tree):
            for row in table:
                yield from (
                    Finding(path, number, match.group(), row.use)
                    for match in row.pattern.finditer(text)
                )
        for number, name in names(tree) if tree is not None else ():
            if name.startswith(TEST):
                sentence = name.removeprefix(TEST).replace("_", " ")
                yield from (
                    Finding(path, number, name, row.use)
                    for row in table
                    if row.pattern.search(sentence)
                )
                continue
            words = {word.lower() for word in _WORD.findall(name)}
            yield from (Finding(path, number, name, row.use) for row in table if words & row.names)


class _Sieve:
    """Whether a file can contain a word of the table: most have none, and to read all their texts
    takes ten times as long. It never misses one.
    """

    def __init__(self, table: Iterable[Avoided]) -> None:
        table = list(table)
        self._words = [row.pattern for row in table if " " not in row.pattern.pattern]
        only_names = "|".join(
            sorted(word for row in table for word in row.names if not self._is_avoided(word))
        )
        self._names = re.compile(
            rf"_({only_names})(?![a-z])|(?<![a-z])({only_names})(_|[A-Z]|\s*([:=,)]|in\b))",
            re.IGNORECASE,
        )
        phrases = (row.pattern.pattern for row in table if " " in row.pattern.pattern)
        self._phrases = re.compile("|".join(phrases), re.IGNORECASE)
        self._known: dict[str, bool] = {}

    def __call__(self, source: str) -> bool:
        words = set(_WORD.findall(source))
        if any(self._known.get(word, False) for word in words):
            return True
        for word in words - self._known.keys():
            self._known[word] = self._is_avoided(word)
        if any(self._known[word] for word in words):
            return True
        is_phrase = self._phrases.search(_BETWEEN.sub(" ", source)) is not None
        return is_phrase or self._names.search(source) is not None

    def _is_avoided(self, word: str) -> bool:
        return any(pattern.fullmatch(word) for pattern in self._words)


def main(argv: list[str]) -> int:
    paths = [Path(each).resolve() for each in argv] or [REPOSITORY / place for place in PLACES]
    found = list(findings(paths, read_table(GLOSSARY.read_text(encoding="utf-8"))))
    for each in found:
        print(each)
    if found:
        print(f"{len(found)} words to avoid; docs/glossary.md has the list", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
