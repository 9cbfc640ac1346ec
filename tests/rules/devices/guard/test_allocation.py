"""A program's memory by provider (docs/spec/gpu-sharing.md#isolation-providers).

The numbers are those of document 001: 4 units of a GPU of 16130 MiB are 4301 MiB, and a context
takes 121.
"""

from __future__ import annotations

import pytest

from fairlead.model.devices.kubelet import RegionCard
from fairlead.rules.devices.guard.allocation import Allocation, program_memory

MIB = 1 << 20
LIMIT, FREE = 4301, 16130
FITS, GREEDY = (121, 3072), (121, 6144)


@pytest.mark.parametrize("provider", ["cgroup", "mig", "mps", "guard"])
def test_a_provider_with_a_limit_refuses_what_is_above_it(provider: str) -> None:
    assert program_memory(provider, LIMIT, FREE, FITS).is_granted
    assert not program_memory(provider, LIMIT, FREE, GREEDY).is_granted


@pytest.mark.parametrize("provider", ["none", "", "strange"])
def test_without_a_provider_that_is_known_the_card_is_the_limit(provider: str) -> None:
    assert program_memory(provider, LIMIT, FREE, GREEDY) == Allocation(True)
    assert program_memory(provider, LIMIT, 6265, GREEDY) == Allocation(True)
    assert program_memory(provider, LIMIT, 6264, GREEDY) == Allocation(False)


@pytest.mark.parametrize("provider", ["cgroup", "mig", "mps", "none"])
def test_only_the_guard_counts(provider: str) -> None:
    assert program_memory(provider, LIMIT, FREE, FITS).counts is None


@pytest.mark.parametrize("sizes", [(4301,), (121, 4180)])
def test_the_limit_itself_is_granted_and_not_a_mib_more(sizes: tuple[int, ...]) -> None:
    assert program_memory("guard", LIMIT, FREE, sizes).is_granted
    assert not program_memory("guard", LIMIT, FREE, (*sizes, 1)).is_granted


def test_the_guard_counts_what_a_program_holds_and_each_refusal() -> None:
    held = 3193 * MIB
    assert program_memory("guard", LIMIT, FREE, FITS).counts == RegionCard(held, held)
    refused = program_memory("guard", LIMIT, FREE, GREEDY)
    assert refused.counts == RegionCard(used=0, peak=121 * MIB, denied=1), "it has ended"


def test_what_the_driver_refuses_within_the_limit_is_no_refusal_of_the_guard() -> None:
    refused = program_memory("guard", LIMIT, 1000, FITS)
    assert not refused.is_granted
    assert refused.counts == RegionCard(used=0, peak=3193 * MIB, denied=0)
