"""Reads, suspends and deletes crons for one command.

Blocking, for the CLI: one request each, after one discovery.
"""

from __future__ import annotations

from typing import Final

from fairlead.edge.kube.api_failure import NotServed
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.object_writer import ObjectWriter
from fairlead.edge.kube.resource import Resource
from fairlead.edge.queries.companions import delete_with_companions
from fairlead.errors import UserError
from fairlead.kinds.parts.companions import beside_cron
from fairlead.kinds.training import cron as kind
from fairlead.model.actions import Outcome, PatchObject, Result
from fairlead.model.jobs.cron import Cron
from fairlead.wire.jobs.kubedl import WireCron, parse_cron
from fairlead.wire.kube.forms import JsonForm

CRONS: Final = Resource(kind.GROUP, kind.VERSIONS[0], kind.PLURAL, kind=kind.KIND)


class CronQuery:
    """The crons of one cluster for one command."""

    def __init__(self, api: KubeBlocking) -> None:
        self._api = api

    def read_crons(self, namespace: str) -> list[Cron]:
        """See `cli.context.ClusterCrons`."""
        reader = ItemReader(CRONS, JsonForm(WireCron, parse_cron))
        try:
            rows = self._api.list_all(reader, Selection(namespace or None)).rows.values()
        except NotServed as error:
            raise _not_served() from error
        return sorted(rows, key=lambda cron: (cron.namespace, cron.name))

    def get(self, namespace: str, name: str) -> Cron | None:
        try:
            return parse_cron(self._api.get(CRONS, name, namespace, type=WireCron))
        except NotServed as error:
            _check_name_is_unknown(error)
            return None

    def suspend(self, namespace: str, name: str, *, is_suspended: bool) -> bool:
        patch = PatchObject(CRONS.ref(name, namespace), {"spec": {"suspend": is_suspended}})
        return _was_there(ObjectWriter(self._api).apply(patch).expect(Result.GONE))

    def delete(self, namespace: str, name: str) -> bool:
        outcome, left = delete_with_companions(
            self._api, CRONS.ref(name, namespace), beside_cron(name), namespace, _was_there
        )
        return _was_there(outcome) or bool(left)


def _was_there(outcome: Outcome) -> bool:
    """Whether the cron existed. Raises UserError when the cluster does not serve crons."""
    if isinstance(outcome.failure, NotServed):
        _check_name_is_unknown(outcome.failure)
    return outcome.result is Result.DONE


def _check_name_is_unknown(error: NotServed) -> None:
    """Raises NotServed when the cluster serves no crons: such a 404 names no object."""
    # the path is unknown, not the name: only then the failure has the request
    if error.what != error.message:
        raise _not_served() from error


def _not_served() -> UserError:
    return UserError(f"the cluster serves no {CRONS.label}", "KubeDL's cron controller brings them")
