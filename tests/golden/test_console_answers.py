"""Whole answers of the console for one small cluster, byte for byte. `make golden` rewrites them; read the diff."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.console.clusters import EPOCH, cluster, living_cluster
from tests.console.test_shared_nodes import notebook, t4

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.holders import holder_groups
from fairlead.console.charts.answer import heatmap

FOLDER = Path(__file__).parent / "console"
ANSWERS: dict[str, Callable[[BoardState], Any]] = {
    "overview": lambda board_state: board_state.overview,
    "gpu-map": lambda board_state: board_state.gpu_map,
    "nodes": lambda board_state: {
        "sentence": board_state.nodes_sentence,
        "facets": board_state.nodes.facets,
        "items": rows(board_state.nodes),
    },
    "node": lambda board_state: board_state.node("gpu-1"),
    "shared-node": lambda board_state: three_notebooks(),
    "jobs": lambda board_state: {"sentence": board_state.jobs_sentence, "facets": board_state.jobs.facets, "items": rows(board_state.jobs)},
    "job": lambda board_state: board_state.job("team-a", "pytorchjob", "bert"),
    "holders": lambda board_state: {
        "sentence": board_state.holders_sentence,
        "facets": board_state.holders.facets,
        "items": rows(board_state.holders),
        "by owner": rows(holder_groups(rows(board_state.holders), "owner")),
    },
    "search": lambda board_state: board_state.search("bert", 12),
    "quota": lambda board_state: {
        "sentence": board_state.quota_sentence,
        "facets": board_state.quota.facets,
        "items": rows(board_state.quota),
    },
    "heat-map": heatmap,
}


def three_notebooks() -> Any:
    return BoardState(cluster([t4()], [notebook(number) for number in (1, 2, 3)]), EPOCH).node("t4")


def rows(row_set: Any) -> list[Any]:
    return [entry.row for entry in row_set.entries]


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_is_the_recorded_one(name: str) -> None:
    answer = msgspec.json.decode(msgspec.json.encode(ANSWERS[name](BoardState(living_cluster(), EPOCH))))
    text = json.dumps(answer, indent=1, ensure_ascii=False) + "\n"
    file = FOLDER / f"{name}.json"
    if os.environ.get("FAIRLEAD_REWRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), "`make golden` rewrites the record; read its diff"
