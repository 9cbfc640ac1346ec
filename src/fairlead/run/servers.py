"""The pieces that each server of a real cluster gets; those of the simulated one are in `simulated_servers`, loaded when asked for.

Sockets are bound before anything else is built, so that a taken port is one sentence and not half a process.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from fairlead import settings
from fairlead.apps import cluster_exporter
from fairlead.apps.admission_webhook import webhook_app
from fairlead.apps.console_server import ConsoleServer, ConsoleSettings, check_address
from fairlead.apps.extender import Extender
from fairlead.apps.laptop import run_all
from fairlead.apps.metrics_page import parse_compat
from fairlead.apps.scheduler_extender import PREFIX, SchedulerExtender
from fairlead.apps.server import bind_socket, parse_address, serve
from fairlead.apps.serving_certificate import ServingCertificate
from fairlead.cli.frame.context import GlobalOptions
from fairlead.cli.frame.messages import Messages
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.files.snapshot_files import load_snapshot
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.sharing_api import KubeSharingApi
from fairlead.errors import FairleadError, UserError
from fairlead.ports import Ports
from fairlead.rules.sharing.placement import SharePolicies
from fairlead.run.invocation import Invocation, Process, keep_running, needing_simulation, url_of
from fairlead.run.replay import replayed_world
from fairlead.run.wiring import followed_world, log_to_stderr


def run_process(name: str, args: argparse.Namespace, options: GlobalOptions, env: Mapping[str, str], messages: Messages) -> int:
    """Run a server until SIGTERM or Ctrl-C; 0 when it ended because of that."""
    import uvloop

    log_to_stderr(options.loglevel)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_process(name)(Invocation(args, options, env, messages)))
        except BaseExceptionGroup as group:
            raise _expected(group) from group
    return 0


def _process(name: str) -> Process:
    """Raises UserError for one that needs the simulated cluster where that is not installed."""
    if name in _PROCESSES:
        return _PROCESSES[name]
    with needing_simulation(f"`fairlead {name}`"):
        from fairlead.run.simulated_servers import PROCESSES
    return PROCESSES[name]


def _expected(group: BaseExceptionGroup) -> BaseException:
    """The failure with a sentence inside a task group's bundle, if there is one; else the bundle, which is a bug."""
    found: BaseException | None = group.subgroup(FairleadError)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found or group


async def _run_console(asked: Invocation) -> None:
    args = asked.args
    host, port = parse_address(args.listen)
    chosen = ConsoleSettings(
        host=host, port=port, base_path=args.base_path, insecure_listen=args.insecure_listen, allowed_hosts=tuple(args.allowed_host)
    )
    check_address(chosen)
    sock = bind_socket(host, port)
    async with _asked_world(asked, with_events=True) as world:
        asked.messages.info(f"listening on {url_of(sock)}/; reading {world.name}")
        _say_without_gpu_values(asked, world)
        console = ConsoleServer(world, chosen)
        await run_all(
            [lambda ready: console.run(sock, ready)],
            [world.cluster.run(), world.gpus.run()],
            probed=[sock],
            on_ready=lambda: asked.messages.info(f"console of {world.name} on {url_of(sock)}/"),
            on_hangup=keep_running,
        )


async def _run_cluster_exporter(asked: Invocation) -> None:
    args = asked.args
    host, port = parse_address(args.listen)
    sock = bind_socket(host, port)
    async with _asked_world(asked, with_events=False) as world:
        asked.messages.info(f"listening on {url_of(sock)}/; reading {world.name}")
        _say_without_gpu_values(asked, world)
        chosen = cluster_exporter.ClusterExporterSettings(
            host=host, port=port, compat=parse_compat(args.compat, cluster_exporter.COMPATIBILITIES), max_jobs=args.max_jobs
        )
        await run_all(
            [lambda ready: cluster_exporter.run(world.cluster, world.gpus, world.clock, chosen, sock=sock, ready=ready)],
            [world.cluster.run(), world.gpus.run()],
            probed=[sock],
            on_ready=lambda: asked.messages.info(f"cluster metrics of {world.name} on {url_of(sock)}/metrics"),
            on_hangup=keep_running,
        )


async def _run_admission_webhook(asked: Invocation) -> None:
    args = asked.args
    host, port = parse_address(args.listen)
    certificate = ServingCertificate(Path(args.tls_cert_file), Path(args.tls_private_key_file))
    sock = bind_socket(host, port)
    await run_all(
        [lambda ready: serve(webhook_app(), sock=sock, ssl=certificate.context, ready=ready)],
        [certificate.follow()],
        probed=[],
        on_ready=lambda: asked.messages.info(f"admission webhook on {url_of(sock, 'https')}/scheduler and /grants"),
        on_hangup=certificate.reload,
    )


async def _run_scheduler_extender(asked: Invocation) -> None:
    args = asked.args
    host, port = parse_address(args.listen or asked.env.get("PORT") or str(settings.SCHEDULER_EXTENDER_PORT))
    certificate = _serving_certificate(args)
    connection = _required_connection(asked)
    sock = bind_socket(host, port)
    identity = args.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"
    async with KubeApi(connection) as api:
        sharing = KubeSharingApi(api, (args.lease_namespace, settings.SHARE_LEASE), args.kube_api_qps, args.kube_api_burst)
        lease = f"{args.lease_namespace}/{settings.SHARE_LEASE}"
        policies = SharePolicies(args.node_policy, args.gpu_policy, args.memory_unit)
        extender = Extender(sharing, identity, lease_name=lease, policies=policies)
        scheme = "https" if certificate else "http"
        app, tls = SchedulerExtender(extender), certificate.context if certificate else None
        await run_all(
            [lambda ready: serve(app, sock=sock, ssl=tls, ready=ready)],
            [extender.run(), *([certificate.follow()] if certificate else [])],
            probed=[] if certificate else [sock],
            on_ready=lambda: asked.messages.info(f"scheduler extender of {connection.server} on {url_of(sock, scheme)}{PREFIX}"),
            on_hangup=certificate.reload if certificate else keep_running,
        )


def _serving_certificate(args: argparse.Namespace) -> ServingCertificate | None:
    """TLS, if it is asked for; a client that shows a certificate of `--client-ca-file` may place pods, others may read."""
    if not args.tls_cert_file and not args.tls_private_key_file and not args.client_ca_file:
        return None
    if not args.tls_cert_file or not args.tls_private_key_file:
        raise UserError("TLS needs a certificate and its key", "add `--tls-cert-file FILE --tls-private-key-file FILE`")
    certificate = ServingCertificate(Path(args.tls_cert_file), Path(args.tls_private_key_file))
    if args.client_ca_file:
        try:
            certificate.context.load_verify_locations(args.client_ca_file)
        except (OSError, ssl.SSLError) as error:
            raise UserError(f"`{args.client_ca_file}` is no certificate authority: {error}", "name a PEM file") from error
        certificate.context.verify_mode = ssl.CERT_OPTIONAL
    return certificate


@asynccontextmanager
async def _asked_world(asked: Invocation, *, with_events: bool) -> AsyncIterator[Ports]:
    """The cluster to follow, or the one that `--snapshot FILE` has kept."""
    if asked.options.snapshot:
        yield replayed_world(load_snapshot(asked.options.snapshot), asked.options.snapshot)
        return
    async with followed_world(_required_connection(asked), asked.args, asked.env, with_events=with_events) as world:
        yield world


def _say_without_gpu_values(asked: Invocation, world: Ports) -> None:
    """A board without device values looks like one of an idle cluster, so say it; unless that is what was asked for."""
    source = world.gpus.source()
    if source.state == "off" and asked.args.gpu_source != "none":
        asked.messages.warn(f"no GPU values: {source.message}" + (f"; hint: {source.hint}" if source.hint else ""))


def _required_connection(asked: Invocation) -> Connection:
    connection = find_connection(asked.options.kubeconfig or None, asked.options.context or None, env=asked.env)
    if connection is None:
        raise UserError(
            "there is no cluster to follow: no kubeconfig and no service account", "pass --kubeconfig FILE, or try `fairlead up`"
        )
    return connection


_PROCESSES: Final[Mapping[str, Process]] = {
    "console": _run_console,
    "cluster-exporter": _run_cluster_exporter,
    "scheduler-extender": _run_scheduler_extender,
    "admission-webhook": _run_admission_webhook,
}
