"""The list of GPUs: one row per card, its state as on the map, filters, order and the file for
spreadsheets.
"""

from __future__ import annotations

import msgspec
import pytest
from tests.console.clusters import (
    CARD_MIB,
    EPOCH,
    cluster,
    cpu_node,
    gpu_node,
    living_cluster,
    pod,
    reading,
    shared_node,
)

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.rows import matching
from fairlead.console.pages.csv_table import render_csv
from fairlead.console.pages.endpoints import ENDPOINTS
from fairlead.console.pages.gpu_map import STATES
from fairlead.console.pages.gpus import ListedGpu
from fairlead.console.pages.list_query import parse_list_query
from fairlead.model.devices.gpu import GpuSlot, Grant
from fairlead.model.node import Node

GPU = {"nvidia.com/gpu": 1}
GPUS = next(endpoint for endpoint in ENDPOINTS if endpoint.name == "gpus")


def board_state() -> BoardState:
    """gpu-1: one card held and idle, one free, one broken; share-1: one card a quarter held, one
    free.
    """
    holder = pod("a", "gpu-1", GPU)
    shared = pod(
        "b",
        "share-1",
        {"aliyun.com/gpu-mem": 10},
        grants={"main": (Grant("GPU-share-1-0", 0, 10, 10_240),)},
    )
    gpus = [
        reading(index=0, holder=holder, ratio=0.0, idle_since=EPOCH - 90),
        reading(index=1, ratio=None),
        reading(index=2, healthy=False, ratio=0.5),
    ]
    return BoardState(
        cluster([gpu_node(gpus=3), shared_node(), cpu_node()], [holder, shared], gpus=gpus), EPOCH
    )


def found(text: str) -> list[ListedGpu]:
    parameters = [tuple(part.split("=", 1)) for part in text.split("&") if part]
    return matching(board_state().gpus, parse_list_query(parameters, GPUS))  # type: ignore[arg-type]


def places(rows: list[ListedGpu]) -> list[str]:
    return [f"{row.node}/{row.index}" for row in rows]


def test_a_row_has_everything_about_its_card_and_unknown_numbers_are_null() -> None:
    first, *_, last = found("")
    assert msgspec.to_builtins(first) == {
        "node": "gpu-1",
        "index": 0,
        "uuid": "GPU-gpu-1-0",
        "model": "NVIDIA H200",
        "mode": "exclusive",
        "state": "allocated",
        "health": "Healthy",
        "holders": ["team-a/a"],
        "units": 0,
        "unitsAllocated": 0,
        "utilPercent": 0,
        "memoryUsedMiB": 1000,
        "memoryAllocatedMiB": CARD_MIB,
        "memoryTotalMiB": CARD_MIB,
        "temperatureC": 60,
        "powerW": 400,
        "idleSeconds": 90,
    }
    assert (last.node, last.index, last.mode, last.holders) == ("share-1", 1, "share", [])
    assert (
        last.util_percent,
        last.memory_used_mib,
        last.temperature_c,
        last.power_w,
        last.idle_seconds,
    ) == (None,) * 5


def test_there_is_a_row_for_every_cell_of_the_map_in_the_same_state() -> None:
    for seen in (board_state(), BoardState(living_cluster(), EPOCH)):
        cells = [(node.name, STATES[cell[0]]) for node in seen.gpu_map.nodes for cell in node.gpus]
        assert [(entry.row.node, entry.row.state) for entry in seen.gpus.entries] == cells


def test_a_pod_that_must_be_on_a_card_is_its_holder() -> None:
    seen = BoardState(cluster([gpu_node(gpus=2)], [pod("a", "gpu-1", GPU)]), EPOCH)
    assert [(entry.row.state, entry.row.holders) for entry in seen.gpus.entries] == [
        ("allocated", ["team-a/a"]),
        ("free", []),
    ]


def test_draining_is_a_state_and_no_mode() -> None:
    node = shared_node(cards=1)
    slot = GpuSlot(0, "GPU-0", 0, "NVIDIA A100", 40_960, 40, health="Unhealthy", mode="draining")
    seen = BoardState(
        cluster([Node("n", capacity=node.capacity, conditions=node.conditions, gpus=(slot,))]),
        EPOCH,
    )
    assert [(entry.row.state, entry.row.mode) for entry in seen.gpus.entries] == [
        ("draining", "share")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu_node=SHARE-1", ["share-1/0", "share-1/1"]),
        ("GPU=2", ["gpu-1/2"]),
        ("GPU=gpu-share-1-1", ["share-1/1"]),
        ("status=free&status=unhealthy", ["gpu-1/1", "gpu-1/2", "share-1/1"]),
        ("status=free&mode=share", ["share-1/1"]),
        ("model=NVIDIA H200&status=allocated", ["gpu-1/0"]),
        ("q=team-a/b", ["share-1/0"]),
        ("sort=-utilPercent", ["gpu-1/2", "gpu-1/0", "gpu-1/1", "share-1/0", "share-1/1"]),
        ("sort=-index", ["gpu-1/2", "gpu-1/1", "share-1/1", "gpu-1/0", "share-1/0"]),
    ],
)
def test_filters_search_and_order(text: str, expected: list[str]) -> None:
    assert places(found(text)) == expected


def test_the_choices_of_each_filter_are_listed() -> None:
    assert board_state().gpus.facets == {
        "gpu_node": ["gpu-1", "share-1"],
        "GPU": ["0", "1", "2"],
        "status": ["allocated", "free", "shared", "unhealthy"],
        "mode": ["exclusive", "share"],
        "model": ["NVIDIA A100", "NVIDIA H200"],
    }


def test_the_file_has_a_line_per_gpu() -> None:
    head, first, *rest = render_csv(found(""), ListedGpu).decode("utf-8-sig").splitlines()
    assert head.startswith(
        "node,index,uuid,model,mode,state,health,holders,units,unitsAllocated,utilPercent"
    )
    assert first.startswith(
        "gpu-1,0,GPU-gpu-1-0,NVIDIA H200,exclusive,allocated,Healthy,team-a/a,0"
    )
    assert len(rest) == 4
