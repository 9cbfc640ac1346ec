"""The admission webhook: from the command's flags to a running process."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Final

from starlette.applications import Starlette

from fairlead.apps.admission_webhook import webhook_app
from fairlead.apps.server import bind_socket, parse_address
from fairlead.apps.service import ServedApp, run
from fairlead.apps.serving_certificate import trust_clients
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.queries.admission_api import KubeAdmissionApi
from fairlead.model.installation import OwnAccounts
from fairlead.run.invocation import Invocation, required_connection, url_of
from fairlead.run.servers.certificate import serving_certificate

_LINGER_SECONDS: Final = 3.0
"""API servers keep connections to a webhook, and a pod without an answer is refused."""


async def run_admission_webhook(asked: Invocation) -> None:
    args = asked.args
    address = parse_address(args.listen)
    own = serving_certificate(args)
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
