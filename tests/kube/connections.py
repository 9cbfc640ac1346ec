"""Fairlead's client, connected to the real API server."""

from __future__ import annotations

from pathlib import Path

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.kubeconfig import find_connection


def connect(kubeconfig: Path) -> Connection:
    connection = find_connection(str(kubeconfig), env={})
    assert connection is not None
    return connection
