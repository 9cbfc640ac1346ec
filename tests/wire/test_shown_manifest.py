"""No secret of the table is shown, and everything else is; each hidden place is named; the time
grows linearly with the length.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from tests.wire.secret_cases import HARMLESS, SECRET, SecretCase, secret_cases

from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.files.shown_manifest import MOST_LEVELS, shown_manifest


def leaves(value: Any) -> Iterator[str]:
    """Each text and key of an object."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield f"{key}: {below}" if isinstance(below, str) else str(key)
            yield from leaves(below)
    elif isinstance(value, list):
        for below in value:
            yield from leaves(below)
    else:
        yield str(value)


@pytest.mark.parametrize("case", list(secret_cases()), ids=lambda case: case.name)
def test_no_secret_is_shown_and_the_rest_is(case: SecretCase) -> None:
    before = copy.deepcopy(case.object)
    shown, hidden = shown_manifest(case.object)
    texts = "\n".join(leaves(shown))
    assert SECRET not in texts
    assert SECRET not in render_manifests([shown])
    assert "20261127" not in texts
    assert [kept for kept in case.kept if kept not in texts] == [], texts
    assert len(set(hidden)) == len(hidden)
    assert case.object == before, "the object itself is left as it was"


@pytest.mark.parametrize("name", ["a", "password"])
def test_what_is_deeper_than_a_person_writes_is_hidden(name: str) -> None:
    deep: Any = {"a": SECRET}
    for _ in range(5000):
        deep = {name: deep}
    shown, hidden = shown_manifest({"spec": deep})
    assert len(hidden) == 1
    for _ in range(MOST_LEVELS // 2):
        shown = shown["spec" if "spec" in shown else name]
    assert isinstance(shown, dict)


@pytest.mark.parametrize("harmless", HARMLESS.values(), ids=HARMLESS.keys())
def test_what_is_no_secret_is_shown_as_it_is(harmless: Any) -> None:
    assert shown_manifest(harmless) == (harmless, [])
