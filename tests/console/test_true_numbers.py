"""The pages show true values: how long cards have been held, what runs on a silent node, which
nodes report no figures.

The clusters are written down here, and the expected values are what a person would count.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import pytest
from msgspec import structs
from tests.console.clusters import CARD_MIB, EPOCH, gpu_node, pod, reading, training_job
from tests.console.some_cluster import GPU, board_state, some_cluster

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.holders import GROUPINGS, holder_groups
from fairlead.console.pages.gpu_map import STATES
from fairlead.model.node import Condition

BOUND = Condition("PodScheduled", "True", at=EPOCH - 480)


def waited_long(ready: str = "True") -> BoardState:
    """A job created 57 minutes ago and bound eight minutes ago."""
    job = training_job(created_at=EPOCH - 3420)
    pods = [
        pod(f"bert-worker-{number}", "gpu-1", GPU, job=job, conditions=(BOUND,))
        for number in range(2)
    ]
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
def test_without_a_word_on_its_binding_the_kubelets_start_counts(
    conditions: tuple[Condition, ...], since: float
) -> None:
    assert pod("a", "gpu-1", GPU, conditions=conditions).held_since == since


def test_a_pod_that_holds_nothing_holds_it_since_never() -> None:
    job = training_job(state="Created")
    (row,) = [
        entry.row
        for entry in board_state([gpu_node()], [pod("bert-worker-0", job=job)], [job]).jobs.entries
    ]
    assert row.held_seconds is None
    assert pod("a").held_since is None


def test_on_a_silent_node_nothing_is_shown_as_running_or_well() -> None:
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


def test_a_pod_that_is_to_go_is_terminating_on_a_silent_node_too() -> None:
    job = training_job(workers=1)
    going = structs.replace(pod("bert-worker-0", "gpu-1", GPU, job=job), deleted_at=EPOCH - 60)
    detail = board_state([gpu_node(ready="Unknown")], [going], [job]).job(
        "team-a", "pytorchjob", "bert"
    )
    assert detail is not None
    assert [each.status for each in detail.instances] == ["Terminating"]


def test_a_node_that_reports_itself_not_ready_is_not_silent() -> None:
    seen = waited_long("False")
    (row,) = [entry.row for entry in seen.jobs.entries]
    assert (row.instances.running, row.instances.unknown) == (2, 0)


def test_a_card_that_was_broken_stays_so_when_its_node_falls_silent() -> None:
    gpus = [reading(index=0, healthy=False), reading(index=1)]
    seen = board_state([gpu_node(gpus=2, ready="Unknown")], gpus=gpus)
    assert [entry.row.health for entry in seen.gpus.entries] == ["Unhealthy", "Unknown"]


def test_figures_of_a_broken_card_do_not_count_and_nodes_without_any_are_named() -> None:
    """Of four cards one is broken and reports, so three working ones of gpu-1 report. The two of
    gpu-2 do not.
    """
    broken = [reading(index=0, healthy=False), *(reading(index=index) for index in (1, 2, 3))]
    quiet = [reading("gpu-2", index, None, None) for index in range(2)]
    (warning,) = [
        each
        for each in board_state(
            [gpu_node(), gpu_node("gpu-2", 2)], gpus=[*broken, *quiet]
        ).warnings("nodes")
        if each.code == "series-missing"
    ]
    assert warning.values == {"reporting": 3, "total": 5, "nodes": "gpu-2", "over": 4}
    assert "3 of 5 working GPUs report" in warning.message
    assert warning.message.endswith("; means cover all 4 GPUs that report, 1 of them broken")
    assert "gpu-2" in warning.message


def test_a_broken_card_that_reports_hides_no_sound_one_that_does_not() -> None:
    """Its figures do not count in place of another card's."""
    gpus = [
        reading(index=0, healthy=False),
        reading(index=1, ratio=None),
        *(reading(index=index) for index in (2, 3)),
    ]
    codes = [each.code for each in board_state([gpu_node()], gpus=gpus).warnings("nodes")]
    assert codes == ["series-missing"]


def test_of_many_nodes_without_figures_three_are_named() -> None:
    nodes = [gpu_node(f"gpu-{number}", 1) for number in range(6)]
    gpus = [
        reading("gpu-0", 0),
        *(reading(f"gpu-{number}", 0, None, None) for number in range(1, 6)),
    ]
    (warning,) = board_state(nodes, gpus=gpus).warnings("nodes")
    assert warning.values == {
        "reporting": 1,
        "total": 6,
        "nodes": "gpu-1, gpu-2, gpu-3, …",
        "over": 1,
    }
    assert warning.message.endswith("; means cover the GPUs that report")


@pytest.mark.parametrize("seed", range(40))
def test_the_warning_counts_the_cards_that_the_mean_is_of(seed: int) -> None:
    seen = some_cluster(seed)
    reported = [each for each in seen.warnings("overview") if each.code == "series-missing"]
    ratios = [
        card.reading.utilization_ratio
        for each in seen.occupancy.nodes
        for card in each.cards
        if card.reading
    ]
    known = [ratio for ratio in ratios if ratio is not None]
    for warning in reported:
        assert warning.values["over"] == len(known) == seen.overview.gpus_reporting
        assert seen.overview.gpu_util_percent == pytest.approx(
            100 * sum(known) / len(known), abs=0.01
        )


# --- numbers that appear in several places --------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_what_is_free_is_one_number_on_map_list_and_pools(first: int) -> None:
    for seed in range(first, first + 50):
        same_free(some_cluster(seed))


def same_free(seen: BoardState) -> None:
    cells = [STATES[cell[0]] for node in seen.gpu_map.nodes for cell in node.gpus]
    listed = [entry.row.state for entry in seen.gpus.entries]
    board = seen.overview
    assert sorted(cells) == sorted(listed)
    assert cells.count("free") == sum(pool.gpus_free for pool in board.pools)
    assert len(cells) == board.gpus.total == sum(pool.gpus for pool in board.pools)
    for pool in board.pools:
        assert pool.gpus_free + pool.gpus_free_unnamed + pool.gpus_allocated <= pool.gpus + 1e-6, (
            "held is not free"
        )
        assert pool.gpus_free + pool.gpus_free_unnamed + pool.gpus_unhealthy <= pool.gpus, (
            "broken is not free"
        )


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_what_is_allocated_and_in_all_is_one_number_in_sentences_table_and_pools(
    first: int,
) -> None:
    for seed in range(first, first + 50):
        same_allocated(some_cluster(seed))


def one_decimal(gpus: float) -> float:
    """GPUs rounded as by arena: halves up."""
    return float(Decimal(repr(round(gpus, 6))).quantize(Decimal("0.1"), ROUND_HALF_UP))


def same_allocated(seen: BoardState) -> None:
    board, rows = seen.overview, [entry.row for entry in seen.nodes.entries]
    for count, key in ((board.gpus.allocated, "allocated"), (board.gpus.total, "total")):
        assert one_decimal(count) == board.sentence.values[key] == seen.gpus_sentence.values[key]
        assert one_decimal(count) == seen.nodes_sentence.values["gpus" if key == "total" else key]
    assert sum(row.gpus_allocated for row in rows) == pytest.approx(board.gpus.allocated)
    assert sum(row.gpus_total for row in rows) == board.gpus.total
    assert (
        sum(row.gpus_unhealthy for row in rows)
        == board.gpus.unhealthy
        == board.sentence.values["unhealthy"]
    )
    assert sum(pool.gpus_allocated for pool in board.pools) == pytest.approx(board.gpus.allocated)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_what_is_idle_is_one_number_in_sentences_attention_holders_and_my_work(first: int) -> None:
    found = [same_idle(some_cluster(seed)) for seed in range(first, first + 50)]
    assert any(found) and not all(found)


def same_idle(seen: BoardState) -> float:
    """What a person would count: cards below 1 % for an hour, and held for an hour, on nodes that
    report.
    """
    counted = 0.0
    for node in (
        each for each in seen.occupancy.nodes if each.node.conditions[0].status != "Unknown"
    ):
        for card in node.cards:
            quiet = (
                card.reading is not None
                and card.reading.idle_since is not None
                and card.reading.idle_since <= EPOCH - 3600
            )
            counted += sum(
                each.ratio
                for each in card.holders
                if quiet and (each.pod.held_since or 0) <= EPOCH - 3600
            )
    board = seen.overview
    assert board.idle_gpus == pytest.approx(counted)
    assert board.idle_gpus <= board.gpus.allocated + 1e-6, "what is idle is held"
    short = one_decimal(counted)
    lines = [line.sentence.values["n"] for line in board.attention if line.kind == "gpu-idle"]
    assert lines in ([short], []) and bool(lines) == bool(short)
    assert (
        seen.holders_sentence.values.get("idle", 0) == board.sentence.values.get("idle", 0) == short
    )
    rows = [entry.row for entry in seen.holders.entries]
    assert sum(row.gpus_idle for row in rows) == pytest.approx(counted)
    assert all(row.gpus_idle <= row.gpus + 1e-6 for row in rows)
    for by in GROUPINGS:
        assert sum(
            group.row.gpus_idle for group in holder_groups(rows, by).entries
        ) == pytest.approx(counted)
    assert sum(
        seen.my_work("", each).held.gpus_idle for each in seen.places.namespaces
    ) == pytest.approx(counted)
    details = [detail for node in seen.snapshot.nodes if (detail := seen.node(node.name))]
    flagged = [card for detail in details for card in detail.gpus if "idle" in card.flags]
    assert bool(flagged) == bool(counted)
    return counted


def test_of_a_pod_that_uses_one_of_its_cards_the_other_is_idle_in_every_place() -> None:
    held = structs.replace(pod("half", "gpu-1", {"nvidia.com/gpu": 2}), started_at=EPOCH - 9000)
    gpus = [
        reading(index=0, ratio=0.0, idle_since=EPOCH - 7200, holder=held),
        reading(index=1, ratio=0.9, holder=held),
    ]
    seen = board_state([gpu_node(gpus=2)], [held], gpus=gpus)
    (row,) = [entry.row for entry in seen.holders.entries]
    assert (row.idle_seconds, row.gpus_idle, row.gpu_hours_idle) == (0, 1, 2)
    assert seen.overview.sentence.text == "2 of 2 GPUs allocated, 1 of them idle for over an hour."
    assert seen.holders_sentence.text == (
        "1 pod of 1 owner hold 2 GPUs, 1 of them idle for over an hour."
    )
    assert [line.sentence.text for line in seen.overview.attention] == [
        "1 GPU held and idle for over an hour"
    ]


def test_a_pod_that_just_got_an_idle_card_has_not_wasted_it() -> None:
    held = pod("new", "gpu-1", GPU)
    seen = board_state(
        [gpu_node(gpus=1)],
        [held],
        gpus=[reading(ratio=0.0, idle_since=EPOCH - 90_000, holder=held)],
    )
    assert (seen.overview.idle_gpus, seen.overview.attention, seen.holders_sentence.code) == (
        0,
        [],
        "holders",
    )


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_nothing_is_free_on_a_node_that_takes_no_pods(first: int) -> None:
    for seed in range(first, first + 50):
        none_free_where_closed(some_cluster(seed))


def none_free_where_closed(seen: BoardState) -> None:
    open_nodes = {
        row.name
        for row in (entry.row for entry in seen.nodes.entries)
        if row.status == "Ready" and row.schedulable
    }
    for node in seen.gpu_map.nodes:
        states = {STATES[cell[0]] for cell in node.gpus}
        assert node.name in open_nodes or "free" not in states
        assert node.name not in open_nodes or not states & {"closed", "unreachable"}


# --- one card, one answer -------------------------------------------------------------------------


def answers(seen: BoardState) -> list[tuple[list[str], float | None, list[str], float | None]]:
    """For each card of gpu-1 its holders and its granted memory, from the list and from the node's
    page.
    """
    node = seen.node("gpu-1")
    assert node is not None
    listed = [entry.row for entry in seen.gpus.entries if entry.row.node == "gpu-1"]
    return [
        (
            row.holders,
            row.memory_allocated_mib,
            [f"{each.namespace}/{each.name}" for each in card.pods],
            card.memory_allocated_mib,
        )
        for row, card in zip(listed, node.gpus, strict=True)
    ]


@pytest.mark.parametrize("ready", ["True", "Unknown"])
def test_what_is_granted_of_a_card_that_may_have_a_holder_is_unknown(ready: str) -> None:
    """A pod holds one of four cards, of which one is broken, and it is unknown which one."""
    gpus = [reading(index=index, healthy=index != 3) for index in range(4)]
    seen = board_state([gpu_node(ready=ready)], [pod("lost", "gpu-1", GPU)], gpus=gpus)
    assert answers(seen) == [([], None, [], None)] * 4
    (holder,) = [entry.row for entry in seen.holders.entries]
    assert holder.gpu_indexes == []


def test_a_card_that_a_pod_must_have_is_its_on_every_page() -> None:
    """Of two cards a pod in a crash loop, for which no exporter reports a holder, must
    hold both.
    """
    job = training_job(workers=1, gpus=2)
    lost = pod("lost", "gpu-1", {"nvidia.com/gpu": 2}, job=job)
    seen = board_state(
        [gpu_node(gpus=2)],
        [lost],
        [job],
        [reading(index=index, used_mib=5000.0) for index in range(2)],
    )
    assert answers(seen) == [(["team-a/lost"], CARD_MIB, ["team-a/lost"], CARD_MIB)] * 2
    node, detail = seen.node("gpu-1"), seen.job("team-a", "pytorchjob", "bert")
    assert node is not None and detail is not None
    assert [card.memory_free_mib for card in node.gpus] == [0, 0]
    assert [card.flags for card in node.gpus] == [[], []]
    (holder,) = [entry.row for entry in seen.holders.entries]
    assert [each.gpu_indexes for each in (holder, node.pods[0], detail.instances[0])] == [
        [0, 1]
    ] * 3


def test_of_cards_without_an_identity_the_holder_is_unknown() -> None:
    """No exporter reports these cards: the map fills them in order, and an index would
    be made up.
    """
    seen = board_state([gpu_node(gpus=2)], [pod("a", "gpu-1", GPU)])
    assert [row[::2] for row in answers(seen)] == [(["team-a/a"], ["team-a/a"]), ([], [])]
    (holder,) = [entry.row for entry in seen.holders.entries]
    assert holder.gpu_indexes == []


@pytest.mark.parametrize("seed", range(40))
def test_the_list_of_cards_and_the_pages_of_nodes_agree_on_each_card(seed: int) -> None:
    seen = some_cluster(seed)
    listed = {(entry.row.node, entry.row.index): entry.row for entry in seen.gpus.entries}
    for each in seen.occupancy.nodes:
        node = seen.node(each.node.name)
        assert node is not None
        for card in node.gpus:
            row = listed[each.node.name, card.index]
            assert (row.memory_allocated_mib, row.holders) == (
                card.memory_allocated_mib,
                list(dict.fromkeys(f"{pod.namespace}/{pod.name}" for pod in card.pods)),
            )
