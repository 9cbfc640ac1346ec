"""Why a node cannot take a pod that shares a GPU: the sentences of the extender.

Specification: docs/spec/gpu-sharing.md#filter.

They contain few distinct numbers, because kube-scheduler counts equal sentences over nodes.
`is_final` decides whether preemption is tried, so it is set only if no eviction can help.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from msgspec import structs

from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_CORE, GPU_MEMORY
from fairlead.model.sharing import GpuNeed, Placement, Verdict
from fairlead.rules.holding.account import DRAINING, CardAccount, NodeAccount
from fairlead.rules.holding.need import units_for_bytes
from fairlead.rules.sharing.alike import choose_on, never_alike
from fairlead.rules.sharing.placement import (
    NoCard,
    SharePolicies,
    as_seen_by,
    choose_cards,
    choose_for_each,
    gpu_policy,
)

UNKNOWN_NODE: Final = Verdict("node not yet known to the GPU share scheduler", False)
NOT_SHARED: Final = Verdict("node does not share GPUs (label cgpu=true missing)", True)


def verdict(
    account: NodeAccount, need: GpuNeed, pod: Pod, policies: SharePolicies
) -> Verdict | None:
    """Why the node cannot take the pod; None if it can."""
    if need.fault:
        return Verdict(need.fault, True)
    if need.is_nothing:
        return None
    if not account.mode.is_shared:
        return NOT_SHARED
    if need.cards > len(account.cards):
        return Verdict(f"need {_gpus(need.cards)}, node has {len(account.cards)}", True)
    if not account.usable():
        return _no_usable_card(account.cards)
    if account.unit != policies.unit:
        return other_unit(account.unit, policies.unit)
    seen = as_seen_by(account, pod)
    policy = gpu_policy(need, account, policies)
    if choose_on(seen, need, policy) is not None:
        return None
    if account.is_guarded and choose_cards(seen, need, policy) is not None:
        return never_alike(seen, need, policy)
    no = _lacking(seen, need, policy)
    return (
        no
        if no.is_final or not account.hidden
        else Verdict(f"{no.reason} ({_set_aside(account)})", False)
    )


@lru_cache(maxsize=4)
def other_unit(of_node: str, of_cluster: str) -> Verdict:
    """The verdict on a node with another unit than the cluster's.

    The number that a pod asks for is in the cluster's unit, and such a node would give a different
    amount.
    """
    return Verdict(f"node counts {GPU_MEMORY} in {of_node}, the cluster in {of_cluster}", True)


@lru_cache(maxsize=4096)
def lacking_memory(units: int, largest_free: int, unit: str) -> Verdict:
    """The verdict on nearly every full node."""
    return Verdict(
        (
            f"Insufficient {GPU_MEMORY} on one GPU: need {units} {unit}, largest free "
            f"{largest_free} {unit}"
        ),
        False,
    )


@lru_cache(maxsize=4096)
def too_large(units: int, largest: int, unit: str) -> Verdict:
    hint = units_for_bytes(units, unit)
    return Verdict(
        f"need {units} {unit} on one GPU, largest has {largest} {unit}{hint and f' ({hint})'}",
        True,
    )


def _no_usable_card(cards: Sequence[CardAccount]) -> Verdict:
    draining = [str(card.index) for card in cards if card.trouble == DRAINING]
    if draining:
        return Verdict(f"GPU {','.join(draining)} draining from exclusive use", False)
    return Verdict(
        f"all {_gpus(len(cards))} unhealthy" if len(cards) > 1 else "the only GPU is unhealthy",
        True,
    )


def _lacking(seen: NodeAccount, need: GpuNeed, policy: Placement) -> Verdict:
    """For containers on different cards: the first (the largest) that has none.

    Each is judged as if it were the pod.
    """
    if not need.is_split:
        return _lacking_for(seen, need.units, need.core_percent, need.cards)
    no = choose_for_each(seen.cards, need, policy)
    assert isinstance(no, NoCard), "each container finds its card, and the pod does not"
    return _lacking_for(structs.replace(seen, cards=no.left), no.units, no.core_percent, need.cards)


def _lacking_for(seen: NodeAccount, units: int, core: int, count: int) -> Verdict:
    usable, unit = seen.usable(), seen.unit
    large = [card for card in usable if card.units >= units]
    if not large:
        return _too_large(seen, units)
    if core > 100:
        return Verdict(f"need {core} of {GPU_CORE} on one GPU, largest has 100", True)
    roomy = [card for card in usable if card.free >= units]
    if len(roomy) < count:
        if count > 1:
            have = f"{_gpus(len(roomy))} {'has' if len(roomy) == 1 else 'have'} it"
            return Verdict(
                (
                    f"Insufficient {GPU_MEMORY}: need {units} {unit} on "
                    f"each of {_gpus(count)}, {have}"
                ),
                len(large) < count,
            )
        return lacking_memory(units, max(card.free for card in usable), unit)
    fit = [card for card in roomy if card.core_free >= core]
    is_final = sum(card.core_total >= core for card in large) < count
    if count > 1:
        have = f"{_gpus(len(fit))} {'has' if len(fit) == 1 else 'have'} it"
        return Verdict(
            f"Insufficient {GPU_CORE}: need {core} on each of {_gpus(count)}, {have}", is_final
        )
    most = max(card.core_free for card in roomy)
    return Verdict(
        f"Insufficient {GPU_CORE} on one GPU: need {core}, largest free {most}", is_final
    )


def _too_large(seen: NodeAccount, units: int) -> Verdict:
    """No usable card is large enough.

    A larger card may be draining; an unhealthy card is not counted.
    """
    draining = [
        str(card.index) for card in seen.cards if card.trouble == DRAINING and card.units >= units
    ]
    if draining:
        return Verdict(f"GPU {','.join(draining)} draining from exclusive use", False)
    largest, unit = max(card.units for card in seen.usable()), seen.unit
    if any(card.units >= units for card in seen.cards):
        return Verdict(
            f"need {units} {unit} on one GPU, largest healthy has {largest} {unit}", True
        )
    return too_large(units, largest, unit)


def unknown_gpu_text(account: NodeAccount, uid: str) -> str:
    """The message for a pod that runs on the node with an unknown card; "" for all other pods."""
    hidden = account.hidden.get(uid)
    if hidden is None:
        return ""
    return (
        f"it is unknown which GPU of node {account.name} it holds: {hidden.units} {account.unit} "
        "of each that may be it are set aside"
    )


def _set_aside(account: NodeAccount) -> str:
    units, count = sum(each.units for each in account.hidden.values()), len(account.hidden)
    return (
        f"{units} {account.unit} set aside for {count} {'pod' if count == 1 else 'pods'} whose "
        "GPU is unknown"
    )


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"
