"""Warnings and staleness: what could not be read is reported on the pages that need it, and only
there.
"""

from __future__ import annotations

import pytest
from tests.console.clusters import EPOCH, telemetry

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.notices import is_stale, series_missing, warnings_of
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.node import Node
from fairlead.model.occupancy import NodeOccupancy
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source

PAGES = ("overview", "nodes", "gpus", "jobs", "quota")


def codes(page: str, *sources: Source) -> list[tuple[str, str]]:
    return [
        (each.code, each.source)
        for each in warnings_of({source.name: source for source in sources}, page)
    ]


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("syncing", "cache-syncing"),
        ("failing", "cache-syncing"),
        ("missing", "crd-missing"),
        ("forbidden", "forbidden"),
    ],
)
def test_every_state_but_ok_is_a_warning(state: str, code: str) -> None:
    assert codes("jobs", Source("mpijobs", state, "why", "what to do")) == [(code, "mpijobs")]
    assert codes("jobs", Source("mpijobs", "ok")) == codes("jobs", Source("mpijobs", "off")) == []


@pytest.mark.parametrize(
    ("source", "pages"),
    [
        ("pods", PAGES),
        ("mpijobs", ("overview", "jobs")),
        ("elasticquotatrees", ("overview", "quota")),
        ("gpu-telemetry", ("overview", "nodes", "gpus", "jobs")),
    ],
)
def test_a_page_warns_of_what_it_shows(source: str, pages: tuple[str, ...]) -> None:
    assert tuple(page for page in PAGES if codes(page, Source(source, "forbidden"))) == pages


def test_a_job_kind_that_is_not_installed_is_no_news_on_the_cluster_board() -> None:
    assert codes("overview", Source("mpijobs", "missing")) == []
    assert codes("overview", Source("mpijobs", "failing")) != []


@pytest.mark.parametrize("state", ["off", "missing", "failing", "forbidden"])
def test_silent_telemetry_names_the_address_and_the_setting(state: str) -> None:
    (warning,) = warnings_of(
        {
            "gpu-telemetry": telemetry(
                state, "http://10.0.0.1:9400 does not answer", "set `--gpu-pages`"
            )
        },
        "nodes",
    )
    assert (warning.code, warning.message, warning.hint) == (
        "prometheus-unreachable",
        "http://10.0.0.1:9400 does not answer",
        "set `--gpu-pages`",
    )


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        (Source("nodes", "syncing"), "cache-syncing", "`nodes` is still being read"),
        (
            Source("nodes", "failing"),
            "cache-syncing",
            "`nodes` cannot be read now; the last good state is shown",
        ),
        (
            Source("gpu-telemetry", "syncing"),
            "cache-syncing",
            "`gpu-telemetry` is still being read",
        ),
        (
            Source("gpu-telemetry", "failing"),
            "prometheus-unreachable",
            "GPU telemetry cannot be read",
        ),
        (
            Source("gpu-telemetry", "off"),
            "prometheus-unreachable",
            "no source of GPU telemetry is configured",
        ),
    ],
)
def test_a_source_without_a_status_of_its_own_is_shown_as_it_is(
    source: Source, code: str, message: str
) -> None:
    """The page inserts the value into its sentence; with an empty value the sentence would end in a
    colon.
    """
    (warning,) = warnings_of({source.name: source}, "nodes")
    assert (warning.code, warning.message, warning.values["message"], warning.values["state"]) == (
        code,
        message,
        message,
        source.state,
    )


def test_objects_that_cannot_be_read_are_reported_though_the_source_is_well() -> None:
    assert codes(
        "nodes", Source("pods", "ok", "3 left out that cannot be read, such as `default/x`")
    ) == [("truncated", "pods")]


@pytest.mark.parametrize(
    ("good_at", "state", "stale"),
    [
        (EPOCH - 29, "failing", False),
        (EPOCH - 31, "failing", True),
        (EPOCH - 31, "ok", True),
        (None, "ok", False),
        (EPOCH - 999, "forbidden", False),
    ],
)
def test_stale_is_a_needed_source_last_good_more_than_30_seconds_ago(
    good_at: float | None, state: str, stale: bool
) -> None:
    snapshot = ClusterSnapshot(sources={"pods": Source("pods", state, good_at=good_at)})
    assert is_stale(snapshot, "nodes", EPOCH) is stale


def test_a_source_that_the_page_does_not_need_makes_nothing_stale() -> None:
    snapshot = ClusterSnapshot(
        sources={"mpijobs": Source("mpijobs", "failing", good_at=EPOCH - 999)}
    )
    assert not is_stale(snapshot, "quota", EPOCH)
    assert is_stale(snapshot, "jobs", EPOCH)


def test_simulated_time_that_runs_faster_ages_sources_no_faster() -> None:
    snapshot = ClusterSnapshot(sources={"pods": Source("pods", good_at=EPOCH - 600)})
    assert not is_stale(snapshot, "nodes", EPOCH, speed=60)


@pytest.mark.parametrize(
    ("reporting", "total", "warns"), [(0, 4, False), (3, 4, True), (4, 4, False), (0, 0, False)]
)
def test_some_silent_gpus_are_reported_and_none_at_all_is_another_warning(
    reporting: int, total: int, warns: bool
) -> None:
    nodes = [
        NodeOccupancy(Node("n"), GpuMode.EXCLUSIVE, gpus_total=total, gpus_reporting=reporting)
    ]
    assert (series_missing(nodes) is not None) is warns


def test_a_kind_of_job_that_was_not_requested_is_not_reported() -> None:
    """Most clusters serve two or three of the eight kinds."""
    sources = {
        name: Source(name, state)
        for name, state in (
            ("mpijobs", "ok"),
            ("rayjobs", "missing"),
            ("tfjobs", "missing"),
            ("pods", "ok"),
        )
    }
    seen = BoardState(ClusterSnapshot(sources=sources), EPOCH)
    assert seen.warnings("jobs") == []
    assert [each.source for each in seen.warnings("jobs", {"tfjob", "mpijob"})] == ["tfjobs"]
    assert [name for name in seen.missing_types if name in ("rayjob", "tfjob", "mpijob")] == [
        "rayjob",
        "tfjob",
    ]


@pytest.mark.parametrize("asked", ["etjob", "deepspeedjob"])
def test_two_kinds_of_one_resource_are_each_asked_for(asked: str) -> None:
    seen = BoardState(
        ClusterSnapshot(sources={"trainingjobs": Source("trainingjobs", "missing")}), EPOCH
    )
    assert [each.source for each in seen.warnings("jobs", {asked})] == ["trainingjobs"]
    assert seen.missing_types == ["deepspeedjob", "etjob"]


def test_a_kind_of_job_that_cannot_be_read_is_reported_in_each_answer() -> None:
    sources = {
        "rayjobs": Source("rayjobs", "forbidden"),
        "tfjobs": Source("tfjobs", "failing", good_at=EPOCH),
    }
    assert [
        each.source for each in BoardState(ClusterSnapshot(sources=sources), EPOCH).warnings("jobs")
    ] == ["rayjobs", "tfjobs"]
