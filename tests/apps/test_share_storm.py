"""Storms for the scheduler extender, in memory: twenty seeds of a thousand pods (the first in `make
test`), and deliberate faults that a storm must find.

tests/kube/test_share_storms.py runs fewer and smaller storms against a real kube-scheduler and API
server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec
import pytest
from tests.apps.broken_extender import patient, without_reservation
from tests.apps.share_storm import live
from tests.examples import long_case

from fairlead.apps.extender import Extender
from fairlead.model.changes import KIND_PODS, Changes, listed
from fairlead.model.node import Node

SEEDS = range(1, 6)
QUICK_SEEDS = 1
FAULT_SEEDS = range(20, 50)
"""`patient` is the rarest fault: about one storm in four finds it. Which ones do changes with the
code, so there are enough of them; the first that finds the fault is the last.
"""
PODS = 1000


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Replies are lost on purpose; their log messages would hide the seed of a failure."""
    caplog.set_level("CRITICAL")
    yield


@pytest.mark.parametrize(
    "seed",
    [
        *SEEDS[:QUICK_SEEDS],
        *(pytest.param(seed, marks=pytest.mark.long) for seed in SEEDS[QUICK_SEEDS:]),
    ],
)
def test_no_card_is_ever_sold_twice_and_nothing_is_lost(seed: int) -> None:
    server = live(seed, PODS)
    assert len(server.bindings) > PODS // 10, "a storm in which nothing is bound proves nothing"


@pytest.mark.long
def test_a_storm_can_be_lived_again() -> None:
    once, again = (
        [(kind, key, getattr(row, "node", "")) for kind, key, row in live(3, 150).history]
        for _ in range(2)
    )
    assert once == again


def guarding_nothing(*args: Any, **options: Any) -> Extender:
    """Fault: guarded nodes are treated like other nodes."""
    extender = Extender(*args, **options)
    original = extender.ledger.set_node

    def unguarded(row: Node, withheld: Collection[int] = ()) -> None:
        original(msgspec.structs.replace(row, annotations={}), withheld)

    extender.ledger.set_node = unguarded  # type: ignore[method-assign]
    return extender


def freeing_early(*args: Any, **options: Any) -> Extender:
    """Fault: a pod that is being deleted counts as gone."""
    extender = Extender(*args, **options)
    set_pod = extender.ledger.set_pod
    extender.ledger.set_pod = lambda pod: (
        extender.ledger.remove_pod(pod.uid) if pod.deleted_at is not None else set_pod(pod)
    )  # type: ignore[method-assign]
    return extender


def forgetful(*args: Any, **options: Any) -> Extender:
    """Fault: pods that were bound before the start are ignored."""
    extender = Extender(*args, **options)
    feed = extender.machine.feed
    observe = feed.observe

    def without_bound(changes: Changes[Any]) -> None:
        if changes.kind == KIND_PODS and changes.is_list:
            changes = listed(
                KIND_PODS,
                {uid: pod for uid, pod in changes.all_rows().items() if not pod.node},
                changes.unreadable,
            )
        observe(changes)

    feed.observe = without_bound  # type: ignore[method-assign]
    return extender


def believing_damage(*args: Any, **options: Any) -> Extender:
    """Fault: a running pod without a grant holds nothing."""
    extender = Extender(*args, **options)
    set_node = extender.ledger.set_node

    def without_hidden(each: Node, withheld: Collection[int] = ()) -> None:
        set_node(each, withheld)
        extender.ledger.nodes[each.name].hidden = _NoUser()

    extender.ledger.set_node = without_hidden  # type: ignore[method-assign]
    return extender


class _NoUser(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        pass


@pytest.mark.parametrize(
    "fault",
    [
        *map(
            long_case,
            (
                without_reservation,
                freeing_early,
                forgetful,
                believing_damage,
                patient,
                guarding_nothing,
            ),
        )
    ],
)
def test_a_storm_finds_the_fault(fault: Callable[..., Extender]) -> None:
    """A storm finds a fault when memory is granted twice, or when equal containers that start on a
    guarded node get different cards.

    A fault may also keep a storm from settling (TimeoutError).
    """
    reported = []
    for seed in FAULT_SEEDS:
        try:
            live(seed, PODS, fault)
        except AssertionError as error:
            reported.append(str(error))
            if re.search(
                (
                    r"storm \d+: AssertionError.*(units of GPU-.* are granted|another of its "
                    r"size).*again: python -m"
                ),
                reported[-1],
            ):
                return
    raise AssertionError(f"no storm has found it: {reported}")
