"""The API server as the people controller needs it (`ports.PeopleApi`): follow what it reads, carry
its calls out, keep a Lease.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from msgspec import structs

from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.follow.followed_kind import (
    GROUP_SUBJECT,
    NAMESPACE_SUBJECT,
    PEOPLE_RETRY_SECONDS,
    QUOTA_SUBJECT,
    FollowedKind,
    by_name,
    by_namespace_and_name,
)
from fairlead.edge.kube.follow.follower import Follower
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.resource import JOBS, PODS, SERVICE_ACCOUNTS, Resource
from fairlead.edge.kube.writer import KubeWriter
from fairlead.kinds.registry import KINDS, one_per_resource
from fairlead.model.actions import Outcome
from fairlead.model.changes import KIND_PODS, Observe
from fairlead.model.keys import LABEL_USER
from fairlead.model.people.actions import PeopleAction
from fairlead.model.people.rows import (
    KIND_CLUSTER_ROLE_BINDINGS,
    KIND_ROLE_BINDINGS,
    KIND_SERVICE_ACCOUNTS,
    KIND_USERS,
    User,
    UserBinding,
    UserServiceAccount,
    UserWork,
)
from fairlead.ports import LeaseRecord
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.names import PEOPLE_GROUP, PEOPLE_VERSION, USERS
from fairlead.wire.people.bindings import (
    RBAC,
    WireBinding,
    WireServiceAccount,
    WireWork,
    parse_binding,
    parse_service_account,
    parse_work,
)
from fairlead.wire.people.people_actions import render_people_action
from fairlead.wire.people.people_objects import WirePerson, parse_user

_USERS_NAMESPACE: Final = Selection(namespace=USERS_NAMESPACE)
RETRY_SECONDS: Final = PEOPLE_RETRY_SECONDS
_OF_USERS: Final = Selection(labels=LABEL_USER)
_BINDING_FORM: Final = JsonForm(WireBinding, parse_binding)

USER_RESOURCE: Final = Resource(PEOPLE_GROUP, PEOPLE_VERSION, USERS, kind="User")
USER_SUBJECT: Final[FollowedKind[User]] = FollowedKind(
    KIND_USERS,
    USER_RESOURCE,
    JsonForm(WirePerson, parse_user),
    by_name,
    selection=_USERS_NAMESPACE,
    retry_seconds=RETRY_SECONDS,
)
SERVICE_ACCOUNT_SUBJECT: Final[FollowedKind[UserServiceAccount]] = FollowedKind(
    KIND_SERVICE_ACCOUNTS,
    SERVICE_ACCOUNTS,
    JsonForm(WireServiceAccount, parse_service_account),
    by_name,
    selection=_USERS_NAMESPACE,
)
ROLE_BINDING_SUBJECT: Final[FollowedKind[UserBinding]] = FollowedKind(
    KIND_ROLE_BINDINGS,
    Resource(RBAC, "v1", "rolebindings", kind="RoleBinding"),
    _BINDING_FORM,
    by_namespace_and_name,
)
CLUSTER_ROLE_BINDING_SUBJECT: Final[FollowedKind[UserBinding]] = FollowedKind(
    KIND_CLUSTER_ROLE_BINDINGS,
    Resource(RBAC, "v1", "clusterrolebindings", is_namespaced=False, kind="ClusterRoleBinding"),
    _BINDING_FORM,
    by_name,
)


def _work_subject(
    name: str, word: str, resource: Resource, versions: tuple[str, ...] | None, *, is_optional: bool
) -> FollowedKind[UserWork]:
    """Pods or jobs that users of Fairlead made. `word`: as a user reads the kind."""
    return FollowedKind(
        name,
        resource,
        JsonForm(WireWork, partial(parse_work, word)),
        by_namespace_and_name,
        versions,
        _OF_USERS,
        is_optional=is_optional,
    )


WORK_SUBJECTS: Final[tuple[FollowedKind[UserWork], ...]] = (
    _work_subject(KIND_PODS, "pod", PODS, None, is_optional=False),
    _work_subject("jobs.batch", "job", JOBS, None, is_optional=True),
    *(
        _work_subject(
            f"{kind.PLURAL}.{kind.GROUP}",
            "job",
            Resource(kind.GROUP, kind.VERSIONS[0], kind.PLURAL, kind=kind.KIND),
            tuple(kind.VERSIONS),
            is_optional=True,
        )
        for kind in one_per_resource(KINDS)
    ),
)
FOLLOWED: Final[tuple[FollowedKind[Any], ...]] = (
    USER_SUBJECT,
    GROUP_SUBJECT,
    structs.replace(QUOTA_SUBJECT, versions=None, retry_seconds=RETRY_SECONDS),
    structs.replace(NAMESPACE_SUBJECT, is_optional=False),
    SERVICE_ACCOUNT_SUBJECT,
    ROLE_BINDING_SUBJECT,
    CLUSTER_ROLE_BINDING_SUBJECT,
    *WORK_SUBJECTS,
)


class KubePeopleApi:
    """The people controller's API. `lease`: namespace and name. The rate bounds all writes."""

    work_kinds = tuple(each.name for each in WORK_SUBJECTS)

    def __init__(
        self,
        api: KubeApi,
        lease: tuple[str, str],
        per_second: float = 300,
        burst: int = 500,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._writer = KubeWriter(api, RateLimit(per_second, burst))
        self._lease = KubeLease(api, *lease)
        self._rng = rng
        self._sleep = sleep

    async def follow(self, observe: Observe) -> None:
        await Follower(self._api, observe, rng=self._rng, sleep=self._sleep).run(FOLLOWED)

    async def apply(self, action: PeopleAction, left: Callable[[], float] | None = None) -> Outcome:
        return await self._writer.apply(render_people_action(action), left)

    async def get_lease(self) -> LeaseRecord | None:
        return await self._lease.get_lease()

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        return await self._lease.put_lease(record)
