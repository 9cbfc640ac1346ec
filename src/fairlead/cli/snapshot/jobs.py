"""The jobs of a cluster that was read already: a saved snapshot, or the embedded simulated one.

It does all that needs no API server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from fairlead.cli.frame.context import ClusterReader
from fairlead.errors import UserError
from fairlead.kinds.parts.kind import source_of
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source

if TYPE_CHECKING:
    from typing import NoReturn

    from fairlead.kinds.parts.kind import JobKind
    from fairlead.model.event import Event
    from fairlead.model.jobs.job import Job
    from fairlead.ports import Streams
    from fairlead.wire.kube.exec_channels import ProgramEnd


class SnapshotJobs:
    """`cli.context.ClusterJobs` over one value; what changes a cluster, or asks it, is refused."""

    def __init__(self, reader: ClusterReader) -> None:
        self._reader = reader

    def read_jobs(
        self,
        kinds: Sequence[JobKind],
        namespace: str,
        name: str = "",
        *,
        with_pods: bool = True,
        with_readings: bool = False,
    ) -> ClusterSnapshot:
        whole = self._reader.read_all()
        types = {kind.TYPE for kind in kinds}
        jobs = [
            job
            for job in whole.jobs
            if job.type in types and namespace in ("", job.namespace) and name in ("", job.name)
        ]
        pods = [pod for pod in whole.pods if namespace in ("", pod.namespace)]
        read = {source_of(kind): Source(source_of(kind)) for kind in kinds}
        return msgspec.structs.replace(
            whole, jobs=tuple(jobs), pods=tuple(pods), sources={**read, **whole.sources}
        )

    def read_events(self, uids: Sequence[tuple[str, str]]) -> list[tuple[Event, ...]]:
        events = sorted(self._reader.read_all().events, key=lambda event: event.order)
        return [tuple(event for event in events if event.object_uid == uid) for _, uid in uids]

    def delete(self, kind: JobKind, job: Job) -> bool:
        self._refuse("cannot be changed")

    def delete_left(self, kinds: Sequence[JobKind], namespace: str, name: str) -> list[str]:
        return []

    def log(self, namespace: str, pod: str, options: Mapping[str, str | int]) -> Iterator[bytes]:
        self._refuse("has no logs")

    def execute(
        self, namespace: str, pod: str, container: str, command: Sequence[str], streams: Streams
    ) -> ProgramEnd:
        self._refuse("has no programs that run")

    def service_url(self, namespace: str, service: str, host: str) -> str:
        return ""

    def user(self) -> str:
        self._refuse("knows no users")

    def config(self, namespace: str, name: str) -> Mapping[str, str]:
        return {}

    def is_absent(self, namespace: str) -> bool:
        known = self._reader.read_all().namespace_names
        return known is not None and namespace not in known

    def _refuse(self, why: str) -> NoReturn:
        raise UserError(
            f"{self._reader.describe()} {why}",
            "name a cluster with --kubeconfig FILE, or start the laptop with `fairlead up`",
        )
