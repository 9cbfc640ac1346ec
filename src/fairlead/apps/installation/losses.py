"""What another version, or other values, of an installation would lose: fields of objects, and what
waits for a part that ends.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from fairlead.apps.installation.held_back import held_back
from fairlead.errors import UserError
from fairlead.model.actions import Manifest, object_ref
from fairlead.model.refusal import Refusal
from fairlead.ports import InstallationTarget
from fairlead.rules.installation.downgrade import kind_of, refuse_loss
from fairlead.rules.installation.order import DATA_KINDS
from fairlead.rules.installation.user_ends import refuse_held_users
from fairlead.rules.sharing.admission import SCHEDULER
from fairlead.settings import PEOPLE_CONTROLLER_POD, QUOTA_CONTROLLER_POD
from fairlead.wire.people.people_actions import USER_KIND

AWAITED: Final = (QUOTA_CONTROLLER_POD, SCHEDULER, PEOPLE_CONTROLLER_POD)
"""Deployments for which pods, jobs or users may wait."""


def check(refusal: Refusal | None, hint: str) -> None:
    """Raises UserError for a refusal."""
    if refusal is not None:
        raise UserError(refusal.reason, hint)


def check_loss(cluster: InstallationTarget, objects: Sequence[Manifest]) -> None:
    """Refuses a definition among `objects` with which fields of existing objects would be lost."""
    for each in objects:
        if each["kind"] in DATA_KINDS and cluster.get(object_ref(each)) is not None:
            refusal = refuse_loss(each, cluster.list_objects(kind_of(each)))
            check(refusal, "remove these fields first, or keep the installed version")


def check_ends(cluster: InstallationTarget, ending: Collection[str]) -> None:
    """Refuses to end a workload while pods or jobs wait for it, or users have its hold.

    `ending`: names of Fairlead's workloads.
    """
    if PEOPLE_CONTROLLER_POD in ending:
        refusal = refuse_held_users(cluster.list_objects(USER_KIND))
        hint = "without that part they cannot be deleted: delete them, or uninstall Fairlead"
        check(refusal, hint)
    ends_quota, ends_scheduler = QUOTA_CONTROLLER_POD in ending, SCHEDULER in ending
    if not (ends_quota or ends_scheduler):
        return
    waiting = held_back(cluster)
    reasons = [
        *(waiting.for_quota() if ends_quota else ()),
        *(waiting.for_scheduler() if ends_scheduler else ()),
    ]
    if reasons:
        hint = "without that part they wait forever: wait until they run, or delete them"
        raise UserError("; ".join(reasons), hint)
