"""The arguments of a server's process function: the cluster that they name, and how the server's
address is printed.
"""

from __future__ import annotations

import argparse
import secrets
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fairlead import settings
from fairlead.cli.frame.context import GlobalOptions
from fairlead.cli.frame.messages import Messages
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.errors import UserError


class Invocation:
    """The arguments of a process function: its flags, the global ones, the environment, and
    messages to the user.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        options: GlobalOptions,
        env: Mapping[str, str],
        messages: Messages,
    ) -> None:
        self.args = args
        self.options = options
        self.env = env
        self.messages = messages


Process = Callable[[Invocation], Coroutine[Any, Any, None]]


@contextmanager
def needing_simulation(what: str) -> Iterator[None]:
    """Wraps imports of the simulated cluster.

    Raises UserError if it is not installed, as in a production image.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "fairlead_sim":
            raise
        reason = f"{what} needs the simulated cluster, which this installation is without"
        raise UserError(
            reason,
            "name a real cluster (`--kubeconfig FILE`), or run it from a checkout (`make up`)",
        ) from error


def required_connection(asked: Invocation) -> Connection:
    """The cluster to follow. Raises UserError without one."""
    connection = find_connection(
        asked.options.kubeconfig or None, asked.options.context or None, env=asked.env
    )
    if connection is None:
        raise UserError(
            "there is no cluster to follow: no kubeconfig and no service account",
            "pass --kubeconfig FILE, or try `fairlead up`",
        )
    return connection


def url_of(sock: socket.socket, scheme: str = "http") -> str:
    """An address of the socket that a user can open; for a socket
    on all addresses it is loopback.
    """
    host, port = sock.getsockname()[:2]
    shown = {"0.0.0.0": settings.LOOPBACK, "::": "[::1]"}.get(
        host, f"[{host}]" if ":" in host else host
    )
    return f"{scheme}://{shown}:{port}"


def new_code_line(page: str, code: str) -> str:
    """What the terminal shows after a browser has come with an old one-time code. `page`: the
    console's address, with a slash at the end.
    """
    return f"a browser came with a code that was used or is too old; a new one: {page}#code={code}"


def free_or_named(asked: Invocation) -> socket.socket:
    """The socket of a server whose address users read; the address from the flag must be free.

    Without a flag it is the default; if its port is in use, a free port, with a warning.
    """
    # commands import this module without starting a server
    from fairlead.apps.server import bind_socket, parse_address

    args = asked.args
    host, port = parse_address(args.listen)
    try:
        return bind_socket(host, port)
    except UserError:
        if args.has_address:
            raise
    sock = bind_socket(host, 0)
    asked.messages.warn(f"port {port} is taken: listening on {sock.getsockname()[1]}")
    return sock


def lease_identity(args: argparse.Namespace) -> str:
    """The name under which this process holds a Lease."""
    return args.identity or process_identity()


def process_identity() -> str:
    """A name that no other process has."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"
