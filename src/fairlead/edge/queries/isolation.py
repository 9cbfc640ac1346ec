"""Finds the namespaces whose label isolates users.

They show a user only their own jobs, except to arena's administrators.

See docs/spec/arena-cli.md#isolation-of-users. This is no access control, which is RBAC's task. So a
namespace that may not be read is no error, and isolates no users.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.edge.kube.api_failure import ForbiddenByServer
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import CONFIG_MAPS, NAMESPACES
from fairlead.edge.kube.who_am_i import user_name
from fairlead.errors import NotFound, OutsideError
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.names import LABEL_ISOLATE_USER
from fairlead.wire.people.arena_people import CONFIG_MAP, parse_admins, person_id


class _Meta(Struct, frozen=True):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None


class _WireNamespace(Struct, frozen=True):
    metadata: _Meta


class _WireConfigMap(Struct, frozen=True):
    data: dict[str, str] | None = None


def isolated_namespaces(
    api: KubeBlocking, namespace: str, arena_namespace: str
) -> Mapping[str, str]:
    """The id on this user's jobs in each such namespace; `namespace` "" = all namespaces.

    If there is none, this is one request.
    """
    isolating = _isolating(api, namespace)
    if not isolating:
        return {}
    name = user_name(api)
    if name in parse_admins(config_data(api, arena_namespace, CONFIG_MAP)):
        return {}
    return dict.fromkeys(isolating, person_id(name))


def config_data(api: KubeBlocking, namespace: str, name: str) -> Mapping[str, str]:
    """The data of a ConfigMap; empty when there is none, or it may not be read."""
    try:
        found: _WireConfigMap = api.get(CONFIG_MAPS, name, namespace, type=_WireConfigMap)
    except (NotFound, ForbiddenByServer):
        return {}
    return found.data or {}


def is_absent(api: KubeBlocking, namespace: str) -> bool:
    """Whether the API server reports that there is no such namespace."""
    try:
        api.get(NAMESPACES, namespace, type=_WireNamespace)
    except NotFound as error:
        return f'namespaces "{namespace}" not found' in error.what
    except OutsideError:
        return False
    return False


def _isolating(api: KubeBlocking, namespace: str) -> list[str]:
    key, value = LABEL_ISOLATE_USER, "true"
    try:
        if namespace:
            found: _WireNamespace = api.get(NAMESPACES, namespace, type=_WireNamespace)
            return [namespace] if (found.metadata.labels or {}).get(key) == value else []
        reader = ItemReader(
            NAMESPACES, JsonForm(_WireNamespace, lambda wire: wire.metadata.name or "")
        )
        return sorted(api.list_all(reader, Selection(labels=f"{key}={value}")).rows.values())
    except (NotFound, ForbiddenByServer):
        return []
