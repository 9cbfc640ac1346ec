"""Manifests of jobs: each is stored once, and again when the job's spec has changed."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.model.jobs.manifests import FollowedJob, spec_of
from fairlead.model.usage.ledger import JobRecord


class JobManifests:
    """By uid: digests of the specs whose manifest is stored, and jobs whose manifest is not."""

    def __init__(self) -> None:
        self._stored: dict[str, str] = {}
        self._waiting: dict[str, FollowedJob] = {}

    def begin(self, records: Iterable[JobRecord]) -> None:
        """Take what the ledger has."""
        self._stored = {each.uid: spec_of(each.manifest) for each in records if each.manifest}
        for uid, job in list(self._waiting.items()):
            self.see(uid, job)

    def see(self, uid: str, job: FollowedJob) -> bool:
        """Whether the manifest of the job is to be stored."""
        if self._stored.get(uid) == job.spec:
            self._waiting.pop(uid, None)
            return False
        self._waiting[uid] = job
        return True

    def take(self, uid: str) -> str:
        """The manifest to store now; "" for none."""
        job = self._waiting.pop(uid, None)
        if job is None:
            return ""
        self._stored[uid] = job.spec
        return job.manifest()

    def forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._stored.pop(uid, None)
