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

from fairlead.console.chart_answer import heatmap
from fairlead.console.picture import Picture

FOLDER = Path(__file__).parent / "console"
ANSWERS: dict[str, Callable[[Picture], Any]] = {
    "overview": lambda picture: picture.overview,
    "gpu-map": lambda picture: picture.gpu_map,
    "nodes": lambda picture: {"sentence": picture.nodes_sentence, "facets": picture.nodes.facets, "items": rows(picture.nodes)},
    "node": lambda picture: picture.node("gpu-1"),
    "shared-node": lambda picture: three_notebooks(),
    "jobs": lambda picture: {"sentence": picture.jobs_sentence, "facets": picture.jobs.facets, "items": rows(picture.jobs)},
    "job": lambda picture: picture.job("team-a", "pytorchjob", "bert"),
    "quota": lambda picture: {"sentence": picture.quota_sentence, "facets": picture.quota.facets, "items": rows(picture.quota)},
    "heat-map": heatmap,
}


def three_notebooks() -> Any:
    return Picture(cluster([t4()], [notebook(number) for number in (1, 2, 3)]), EPOCH).node("t4")


def rows(row_set: Any) -> list[Any]:
    return [entry.row for entry in row_set.entries]


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_is_the_recorded_one(name: str) -> None:
    answer = msgspec.json.decode(msgspec.json.encode(ANSWERS[name](Picture(living_cluster(), EPOCH))))
    text = json.dumps(answer, indent=1, ensure_ascii=False) + "\n"
    file = FOLDER / f"{name}.json"
    if os.environ.get("FAIRLEAD_REWRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), "`make golden` rewrites the record; read its diff"
