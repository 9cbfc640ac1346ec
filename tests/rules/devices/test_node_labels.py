"""Labels, annotations and counts that the agent writes to its node:
docs/spec/gpu-sharing.md#resources-and-device-ids,
docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory,
docs/spec/gpu-sharing.md#device-plugin.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.devices.cards import t4, uuid

from fairlead.model.devices.gpu import GpuSlot, Health
from fairlead.rules.devices.card_mode import CardHolders, card_plan
from fairlead.rules.devices.node_labels import gpu_counts, missing_labels
from fairlead.rules.devices.provider import Provider

CARDS = [t4(0), t4(1)]
V100 = GpuSlot(0, uuid(7), model="Tesla V100-SXM2-16GB", memory_mib=16130)


def test_labels_are_those_of_the_documents() -> None:
    assert missing_labels([V100] * 4, Provider.NONE, {"cgpu": "true"}) == {
        "aliyun.accelerator/nvidia_name": "Tesla-V100-SXM2-16GB",
        "aliyun.accelerator/nvidia_mem": "16130MiB",
        "aliyun.accelerator/nvidia_count": "4",
        "fairlead.io/gpu-isolation": "none",
    }


def test_what_is_there_stays_but_for_the_provider_in_force() -> None:
    present = {f"aliyun.accelerator/nvidia_{each}": "mine" for each in ("name", "mem", "count")}
    assert missing_labels(
        CARDS, Provider.MPS, {**present, "fairlead.io/gpu-isolation": "guard"}
    ) == {"fairlead.io/gpu-isolation": "mps"}
    assert (
        missing_labels(CARDS, Provider.MPS, {**present, "fairlead.io/gpu-isolation": "mps"}) == {}
    )


def test_of_cards_that_differ_only_the_count_is_reported() -> None:
    reported = missing_labels([t4(), V100], Provider.NONE, {"fairlead.io/gpu-isolation": "none"})
    assert reported == {"aliyun.accelerator/nvidia_count": "2"}
    unknown = missing_labels(
        [t4(memory_mib=None, model="")], Provider.NONE, {"fairlead.io/gpu-isolation": "none"}
    )
    assert unknown == {"aliyun.accelerator/nvidia_count": "1"}
    assert missing_labels([], Provider.NONE, {"fairlead.io/gpu-isolation": "none"}) == {}


@given(model=st.text(max_size=120))
def test_a_model_is_a_label_whatever_the_driver_calls_it(model: str) -> None:
    text = missing_labels([t4(model=model)], Provider.NONE, {}).get(
        "aliyun.accelerator/nvidia_name", "x"
    )
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", text)


@pytest.mark.parametrize(
    ("labels", "cards", "holders", "counts"),
    [
        ({"cgpu": "true"}, CARDS, CardHolders(), (2, 2)),
        (
            {"cgpu": "true"},
            [t4(0), t4(1, health=Health.UNHEALTHY, reason="XID 79")],
            CardHolders(),
            (2, 1),
        ),
        ({"cgpu": "true"}, CARDS, CardHolders(whole=frozenset({uuid(0)})), (1, 1)),
        ({"cgpu": "false"}, CARDS, CardHolders(parts=frozenset({uuid(0)})), (1, 0)),
        ({}, CARDS, CardHolders(), (0, 0)),
    ],
)
def test_the_count_is_of_cards_whose_memory_is_listed(
    labels: dict[str, str], cards: list[GpuSlot], holders: CardHolders, counts: tuple[int, int]
) -> None:
    assert gpu_counts(card_plan(labels, cards, holders)) == counts
