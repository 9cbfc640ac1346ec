"""What one command reads of crons, and does to them.

Blocking, for the CLI: one request each, after one discovery.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from fairlead.edge.kube.api_failure import NotServed
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import Resource
from fairlead.edge.queries.companions import delete_with_companions
from fairlead.errors import UserError
from fairlead.kinds.parts.companions import beside_cron
from fairlead.kinds.training import cron as kind
from fairlead.model.jobs.cron import Cron
from fairlead.wire.jobs.kubedl import WireCron, parse_cron

CRONS: Final = Resource(kind.GROUP, kind.VERSIONS[0], kind.PLURAL, kind=kind.KIND)


class CronQuery:
    """The crons of one cluster for one command."""

    def __init__(self, api: KubeBlocking) -> None:
        self._api = api

    def read_crons(self, namespace: str) -> list[Cron]:
        """See `cli.context.ClusterCrons`."""
        reader = ItemReader(CRONS, WireCron, parse_cron)
        try:
            rows = self._api.list_all(reader, Selection(namespace or None)).rows.values()
        except NotServed as error:
            raise _not_served() from error
        return sorted(rows, key=lambda cron: (cron.namespace, cron.name))

    def get(self, namespace: str, name: str) -> Cron | None:
        found = self._one(partial(self._api.get, CRONS, name, namespace, type=WireCron))
        return None if found is None else parse_cron(found)

    def suspend(self, namespace: str, name: str, *, is_suspended: bool) -> bool:
        return self._one(partial(self._api.patch, CRONS, name, {"spec": {"suspend": is_suspended}}, namespace)) is not None

    def delete(self, namespace: str, name: str) -> bool:
        deleted, left = delete_with_companions(
            self._api, partial(self._one, partial(self._api.delete, CRONS, name, namespace)), beside_cron(name), namespace
        )
        return deleted is not None or bool(left)

    def _one(self, call: Any) -> Any:
        """The answer, or None when there is no such cron: a server that knows no crons at all says the same
        404 without naming one.
        """
        try:
            return call()
        except NotServed as error:
            if error.what != error.message:  # the path is unknown, not the name: only then the failure tells of the request
                raise _not_served() from error
            return None


def _not_served() -> UserError:
    return UserError(f"the cluster serves no {CRONS.label}", "KubeDL's cron controller brings them")
