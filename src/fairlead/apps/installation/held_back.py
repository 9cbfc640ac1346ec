"""What waits for Fairlead's quota controller or scheduler, and would wait forever without it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from fairlead.model.actions import ObjectRef, PatchObject, object_ref
from fairlead.model.keys import QUOTA_GATE
from fairlead.model.refusal import Refusal
from fairlead.ports import InstallationTarget
from fairlead.rules.installation.held_jobs import HELD_KINDS, release_of
from fairlead.rules.installation.refusals import (
    refuse_held_jobs,
    refuse_unscheduled,
    refuse_waiting,
)
from fairlead.rules.sharing.admission import SCHEDULER


class HeldBack(Struct, frozen=True):
    """`gated`: pods at the gate of quota. `jobs`: what resumes each job that quota holds back.
    `unscheduled`: pods of the scheduler.
    """

    gated: tuple[ObjectRef, ...]
    jobs: tuple[PatchObject, ...]
    unscheduled: tuple[ObjectRef, ...]

    def for_quota(self) -> list[str]:
        """Why the quota controller may not end, as sentences; empty if it may."""
        held = [each.target for each in self.jobs]
        return _reasons((refuse_waiting(self.gated, QUOTA_GATE), refuse_held_jobs(held)))

    def for_scheduler(self) -> list[str]:
        """Why the scheduler may not end, as sentences; empty if it may."""
        return _reasons((refuse_unscheduled(self.unscheduled, SCHEDULER),))


def held_back(cluster: InstallationTarget) -> HeldBack:
    jobs = {
        object_ref(each).identity: patch
        for kind in HELD_KINDS
        for each in cluster.list_objects(kind)
        if (patch := release_of(each)) is not None
    }
    return HeldBack(
        tuple(cluster.gated_pods(QUOTA_GATE)),
        tuple(jobs.values()),
        tuple(cluster.unscheduled_pods(SCHEDULER)),
    )


def _reasons(refusals: Iterable[Refusal | None]) -> list[str]:
    return [each.reason for each in refusals if each is not None]
