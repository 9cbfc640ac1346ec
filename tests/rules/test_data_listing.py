"""The list of data (docs/spec/datasets.md#data-list)."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.model.jobs.datasets import Claim, DataMount, DataRuntime, DataSet, FoundData
from fairlead.model.source import Source, SourceState
from fairlead.rules.data.listing import DataRow, data_rows
from fairlead.rules.data.mounts import acceleration_words
from fairlead.wire.data.fluid import WireDataset, parse_dataset


def rows_of(
    claims: tuple[Claim, ...] = (),
    data_sets: tuple[DataSet, ...] = (),
    runtimes: tuple[DataRuntime, ...] = (),
) -> list[DataRow]:
    return data_rows(FoundData(claims, data_sets, runtimes, 0.0, has_fluid=True))


def mounting(*points: str, name: str = "d", **more: str) -> DataSet:
    return DataSet("n", name, tuple(map(DataMount, points)), **more)  # type: ignore[arg-type]


def test_a_claim_of_fluid_is_no_row_beside_its_data_set_only() -> None:
    """A foreign claim of that name is one, and so is one whose data set is gone."""
    fluids, foreign = Claim("n", "d", is_fluids=True), Claim("n", "d")
    assert len(rows_of((fluids,), (mounting("s3://b"),))) == 1
    assert len(rows_of((foreign,), (mounting("s3://b"),))) == 2
    assert len(rows_of((fluids,))) == 1


@pytest.mark.parametrize(
    ("point", "is_cached"),
    [
        ("pvc://raw", True),
        ("pvc://raw/a/b", True),
        ("pvc://raw2", False),
        ("s3://raw", False),
        ("pvc://", False),
    ],
)
def test_a_claim_is_accelerated_by_data_sets_of_its_namespace_that_mount_it(
    point: str, is_cached: bool
) -> None:
    claims = (Claim("n", "raw"), Claim("other", "raw"))
    rows = {
        (row.namespace, row.name): row
        for row in rows_of(claims, (mounting(point, name="x"), mounting(point, name="w")))
    }
    assert rows["n", "raw"].by == (("w", "x") if is_cached else ())
    assert rows["n", "raw"].is_accelerated is is_cached
    assert rows["other", "raw"].by == ()


@pytest.mark.parametrize(
    ("data_set", "runtimes", "status", "message"),
    [
        (mounting("s3://b"), (), ("NotReady", "Pending"), "no runtime has its name"),
        (
            mounting("s3://b"),
            (DataRuntime("AlluxioRuntime", "n", "d"), DataRuntime("JindoRuntime", "n", "d")),
            ("NotReady", "Pending"),
            "2 runtimes have its name: AlluxioRuntime, JindoRuntime",
        ),
        (
            mounting("s3://b", phase="NotBound", message="no node"),
            (),
            ("NotReady", "NotBound"),
            "no node",
        ),
        (
            mounting("s3://b", phase="Bound", message="old"),
            (DataRuntime("AlluxioRuntime", "n", "d", 2, 1),),
            ("Ready", "Bound"),
            "",
        ),
        (
            DataSet("n", "d", phase="Bound", is_ending=True),
            (),
            ("NotReady", "Terminating"),
            "it is being deleted",
        ),
    ],
)
def test_a_data_set_is_ready_or_has_a_reason(
    data_set: DataSet,
    runtimes: tuple[DataRuntime, ...],
    status: tuple[str, str],
    message: str,
) -> None:
    (row,) = rows_of(data_sets=(data_set,), runtimes=runtimes)
    assert ((row.status, row.phase), row.message) == (status, message)


def test_rows_are_sorted_and_a_data_set_precedes_a_claim_of_its_name() -> None:
    claims = (Claim("b", "a"), Claim("n", "d"), Claim("n", "c"))
    rows = rows_of(claims, (mounting("s3://b"),))
    found = [(row.namespace, row.name, row.is_data_set) for row in rows]
    assert found == [("b", "a", False), ("n", "c", False), ("n", "d", True), ("n", "d", False)]


def test_what_may_not_be_read_is_a_failure_and_what_is_not_served_is_none() -> None:
    sources = {
        "claims": Source("claims", SourceState.FORBIDDEN, "you may not list claims"),
        "datasets": Source("datasets", SourceState.MISSING, "not served"),
        "nodes": Source("nodes"),
    }
    found = FoundData((), (), (), 0.0, sources)
    assert found.failures == "claims not read: you may not list claims"
    assert FoundData((), (), (), 0.0, {"nodes": Source("nodes")}).failures == ""


def parsed(status: str) -> DataSet:
    text = f'{{"metadata": {{"name": "d", "namespace": "n"}}, "status": {status}}}'
    return parse_dataset(msgspec.json.decode(text, type=WireDataset))


CONDITION = (
    '{"type": "%s", "status": "%s", "message": "%s", "lastUpdateTime": "2026-01-0%dT00:00:00Z"}'
)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([("Ready", "True", "good", 1)], ""),
        ([("Ready", "False", "bad", 1)], "bad"),
        ([("NotReady", "True", "bad", 1)], "bad"),
        ([("Ready", "False", "old", 1), ("Ready", "True", "new", 2)], ""),
        ([("Ready", "True", "new", 1), ("NotReady", "True", "worse", 2)], "worse"),
    ],
)
def test_the_message_is_of_the_newest_condition(
    conditions: list[tuple[str, str, str, int]], message: str
) -> None:
    status = f'{{"conditions": [{", ".join(CONDITION % each for each in conditions)}]}}'
    assert parsed(status).message == message


def test_amounts_that_are_none_are_not_reported() -> None:
    """As Fluid writes them before it has counted."""
    found = parsed(
        '{"ufsTotal": "[Calculating]", "fileNum": "[Calculating]", '
        '"cacheStates": {"cached": "", "cachedPercentage": null, "cacheHitRatio": "NaN%"}}'
    )
    assert (found.size, found.files, found.cache.cached) == (None, None, None)
    assert (found.cache.percent, found.cache.hit_percent) == (None, None)
    found = parsed('{"fileNum": "٣", "ufsTotal": "1.5.5GiB"}')
    assert (found.files, found.size) == (None, None)


def test_a_claim_of_arena_has_the_data_sets_that_cache_it() -> None:
    claims = (
        Claim("n", "raw"),
        Claim("n", "d", is_fluids=True),
        Claim("n", "other"),
        Claim("m", "raw"),
    )
    data_sets = (mounting("pvc://raw/a", name="x"), mounting("pvc://raw", name="d"))
    assert acceleration_words(claims, data_sets) == {
        ("n", "raw"): "d,x",
        ("n", "d"): "Yes",
        ("n", "other"): "No",
        ("m", "raw"): "No",
    }
