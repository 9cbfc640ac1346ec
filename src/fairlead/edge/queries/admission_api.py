"""The API server for the admission webhook (`ports.AdmissionApi`).

Objects are read when they are needed, and nothing is followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.follow.followed_kind import GROUP_SUBJECT, FollowedKind
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.resource import NAMESPACES, PODS, QUOTA_TREES, Resource
from fairlead.edge.kube.writer import KubeWriter
from fairlead.edge.people.people_api import USER_SUBJECT
from fairlead.errors import NotFound
from fairlead.model.actions import Action, Manifest, ObjectRef, Outcome
from fairlead.model.people.rows import User, UserGroup
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.tree import QuotaTree
from fairlead.wire.kube.budgets import WireNamespace, parse_namespace
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.objects import POD_FORM
from fairlead.wire.names import QUOTA_TREE_NAMESPACE
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree

Row = TypeVar("Row")
_TREE = "elasticquotatree"


class KubeAdmissionApi:
    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._writer = KubeWriter(api, RateLimit(10, 20))

    async def get_namespace(self, name: str) -> Namespace | None:
        try:
            return parse_namespace(await self._api.get(NAMESPACES, name, None, WireNamespace))
        except NotFound:
            return None

    async def get_tree(self) -> QuotaTree | None:
        try:
            return parse_quota_tree(
                await self._api.get(QUOTA_TREES, _TREE, QUOTA_TREE_NAMESPACE, WireQuotaTree)
            )
        except NotFound:
            return None

    async def list_users(self) -> Sequence[User]:
        return await self._people(USER_SUBJECT)

    async def list_groups(self) -> Sequence[UserGroup]:
        return await self._people(GROUP_SUBJECT)

    async def _people(self, kind: FollowedKind[Row]) -> Sequence[Row]:
        return list(
            (await self._api.list_all(kind.reader(kind.resource), kind.selection)).rows.values()
        )

    async def list_namespaces(self) -> Sequence[str]:
        listing = await self._api.list_all(
            ItemReader(NAMESPACES, JsonForm(WireNamespace, parse_namespace))
        )
        return [each.name for each in listing.rows.values()]

    async def list_pods(self, namespace: str) -> Sequence[Pod]:
        return await self._pods(Selection(namespace=namespace, fields="status.phase=Running"))

    async def list_unfinished_pods(self) -> Sequence[Pod]:
        return await self._pods(Selection(fields="status.phase!=Succeeded,status.phase!=Failed"))

    async def _pods(self, selection: Selection) -> Sequence[Pod]:
        return list((await self._api.list_all(ItemReader(PODS, POD_FORM), selection)).rows.values())

    async def get(self, target: ObjectRef) -> Manifest | None:
        group, version = target.group_version
        resource = Resource(group, version, target.plural, bool(target.namespace), target.kind)
        try:
            found: Manifest = await self._api.get(resource, target.name, target.namespace or None)
        except NotFound:
            return None
        return found

    async def apply(self, action: Action) -> Outcome:
        return await self._writer.apply(action)
