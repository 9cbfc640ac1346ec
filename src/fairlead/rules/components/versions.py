"""Versions in the order of Semantic Versioning 2.0.0 (semver.org, section 11)."""

from __future__ import annotations

import re
from typing import Final

_FORM: Final = re.compile(
    r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
_Key = tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]


def is_newer(version: str, than: str) -> bool:
    """Whether a version is newer. False if one of them has no form of a version.

    >>> is_newer("1.0.10", "1.0.9"), is_newer("1.0.0", "1.0.0-rc.1"), is_newer("1.0.0+b", "1.0.0")
    (True, True, False)
    >>> is_newer("1.0.0-rc.10", "1.0.0-rc.9"), is_newer("latest", "1.0.0")
    (True, False)
    """
    first, second = _key(version), _key(than)
    return first is not None and second is not None and first > second


def is_version(version: str) -> bool:
    """
    >>> is_version("v1.0.8"), is_version("1.0.8-6533239"), is_version("latest")
    (True, True, False)
    """
    return _key(version) is not None


def _key(version: str) -> _Key | None:
    """A release comes after its pre-releases, whose words are compared one by one: numbers before
    letters, and fewer words before more.
    """
    found = _FORM.fullmatch(version)
    if found is None:
        return None
    major, minor, patch, before = found.groups()
    words = tuple(
        (False, int(word), "") if word.isdecimal() else (True, 0, word)
        for word in (before or "").split(".")
        if word
    )
    return int(major), int(minor or 0), int(patch or 0), not before, words
