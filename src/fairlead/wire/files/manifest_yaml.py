"""Renders objects as YAML that every reader parses to the same values.

Readers disagree about unquoted words: `1e3`, `0o17` and `y` are text for PyYAML, and a number or a
boolean for kubectl. So every text except plain words is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

_PLAIN: Final = re.compile(r"[A-Za-z/][-A-Za-z0-9./_]*[A-Za-z0-9]")
_NOT_TEXT: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "nan", "inf"})


class _Dumper(yaml.SafeDumper):
    """A dumper without anchors: a value that occurs twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless)


class _BlockDumper(_Dumper):
    """A dumper for readers.

    A text of several lines is a literal block, a text with double quotes is in single ones.
    """


def render_manifests(manifests: Iterable[Mapping[str, Any]], *, has_blocks: bool = False) -> str:
    """The documents in order, separated by `---`.

    `has_blocks`: a text of several lines is written as a literal block (`|-`), for people to read.

    >>> print(render_manifests([{"name": "plain"}, {"list": ["1e3", "y", 2, True]}]), end="")
    name: plain
    ---
    list:
    - "1e3"
    - "y"
    - 2
    - true
    """
    return "---\n".join(
        yaml.dump(
            dict(each),
            Dumper=_BlockDumper if has_blocks else _Dumper,
            sort_keys=False,
            default_flow_style=False,
            allow_unicode=True,
            width=2**30,
        )
        for each in manifests
    )


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


def _represent_block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else "'" if '"' in text else ""
    if not style:
        return _represent(dumper, text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)
_BlockDumper.add_representer(str, _represent_block)
