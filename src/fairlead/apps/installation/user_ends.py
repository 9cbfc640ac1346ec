"""The end of what the people controller made, when it is removed (`rules/installation/user_ends`).

Each run does the same, whatever an interrupted run left, and needs no people controller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.model.actions import ObjectRef, PatchObject
from fairlead.ports import InstallationTarget
from fairlead.rules.installation.user_ends import made_for_users, releases_of
from fairlead.wire.people.bindings import RBAC
from fairlead.wire.people.people_actions import USER_KIND

_MADE: Final = (
    ObjectRef(f"{RBAC}/v1", "RoleBinding", ""),
    ObjectRef(f"{RBAC}/v1", "ClusterRoleBinding", ""),
    ObjectRef("v1", "ServiceAccount", ""),
)
"""Kinds that the controller makes, in the order of withdrawal: an account, and with it every token,
goes after its bindings.
"""


def ends_of_users(cluster: InstallationTarget) -> tuple[list[ObjectRef], list[PatchObject]]:
    """What was made for users, in the order of withdrawal; and patches of the users themselves."""
    made = [each for kind in _MADE for each in made_for_users(cluster.list_objects(kind))]
    patches = [patch for user in cluster.list_objects(USER_KIND) for patch in releases_of(user)]
    return made, patches


def end_users(
    cluster: InstallationTarget,
    report: Callable[[str], object],
    wait: Callable[[str], None],
    check: Callable[[], None],
) -> None:
    """`wait`: called with a refusal before the next try; it raises when there is to be none.
    `check`: called before each write; it raises when there is to be none.
    """
    made, patches = ends_of_users(cluster)
    for each in made:
        check()
        cluster.remove(each)
        report(f"withdrew {each.title}")
    while patches:
        refusals = []
        for patch in patches:
            check()
            if (refusal := cluster.change(patch)) is not None:
                refusals.append(f"{patch.target.title}: {refusal.reason}")
            elif not patch.subresource:
                report(f"released {patch.target.title}")
        if refusals:
            wait(refusals[0])
        # What was refused may have changed since it was read.
        _, patches = ends_of_users(cluster)
