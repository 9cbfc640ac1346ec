"""A node with as many pods as it has units: how often its account is changed for one question, and who must go is needed."""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec
import pytest
from tests.rules.sharing import node, placed, pod

from fairlead.model.pod import Pod
from fairlead.rules.holding.account import NodeAccount, Tenant
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.sharing.alike import choose_on
from fairlead.rules.sharing.ledger import Ledger
from fairlead.rules.sharing.placement import as_seen_by, gpu_policy
from fairlead.rules.sharing.preempt import Victims, plan_preemption
from fairlead.rules.sharing.what_if import what_must_go

UNITS, CARDS = 139, 8
"""Of an H200 node (sharing contract 1.2)."""


def full_node(*, is_known: bool = True) -> Ledger:
    made = Ledger()
    made.set_node(node("n", (UNITS,) * CARDS))
    for number in range(UNITS * CARDS):
        one = pod(f"p{number}", 1, phase="Running", started_at=float(number), priority=number % 7)
        made.set_pod(placed(one, "n", {"main": [(number // UNITS, 1)]}) if is_known else msgspec.structs.replace(one, node="n"))
    return made


@pytest.mark.parametrize("is_known", [True, False], ids=["known cards", "unknown cards"])
def test_who_must_go_is_found_with_a_few_changes_per_pod(is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a copy of the whole node per pod: 230,000 changes here, and a second without a pause."""
    ledger, changes = full_node(is_known=is_known), 0
    unseat = NodeAccount.unseat

    def counted(account: NodeAccount, uid: str) -> None:
        nonlocal changes
        changes += 1
        unseat(account, uid)

    monkeypatch.setattr(NodeAccount, "unseat", counted)
    assert plan_preemption(ledger, pod("asker", UNITS, priority=100), {"n": Victims(("p0",))})
    assert what_must_go(ledger, pod("asker", UNITS)) is not None
    assert changes <= 2 * 3 * UNITS * CARDS


def test_pods_whose_card_nobody_knows_are_counted_by_what_they_may_hold() -> None:
    account = full_node(is_known=False).nodes["n"]
    assert (len(account.hidden), list(account.alike.values())) == (UNITS * CARDS, [UNITS * CARDS])
    assert {card.aside for card in account.cards} == {UNITS * CARDS}


@pytest.mark.parametrize("seed", range(60))
def test_who_must_go_suffices_and_each_is_needed(seed: int) -> None:
    """Oracle: a fresh copy of the node for every question."""
    chance = random.Random(seed)
    ledger, cards = Ledger(), chance.randint(1, 3)
    ledger.set_node(node("n", (chance.randint(3, 8),) * cards))
    for number in range(chance.randint(2, 12)):
        one = pod(
            f"p{number}", chance.randint(1, 3), phase="Running", started_at=float(chance.randint(0, 3)), priority=chance.randint(0, 2)
        )
        card = chance.randrange(cards)
        is_known = chance.random() < 0.8
        free = ledger.nodes["n"].cards[card].free
        if not is_known or free >= gpu_need(one).units:
            ledger.set_pod(
                placed(one, "n", {"main": [(card, gpu_need(one).units)]}) if is_known else msgspec.structs.replace(one, node="n")
            )
    asker = pod("asker", chance.randint(1, 8), priority=chance.randint(1, 3), cards=1)
    proposed = tuple(uid for uid in ledger.tenants if chance.random() < 0.3)
    found = plan_preemption(ledger, asker, {"n": Victims(proposed)})
    account = ledger.nodes["n"]
    if "n" in found and not _fits(account, asker, (), ledger):
        gone = set(found["n"].uids)
        assert _fits(account, asker, gone, ledger)
        assert all(not _fits(account, asker, gone - {uid}, ledger) for uid in gone), "each is needed"
    elif "n" not in found:
        below = [uid for uid, tenant in ledger.tenants.items() if _may_go(tenant, asker, proposed)]
        large = max(card.units for card in account.cards) < gpu_need(asker).units
        assert large or not _fits(account, asker, below, ledger) or _fits(account, asker, (), ledger)


def _may_go(tenant: Tenant, asker: Pod, proposed: Iterable[str]) -> bool:
    return tenant.pod.priority < asker.priority or tenant.pod.uid in proposed


def _fits(account: NodeAccount, asker: Pod, gone: Iterable[str], ledger: Ledger) -> bool:
    need = gpu_need(asker)
    left = account.without(list(gone))
    return choose_on(as_seen_by(left, asker), need, gpu_policy(need, left, ledger.policies)) is not None
