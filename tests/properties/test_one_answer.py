"""Boards, exporters and `arena top node` count the same GPUs: two modules with two layouts, one truth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.gpu import GpuSlot, Grant
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, Pod
from fairlead.model.resources import GPU_COUNT, GPU_MEMORY, NVIDIA_GPU
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.node_report import report_nodes, rounded
from fairlead.rules.occupancy import node_occupancy
from fairlead.wire import names
from fairlead.wire.allocation import parse_grants, render_grants

PHASES = st.sampled_from(["Running", "Pending", "Succeeded", "Failed"])
READY = (Condition("Ready", "True"),)


@st.composite
def exclusive_nodes(draw: st.DrawFn) -> tuple[Node, list[Pod]]:
    total = draw(st.integers(1, 16))
    node = Node("n", capacity={NVIDIA_GPU: total}, allocatable={NVIDIA_GPU: draw(st.integers(0, total))}, conditions=READY)
    pods = []
    for number in range(draw(st.integers(0, 6))):
        main, init = draw(st.integers(0, 4)), draw(st.integers(0, 4))
        pods.append(
            Pod(
                "ns",
                f"p{number}",
                node=draw(st.sampled_from(["n", ""])),
                phase=draw(PHASES),
                deleted_at=draw(st.sampled_from([None, 1.0])),
                containers=(Container("main", limits={NVIDIA_GPU: main}),),
                init_containers=(Container("init", limits={NVIDIA_GPU: init}),),
            )
        )
    return node, pods


@st.composite
def shared_nodes(draw: st.DrawFn) -> tuple[Node, list[Pod]]:
    count, each = draw(st.integers(1, 4)), draw(st.integers(2, 40))
    # As much memory as the units say: an inventory that claims more is not believed by the boards.
    slots = tuple(GpuSlot(index, f"GPU-{index}", index, "T4", each * 1024, each, mode="shared") for index in range(count))
    node = Node(
        "n",
        capacity={GPU_MEMORY: count * each, GPU_COUNT: count},
        allocatable={GPU_MEMORY: draw(st.integers(0, count * each)), GPU_COUNT: count},
        conditions=READY,
        gpus=draw(st.sampled_from([slots, ()])),
    )
    pods = []
    for number in range(draw(st.integers(0, 6))):
        units, card = draw(st.integers(1, each)), draw(st.integers(0, count - 1))
        containers = (Container("main", limits={GPU_MEMORY: units}),)
        annotations = draw(st.sampled_from(_spellings(units, card)))
        pods.append(
            Pod(
                "ns",
                f"p{number}",
                node="n",
                phase=draw(PHASES),
                containers=containers,
                annotations=annotations,
                grants=parse_grants(annotations, containers),
            )
        )
    return node, pods


def _spellings(units: int, card: int) -> list[dict[str, str]]:
    """The same grant in each generation of annotations, and none at all."""
    return [
        {names.ANNOTATION_ALLOCATION: render_grants({"main": (Grant(f"GPU-{card}", card, units, 100 * units),)})},
        {names.ANNOTATION_REFERENCE_ALLOCATION: f'{{"0":{{"{card}":{units}}}}}'},
        {names.ANNOTATION_GPU_INDEX: str(card)},
        {},
    ]


@given(st.one_of(exclusive_nodes(), shared_nodes()))
def test_the_boards_and_the_command_line_count_alike(case: tuple[Node, list[Pod]]) -> None:
    node, pods = case
    snapshot = ClusterSnapshot(nodes=(node,), pods=tuple(pods))
    (told,) = report_nodes(snapshot)
    found = node_occupancy(node, snapshot)
    assert (found.mode, found.gpus_total, found.gpus_unhealthy) == (told.mode, told.gpus, told.gpus_unhealthy)
    assert found.gpus_allocated == pytest.approx(told.gpus_allocated)
    assert rounded(found.gpus_allocated) == told.gpus_allocated_shown
    assert (found.units_total, found.units_allocated) == (told.units, told.units_allocated)
