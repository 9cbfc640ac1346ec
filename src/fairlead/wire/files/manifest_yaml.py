"""Objects written as YAML that every reader understands alike.

Readers disagree about plain words: `1e3`, `0o17` and `y` are text for PyYAML and a number or a truth for
kubectl's reader. So every text but plain words is quoted here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

_PLAIN: Final = re.compile(r"[A-Za-z/][-A-Za-z0-9./_]*[A-Za-z0-9]")
_NOT_TEXT: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "nan", "inf"})


class _Dumper(yaml.SafeDumper):
    """No anchors: a value that stands twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless)


def render_manifests(manifests: Iterable[Mapping[str, Any]]) -> str:
    """The documents in their order, `---` between them.

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
        yaml.dump(dict(each), Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=2**30)
        for each in manifests
    )


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _represent)
