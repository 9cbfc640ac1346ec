"""An API server in memory for the scheduler extender, on a clock that jumps: late watches, lost
replies, late requests.

Note: the truth is `FakeServer.pods`. It is checked after every write, so that no instant is missed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.rules.held import Held, held_at_most

from fairlead.errors import OutsideError
from fairlead.model.actions import (
    Action,
    BindPod,
    Outcome,
    RecordEvent,
    Result,
    TouchPod,
    WriteGrants,
)
from fairlead.model.changes import KIND_NODES, KIND_PODS, Observe, changed, listed
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.snapshot import GPU_WITHHELD
from fairlead.ports import LeaseRecord
from fairlead.wire.gpus.allocation import parse_grants, render_action
from fairlead.wire.names import ANNOTATION_ALLOCATION, ANNOTATION_GPU_RETRY

NOW = 1_767_600_000.0
ASSIGNED = {"ALIYUN_COM_GPU_MEM_ASSIGNED": "true", "scheduler.framework.gpushare.assigned": "true"}


@dataclass
class FakeServer:
    """`down_until`: no call is answered before this time. `history`: every change, for watches.
    `faults`: violations found.

    `sits`: by uid the pod as it was first granted cards. It runs on those cards, whatever is
    written to its annotations later.
    """

    rng: random.Random
    nodes: dict[str, Node]
    pods: dict[str, Pod] = field(default_factory=dict)
    lease: LeaseRecord | None = None
    history: list[tuple[str, str, Any]] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    bindings: dict[str, int] = field(default_factory=dict)
    down_until: float = 0.0
    used: Held = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    sits: dict[str, Pod] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def write(self, pod: Pod) -> None:
        self._recount(self.pods.get(pod.uid), pod)
        self.pods[pod.uid] = pod
        if pod.node and self.is_guarded(pod.node):
            self._look_alike(pod.node)
        self._note("pods", pod.uid, pod)

    def remove(self, uid: str) -> None:
        gone = self.pods.pop(uid, None)
        if gone is not None:
            self._recount(gone, None)
            self._note("pods", uid, None)

    def find(self, namespace: str, name: str) -> Pod | None:
        return next(
            (pod for pod in self.pods.values() if (pod.namespace, pod.name) == (namespace, name)),
            None,
        )

    def bind(self, pod: Pod, node: str, annotations: Mapping[str, str]) -> Outcome:
        now = self.find(pod.namespace, pod.name)
        if now is None:
            return Outcome(Result.REFUSED, f'pods "{pod.name}" not found')
        if now.uid != pod.uid:
            return Outcome(Result.REFUSED, "Precondition failed: UID in precondition")
        if now.deleted_at is not None:
            return Outcome(Result.REFUSED, "pod is being deleted, cannot be assigned to a host")
        if now.node:
            return Outcome(
                Result.UNKNOWN, (f'pod {pod.name} is already assigned to node "{now.node}"')
            )
        self.bindings[pod.uid] = self.bindings.get(pod.uid, 0) + 1
        self.write(annotated(msgspec.structs.replace(now, node=node), annotations))
        return Outcome()

    async def changed_since(self, cursor: int) -> None:
        while len(self.history) <= cursor:
            await self._changed.wait()

    def _note(self, kind: str, key: str, row: Any) -> None:
        self.history.append((kind, key, row))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def damage(self, pod: Pod) -> None:
        """A client that may write grants damages one while its pod runs."""
        self.write(
            annotated(
                msgspec.structs.replace(pod, phase="Running"),
                {ANNOTATION_ALLOCATION: "{garbled", **ASSIGNED},
            )
        )

    def is_guarded(self, node: str) -> bool:
        return self.nodes[node].annotations.get("fairlead.io/gpu-identity") == "guarded"

    def _look_alike(self, node: str) -> None:
        """The invariant of a guarded node: at every instant all unassigned containers of equal
        units have the same cards and MiB.
        """
        seen: dict[int, Any] = {}
        for pod in self.pods.values():
            is_unassigned = (
                pod.node == node
                and pod.is_holding
                and pod.deleted_at is None
                and "true" not in pod.annotations.values()
            )
            for name, given in pod.grants.items() if is_unassigned else ():
                has = {(grant.uuid, grant.units, grant.memory_mib) for grant in given}
                if seen.setdefault(sum(grant.units for grant in given), has) != has:
                    self.faults.append(
                        f"{pod.name}/{name} on {node} has {has}, another of its size {seen}"
                    )

    def _sitting(self, pod: Pod) -> Held:
        if pod.grants and self.sits.setdefault(pod.uid, pod).grants != pod.grants:
            self.faults.append(
                f"{pod.name} sits on {self.sits[pod.uid].grants} and its grants are {pod.grants}"
            )
        return held_at_most(self.sits.get(pod.uid, pod))

    def _recount(self, before: Pod | None, after: Pod | None) -> None:
        """The invariant of every card: at no instant are more units granted than the card has, nor
        more than 100 percent of its compute.
        """
        for pod, sign in ((before, -1), (after, 1)):
            for uuid, (units, core) in (
                self._sitting(pod).items() if pod is not None and pod.is_holding else ()
            ):
                used_units, used_core = self.used.get(uuid, (0, 0))
                self.used[uuid] = used_units + sign * units, used_core + sign * core
        sizes = {slot.uuid: slot.units or 0 for node in self.nodes.values() for slot in node.gpus}
        self.faults += [
            f"{used} of {sizes[uuid]} units of {uuid} are granted"
            for uuid, (used, _) in self.used.items()
            if used > sizes[uuid]
        ]
        self.faults += [
            f"{core} of 100 percent of {uuid} are granted"
            for uuid, (_, core) in self.used.items()
            if core > 100
        ]


def annotated(pod: Pod, annotations: Mapping[str, str]) -> Pod:
    written = {**pod.annotations, **annotations}
    return msgspec.structs.replace(
        pod, annotations=written, grants=parse_grants(written, pod.containers)
    )


class FakeSharingApi:
    """One client of the server (`ports.SharingApi`), with random delays and failures. After `kill`
    nothing that it sends arrives.
    """

    def __init__(self, server: FakeServer, rng: random.Random, *, trouble: float = 0.0) -> None:
        self._server = server
        self._rng = rng
        self._trouble = trouble
        self._is_dead = False
        self._commits: set[asyncio.Task[Outcome]] = set()

    def kill(self) -> None:
        self._is_dead = True

    async def follow(self, observe: Observe, is_known: Callable[[str], bool]) -> None:
        server = self._server
        while True:
            try:
                await self._answer()
            except OutsideError:
                continue
            cursor, pods = len(server.history), dict(server.pods)
            await self._pause(0.3)
            observe(listed(GPU_WITHHELD, {}))
            observe(listed(KIND_NODES, {node.uid: node for node in server.nodes.values()}))
            observe(listed(KIND_PODS, pods))
            while True:
                await server.changed_since(cursor)
                await self._pause(0.2)
                if self._strikes(0.01):
                    break  # the version is too old: list again
                while asyncio.get_running_loop().time() < server.down_until or self._is_dead:  # noqa: ASYNC110 - of a clock
                    await asyncio.sleep(0.2)
                for _, key, row in server.history[cursor : (cursor := len(server.history))]:
                    observe(changed(KIND_PODS, key, row))

    async def apply(self, action: Action, left: Callable[[], float]) -> Outcome:
        match action:
            case BindPod():
                return await self._bind(action, left)
            case WriteGrants():
                return await self._annotate(action.pod, render_action(action, NOW))
            case TouchPod():
                return await self._annotate(action.pod, {ANNOTATION_GPU_RETRY: "1"})
            case RecordEvent():
                await self._answer()
                self._server.events.append((action.subject.name, action.reason, action.message))
                return Outcome()

    async def _bind(self, action: BindPod, left: Callable[[], float]) -> Outcome:
        """Sometimes the rate limit delays the request for longer than a Lease lasts."""
        if self._strikes(0.05):
            await self._pause(6.0)
        seconds = left()
        if seconds <= 0.0:
            return Outcome(Result.REFUSED, "the lease has run out")
        sent_at = asyncio.get_running_loop().time()
        try:
            await self._answer()
        except OutsideError as error:
            return Outcome(Result.UNKNOWN, error.what)
        if self._strikes(0.02):
            return Outcome(Result.REFUSED, "the server was busy")
        commit = asyncio.ensure_future(self._commit(action, sent_at + seconds))
        self._commits.add(commit)
        commit.add_done_callback(self._commits.discard)
        if self._strikes(0.1):
            await self._pause(0.2)
            # while the request may still be under way
            return Outcome(Result.UNKNOWN, "connection reset")
        outcome = await asyncio.shield(commit)
        return Outcome(Result.UNKNOWN, "connection reset") if self._strikes(0.1) else outcome

    async def _commit(self, action: BindPod, ends_at: float) -> Outcome:
        """The server continues even if its client is gone, and decides as late as the request's
        `timeout` permits.
        """
        latest = max(0.0, ends_at - asyncio.get_running_loop().time())
        await self._pause(0.02 if not self._strikes(0.2) else latest)
        if asyncio.get_running_loop().time() > ends_at:
            return Outcome(
                Result.UNKNOWN, "Timeout: request did not complete within the allotted timeout"
            )
        return self._server.bind(action.pod, action.node, render_action(action, NOW))

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        await self._answer()
        return self._server.find(namespace, name)

    async def _annotate(self, pod: Pod, annotations: Mapping[str, str]) -> Outcome:
        await self._answer()
        now = self._server.pods.get(pod.uid)
        if now is None:
            return Outcome(Result.GONE, "not found")
        self._server.write(annotated(now, annotations))
        return Outcome(Result.UNKNOWN, "connection reset") if self._strikes(0.2) else Outcome()

    async def get_lease(self) -> LeaseRecord | None:
        await self._answer()
        return self._server.lease

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        await self._answer()
        now = self._server.lease
        if record.version != (now.version if now else ""):
            return None
        version = str(int(record.version or "0") + 1)
        self._server.lease = msgspec.structs.replace(
            record, renewed=record.renewed or version, version=version
        )
        return self._server.lease

    async def _answer(self) -> None:
        await self._pause(0.02)
        if self._is_dead or asyncio.get_running_loop().time() < self._server.down_until:
            await asyncio.sleep(0.5)
            raise OutsideError("kubernetes", "connection refused")

    async def _pause(self, most: float) -> None:
        await asyncio.sleep(self._rng.uniform(0, most))

    def _strikes(self, chance: float) -> bool:
        return self._rng.random() < chance * self._trouble
