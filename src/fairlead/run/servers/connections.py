"""The API server that a server's command names."""

from __future__ import annotations

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.errors import UserError
from fairlead.run.invocation import Invocation


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
