"""The servers that decide: extender, quota controller, people controller, admission webhook.

Sockets are bound before anything else is created, so that a port in use gives one sentence and no
half-started process.
"""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from starlette.applications import Starlette

from fairlead import settings
from fairlead.apps.admission_webhook import webhook_app
from fairlead.apps.extender import Extender
from fairlead.apps.people.people_controller import PeopleController
from fairlead.apps.quota_controller import QuotaController
from fairlead.apps.scheduler_extender import PREFIX, SchedulerExtender
from fairlead.apps.server import bind_socket, parse_address
from fairlead.apps.service import Probes, ServedApp, run
from fairlead.apps.serving_certificate import ServingCertificate, trust_clients
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.quota_api import KubeQuotaApi
from fairlead.edge.kube.sharing_api import KubeSharingApi
from fairlead.edge.people.people_api import KubePeopleApi
from fairlead.edge.queries.admission_api import KubeAdmissionApi
from fairlead.errors import UserError
from fairlead.model.installation import OwnAccounts
from fairlead.model.resources import MemoryUnit
from fairlead.model.sharing import Placement
from fairlead.ports import QuotaApi
from fairlead.rules.sharing.placement import SharePolicies
from fairlead.run.invocation import Invocation, Process, lease_identity, url_of
from fairlead.run.wiring import required_connection


async def _run_scheduler_extender(asked: Invocation) -> None:
    args = asked.args
    address = parse_address(
        args.listen or asked.env.get("PORT") or str(settings.SCHEDULER_EXTENDER_PORT)
    )
    certificate = _serving_certificate(args)
    connection = required_connection(asked)
    sock = bind_socket(*address)
    async with KubeApi(connection) as api:
        sharing = KubeSharingApi(
            api,
            (args.lease_namespace, settings.SHARE_LEASE),
            args.kube_api_qps,
            args.kube_api_burst,
        )
        lease = f"{args.lease_namespace}/{settings.SHARE_LEASE}"
        policies = SharePolicies(
            Placement(args.node_policy), Placement(args.gpu_policy), MemoryUnit(args.memory_unit)
        )
        extender = Extender(sharing, lease_identity(args), lease_name=lease, policies=policies)
        service = ServedApp(
            app=SchedulerExtender(extender),
            sock=sock,
            loops=(extender.run,),
            probes=Probes(unready=lambda: extender.unready),
            tls=certificate,
        )
        listening = (
            f"scheduler extender of {connection.server} on "
            f"{url_of(sock, 'https' if certificate else 'http')}{PREFIX}"
        )
        await run(service, on_ready=lambda: asked.messages.info(listening))


async def _run_quota_controller(asked: Invocation) -> None:
    def service(api: KubeApi, sock: socket.socket) -> ServedApp:
        args = asked.args
        lease = (args.lease_namespace, settings.QUOTA_LEASE)
        quota = KubeQuotaApi(api, lease, args.kube_api_qps, args.kube_api_burst)
        return quota_controller(args, quota, api.clock.now).service(sock)

    await _run_controller(asked, "quota controller", service)


async def _run_people_controller(asked: Invocation) -> None:
    def service(api: KubeApi, sock: socket.socket) -> ServedApp:
        args = asked.args
        lease = (args.lease_namespace, settings.PEOPLE_LEASE)
        people = KubePeopleApi(api, lease, args.kube_api_qps, args.kube_api_burst)
        own = OwnAccounts(args.namespace, args.node_namespace)
        controller = PeopleController(people, lease_identity(args), own=own, now=api.clock.now)
        return controller.service(sock)

    await _run_controller(asked, "people controller", service)


async def _run_controller(
    asked: Invocation, name: str, service: Callable[[KubeApi, socket.socket], ServedApp]
) -> None:
    """Run a controller of the cluster that the command names, until the process is ended."""
    address = parse_address(asked.args.listen)
    connection = required_connection(asked)
    sock = bind_socket(*address)
    async with KubeApi(connection) as api:
        listening = f"{name} of {connection.server}, its figures on {url_of(sock)}/metrics"
        await run(service(api, sock), on_ready=lambda: asked.messages.info(listening))


def quota_controller(
    args: argparse.Namespace, api: QuotaApi, now: Callable[[], float] = time.time
) -> QuotaController:
    """The quota controller with these flags. `now`: epoch seconds of the API server."""
    own = OwnAccounts(args.namespace, args.node_namespace)
    return QuotaController(api, lease_identity(args), own=own, now=now)


_LINGER_SECONDS: Final = 3.0
"""API servers keep connections to a webhook, and a pod without an answer is refused."""


async def _run_admission_webhook(asked: Invocation) -> None:
    args = asked.args
    address = parse_address(args.listen)
    own = _serving_certificate(args)
    client_ca = Path(args.client_ca) if args.client_ca else None
    if own is not None and client_ca is not None:
        trust_clients(own.context, client_ca)
    connection = find_connection(
        asked.options.kubeconfig or None, asked.options.context or None, env=asked.env
    )
    if own is None:
        connection = required_connection(asked)
    sock = bind_socket(*address)
    accounts = OwnAccounts(args.namespace, args.node_namespace)
    listening = f"admission webhook on {url_of(sock, 'https')}/"
    if connection is None:
        app = webhook_app(asks_certificate=client_ca is not None, own=accounts)
        await run(
            ServedApp(app=app, sock=sock, tls=own), on_ready=lambda: asked.messages.info(listening)
        )
        return
    async with KubeApi(connection) as api:
        admission = KubeAdmissionApi(api)
        app = webhook_app(admission, asks_certificate=client_ca is not None, own=accounts)
        service = (
            ServedApp(app=app, sock=sock, tls=own, linger_seconds=_LINGER_SECONDS)
            if own
            else _certified(admission, app, sock, client_ca, accounts.namespace)
        )
        await run(service, on_ready=lambda: asked.messages.info(listening))


def _certified(
    admission: KubeAdmissionApi,
    app: Starlette,
    sock: socket.socket,
    client_ca: Path | None,
    namespace: str,
) -> ServedApp:
    """The webhook with its own certificate.

    It answers no request before the API server trusts it.
    """
    # imports a library that no other server needs
    from fairlead.apps.webhook_certificate import WebhookCertificate

    certificate = WebhookCertificate(admission, time.time, namespace=namespace)
    if client_ca is not None:
        trust_clients(certificate.context, client_ca)
    return ServedApp(
        app=app,
        sock=sock,
        loops=(certificate.run,),
        tls=certificate.context,
        opens=certificate.is_ready,
        reload=certificate.look_now,
        linger_seconds=_LINGER_SECONDS,
    )


def _serving_certificate(args: argparse.Namespace) -> ServingCertificate | None:
    """TLS, if flags ask for it.

    Clients with a certificate of `--client-ca-file` may place pods, others may read.
    """
    client_ca_file = getattr(args, "client_ca_file", "")
    if not args.tls_cert_file and not args.tls_private_key_file and not client_ca_file:
        return None
    if not args.tls_cert_file or not args.tls_private_key_file:
        raise UserError(
            "TLS needs a certificate and its key",
            "add `--tls-cert-file FILE --tls-private-key-file FILE`",
        )
    client_ca = Path(client_ca_file) if client_ca_file else None
    return ServingCertificate(Path(args.tls_cert_file), Path(args.tls_private_key_file), client_ca)


DECIDERS: Final[Mapping[str, Process]] = {
    "scheduler-extender": _run_scheduler_extender,
    "quota-controller": _run_quota_controller,
    "admission-webhook": _run_admission_webhook,
    "people-controller": _run_people_controller,
}
