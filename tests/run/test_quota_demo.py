"""The demo of docs/spec/quota.md#the-40-core-demo in a simulated cluster: the results equal the
specification's table.
"""

from __future__ import annotations

from collections import Counter

import pytest

from fairlead.run.quota_demo import SPACES, play

LEAF = [((4,), 0), ((4, 4), 0), ((3, 3, 2), 2), ((2, 2, 2, 2), 4)]
SUBTREE = [((4,), 0), ((4, 4), 0), ((2, 2, 4), 4), ((2, 2, 2, 2), 6)]


@pytest.mark.parametrize(("scope", "expected"), [("leaf", LEAF), ("subtree", SUBTREE)])
def test_the_demo_of_document_004(scope: str, expected: list[tuple[tuple[int, ...], int]]) -> None:
    steps = list(play(scope))

    assert [
        (tuple(step.running[name] for name in SPACES if name in step.running), step.evicted)
        for step in steps
    ] == expected
    last = Counter((space, reason) for space, reason, _ in steps[-1].waiting)
    assert last == {(name, "WaitingForIdleQuota"): 3 for name in SPACES}
    assert all(sentence.endswith("no leaf borrows") for _, _, sentence in steps[-1].waiting)
    assert steps[0].waiting == (
        ("namespace1", "OverMax", "cpu asks 5; root.a.1 uses 20 of max 20"),
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 4))
def test_other_seeds_evict_as_few(seed: int) -> None:
    assert [step.evicted for step in play("leaf", seed)] == [0, 0, 2, 4]
