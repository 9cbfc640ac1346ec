"""The servers of a real cluster, each with the pieces that it needs.

Sockets are bound before anything else is built: a taken port is one sentence, no half-started process. The
servers of the simulated cluster are in `simulated_servers`, loaded when asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from fairlead import settings
from fairlead.apps.admission_webhook import webhook_app
from fairlead.apps.cluster_exporter import COMPATIBILITIES, ClusterExporter, ClusterExporterSettings
from fairlead.apps.console_server import ConsoleServer, ConsoleSettings, check_address
from fairlead.apps.extender import Extender
from fairlead.apps.leader import UNHURRIED, Leader
from fairlead.apps.metrics_page import parse_compat
from fairlead.apps.quota_controller import QuotaController
from fairlead.apps.scheduler_extender import PREFIX, SchedulerExtender
from fairlead.apps.server import bind_socket, parse_address
from fairlead.apps.service import Probes, ServedApp, run
from fairlead.apps.serving_certificate import ServingCertificate
from fairlead.cli.frame.context import GlobalOptions
from fairlead.cli.frame.messages import Messages
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.files.snapshot_files import load_snapshot
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.quota_api import KubeQuotaApi
from fairlead.edge.kube.sharing_api import KubeSharingApi
from fairlead.edge.queries.admission_api import KubeAdmissionApi
from fairlead.errors import FairleadError, UserError
from fairlead.model.resources import MemoryUnit
from fairlead.model.sharing import Placement
from fairlead.model.source import SourceState
from fairlead.ports import Ports
from fairlead.rules.sharing.placement import SharePolicies
from fairlead.run.invocation import Invocation, Process, needing_simulation, url_of
from fairlead.run.replay import replayed_world
from fairlead.run.wiring import followed_world, log_to_stderr, required_connection


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
    """The failure with a sentence inside a task group's bundle, or the bundle, which is a bug."""
    found: BaseException | None = group.subgroup(FairleadError)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found or group


async def _run_console(asked: Invocation) -> None:
    args = asked.args
    host, port = parse_address(args.listen)
    chosen = ConsoleSettings(host, args.base_path, args.insecure_listen, tuple(args.allowed_host))
    check_address(chosen)
    sock = bind_socket(host, port)
    await _run_reader(asked, sock, lambda world: ConsoleServer(world, chosen).service(sock), ("console", "/"), with_events=True)


async def _run_cluster_exporter(asked: Invocation) -> None:
    args = asked.args
    sock = bind_socket(*parse_address(args.listen))
    chosen = ClusterExporterSettings(parse_compat(args.compat, COMPATIBILITIES), args.max_jobs, asked.env.get("NODE_NAME", ""))

    async with _leader(asked, settings.CLUSTER_EXPORTER_LEASE) as leader:

        def service(world: Ports) -> ServedApp:
            return ClusterExporter(world.cluster, world.gpus, world.clock, chosen, leader).service(sock)

        await _run_reader(asked, sock, service, ("cluster metrics", "/metrics"))


@asynccontextmanager
async def _leader(asked: Invocation, lease: str) -> AsyncIterator[Leader | None]:
    """None where no Lease is asked for. It has a connection of its own, which no long list holds up."""
    args = asked.args
    if not args.leader_elect:
        yield None
        return
    if asked.options.snapshot:
        raise UserError("a saved snapshot has no Lease", "leave out --leader-elect")
    async with KubeApi(required_connection(asked)) as api:
        yield Leader(KubeLease(api, args.lease_namespace, lease), _identity(args), times=UNHURRIED)


async def _run_admission_webhook(asked: Invocation) -> None:
    args = asked.args
    address = parse_address(args.listen)
    own = _serving_certificate(args)
    connection = find_connection(asked.options.kubeconfig or None, asked.options.context or None, env=asked.env)
    if own is None:
        connection = required_connection(asked)
    sock = bind_socket(*address)
    said = f"admission webhook on {url_of(sock, 'https')}/"
    if connection is None:
        await run(ServedApp(app=webhook_app(), sock=sock, tls=own), on_ready=lambda: asked.messages.info(said))
        return
    async with KubeApi(connection) as api:
        admission = KubeAdmissionApi(api)
        service = ServedApp(app=webhook_app(admission), sock=sock, tls=own) if own else _certified(admission, sock)
        await run(service, on_ready=lambda: asked.messages.info(said))


def _certified(admission: KubeAdmissionApi, sock: socket.socket) -> ServedApp:
    """The webhook that makes its own certificate, and answers nobody before the API server trusts it."""
    from fairlead.apps.webhook_certificate import WebhookCertificate  # a library of certificates: no other server needs it

    certificate = WebhookCertificate(admission, time.time)
    return ServedApp(
        app=webhook_app(admission),
        sock=sock,
        loops=(certificate.run,),
        tls=certificate.context,
        opens=certificate.is_ready,
        reload=certificate.look_now,
    )


async def _run_scheduler_extender(asked: Invocation) -> None:
    args = asked.args
    address = parse_address(args.listen or asked.env.get("PORT") or str(settings.SCHEDULER_EXTENDER_PORT))
    certificate = _serving_certificate(args)
    connection = required_connection(asked)
    sock = bind_socket(*address)
    async with KubeApi(connection) as api:
        sharing = KubeSharingApi(api, (args.lease_namespace, settings.SHARE_LEASE), args.kube_api_qps, args.kube_api_burst)
        lease = f"{args.lease_namespace}/{settings.SHARE_LEASE}"
        policies = SharePolicies(Placement(args.node_policy), Placement(args.gpu_policy), MemoryUnit(args.memory_unit))
        extender = Extender(sharing, _identity(args), lease_name=lease, policies=policies)
        service = ServedApp(
            app=SchedulerExtender(extender),
            sock=sock,
            loops=(extender.run,),
            probes=Probes(unready=lambda: extender.unready),
            tls=certificate,
        )
        said = f"scheduler extender of {connection.server} on {url_of(sock, 'https' if certificate else 'http')}{PREFIX}"
        await run(service, on_ready=lambda: asked.messages.info(said))


async def _run_quota_controller(asked: Invocation) -> None:
    args = asked.args
    address = parse_address(args.listen)
    connection = required_connection(asked)
    sock = bind_socket(*address)
    async with KubeApi(connection) as api:
        quota = KubeQuotaApi(api, (args.lease_namespace, settings.QUOTA_LEASE), args.kube_api_qps, args.kube_api_burst)
        service = QuotaController(quota, _identity(args)).service(sock)
        said = f"quota controller of {connection.server}, its figures on {url_of(sock)}/metrics"
        await run(service, on_ready=lambda: asked.messages.info(said))


async def _run_device_plugin(asked: Invocation) -> None:
    from fairlead.run.node_server import run_device_plugin  # gRPC: no other server needs it

    await run_device_plugin(asked)


async def _run_gpu_exporter(asked: Invocation) -> None:
    from fairlead.run.node_exporter import run_gpu_exporter  # NVML and gRPC: no other server needs both

    await run_gpu_exporter(asked)


def _identity(args: argparse.Namespace) -> str:
    """Under which name this process holds a Lease."""
    return args.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"


def _serving_certificate(args: argparse.Namespace) -> ServingCertificate | None:
    """TLS, if it is asked for.

    Who shows a certificate of `--client-ca-file` may place pods, others may read.
    """
    client_ca_file = getattr(args, "client_ca_file", "")
    if not args.tls_cert_file and not args.tls_private_key_file and not client_ca_file:
        return None
    if not args.tls_cert_file or not args.tls_private_key_file:
        raise UserError("TLS needs a certificate and its key", "add `--tls-cert-file FILE --tls-private-key-file FILE`")
    client_ca = Path(client_ca_file) if client_ca_file else None
    return ServingCertificate(Path(args.tls_cert_file), Path(args.tls_private_key_file), client_ca)


async def _run_reader(
    asked: Invocation,
    sock: socket.socket,
    service: Callable[[Ports], ServedApp],
    shown: tuple[str, str],
    *,
    with_events: bool = False,
) -> None:
    """A server that only reads a cluster, and the loops that keep this current.

    `shown`: what a person finds there, and on which path.
    """
    what, path = shown
    async with _asked_world(asked, with_events=with_events) as world:
        asked.messages.info(f"listening on {url_of(sock)}/; reading {world.name}")
        _say_without_gpu_values(asked, world)
        said = f"{what} of {world.name} on {url_of(sock)}{path}"
        await run(service(world), loops=(world.cluster.run(), world.gpus.run()), on_ready=lambda: asked.messages.info(said))


@asynccontextmanager
async def _asked_world(asked: Invocation, *, with_events: bool) -> AsyncIterator[Ports]:
    """The cluster to follow, or the one that `--snapshot FILE` has kept."""
    if asked.options.snapshot:
        yield replayed_world(load_snapshot(asked.options.snapshot), asked.options.snapshot)
        return
    async with followed_world(required_connection(asked), asked.args, asked.env, with_events=with_events) as world:
        yield world


def _say_without_gpu_values(asked: Invocation, world: Ports) -> None:
    """A board without device values looks like an idle cluster's: say it, unless that was asked for."""
    source = world.gpus.source()
    if source.state == SourceState.OFF and asked.args.gpu_source != "none":
        asked.messages.warn(f"no GPU values: {source.message}" + (f"; hint: {source.hint}" if source.hint else ""))


_PROCESSES: Final[Mapping[str, Process]] = {
    "console": _run_console,
    "cluster-exporter": _run_cluster_exporter,
    "scheduler-extender": _run_scheduler_extender,
    "admission-webhook": _run_admission_webhook,
    "quota-controller": _run_quota_controller,
    "device-plugin": _run_device_plugin,
    "gpu-exporter": _run_gpu_exporter,
}
