"""The smallest controller: a decider and its wiring, over the simulated API server
(docs/project/new-controller.md).

It gives every node a label. It contains nothing about Leases, lists, calls that run side by side,
or the end of the process: that is the part of the driver.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from tests.waiting import until

from fairlead.apps.controller import Controller
from fairlead.apps.leader import BACKGROUND_LEASE_TIMES
from fairlead.apps.server import bind_socket, serve
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials, bearer
from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.follow.followed_kind import NODE_SUBJECT
from fairlead.edge.kube.follow.follower import Follower
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.writer import KubeWriter
from fairlead.model.actions import ObjectRef, Outcome, PatchObject
from fairlead.model.changes import Changes
from fairlead.model.node import Node
from fairlead.rules.control.pending import PendingCall, PendingCalls
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.api.server import ApiServer
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.driver import Driver
from fairlead_sim.world.world import World

TOKEN: Final = "t"
LABEL: Final = "example.com/owner"


class Labelling(PendingCall, kw_only=True):
    patch: PatchObject


class NodeLabeller:
    """The decider: every node carries `LABEL`; if another client removes it, it is added again."""

    def __init__(self) -> None:
        self.is_rebuilt = False
        self._has_changed = False
        self._listings = 0
        self._nodes: dict[str, Node] = {}
        self._calls: PendingCalls[Labelling] = PendingCalls()

    @property
    def next_at(self) -> float | None:
        if not self.is_rebuilt:
            return None
        return 0.0 if self._has_changed else min(self._calls.times(), default=None)

    def rebuild(self) -> None:
        self.is_rebuilt = False
        self._listings += 1

    def observe(self, changes: Changes[Node]) -> None:
        if changes.is_list:
            self._nodes = changes.all_rows()
            self.is_rebuilt = True
        for uid, node in changes.rows.items():
            if node is None:
                self._nodes.pop(uid, None)
            else:
                self._nodes[uid] = node
                if LABEL in node.labels:
                    self._calls.shown(uid)
        self._has_changed = True

    def look(self, now: float) -> Iterable[PatchObject]:
        self._has_changed = False
        self._calls.forget(now, self._listings, lambda uid, _: uid not in self._nodes)
        yield from (call.patch for call in self._calls.repeats(now))
        for uid, node in self._nodes.items():
            if LABEL not in node.labels and uid not in self._calls:
                patch = PatchObject(
                    ObjectRef("v1", "Node", node.name, "", uid, "nodes"),
                    {"metadata": {"labels": {LABEL: "everybody"}}},
                )
                self._calls[uid] = Labelling(now, patch=patch)
                yield patch

    def done(self, action: PatchObject, outcome: Outcome, now: float) -> Iterable[PatchObject]:
        self._calls.ended(action.target.uid, outcome, now, self._listings)
        self._has_changed = True
        return ()


def node_labeller(api: KubeApi, identity: str) -> Controller[PatchObject]:
    """The ten lines of wiring."""
    return Controller(
        NodeLabeller(),
        lambda observe: Follower(api, observe).run((NODE_SUBJECT,)),
        KubeWriter(api, RateLimit(50, 100)).apply,
        KubeLease(api, "kube-system", "node-labeller"),
        identity,
        times=BACKGROUND_LEASE_TIMES,
    )


@asynccontextmanager
async def simulated(world: World) -> AsyncIterator[KubeApi]:
    """A client of the world's API server, while its time passes."""
    driver = Driver(world, 1.0)
    sock = bind_socket("127.0.0.1", 0)
    app = ApiServer(world.cluster, world.clock, [TOKEN], catch_up=driver.catch_up)
    issued = IssuedCredentials(authorization=bearer(TOKEN))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    tasks = [
        asyncio.ensure_future(each)
        for each in (serve(app, sock=sock, stopping=app.stop), driver.run())
    ]
    try:
        async with KubeApi(Connection(url, Credentials(lambda: issued, is_renewable=False))) as api:
            yield api
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def running(controller: Controller[Any]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(controller.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def labels(world: World) -> dict[str, str | None]:
    return {
        node["metadata"]["name"]: (node["metadata"].get("labels") or {}).get(LABEL)
        for node in world.cluster.scan(NODES)
    }


def without_label(node: dict[str, Any]) -> dict[str, Any]:
    metadata = node["metadata"]
    return {
        **node,
        "metadata": {
            **metadata,
            "labels": {key: text for key, text in metadata["labels"].items() if key != LABEL},
        },
    }


def test_a_decider_and_ten_lines_of_wiring_are_a_controller() -> None:
    asyncio.run(_label())


async def _label() -> None:
    world = sharing_world(load_scenario("documents-004"), 0, 1_767_600_000.0)
    async with simulated(world) as api:
        first, second = node_labeller(api, "first"), node_labeller(api, "second")
        async with AsyncExitStack() as leaving:
            async with running(first):
                await until(lambda: set(labels(world).values()) == {"everybody"})
                await until(lambda: not first.unready)
                world.cluster.create(
                    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "new"}}
                )
                await until(lambda: labels(world)["new"] == "everybody")
                await leaving.enter_async_context(running(second))
                # another process holds the Lease: nothing is wrong
                await until(lambda: second.leader.holder == "first" and not second.unready)
                take_label(world, "new")
                await until(lambda: labels(world)["new"] == "everybody")
            await until(lambda: second.leader.is_held and not second.unready)
            take_label(world, "new")
            await until(lambda: labels(world)["new"] == "everybody")


def take_label(world: World, name: str) -> None:
    world.cluster.mutate(NODES, None, name, without_label)
    assert labels(world)[name] is None
