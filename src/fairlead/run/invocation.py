"""What a server is told when it begins, and how its address is written for a person."""

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
from fairlead.errors import UserError


class Invocation:
    """What a process function gets: its flags, the global ones, the environment, a way to tell the person."""

    def __init__(self, args: argparse.Namespace, options: GlobalOptions, env: Mapping[str, str], messages: Messages) -> None:
        self.args = args
        self.options = options
        self.env = env
        self.messages = messages


Process = Callable[[Invocation], Coroutine[Any, Any, None]]


@contextmanager
def needing_simulation(what: str) -> Iterator[None]:
    """Around imports of the simulated cluster.

    Raises UserError where it is not installed, as in a production image.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "fairlead_sim":
            raise
        reason = f"{what} needs the simulated cluster, which this installation is without"
        raise UserError(reason, "name a real cluster (`--kubeconfig FILE`), or run it from a checkout (`make up`)") from error


def url_of(sock: socket.socket, scheme: str = "http") -> str:
    """An address of the socket that a person can open; one that listens everywhere is named by loopback."""
    host, port = sock.getsockname()[:2]
    shown = {"0.0.0.0": settings.LOOPBACK, "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"{scheme}://{shown}:{port}"


def lease_identity(args: argparse.Namespace) -> str:
    """Under which name this process holds a Lease."""
    return args.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"
