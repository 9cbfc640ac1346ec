"""The manifest of a job is stored once, and again when its spec changes (docs/spec/usage.md)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from tests.usage.manifest_rows import JOB, JOBS, row
from tests.usage.recording import T0, Recording

from fairlead.model.usage.actions import UsageAction, WriteLedger
from fairlead.wire.usage.manifests import FollowedJob, parse_kept_manifest


def begun() -> tuple[Recording, list[str]]:
    """`written`: the manifest of each record of a job, in the order of writes."""
    recording, written = Recording(job_kinds=(JOBS,)), list[str]()

    def note(action: UsageAction) -> None:
        if isinstance(action, WriteLedger):
            written.extend(each.manifest for each in action.batch.jobs)

    recording.after = note
    return recording, written


def put(recording: Recording, found: FollowedJob, now: float) -> None:
    recording.put(JOBS, found, found.job.uid)
    recording.look(now)


def kept(recording: Recording) -> Any:
    record = recording.ledger.jobs["uid-1"]
    manifest = parse_kept_manifest(record.manifest).manifest
    return None if manifest is None else manifest["spec"]


def test_it_is_written_with_the_first_record_and_with_a_changed_spec_alone() -> None:
    recording, written = begun()
    recording.begin(T0)
    put(recording, row(replicas=1), T0 + 1)
    put(recording, row(replace(JOB, word="RUNNING"), replicas=1), T0 + 2)
    assert [bool(each) for each in written] == [True, False]
    assert recording.ledger.jobs["uid-1"].status == "RUNNING"
    assert kept(recording) == {"replicas": 1}
    put(recording, row(replace(JOB, word="RUNNING"), replicas=2), T0 + 3)
    assert [bool(each) for each in written] == [True, False, True]
    recording.drop(JOBS, "uid-1")
    recording.look(T0 + 4)
    assert recording.ledger.jobs["uid-1"].deleted_at > 0
    assert kept(recording) == {"replicas": 2}


def test_a_new_recorder_writes_it_only_if_it_has_changed_meanwhile() -> None:
    recording, written = begun()
    recording.begin(T0)
    put(recording, row(replicas=1), T0 + 1)
    recording.kill()
    recording.begin(T0 + 10)
    assert len(written) == 1
    recording.kill()
    recording.objects[JOBS]["uid-1"] = row(replicas=4)
    recording.begin(T0 + 20)
    assert [bool(each) for each in written] == [True, True]
    assert kept(recording) == {"replicas": 4}


def test_a_change_of_status_while_the_store_is_down_does_not_lose_it() -> None:
    recording, _ = begun()
    recording.begin(T0)
    recording.is_down = True
    put(recording, row(replicas=1), T0 + 1)
    put(recording, row(replace(JOB, word="RUNNING"), replicas=1), T0 + 20)
    recording.is_down = False
    recording.look(T0 + 60)
    assert recording.ledger.jobs["uid-1"].status == "RUNNING"
    assert kept(recording) == {"replicas": 1}
