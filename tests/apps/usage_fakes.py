"""An API server for the usage recorder, in memory."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.usage.memory_ledger import MemoryLedger
from tests.usage.recording import utc_days

from fairlead.apps.usage_recorder import UsageRecorderProcess
from fairlead.kinds.job_marks import AllJobMarks
from fairlead.model.changes import Observe, changed, listed
from fairlead.ports import LeaseRecord
from fairlead.rules.usage.recording.recorder import UsageRecorder
from fairlead.wire.usage.states import state_body


class FakeUsageApi:
    """Rows by kind and uid, of every kind that the recorder follows, and its Lease."""

    def __init__(self) -> None:
        self.recorder = UsageRecorder((), (), state_body, AllJobMarks(), utc_days)
        self.rows: dict[str, dict[str, Any]] = {kind: {} for kind in self.recorder.kinds}
        self._observe: Observe | None = None
        self._lease = LeaseRecord(version="0")

    def put(self, kind: str, row: Any) -> None:
        self.rows[kind][row.uid] = row
        if self._observe is not None:
            self._observe(changed(kind, row.uid, row))

    async def follow(self, observe: Observe) -> None:
        for kind, rows in self.rows.items():
            observe(listed(kind, dict(rows)))
        self._observe = observe
        try:
            await asyncio.Event().wait()
        finally:
            self._observe = None

    async def get_lease(self) -> LeaseRecord | None:
        return self._lease

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        self._lease = record
        return record


def recorder_process(
    api: FakeUsageApi, ledger: MemoryLedger, gpus: Any, identity: str = "me"
) -> UsageRecorderProcess:
    return UsageRecorderProcess(api.recorder, ledger, api.follow, api, identity, gpus)
