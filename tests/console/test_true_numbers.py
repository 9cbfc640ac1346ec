"""What a page says is so: since when cards are held, what a silent node still does, who owes figures.

The clusters are written down here, and what is expected of them is what a person would count.
"""

from __future__ import annotations

import pytest

from fairlead.console.boards.board_state import BoardState
from fairlead.model.node import Condition

from .clusters import EPOCH, cluster, gpu_node, pod, reading, training_job

GPU = {"nvidia.com/gpu": 1}
BOUND = Condition("PodScheduled", "True", at=EPOCH - 480)


def board_state(*args: object, **more: object) -> BoardState:
    return BoardState(cluster(*args, **more), EPOCH)  # type: ignore[arg-type]


def waited_long(ready: str = "True") -> BoardState:
    """Made 57 minutes ago, bound eight minutes ago."""
    job = training_job(created_at=EPOCH - 3420)
    pods = [pod(f"bert-worker-{number}", "gpu-1", GPU, job=job, conditions=(BOUND,)) for number in range(2)]
    gpus = [reading(index=number, holder=pods[number]) for number in range(2)]
    return board_state([gpu_node(gpus=2, ready=ready)], pods, [job], gpus)


def test_cards_are_held_since_the_pod_was_bound() -> None:
    seen = waited_long()
    (row,) = [entry.row for entry in seen.jobs.entries]
    assert row.held_seconds == 480
    node = seen.node("gpu-1")
    assert node is not None
    assert {each.held_since for each in node.pods} == {"2026-01-05T07:52:00Z"}


@pytest.mark.parametrize(
    ("conditions", "since"),
    [
        ((BOUND,), EPOCH - 480),
        ((Condition("PodScheduled", "False", at=EPOCH - 480),), EPOCH - 290),
        ((), EPOCH - 290),
    ],
)
def test_without_a_word_on_its_binding_the_kubelets_start_counts(conditions: tuple[Condition, ...], since: float) -> None:
    assert pod("a", "gpu-1", GPU, conditions=conditions).held_since == since


def test_who_holds_nothing_holds_it_since_never() -> None:
    job = training_job(state="Created")
    (row,) = [entry.row for entry in board_state([gpu_node()], [pod("bert-worker-0", job=job)], [job]).jobs.entries]
    assert row.held_seconds is None
    assert pod("a").held_since is None


def test_on_a_silent_node_nothing_is_said_to_run_or_to_be_well() -> None:
    seen = waited_long("Unknown")
    (row,) = [entry.row for entry in seen.jobs.entries]
    assert (row.instances.desired, row.instances.running, row.instances.unknown) == (2, 0, 2)
    detail = seen.job("team-a", "pytorchjob", "bert")
    node = seen.node("gpu-1")
    assert detail is not None
    assert node is not None
    assert [each.status for each in detail.instances] == ["Unknown", "Unknown"]
    assert [card.health for card in node.gpus] == ["Unknown", "Unknown"]
    assert [entry.row.health for entry in seen.gpus.entries] == ["Unknown", "Unknown"]


def test_a_node_that_says_itself_that_it_is_not_ready_is_not_silent() -> None:
    seen = waited_long("False")
    (row,) = [entry.row for entry in seen.jobs.entries]
    assert (row.instances.running, row.instances.unknown) == (2, 0)


def test_a_card_that_was_broken_stays_so_when_its_node_falls_silent() -> None:
    gpus = [reading(index=0, healthy=False), reading(index=1)]
    seen = board_state([gpu_node(gpus=2, ready="Unknown")], gpus=gpus)
    assert [entry.row.health for entry in seen.gpus.entries] == ["Unhealthy", "Unknown"]


def test_figures_of_a_broken_card_do_not_count_and_nodes_without_any_are_named() -> None:
    """Four cards, one broken, which reports: three are owed, of gpu-1; of gpu-2 two, and none comes."""
    broken = [reading(index=0, healthy=False), *(reading(index=index) for index in (1, 2, 3))]
    quiet = [reading("gpu-2", index, None, None) for index in range(2)]
    (warning,) = [
        each
        for each in board_state([gpu_node(), gpu_node("gpu-2", 2)], gpus=[*broken, *quiet]).warnings("nodes")
        if each.code == "series-missing"
    ]
    assert warning.values == {"reporting": 3, "total": 5, "nodes": "gpu-2"}
    assert "3 of 5 working GPUs report" in warning.message
    assert "gpu-2" in warning.message


def test_a_broken_card_that_reports_hides_no_sound_one_that_does_not() -> None:
    """Its figures must not be counted in the place of another card's."""
    gpus = [reading(index=0, healthy=False), reading(index=1, ratio=None), *(reading(index=index) for index in (2, 3))]
    codes = [each.code for each in board_state([gpu_node()], gpus=gpus).warnings("nodes")]
    assert codes == ["series-missing"]


def test_of_many_nodes_without_figures_three_are_named() -> None:
    nodes = [gpu_node(f"gpu-{number}", 1) for number in range(6)]
    gpus = [reading("gpu-0", 0), *(reading(f"gpu-{number}", 0, None, None) for number in range(1, 6))]
    (warning,) = board_state(nodes, gpus=gpus).warnings("nodes")
    assert warning.values == {"reporting": 1, "total": 6, "nodes": "gpu-1, gpu-2, gpu-3, …"}
