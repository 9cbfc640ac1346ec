"""Users and groups on the laptop: their kinds and roles, made-up users of a scenario's teams, and
the people controller of `fairlead people-controller`, which reads the laptop's own API.

The controller is alone in its process, so its Lease is none of the API's: it would be written each
second, into the kept world, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import structs

from fairlead.apps import leader
from fairlead.apps.people.people_controller import PeopleController
from fairlead.edge.kube.cluster import KubeCluster
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.people.people_api import KubePeopleApi
from fairlead.model.installation import Installation
from fairlead.model.people.rows import User, UserGroup, UserRole
from fairlead.model.refusal import Refusal
from fairlead.ports import LeaseRecord
from fairlead.rules.people.ids import group_id, user_id
from fairlead.settings import PEOPLE_LEASE, USERS_NAMESPACE
from fairlead.wire.installation.people_parts import first_administrator, people_roles
from fairlead.wire.people.people_objects import render_group, render_user
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead_sim.objects.resources import ELASTIC_QUOTA_TREES
from fairlead_sim.scenario.scenario import Scenario
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.world.world import World

USERS_MAX: Final = 24
"""A large scenario has at most this number of users, so that the laptop starts as fast."""
Object = dict[str, Any]
_decoder: Final = msgspec.json.Decoder(WireQuotaTree)


def define_people(cluster: StoredCluster) -> None:
    """The users namespace, roles and definitions; what the world has already stays as it is."""
    for each in people_roles(Installation()):
        if each["kind"] in ("Namespace", "ClusterRole", "CustomResourceDefinition"):
            _create(cluster, each)


def make_up_people(world: World) -> None:
    """An administrator, a group for each leaf of the tree, and the users of all teams."""
    for each in (first_administrator(), *_people(world.scenario, world.cluster)):
        _create(world.cluster, each)


def _people(scenario: Scenario, cluster: StoredCluster) -> Iterator[Object]:
    groups = _groups(cluster)
    yield from (render_group(group) for group, _ in groups)
    by_space = {space: group.name for group, spaces in groups for space in spaces}
    users: dict[str, User] = {}
    for team in scenario.teams:
        mine = tuple(dict.fromkeys(by_space[each] for each in team.namespaces if each in by_space))
        for name in team.users:
            made = user_id(name, users)
            if mine and not isinstance(made, Refusal) and len(users) < USERS_MAX:
                users[made] = User(
                    made,
                    USERS_NAMESPACE,
                    user_name=name,
                    roles=(UserRole.RESEARCHER,),
                    groups=mine,
                )
    for user in users.values():
        yield render_user(user)


def _groups(cluster: StoredCluster) -> list[tuple[UserGroup, tuple[str, ...]]]:
    """A group for each leaf with namespaces, named by the last word of the leaf's name."""
    found: list[tuple[UserGroup, tuple[str, ...]]] = []
    names = set[str]()
    for obj in cluster.list(ELASTIC_QUOTA_TREES):
        tree = parse_quota_tree(_decoder.decode(msgspec.json.encode(obj)))
        for node in tree.root.walk() if tree.root else ():
            name = node.name.rpartition(".")[2]
            made = group_id(name, names)
            if node.is_leaf and node.namespaces and not isinstance(made, Refusal):
                names.add(made)
                group = UserGroup(made, USERS_NAMESPACE, group_name=name, leaf=node.name)
                found.append((group, node.namespaces))
    return found


def _create(cluster: StoredCluster, obj: Object) -> None:
    try:
        cluster.create(obj)
    except ApiStatus as error:
        if error.reason != "AlreadyExists":
            raise


async def give_rights(api: KubeApi, cluster: KubeCluster) -> None:
    """Run the controller, once the console has the cluster: for its pages the user waits."""
    while not cluster.is_ready:
        await cluster.wait_changed(cluster.version, 1.0)
    # Of one process alone it is no news who has the Lease.
    logging.getLogger(leader.__name__).setLevel(logging.WARNING)
    await PeopleController(_AlonePeopleApi(api), "laptop", now=api.clock.now).run()


class _AlonePeopleApi(KubePeopleApi):
    """Its Lease is kept in memory: no other process asks for it."""

    def __init__(self, api: KubeApi) -> None:
        super().__init__(api, (USERS_NAMESPACE, PEOPLE_LEASE))
        self._record: LeaseRecord | None = None
        self._writes = 0

    async def get_lease(self) -> LeaseRecord | None:
        return self._record

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        self._writes += 1
        text = str(self._writes)
        self._record = structs.replace(record, renewed=record.renewed or text, version=text)
        return self._record
