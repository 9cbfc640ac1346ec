"""Jobs that were deleted, as the ledger keeps them: their rows, their life and their pods."""

from __future__ import annotations

from typing import Final

from msgspec import structs
from tests.usage.memory_ledger import MemoryLedger

from fairlead.console.boards.usage.past_jobs import (
    past_instances,
    past_job,
    past_job_row,
    past_job_rows,
    past_jobs,
    past_jobs_sentence,
    past_life,
)
from fairlead.console.pages.list_query import ListQuery
from fairlead.model.usage.ledger import (
    GPU,
    HOUR,
    OPEN,
    Amount,
    ClosedBy,
    JobRecord,
    LedgerBatch,
    LedgerCard,
    LedgerJob,
    PodInterval,
    PriceClass,
    UsedBy,
)

NOW: Final = 1_800_000_000_000
START: Final = NOW - 10 * HOUR
BERT: Final = ("team-a", "pytorchjob", "bert")
OWNER: Final = UsedBy("team-a", "ann", "root.a")
RECORD: Final = JobRecord(
    "uid-1",
    OWNER,
    "bert",
    "pytorchjob",
    api_version="kubeflow.org/v1",
    created_at=START,
    started_at=START + HOUR,
    finished_at=START + 3 * HOUR,
    deleted_at=START + 4 * HOUR,
    status="SUCCEEDED",
    gpu=4 * GPU,
    instances=2,
)


def interval(uid: str, start: int, end: int, **more: object) -> PodInterval:
    made = PodInterval(
        uid,
        start,
        OWNER,
        f"bert-{uid}",
        "gpu-1",
        PriceClass(model="A100", gpu=8 * GPU),
        Amount(2 * GPU, 160_000, 8_000, 65_536),
        LedgerJob("uid-1", "bert", "pytorchjob"),
        (LedgerCard("GPU-1", 1), LedgerCard("GPU-0", 0)),
        end,
        ClosedBy.FINISHED,
    )
    return structs.replace(made, **more)


async def ledger_with(*records: JobRecord, pods: tuple[PodInterval, ...] = ()) -> MemoryLedger:
    ledger = MemoryLedger()
    claim = await ledger.claim_ledger("test", START)
    await ledger.write_ledger(claim.epoch, LedgerBatch(NOW, pods=pods, jobs=records))
    return ledger


async def test_a_list_has_deleted_jobs_only_and_no_other_namespace() -> None:
    lives = structs.replace(RECORD, uid="uid-2", name="lives", deleted_at=0)
    other = structs.replace(RECORD, uid="uid-3", by=UsedBy("team-b"))
    ledger = await ledger_with(RECORD, lives, other)
    assert {each.uid for each in await past_jobs(ledger, NOW, None)} == {"uid-1", "uid-3"}
    assert [each.uid for each in await past_jobs(ledger, NOW, ("team-a",))] == ["uid-1"]


async def test_of_jobs_of_one_name_the_newest_is_shown() -> None:
    older = structs.replace(RECORD, uid="uid-0", created_at=START - HOUR)
    serving = structs.replace(RECORD, uid="uid-9", type="custom-serving", created_at=START + HOUR)
    ledger = await ledger_with(older, RECORD, serving, pods=(interval("p", START, START + HOUR),))
    found = await past_job(ledger, NOW, BERT)
    assert found is not None
    assert (found.record.uid, [each.pod_uid for each in found.intervals]) == ("uid-1", ["p"])
    assert await past_job(ledger, NOW, ("team-b", "pytorchjob", "bert")) is None
    earlier = await past_job(ledger, NOW, BERT, "uid-0")
    assert earlier is not None
    assert (earlier.record.uid, earlier.intervals) == ("uid-0", ())
    assert await past_job(ledger, NOW, BERT, "uid-9") is None  # of another type


def test_a_row_has_what_the_ledger_kept_and_no_use() -> None:
    row = past_job_row(RECORD, NOW, (interval("p", START + HOUR, START + 3 * HOUR),))
    assert (row.status, row.state, row.live) == ("Succeeded", "SUCCEEDED", False)
    assert (row.user, row.quota_path, row.gpus_requested) == ("ann", "root.a", 4)
    assert row.duration_seconds == 2 * 3600
    # 2 GPUs and 8 cores for two hours
    assert (row.gpu_seconds, row.core_seconds) == (2 * 7200, 8 * 7200)
    assert (row.gpu_util_percent, row.gpu_memory_used_mib, row.nodes) == (None, None, ["gpu-1"])
    assert past_job_row(RECORD, NOW).gpu_seconds is None  # its pods were not read
    assert past_job_row(RECORD, NOW, ()).gpu_seconds is None  # it ran before the first record
    waited = structs.replace(RECORD, started_at=0, finished_at=0, status="PENDING")
    assert past_job_row(waited, NOW, ()).gpu_seconds == 0


def test_a_job_that_was_deleted_before_its_end_is_deleted() -> None:
    early = structs.replace(RECORD, status="RUNNING", finished_at=0)
    row = past_job_row(early, NOW)
    assert (row.status, row.state, row.duration_seconds) == ("Deleted", "RUNNING", 3 * 3600)
    assert past_job_row(structs.replace(early, status="FAILED"), NOW).status == "Failed"


def test_the_life_has_the_times_that_are_known() -> None:
    steps = [(each.step, each.seconds, each.status) for each in past_life(RECORD)]
    assert steps == [("created", 3600, ""), ("running", 7200, ""), ("ended", None, "Succeeded")]
    unknown = structs.replace(RECORD, started_at=0, finished_at=0, status="")
    steps = [(each.step, each.seconds, each.status) for each in past_life(unknown)]
    assert steps == [("created", 4 * 3600, ""), ("ended", None, "Deleted")]


def test_a_pod_with_several_intervals_is_one_instance() -> None:
    grown = Amount(4 * GPU, 320_000, 8_000, 65_536)
    first = interval("p", START, START + HOUR, closed_by=ClosedBy.CHANGED)
    last = interval("p", START + HOUR, START + 2 * HOUR, amount=grown)
    gone = interval("q", START, START + HOUR, closed_by=ClosedBy.INFERRED)
    found = past_instances((first, last, gone), NOW)
    assert [(row.name, row.status, row.gpus, row.age_seconds) for row in found] == [
        ("bert-p", "Finished", 4, 7200),
        ("bert-q", "Deleted", 2, 3600),
    ]
    assert (found[0].gpu_indexes, found[0].restarts) == ([0, 1], None)
    running = past_instances((interval("p", NOW - HOUR, OPEN),), NOW)
    assert running[0].age_seconds == 3600


def test_rows_are_found_by_the_filters_of_the_board() -> None:
    records = [RECORD, structs.replace(RECORD, uid="u", by=UsedBy("team-b", "bob"), name="gpt")]
    rows = past_job_rows(records, NOW)

    def found(**filters: str) -> list[str]:
        asked = {name: frozenset((value,)) for name, value in filters.items()}
        return [row.name for row in rows.found(ListQuery(filters=asked))]

    assert found(deleted="yes") == ["bert", "gpt"]
    assert found(deleted="no") == []
    assert found(user="bob", deleted="yes") == ["gpt"]
    assert found(job_status="succeeded") == ["bert", "gpt"]
    assert past_jobs_sentence([entry.row for entry in rows.entries]).text == (
        "2 deleted jobs in the ledger."
    )
    assert past_jobs_sentence([]).code == "jobs-no-deleted"
