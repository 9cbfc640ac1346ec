"""Every mutation of `tests/mutations` can still be made, and its test exists."""

from __future__ import annotations

import pytest
from tests.mutations import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.title)
def test_what_it_breaks_stands_in_its_file_once(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1
    assert mutation.new != mutation.old
    folder = "web/" if mutation.test.startswith("web: ") else ""
    assert (ROOT / f"{folder}{mutation.test.removeprefix('web: ')}").is_file()
