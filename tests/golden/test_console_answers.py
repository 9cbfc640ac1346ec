"""Whole answers of the console for one small cluster, byte for byte. `make golden` rewrites them;
read the diff.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from tests.console.clusters import (
    EPOCH,
    cluster,
    gpu_node,
    living_cluster,
    pod,
    quota_tree,
    reading,
    training_job,
)
from tests.console.shared_nodes import notebook, t4

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.holders import GROUPINGS, holder_groups
from fairlead.console.charts.answer import heatmap
from fairlead.model.node import Condition
from fairlead.model.pod import Owner

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
    "jobs": lambda board_state: {
        "sentence": board_state.jobs_sentence,
        "facets": board_state.jobs.facets,
        "items": rows(board_state.jobs),
    },
    "job": lambda board_state: board_state.job("team-a", "pytorchjob", "bert"),
    "holders": lambda board_state: held_by_many(),
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


def held_by_many() -> Any:
    """GPUs held by a training job's worker, a Deployment's pod, a CronJob's pod, a pod that a user
    created, and a pod with a part of a card.
    """
    job, web, nightly = training_job(), "web-5d4f", f"nightly-{int(EPOCH) // 60 - 30}"
    gpu = {"nvidia.com/gpu": 1}
    idle = pod(
        "web-5d4f-x2", "gpu-1", gpu, conditions=[Condition("PodScheduled", "True", at=EPOCH - 9000)]
    )
    pods = [
        pod("bert-worker-0", "gpu-1", {"nvidia.com/gpu": 2}, job=job),
        structs.replace(
            idle,
            owners=(Owner("ReplicaSet", web, "uid-web", True),),
            labels={"pod-template-hash": "5d4f"},
        ),
        structs.replace(
            pod(f"{nightly}-7", "gpu-1", gpu, namespace="team-c"),
            owners=(Owner("Job", nightly, "uid-job", True),),
        ),
        structs.replace(
            pod("alone", "gpu-2", gpu), labels={"arena.kubeflow.org/console-user": "ann"}
        ),
        notebook(1),
    ]
    cards = [
        reading(index=0, holder=pods[0]),
        reading(index=2, holder=idle, ratio=0.0, idle_since=EPOCH - 7200),
    ]
    nodes = [gpu_node(), gpu_node("gpu-2", ready="Unknown"), t4()]
    seen = BoardState(cluster(nodes, pods, [job], cards, quota=quota_tree()), EPOCH)
    return {
        "sentence": seen.holders_sentence,
        "facets": seen.holders.facets,
        "items": rows(seen.holders),
        **{f"by {by}": rows(holder_groups(rows(seen.holders), by)) for by in GROUPINGS},
    }


def rows(row_set: Any) -> list[Any]:
    return [entry.row for entry in row_set.entries]


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_is_the_recorded_one(name: str) -> None:
    answer = msgspec.json.decode(
        msgspec.json.encode(ANSWERS[name](BoardState(living_cluster(), EPOCH)))
    )
    text = json.dumps(answer, indent=1, ensure_ascii=False) + "\n"
    file = FOLDER / f"{name}.json"
    if os.environ.get("FAIRLEAD_REWRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), (
        "`make golden` rewrites the record; read its diff"
    )
