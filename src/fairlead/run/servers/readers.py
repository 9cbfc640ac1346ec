"""The servers that only read a cluster: the console and the cluster exporter.

Sockets are bound before anything else is created, so that a port in use gives one sentence and no
half-started process.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from msgspec import structs

from fairlead import settings
from fairlead.apps.cluster_exporter import COMPATIBILITIES, ClusterExporter, ClusterExporterSettings
from fairlead.apps.console_server import (
    ConsoleServer,
    ConsoleSettings,
    base_path_of,
    check_address,
)
from fairlead.apps.leader import BACKGROUND_LEASE_TIMES, Leader
from fairlead.apps.metrics_page import parse_compat
from fairlead.apps.server import parse_address
from fairlead.apps.service import ServedApp, run
from fairlead.edge.files.snapshot_files import load_snapshot
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.errors import UserError
from fairlead.model.source import SourceState
from fairlead.ports import Ports
from fairlead.run.invocation import (
    Invocation,
    Process,
    free_or_named,
    lease_identity,
    new_code_line,
    required_connection,
    url_of,
)
from fairlead.run.replay import replayed_world
from fairlead.run.servers.sign_in import AskedSignIn, page_address
from fairlead.run.servers.usage import console_recorder
from fairlead.run.wiring import followed_world, submit_forms


async def _run_console(asked: Invocation) -> None:
    args = asked.args
    host, _ = parse_address(args.listen)
    hosts = [*filter(None, args.allowed_host)]
    if page := page_address(args.external_url):
        hosts.append(urlsplit(page).hostname or "")
    chosen = ConsoleSettings(host, args.base_path, tuple(hosts), charts=args.charts)
    sign_in = AskedSignIn(asked, chosen)
    check_address(host, has_sign_in=sign_in.is_on)
    sock = free_or_named(asked)
    path = base_path_of(args.base_path)

    @asynccontextmanager
    async def service(world: Ports) -> AsyncIterator[ServedApp]:
        async with sign_in.desk(world) as desk, console_recorder(asked, world, desk) as recorder:
            served = ConsoleServer(world, chosen, desk=desk, forms=submit_forms()).service(sock)
            yield structs.replace(served, loops=(*served.loops, *recorder))

    code = ""
    if sign_in.code is not None:
        code = f"#code={sign_in.code.text}"
        sign_in.code.announce = lambda text: asked.messages.info(
            new_code_line(f"{url_of(sock)}{path}", text)
        )
    await _run_reader(asked, sock, service, ("console", path + code), with_events=True)


async def _run_cluster_exporter(asked: Invocation) -> None:
    args = asked.args
    sock = free_or_named(asked)
    chosen = ClusterExporterSettings(
        parse_compat(args.compat, COMPATIBILITIES), args.max_jobs, asked.env.get("NODE_NAME", "")
    )

    async with _leader(asked, settings.CLUSTER_EXPORTER_LEASE) as leader:

        @asynccontextmanager
        async def service(world: Ports) -> AsyncIterator[ServedApp]:
            yield ClusterExporter(world.cluster, world.gpus, world.clock, chosen, leader).service(
                sock
            )

        await _run_reader(asked, sock, service, ("cluster metrics", "/metrics"))


@asynccontextmanager
async def _leader(asked: Invocation, lease: str) -> AsyncIterator[Leader | None]:
    """None if no Lease is asked for.

    It has its own connection, so that long lists do not delay it.
    """
    args = asked.args
    if not args.leader_elect:
        yield None
        return
    if asked.options.snapshot:
        raise UserError("a saved snapshot has no Lease", "leave out --leader-elect")
    async with KubeApi(required_connection(asked)) as api:
        yield Leader(
            KubeLease(api, args.lease_namespace, lease),
            lease_identity(args),
            times=BACKGROUND_LEASE_TIMES,
        )


async def _run_reader(
    asked: Invocation,
    sock: socket.socket,
    service: Callable[[Ports], AbstractAsyncContextManager[ServedApp]],
    shown: tuple[str, str],
    *,
    with_events: bool = False,
) -> None:
    """A server that only reads a cluster, and the loops that keep its data current.

    `shown`: what the server shows, and at which path.
    """
    what, path = shown
    async with _requested_world(asked, with_events=with_events) as world:
        asked.messages.info(f"listening on {url_of(sock)}/; reading {world.name}")
        _warn_without_gpu_values(asked, world)
        listening = f"{what} of {world.name} on {url_of(sock)}{path}"
        async with service(world) as served:
            await run(
                served,
                loops=(world.cluster.run(), world.gpus.run()),
                on_ready=lambda: asked.messages.info(listening),
            )


@asynccontextmanager
async def _requested_world(asked: Invocation, *, with_events: bool) -> AsyncIterator[Ports]:
    """The cluster to follow, or the saved one of `--snapshot FILE`."""
    if asked.options.snapshot:
        yield replayed_world(load_snapshot(asked.options.snapshot), asked.options.snapshot)
        return
    async with followed_world(
        required_connection(asked), asked.args, asked.env, with_events=with_events
    ) as world:
        yield world


def _warn_without_gpu_values(asked: Invocation, world: Ports) -> None:
    """Without device values a board looks like an idle cluster's:
    warn, unless that was asked for.
    """
    source = world.gpus.source()
    if source.state == SourceState.OFF and asked.args.gpu_source != "none":
        asked.messages.warn(
            f"no GPU values: {source.message}" + (f"; hint: {source.hint}" if source.hint else "")
        )


READERS: Final[Mapping[str, Process]] = {
    "console": _run_console,
    "cluster-exporter": _run_cluster_exporter,
}
