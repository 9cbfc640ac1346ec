"""One Lease of the API server (`ports.LeaseApi`).

With it the replicas of an extender or controller elect the active one.
"""

from __future__ import annotations

from typing import Any

from fairlead.edge.kube.api_failure import Conflict
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.resource import LEASES
from fairlead.errors import NotFound
from fairlead.ports import LeaseRecord
from fairlead.wire.kube.time import render_micro_time
from fairlead.wire.names import ANNOTATION_WANTED_BY


class KubeLease:
    """The Lease of this namespace and name.

    `field_manager`: of writes for which this process needs the Lease. It names the term in which
    they were decided and the Lease's uid ("" = this process never held the Lease), so that the API
    server can refuse what arrives after another process has taken the Lease
    (`wire/installation/policies/term_policies`).
    """

    def __init__(self, api: KubeApi, namespace: str, name: str) -> None:
        self.field_manager = ""
        self._api = api
        self._namespace = namespace
        self._name = name

    async def get_lease(self) -> LeaseRecord | None:
        try:
            return _parse_lease(await self._api.get(LEASES, self._name, self._namespace))
        except NotFound:
            return None

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        lease = _render_lease(record, self._namespace, self._name, self._api.clock.now())
        try:
            answer = (
                await self._api.update(LEASES, self._name, lease, self._namespace)
                if record.version
                else await self._api.create(LEASES, lease, self._namespace)
            )
        except Conflict:
            return None
        written = _parse_lease(answer)
        if not record.renewed:  # only the holder renews
            uid = answer["metadata"].get("uid") or ""
            self.field_manager = f"{self._name}-{written.transitions}-{uid}"
        return written


def _render_lease(record: LeaseRecord, namespace: str, name: str, now: float) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": namespace,
        "annotations": {ANNOTATION_WANTED_BY: record.wanted_by},
    }
    spec = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.seconds,
        "renewTime": record.renewed or render_micro_time(now),
        "leaseTransitions": record.transitions,
    }
    based_on = {"resourceVersion": record.version} if record.version else {}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {**metadata, **based_on},
        "spec": spec,
    }


def _parse_lease(lease: dict[str, Any]) -> LeaseRecord:
    metadata, spec = lease["metadata"], lease.get("spec") or {}
    return LeaseRecord(
        holder=spec.get("holderIdentity") or "",
        seconds=spec.get("leaseDurationSeconds") or 0,
        renewed=spec.get("renewTime") or "",
        wanted_by=(metadata.get("annotations") or {}).get(ANNOTATION_WANTED_BY, ""),
        transitions=spec.get("leaseTransitions") or 0,
        version=metadata.get("resourceVersion") or "",
    )
