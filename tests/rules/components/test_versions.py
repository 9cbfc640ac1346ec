"""Versions in the order of semver.org, section 11."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fairlead.rules.components.versions import is_newer

IN_ORDER = [
    *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2"),
    *("1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "2.0.0", "2.1.0", "2.1.1", "2.1.10"),
]
"""The examples of the specification, and one more."""


@pytest.mark.parametrize(("older", "newer"), list(pairwise(IN_ORDER)))
def test_the_order_of_the_specification(older: str, newer: str) -> None:
    assert is_newer(newer, older)
    assert not is_newer(older, newer)


@pytest.mark.parametrize("version", IN_ORDER)
def test_nothing_is_newer_than_itself(version: str) -> None:
    assert not is_newer(version, version)
    assert not is_newer(f"v{version}", version)
    assert not is_newer(f"{version}+build.7", version)


@pytest.mark.parametrize("version", ["", "latest", "1.x", "1.0.0.0", "-1", "1" * 4000])
def test_what_is_no_version_is_never_newer(version: str) -> None:
    assert not is_newer(version, "0.0.1")
    assert not is_newer("1.0.0", version)
