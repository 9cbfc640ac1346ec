"""The driver of a node's decider.

Reports of the API server, the GPU driver and the kubelet go in; device lists, files and API calls
come out.

A look never waits for the API server: a separate loop writes what the API server does not show yet,
always the newest. No device is offered to the kubelet before every source has reported once. From
then on the last report of a source stays valid while that source does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from socket import socket
from typing import Any, Final

from prometheus_client import Gauge, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from fairlead.apps.metrics_page import process_metrics
from fairlead.apps.node_agent.answers import CoreAnswers, SharedAnswers, WholeAnswers
from fairlead.apps.node_agent.desk import Desk, NodeAgentSettings
from fairlead.apps.node_agent.node_patches import counts_patch, metadata_patch, status_patch
from fairlead.apps.node_agent.overuse import Overuse
from fairlead.apps.node_agent.runtime_test import RuntimeTest
from fairlead.apps.service import Probes, ServedApp, pages_app, together
from fairlead.errors import OutsideError
from fairlead.model.actions import PatchObject, Result
from fairlead.model.changes import Changes
from fairlead.model.devices.gpu import CardMode
from fairlead.model.devices.granted import GpuIdentity
from fairlead.model.devices.kubelet import ContainerLimits, OfferedDevice
from fairlead.model.metric import MetricName
from fairlead.model.refusal import Refusal
from fairlead.model.resources import GPU_CORE, GPU_MEMORY, NVIDIA_GPU
from fairlead.ports import (
    AgentFiles,
    CardDriver,
    DeviceAnswers,
    KubeletHolders,
    NodeApi,
    ProcessHomes,
    ResourceServer,
)
from fairlead.rules.devices.card_health import PROBE_SECONDS
from fairlead.rules.devices.machine import NodeConclusions
from fairlead.rules.sharing.isolation import isolation_by
from fairlead.wire.metrics.prom_text import CONTENT_TYPE

ENDPOINTS: Final = {
    GPU_MEMORY: "fairlead-gpu-mem.sock",
    GPU_CORE: "fairlead-gpu-core.sock",
    NVIDIA_GPU: "fairlead-gpu.sock",
}
"""Names of the agent's sockets in the kubelet's directory.

Specification: docs/spec/gpu-sharing.md#device-plugin.
"""
LOOK_SECONDS: Final = 10.0
"""The longest time between two looks; a report causes one sooner."""
DRAINING_SECONDS: Final = 2.0
"""The same while a card is held in a mode that its node has left: the kubelet does not report when
it releases the card.
"""
COALESCE_SECONDS: Final = 0.05
XID_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 10.0
"""The time after which a write that the API server refused is repeated."""
LOCK_SECONDS: Final = 1.0
LIST_READ_SECONDS: Final = 0.2
"""The time after which the kubelet has certainly read a new list. By default it reports to the API
server every ten seconds.
"""
TEST_AGAIN_SECONDS: Final = 600.0
"""The time after which a test of the container runtime that ended without a result is repeated."""
ISOLATION: Final = MetricName(
    "fairlead_gpushare_isolation_info",
    "gauge",
    ("node_name", "provider", "memory", "compute"),
    "1 for what keeps containers on one card apart, with what it enforces.",
)
NAMES: Final = (ISOLATION,)
DRAINING: Final = CardMode.DRAINING
_log: Final = logging.getLogger(__name__)

Serve = Callable[[str, str, DeviceAnswers, bool], ResourceServer]
"""Endpoint, resource, answers, whether the kubelet calls the agent before each container start."""


class NodeAgent:
    """`unready`: why the agent is not ready, "" = it is. `now` returns epoch seconds."""

    def __init__(
        self,
        api: NodeApi,
        driver: CardDriver,
        files: AgentFiles,
        kubelet: KubeletHolders,
        homes: ProcessHomes,
        serve: Serve,
        chosen: NodeAgentSettings,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        desk = self.desk = Desk(api, files, kubelet, driver, chosen, now, monotonic)
        self.seen: NodeConclusions | None = None
        self.unready = "another agent of this node has its files"
        self._api = api
        self._driver = driver
        self._chosen = chosen
        self._kept_faults: object = None
        self._kubelet_trouble = ""
        self._has_regained = False
        self._is_given_written = True
        self._written_lists: dict[str, tuple[OfferedDevice, ...]] = {}
        self._shared = SharedAnswers(desk)
        answers = {
            GPU_MEMORY: self._shared,
            GPU_CORE: CoreAnswers(desk),
            NVIDIA_GPU: WholeAnswers(desk),
        }
        self._served = {
            name: serve(ENDPOINTS[name], name, answers[name], name == GPU_MEMORY)
            for name in ENDPOINTS
        }
        self._wanted = {name: asyncio.Event() for name in ENDPOINTS}
        self._unwanted = {name: asyncio.Event() for name in ENDPOINTS}
        self._isolation = Gauge(
            ISOLATION.name, ISOLATION.help, ISOLATION.labels, registry=desk.registry
        )
        self._overuse = Overuse(desk, api, driver, homes, chosen.over_grant)
        self._test = RuntimeTest(desk, api, serve, chosen)

    def service(self, sock: socket) -> ServedApp:
        """This agent as a server on a bound socket: probes and metrics."""
        probes = Probes(unready=lambda: self.unready)
        return ServedApp(
            app=pages_app("node agent", probes, self._page),
            sock=sock,
            loops=(self.run,),
            probes=probes,
        )

    async def run(self) -> None:
        """Run until cancelled. Running containers are not touched, and keep their files."""
        while not self.desk.files.lock():  # noqa: ASYNC110 - no event reports the other agent's end
            await asyncio.sleep(LOCK_SECONDS)
        self.unready = self.desk.machine.missing
        self._remember()
        serving = (self._serve_while_wanted(name) for name in self._served)
        try:
            await together(
                self._api.follow(self._observe),
                self._ask_driver_for_ever(),
                self._look_for_ever(),
                self._write_for_ever(),
                self._find_runtime(),
                self._overuse.run(),
                *serving,
            )
        finally:
            self.desk.files.unlock()

    # --- loops ------------------------------------------------------------------------------------

    def _observe(self, changes: Changes[Any]) -> None:
        self.desk.machine.observe(changes)
        self.desk.mark_changed()

    def _remember(self) -> None:
        faults, given = self.desk.files.read_faults(), self.desk.files.read_given()
        for read in (faults, given):
            if isinstance(read, Refusal):
                _log.warning("%s; what is still known otherwise is written again", read.reason)
        self._is_given_written = not isinstance(given, Refusal)
        self.desk.machine.remember(
            () if isinstance(faults, Refusal) else faults,
            () if isinstance(given, Refusal) else given,
        )

    def _regain(self) -> None:
        """Add lost rows from the containers' files, once and before devices are served: no
        container can start meanwhile.
        """
        files, machine = self.desk.files, self.desk.machine
        rows = {share.token for share in machine.rows}
        limits = {
            token: found.cards
            for token in files.tokens() - rows
            if isinstance(found := files.read_limits(token), ContainerLimits)
        }
        if regained := machine.regain(limits):
            _log.warning(
                (
                    "%d rows of the grants file were lost, and are written again from the "
                    "containers' own files"
                ),
                len(regained),
            )
            self._is_given_written = False
        self._has_regained = True

    async def _ask_driver_for_ever(self) -> None:
        probed_at = float("-inf")
        while True:
            try:
                if self.desk.monotonic() - probed_at >= PROBE_SECONDS:
                    await self._probe()
                    probed_at = self.desk.monotonic()
                for seen in await self.desk.ask_driver(self._driver.xids):
                    _log.warning("XID %s of GPU %s", seen.xid, seen.uuid or "(all)")
                    self.desk.machine.healths.xid(seen.xid, seen.uuid, self.desk.now())
                    self.desk.mark_changed()
            except OutsideError as failed:
                self._driver_fails(failed)
                # a card may have been reset meanwhile: it is probed before its XIDs are read
                probed_at = float("-inf")
            await asyncio.sleep(XID_SECONDS)

    async def _probe(self) -> None:
        self.desk.install_guard()
        cards = await self.desk.ask_driver(self._driver.cards)
        self.desk.machine.driver_shows(cards, await self.desk.ask_driver(self._driver.means))
        await self.desk.bound_mps()
        for card in cards:
            self.desk.machine.healths.probed(
                card.uuid,
                await self.desk.ask_driver(self._driver.probe, card.uuid),
                self.desk.now(),
            )
        self.desk.mark_changed()

    def _driver_fails(self, failed: OutsideError) -> None:
        if not self.desk.machine.fault:
            _log.warning("%s", failed.log_line)
            self.desk.mark_changed()
        if self.desk.is_driver_stuck:
            self.desk.machine.driver_hangs(failed.what, self.desk.now())
        else:
            self.desk.machine.driver_fails(failed.what)

    async def _look_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAINING_SECONDS if self._is_draining else LOOK_SECONDS):
                    await self.desk.changed.wait()
            await asyncio.sleep(COALESCE_SECONDS)
            self.desk.changed.clear()
            await self._look()
            await self.desk.looked()

    @property
    def _is_draining(self) -> bool:
        return self.seen is not None and any(card.mode == DRAINING for card in self.seen.plan.cards)

    async def _look(self) -> None:
        trouble = ""
        try:
            await self.desk.ask_kubelet()
        except OutsideError as failed:
            trouble = failed.what
            if trouble != self._kubelet_trouble:
                _log.warning("%s", failed.log_line)
        self._kubelet_trouble = trouble
        machine = self.desk.machine
        self.unready = machine.missing
        if self.unready:
            return
        if not self._has_regained:
            self._regain()
        self.unready = (
            "" if self.desk.identity else "what the container runtime can do is being found out"
        )
        offered = self.seen.plan if self.seen else None
        seen = self.seen = machine.look(self.desk.now(), self.desk.files.plugin_sockets())
        for name, served in self._served.items():
            devices = seen.plan.lists.get(name)
            is_wanted = devices is not None and (
                name == NVIDIA_GPU or self.desk.identity is not None
            )
            if seen.plan is not offered:
                served.offer(devices or ())
            (self._wanted if is_wanted else self._unwanted)[name].set()
            (self._unwanted if is_wanted else self._wanted)[name].clear()
        self._isolation.clear()
        kept_apart = isolation_by(seen.provider)
        self._isolation.labels(
            self._chosen.node, kept_apart.provider, kept_apart.memory, kept_apart.compute
        ).set(1)
        self.desk.queue_events(seen.events)
        self.desk.has_writes.set()
        try:
            self._keep_house()
        except OutsideError as failed:
            _log.warning("%s", failed.log_line)

    def _keep_house(self) -> None:
        """Write current faults and rows, and remove the files of containers that have ended."""
        faults = self.desk.machine.healths.kept()
        state = [
            (
                each.uuid,
                each.reason,
                each.is_sticky,
                each.is_away,
                each.quiet_seconds // PROBE_SECONDS,
            )
            for each in faults
        ]
        if state != self._kept_faults:
            self.desk.files.write_faults(faults)
            self._kept_faults = state
        if self.desk.machine.forget() or not self._is_given_written:
            self._is_given_written = False
            self.desk.files.write_given(self.desk.machine.rows)
            self._is_given_written = True
        if self.desk.identity is None:
            return  # the test of the runtime has a file that belongs to no row
        for token in self.desk.files.tokens() - self.desk.machine.tokens() - self._shared.in_hand():
            self.desk.files.remove(token)

    async def _write_for_ever(self) -> None:
        """Write what the API server does not show yet, and the Events that were kept for it."""
        while True:
            await self.desk.has_writes.wait()
            self.desk.has_writes.clear()
            is_done = True
            while self.desk.events:
                outcome = await self._api.apply(event := self.desk.events.popleft())
                if outcome.result is not Result.DONE:
                    _log.info(
                        "Event %s of %s was not written: %s",
                        event.reason,
                        event.target.name,
                        outcome.reason,
                    )
            for patch in self._patches():
                outcome = await self._api.apply(patch)
                if outcome.result in (Result.REFUSED, Result.UNKNOWN):
                    is_done = False
                    _log.warning(
                        "%s %s could not be changed: %s",
                        patch.target.kind,
                        patch.target.name,
                        outcome.reason,
                    )
            await self._write_counts()
            if not is_done:
                await asyncio.sleep(RETRY_SECONDS)  # each look asks again

    def _patches(self) -> Sequence[PatchObject]:
        seen, node = self.seen, self.desk.machine.node
        if seen is None or node is None:
            return ()
        found = (
            metadata_patch(node, seen, self.desk.identity, self._chosen.unit),
            status_patch(node, seen.plan, self.desk.now()),
        )
        return [*(each for each in found if each is not None), *seen.assigned]

    async def _write_counts(self) -> None:
        """Write the device counts of each new list that the kubelet has, once per list.

        The kubelet writes them itself some seconds later, and its numbers count.
        """
        if not self._new_lists():
            return
        await asyncio.sleep(LIST_READ_SECONDS)
        new = self._new_lists()
        self._written_lists.update(new)
        node = self.desk.machine.node
        if node is not None and (patch := counts_patch(node, new)):
            outcome = await self._api.apply(patch)
            if outcome.result in (Result.REFUSED, Result.UNKNOWN):
                _log.info(
                    "counts were not written; the kubelet reports them itself: %s", outcome.reason
                )

    def _new_lists(self) -> dict[str, tuple[OfferedDevice, ...]]:
        """Lists that the kubelet has and whose counts were not written yet."""
        lists = self.seen.plan.lists if self.seen else {}
        received = {
            name: lists[name]
            for name, served in self._served.items()
            if served.is_watched and name in lists
        }
        return {
            name: devices
            for name, devices in received.items()
            if self._written_lists.get(name) is not devices
        }

    async def _find_runtime(self) -> None:
        """Find out how containers can be identified; no GPU is shared before the first test."""
        does_cdi = None if self._chosen.test_image else False
        while does_cdi is None:
            node = self.desk.machine.node
            if node is None or self.desk.machine.missing:
                await asyncio.sleep(COALESCE_SECONDS)
                continue
            does_cdi = await self._test.found(node)
            self.desk.identity = GpuIdentity.DEFERRED if does_cdi else GpuIdentity.GUARDED
            self.desk.mark_changed()
            if does_cdi is None:
                await asyncio.sleep(TEST_AGAIN_SECONDS)

    async def _serve_while_wanted(self, name: str) -> None:
        while True:
            await self._wanted[name].wait()
            tasks = (
                asyncio.ensure_future(self._served[name].run()),
                asyncio.ensure_future(self._unwanted[name].wait()),
            )
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _page(self, request: Request) -> Response:
        return Response(
            generate_latest(self.desk.registry) + process_metrics(),
            headers={"content-type": CONTENT_TYPE},
        )
