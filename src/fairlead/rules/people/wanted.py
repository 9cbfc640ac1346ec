"""Which ServiceAccount and which bindings a user should have (docs/spec/people.md#derivation)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.access import Binding, BindingSubject
from fairlead.model.people.rights import CREDENTIALS_ROLE, RESEARCHER_ROLE, cluster_roles_of
from fairlead.model.people.rows import User, UserGroup, UserRole
from fairlead.rules.people.leaves import GroupLeaf

CLUSTER_PLACE: Final = "clusterRole"
"""In the name of a ClusterRoleBinding, where a RoleBinding's has the namespace."""
BindingKey = tuple[str, str]
"""(namespace, name); the namespace is "" for a ClusterRoleBinding."""


class UserWants(Struct, frozen=True):
    """`namespaces`: of the user's leaves, also those that do not exist yet. `missing`: groups that
    the user lists and that give nothing.
    """

    service_account: str = ""
    bindings: Mapping[BindingKey, Binding] = {}
    namespaces: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


NOTHING_WANTED: Final = UserWants()


def user_wants(
    user: User,
    groups: Mapping[str, UserGroup],
    leaves: Mapping[str, GroupLeaf],
    namespaces: Collection[str],
) -> UserWants:
    """`namespaces`: those that exist and are not being deleted.

    A malformed or disabled user should have nothing.
    """
    if user.faults or user.is_disabled:
        return NOTHING_WANTED
    mine = [each for each in user.groups if each in groups and leaves[each].leaf]
    spaces = sorted({space for each in mine for space in leaves[each].namespaces})
    made = (
        *_cluster_wide(user, [groups[each] for each in mine]),
        *_in_leaves(user, [(groups[each], leaves[each]) for each in mine]),
    )
    wanted = {
        (each.namespace, each.name): each
        for each in made
        if not each.namespace or each.namespace in namespaces
    }
    missing = tuple(each for each in user.groups if each not in mine)
    return UserWants(user.name, wanted, tuple(spaces), missing)


def binding_of(user: str, users_namespace: str, namespace: str, role: str) -> Binding:
    """The binding of a ClusterRole to a user, in a namespace or ("") cluster-wide.

    >>> binding_of("bob", "kube-ai", "namespace1", "fairlead-researcher").name
    'bob:namespace1:fairlead-researcher'
    >>> binding_of("bob", "kube-ai", "", "fairlead-admin").name
    'bob:clusterRole:fairlead-admin'
    """
    subject = BindingSubject("ServiceAccount", user, users_namespace)
    name = f"{user}:{namespace or CLUSTER_PLACE}:{role}"
    return Binding(name, namespace, "ClusterRole", role, (subject,))


def _cluster_wide(user: User, groups: list[UserGroup]) -> Iterator[Binding]:
    roles = {role: None for each in user.roles for role in cluster_roles_of(each)}
    more = {role: None for each in groups for role in each.default_cluster_roles}
    for role in roles | more:
        yield binding_of(user.name, user.namespace, "", role)
    if UserRole.ADMIN in user.roles:
        yield binding_of(user.name, user.namespace, user.namespace, CREDENTIALS_ROLE)


def _in_leaves(user: User, mine: list[tuple[UserGroup, GroupLeaf]]) -> Iterator[Binding]:
    for group, leaf in mine:
        for namespace in leaf.namespaces:
            for role in (RESEARCHER_ROLE, *group.default_roles):
                yield binding_of(user.name, user.namespace, namespace, role)
