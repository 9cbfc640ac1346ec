"""What controllers share: from the command's flags to a running process.

The socket is bound before anything else is created, so that a port in use gives one sentence and no
half-started process. The same holds for the other servers.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from fairlead.apps.server import bind_socket, parse_address
from fairlead.apps.service import ServedApp, run
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.run.invocation import Invocation, required_connection, url_of


async def run_controller(
    asked: Invocation, name: str, service: Callable[[KubeApi, socket.socket], ServedApp]
) -> None:
    """Run a controller of the cluster that the command names, until the process is ended."""
    address = parse_address(asked.args.listen)
    connection = required_connection(asked)
    sock = bind_socket(*address)
    async with KubeApi(connection) as api:
        listening = f"{name} of {connection.server}, its figures on {url_of(sock)}/metrics"
        await run(service(api, sock), on_ready=lambda: asked.messages.info(listening))
