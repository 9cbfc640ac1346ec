"""A Lease without an API server, and a clock that a test advances."""

from __future__ import annotations

from msgspec import structs

from fairlead.errors import OutsideError
from fairlead.ports import LeaseRecord


class OneLease:
    """The API server's one Lease. `away`: the API server does not answer."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.away = False
        self._version = 0

    async def get_lease(self) -> LeaseRecord | None:
        if self.away:
            raise OutsideError("kubernetes", "connection refused")
        return self.record

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        if self.away:
            raise OutsideError("kubernetes", "connection refused")
        if record.version != (self.record.version if self.record else ""):
            return None
        self._version += 1
        self.record = structs.replace(
            record, renewed=record.renewed or str(self._version), version=str(self._version)
        )
        return self.record


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now
