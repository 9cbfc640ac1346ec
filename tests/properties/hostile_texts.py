"""Every regular expression of the source, found in its syntax tree, and texts that take a pattern a
long time.

A pattern that backtracks, or starts again at every letter, needs a number of steps that grows with
the square of a text's length or worse. The texts consist of the letters in the pattern itself,
alone and in pairs, repeated, with an end that does not match.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

with warnings.catch_warnings():  # Python's own parser of patterns has no other public name
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_constants
    import sre_parse

SOURCE = Path(__file__).parents[2] / "src"
METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
LETTERS_TRIED = 4


class Found(NamedTuple):
    """`place`: `module:NAME`, or `module:line text` where it has no name; `methods`: the methods
    that are called on it.
    """

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


class Unread(NamedTuple):
    """A pattern that the program composes at run time, so it cannot be tried here."""

    place: str


def patterns() -> Iterator[Found | Unread]:
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if "re." in text and re.search(r"^\s*import re$", text, re.MULTILINE):
            module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            yield from _of_module(module, ast.parse(text))


def _of_module(module: str, tree: ast.Module) -> Iterator[Found | Unread]:
    loaded = importlib.import_module(module)
    compiled = set[int]()
    for node in tree.body:
        name, value = _assigned(node)
        calls = (
            [each for each in ast.walk(value) if _is_call_of_re(each)] if value is not None else []
        )
        if not name or not calls:
            continue
        compiled.update(map(id, calls))
        for number, pattern in enumerate(_patterns_in(getattr(loaded, name))):
            asked = _methods_of(tree, name) | _methods_of_value(getattr(loaded, name))
            yield Found(
                f"{module}:{name}" + (f"[{number}]" if number else ""),
                pattern,
                asked or frozenset(("search",)),
            )
    for node in ast.walk(tree):
        if not _is_call_of_re(node) or id(node) in compiled:
            continue
        method, argument = node.func.attr, node.args[0]
        try:
            text = eval(compile(ast.Expression(argument), module, "eval"), vars(loaded))
        except NameError:
            yield Unread(f"{module}:{ast.unparse(argument)}")
            continue
        flags = getattr(re, getattr(node.args[-1], "attr", ""), 0)
        yield Found(
            f"{module}:{text}",
            re.compile(text, flags),
            frozenset((method if method != "compile" else "search",)),
        )


def _assigned(node: ast.stmt) -> tuple[str, ast.expr | None]:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, node.value
    return "", None


def _is_call_of_re(node: Any) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in (*METHODS, "compile")
    )


def _patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(_patterns_in, value.values()))
    elif isinstance(value, list | tuple):
        yield from itertools.chain.from_iterable(map(_patterns_in, value))
    elif isinstance(getattr(value, "__self__", None), re.Pattern):
        yield value.__self__


def _methods_of(tree: ast.Module, name: str) -> frozenset[str]:
    """The methods that the module calls on this name, or on an item of it."""
    return frozenset(
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in METHODS
        and name in ast.unparse(node.value).replace("[", " ").split()
    )


def _methods_of_value(value: Any) -> frozenset[str]:
    return (
        frozenset((value.__name__,))
        if isinstance(getattr(value, "__self__", None), re.Pattern)
        else frozenset()
    )


def hostile_texts(pattern: re.Pattern[Any], length: int) -> Iterator[Any]:
    """Texts of about this length, in the pattern's own type."""
    source = (
        pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    )
    tree = sre_parse.parse(
        source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, str) else pattern.flags
    )
    prefix = _sample(tree)
    letters = list(dict.fromkeys(_letters(tree)))
    few = letters[:LETTERS_TRIED]
    units = [*letters, *map("".join, itertools.permutations(few, 2)), *_bodies(tree), prefix]
    for unit in dict.fromkeys(filter(None, units)):
        for begin, end in (("", ""), ("", "\0"), (prefix, "\n\0")):
            text = begin + unit * (length // len(unit)) + end
            yield text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")


def _bodies(tree: Any) -> Iterator[str]:
    """The parts that are repeated, once each."""
    for operator, argument in tree:
        if operator in (
            sre_constants.MAX_REPEAT,
            sre_constants.MIN_REPEAT,
            sre_constants.POSSESSIVE_REPEAT,
        ):
            yield _sample(argument[2])
        for below in _below(operator, argument):
            yield from _bodies(below)


def _below(operator: Any, argument: Any) -> Iterator[Any]:
    if operator is sre_constants.SUBPATTERN:
        yield argument[3]
    elif operator is sre_constants.BRANCH:
        yield from argument[1]
    elif operator in (
        sre_constants.MAX_REPEAT,
        sre_constants.MIN_REPEAT,
        sre_constants.POSSESSIVE_REPEAT,
    ):
        yield argument[2]
    elif operator is sre_constants.ATOMIC_GROUP:
        yield argument
    elif operator in (sre_constants.ASSERT, sre_constants.ASSERT_NOT):
        yield argument[1]


def _sample(tree: Any) -> str:
    """A short text that matches, or nearly matches."""
    text = ""
    for operator, argument in tree:
        if operator is sre_constants.LITERAL:
            text += chr(argument)
        elif operator in (sre_constants.IN, sre_constants.ANY, sre_constants.NOT_LITERAL):
            text += next(_class_letters(operator, argument), "")
        elif operator in (
            sre_constants.MAX_REPEAT,
            sre_constants.MIN_REPEAT,
            sre_constants.POSSESSIVE_REPEAT,
        ):
            text += _sample(argument[2]) * max(1, min(argument[0], 64))
        elif operator is sre_constants.BRANCH:
            text += _sample(argument[1][0])
        elif operator is sre_constants.SUBPATTERN:
            text += _sample(argument[3])
        elif operator is sre_constants.ATOMIC_GROUP:
            text += _sample(argument)
    return text


def _letters(tree: Any) -> Iterator[str]:
    for operator, argument in tree:
        if operator is sre_constants.LITERAL:
            yield chr(argument)
        elif operator in (sre_constants.IN, sre_constants.ANY, sre_constants.NOT_LITERAL):
            yield from _class_letters(operator, argument)
        for below in _below(operator, argument):
            yield from _letters(below)


def _class_letters(operator: Any, argument: Any) -> Iterator[str]:
    if operator is sre_constants.ANY:
        yield "a"
        return
    if operator is sre_constants.NOT_LITERAL:
        yield from (letter for letter in "a \\" if ord(letter) != argument)
        return
    if argument[0][0] is sre_constants.NEGATE:
        barred = re.compile(_written(argument))
        yield from (letter for letter in "a1 \t-.:/\\\"'\n" if barred.fullmatch(letter))
        return
    for kind, value in argument:
        if kind is sre_constants.LITERAL:
            yield chr(value)
        elif kind is sre_constants.RANGE:
            yield chr(value[0])
        elif kind is sre_constants.CATEGORY:
            yield from {
                "CATEGORY_DIGIT": "1",
                "CATEGORY_SPACE": " \n",
                "CATEGORY_WORD": "a1",
            }.get(str(value), "a ")


def _written(argument: Any) -> str:
    categories = {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}
    categories |= {
        "CATEGORY_NOT_DIGIT": r"\D",
        "CATEGORY_NOT_SPACE": r"\S",
        "CATEGORY_NOT_WORD": r"\W",
    }
    parts = []
    for kind, value in argument[1:]:
        if kind is sre_constants.LITERAL:
            parts.append(re.escape(chr(value)))
        elif kind is sre_constants.RANGE:
            parts.append(f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}")
        else:
            parts.append(categories[str(value)])
    return f"[^{''.join(parts)}]"
