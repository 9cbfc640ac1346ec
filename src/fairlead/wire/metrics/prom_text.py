"""The Prometheus text format: renders families as a page, and parses pages.

Version: `text/plain; version=0.0.4`.

It is made for large pages: the label text of a shared `keys` list is rendered once per page, and
the parser keeps one dict per distinct label text. There are three formats of numbers, because
existing scrapers of DCGM and `nvidia_gpu_*` metrics compare text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import NoneType
from typing import Final

from msgspec import Struct

from fairlead.model.metric import Family, Key, Sample

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LARGEST_EXACT: Final = 1e15
_LABEL: Final = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_PLAIN_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]{0,63}+)="([^"\\]*)"(?:,|$)')
_BARE_LINE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s+(\S+)(?:\s+-?\d+)?\s*$")
_AFTER_LABELS: Final = re.compile(r"\s*(\S+)(?:\s+-?\d+)?\s*$")
_BLANK: Final = re.compile(r"\s*+")
_MOST_LABELS: Final = 50_000
"""The number of label texts that are kept while a page is parsed.

Keeping more would cost more memory than parsing some of them again costs time.
"""
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
_ESCAPE: Final = re.compile(r"\\(.)")
_MEANINGS: Final = {"n": "\n", '"': '"', "\\": "\\"}

RenderNumber = Callable[[float], str]


def render_number(value: float) -> str:
    """The shortest exact text: integers as integers.

    >>> [render_number(v) for v in (3, 5.0, 0.1, 143771 << 20, float("inf"), float("nan"))]
    ['3', '5', '0.1', '150754820096', '+Inf', 'NaN']
    """
    if isinstance(value, int):
        return str(int(value))
    if -_LARGEST_EXACT < value < _LARGEST_EXACT and value == int(value):
        return str(int(value))
    return _NOT_FINITE.get(text := repr(value), text)


_NOT_FINITE: Final = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}


def render_dcgm_number(value: float) -> str:
    """A number as dcgm-exporter prints it: integers as integers, doubles with six decimals.

    >>> render_dcgm_number(37), render_dcgm_number(76.5)
    ('37', '76.500000')
    """
    return str(value) if isinstance(value, int) else f"{value:f}"


def render_go_number(value: float) -> str:
    """A float64 as Go's Prometheus client prints it: the shortest digits.

    It has an exponent from a million up and below a ten-thousandth.

    >>> [render_go_number(v) for v in (15811477504, 35.0, 123456, 1234567, 1000000)]
    ['1.5811477504e+10', '35', '123456', '1.234567e+06', '1e+06']
    >>> [render_go_number(v) for v in (0.25, 0.00001, -2500000.5)]
    ['0.25', '1e-05', '-2.5000005e+06']
    """
    number = float(value)
    if number == 0 or number != number or number in (float("inf"), float("-inf")):
        return render_number(number)
    if 1e-4 <= abs(number) < 1e6:
        return render_number(number)
    sign, digits, exponent = _decimal(number)
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _decimal(number: float) -> tuple[str, str, int]:
    """Sign, shortest digits, and the power of ten of the first digit."""
    text = repr(number)
    sign, text = ("-", text[1:]) if text[0] == "-" else ("", text)
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    lead = len(digits) - len(digits.lstrip("0"))
    return sign, digits.strip("0") or "0", len(whole) - 1 - lead + int(power or 0)


def render_page(
    families: Iterable[Family], number: RenderNumber = render_number
) -> Iterator[bytes]:
    """The page in pieces, one per family; a family without values is left out."""
    texts: dict[tuple[int, tuple[str, ...], bool], tuple[Sequence[Key], list[str]]] = {}
    for family in families:
        shape = (id(family.keys), family.metric.labels, family.omits_empty)
        found = texts.get(shape)
        # the keys are kept beside their texts, so that no other list can get the same id
        if found is None:
            found = texts[shape] = (family.keys, _render_labels(family))
        if lines := _render_lines(family, found[1], number):
            yield lines.encode("utf-8", "replace")


def _render_lines(family: Family, labels: list[str], number: RenderNumber) -> str:
    values = family.values
    kinds = set(map(type, values))
    if not kinds - {NoneType}:
        return ""
    if kinds <= {int, NoneType} and number in (render_number, render_dcgm_number):
        number = str
    name, metric = family.metric.name, family.metric
    if NoneType in kinds:
        body = "\n".join(
            [
                f"{name}{label} {number(value)}"
                for label, value in zip(labels, values, strict=True)
                if value is not None
            ]
        )
    else:
        pairs = zip(labels, map(number, values), strict=True)  # type: ignore[arg-type]
        body = "\n".join([f"{name}{label} {text}" for label, text in pairs])
    return f"# HELP {name} {_escape_help(metric.help)}\n# TYPE {name} {metric.type}\n{body}\n"


def _render_labels(family: Family) -> list[str]:
    """`{a="x",b="y"}` for every key.

    All keys are rendered with one template; only when one of them needs escaping, one by one.
    """
    names, keys = family.metric.labels, family.keys
    if not names:
        return [""] * len(keys)
    if not family.omits_empty:
        template = "{" + ",".join([f'{name}="%s"' for name in names]) + "}"
        texts = [template % key for key in keys]
        together = "\n".join(texts)
        is_plain = (
            together.count('"') == 2 * len(names) * len(keys)
            and together.count("\n") == len(keys) - 1
            and "\\" not in together
        )
        if is_plain or not keys:
            return texts
    return [_render_key(names, key, omits_empty=family.omits_empty) for key in keys]


def _render_key(names: tuple[str, ...], key: Key, *, omits_empty: bool) -> str:
    pairs = zip(names, key, strict=True)
    text = ",".join(
        [f'{name}="{_escape(value)}"' for name, value in pairs if value or not omits_empty]
    )
    return f"{{{text}}}" if text else ""


def _escape(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return value


def _escape_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


class ScrapedPage(Struct, frozen=True):
    """The samples of a scraped page.

    `bad_lines`: the number of unreadable lines; the other lines count.
    """

    samples: list[Sample]
    bad_lines: int = 0


KnownLabels = dict[str, Mapping[str, str] | None]
"""Label texts already parsed, and their labels (None: malformed)."""


def parse_page(
    text: str, prefixes: tuple[str, ...] = (), known: KnownLabels | None = None
) -> ScrapedPage:
    """The samples of a page; only those whose line starts with one of `prefixes`, if any are given.

    Timestamps and comments are dropped. A caller that reads a page in pieces passes the same
    `known` with each piece, because families repeat each other's labels.
    """
    samples: list[Sample] = []
    known = {} if known is None else known
    bad = 0
    for line in text.split("\n"):
        if not line or line[0] == "#" or (prefixes and not line.startswith(prefixes)):
            continue
        sample = _parse_line(line, known)
        if sample is not None:
            samples.append(sample)
        elif line.strip():
            bad += 1
    return ScrapedPage(samples, bad)


def _parse_line(line: str, known: KnownLabels) -> Sample | None:
    name, brace, rest = line.partition("{")
    if not brace:
        match = _BARE_LINE.match(line)
        return _sample(match[1], {}, match[2]) if match else None
    block, brace, after = rest.rpartition("}")
    match = _AFTER_LABELS.match(after)
    if not brace or match is None or not _NAME.match(name := name.strip()):
        return None
    if block not in known:
        if len(known) >= _MOST_LABELS:
            known.clear()
        known[block] = _parse_labels(block)
    labels = known[block]
    return None if labels is None else _sample(name, labels, match[1])


def _sample(name: str, labels: Mapping[str, str], text: str) -> Sample | None:
    try:
        return Sample(name, labels, float(text))
    except ValueError:
        return None


def _parse_labels(block: str) -> Mapping[str, str] | None:
    return _plain_labels(block) or _any_labels(block)


def _plain_labels(block: str) -> Mapping[str, str] | None:
    """Labels in the usual form: no spaces between them, nothing escaped. None for any other form.

    This takes half the time of the general parser.
    """
    pairs = _PLAIN_LABEL.findall(block)
    # `=`, two quotes and a comma each
    is_all = sum(map(len, chain.from_iterable(pairs))) + 4 * len(pairs) - 1 == len(block)
    return dict(pairs) if is_all else None


def _any_labels(block: str) -> Mapping[str, str] | None:
    labels: dict[str, str] = {}
    position = 0
    while not _BLANK.fullmatch(block, position):
        match = _LABEL.match(block, position)
        if match is None:
            return None
        value = match[2]
        labels[match[1]] = (
            _ESCAPE.sub(lambda found: _MEANINGS.get(found[1], found[0]), value)
            if "\\" in value
            else value
        )
        position = match.end()
    return labels
