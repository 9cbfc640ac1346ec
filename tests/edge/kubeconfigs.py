"""Builders of kubeconfig files for tests; fields that a test does not set have plain defaults."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.kubeconfig import find_connection


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def one_kubeconfig(
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    namespace: str | None = None,
    name: str = "dev",
) -> dict[str, Any]:
    context = {"cluster": f"{name}-cluster", "user": f"{name}-user"} | (
        {"namespace": namespace} if namespace else {}
    )
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": f"{name}-cluster",
                "cluster": {"server": "https://api.example:6443"} | (cluster or {}),
            }
        ],
        "users": [{"name": f"{name}-user", "user": user or {}}],
        "contexts": [{"name": name, "context": context}],
    }


def write_kubeconfig(path: Path, **parts: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(one_kubeconfig(**parts)))
    return path


def connection_of(path: Path, context: str | None = None) -> Connection:
    connection = find_connection(str(path), context, env={})
    assert connection is not None
    return connection
