"""Every XID that the server can name has a Chinese name; without one a Chinese sentence of the
console would contain an English name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from fairlead.model.devices.xid import xid_text

WORDS: Final = (Path(__file__).parents[2] / "web" / "src" / "i18n" / "xids.ts").read_text(
    encoding="utf-8"
)
NAMED: Final = {
    quoted or bare
    for quoted, bare in re.findall(
        (
            r'^  (?:"([^"]+)"|(\w+)): '
            r'"[^"]*[一-鿿][^"]*",$'
        ),
        WORDS,
        re.MULTILINE,
    )
}
NUMBERED: Final = [
    re.compile(pattern)
    for pattern in re.findall(
        (
            r"^  "
            r"\[/(.+)/, "
        ),
        WORDS,
        re.MULTILINE,
    )
]


@pytest.mark.parametrize("xid", range(174))
def test_an_xid_has_chinese_words(xid: int) -> None:
    name = xid_text(xid)
    assert name in NAMED or any(pattern.search(name) for pattern in NUMBERED), (
        f"web/src/i18n/xids.ts has no words for {name!r}"
    )


def test_no_words_are_left_over() -> None:
    names = {xid_text(xid) for xid in range(174)}
    assert names - {name for name in names for pattern in NUMBERED if pattern.search(name)} == NAMED
    assert all(any(pattern.search(name) for name in names) for pattern in NUMBERED)
