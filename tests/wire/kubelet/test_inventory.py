"""The inventory annotation, exactly as the specification defines it, and read back by
its readers.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.devices.gpu import CardMode, GpuSlot, Health
from fairlead.wire.kube.objects import parse_gpu_slots
from fairlead.wire.kubelet.inventory import render_inventory

CARDS = st.builds(
    GpuSlot,
    st.integers(0, 31),
    st.text(max_size=8),
    st.integers(0, 31),
    st.text(max_size=8),
    st.integers(0, 200_000),
    st.integers(0, 200),
    st.sampled_from([Health.HEALTHY, Health.UNHEALTHY]),
    st.text(max_size=8),
    st.sampled_from([CardMode.EXCLUSIVE, CardMode.SHARED, CardMode.DRAINING]),
)


def test_an_entry_is_the_contracts() -> None:
    card = GpuSlot(0, "GPU-6b1c", 0, "Tesla T4", 15079, 14, mode=CardMode.SHARED)
    assert render_inventory([card]) == (
        '[{"index":0,"minor":0,"uuid":"GPU-6b1c","model":"Tesla T4","memoryMiB":15079,"units":14,'
        '"health":"Healthy","reason":"","mode":"shared"}]'
    )


@given(st.lists(CARDS, max_size=8, unique_by=lambda card: card.index))
def test_what_is_written_is_read_back_by_index(cards: list[GpuSlot]) -> None:
    assert parse_gpu_slots(render_inventory(cards)) == tuple(
        sorted(cards, key=lambda card: card.index)
    )
