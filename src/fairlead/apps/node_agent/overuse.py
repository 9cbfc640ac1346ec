"""The watchdog of a node's agent: finds containers that use more memory than their grant.

Specification: docs/spec/gpu-sharing.md#watchdog.

It counts what the driver reports for each process, with every isolation provider.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from prometheus_client import Gauge

from fairlead.apps.node_agent.desk import Desk
from fairlead.errors import OutsideError
from fairlead.model.actions import EvictPod, ObjectRef, RecordObjectEvent, Result
from fairlead.model.devices.driver import CgroupLimit, ProcessHome, ProcessMemory
from fairlead.ports import CardDriver, NodeApi, ProcessHomes
from fairlead.rules.devices.watchdog import (
    OVER_GRANT,
    UNLIMITED,
    MemoryWatchdog,
    OverGrant,
    OverGrantPolicy,
    limit_fault,
    limited_cgroups,
    memory_uses,
)
from fairlead.rules.metrics.over_grant import OVER_BYTES

PERIOD_SECONDS: Final = 2.0
NAMES: Final = (OVER_BYTES,)
_log: Final = logging.getLogger(__name__)


class Overuse:
    def __init__(
        self,
        desk: Desk,
        api: NodeApi,
        driver: CardDriver,
        homes: ProcessHomes,
        policy: OverGrantPolicy,
    ) -> None:
        self._desk = desk
        self._api = api
        self._driver = driver
        self._homes = homes
        self._policy = policy
        self._watchdog = MemoryWatchdog()
        self._gauge = Gauge(
            OVER_BYTES.name, OVER_BYTES.help, OVER_BYTES.labels, registry=desk.registry
        )
        self._trouble = ""
        self._faults: dict[tuple[str, str], str] = {}

    async def run(self) -> None:
        """Check all processes at intervals."""
        if self._policy is OverGrantPolicy.OFF:
            return
        while True:
            if not self._desk.machine.missing:
                await self._look()
            await asyncio.sleep(PERIOD_SECONDS)

    async def _look(self) -> None:
        try:
            processes = await self._desk.ask_driver(self._driver.processes)
        except OutsideError as failed:
            if failed.what != self._trouble:
                _log.warning("the memory that containers use is not watched: %s", failed.log_line)
            self._trouble = failed.what
            return
        self._trouble = ""
        homes = (
            await asyncio.to_thread(self._homes.homes, {process.pid for process in processes})
            if processes
            else {}
        )
        machine = self._desk.machine
        uses = memory_uses(
            processes, homes, machine.rows, (machine.pods or {}).values(), machine.whole_holders()
        )
        await self._look_at_limits(processes, homes)
        over = self._watchdog.look(uses, self._policy)
        self._gauge.clear()
        for each in over:
            use = each.use
            self._gauge.labels(
                self._desk.node, use.namespace, use.pod, use.container, use.uuid
            ).set(each.over_bytes)
            if each.is_new:
                _log.warning("pod %s/%s: %s", use.namespace, use.pod, each.sentence)
                self._desk.queue_events(
                    (RecordObjectEvent(self._pod(each), OVER_GRANT, each.sentence, "Warning"),)
                )
            if each.is_to_evict:
                await self._evict(each)

    async def _look_at_limits(
        self, processes: Sequence[ProcessMemory], homes: Mapping[int, ProcessHome]
    ) -> None:
        """Where the driver limits containers by cgroup: report those that it does not limit."""
        machine, faults = self._desk.machine, dict[tuple[str, str], str]()
        if not machine.limits_by_cgroup:
            self._faults = faults
            return
        for each in limited_cgroups(processes, homes, machine.rows):
            share = each.share
            try:
                limit = await self._desk.ask_driver(
                    self._driver.cgroup_limit, share.grant.uuid, each.cgroup
                )
            except OutsideError as failed:
                limit = CgroupLimit(fault=failed.what)
            fault = limit_fault(share, limit)
            if not fault:
                continue
            faults[share.token, each.cgroup] = fault
            if self._faults.get((share.token, each.cgroup)) != fault:
                _log.warning("pod %s/%s: %s", share.namespace, share.pod, fault)
                pod = self._pod_of(share.namespace, share.pod, share.pod_uid)
                self._desk.queue_events((RecordObjectEvent(pod, UNLIMITED, fault, "Warning"),))
        self._faults = faults

    async def _evict(self, over: OverGrant) -> None:
        outcome = await self._api.apply(EvictPod(self._pod(over)))
        if outcome.result in (Result.REFUSED, Result.UNKNOWN):
            _log.warning(
                "pod %s/%s is not evicted: %s", over.use.namespace, over.use.pod, outcome.reason
            )

    def _pod(self, over: OverGrant) -> ObjectRef:
        return self._pod_of(over.use.namespace, over.use.pod, over.use.pod_uid)

    def _pod_of(self, namespace: str, pod: str, uid: str) -> ObjectRef:
        """The pod as the API server knows it: a static pod's mirror has another uid."""
        return ObjectRef("v1", "Pod", pod, namespace, self._desk.machine.api_uid(uid), "pods")
