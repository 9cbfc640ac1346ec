"""Writes kubeconfig files for the test cluster, with a client certificate or a token."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml
from tests.kube.certificates import KeyPair


def write_kubeconfig(target: Path, server: str, authority: Path, user: dict[str, Any]) -> Path:
    """One cluster, one user, one context. Everything is embedded, so the file may be copied
    anywhere.
    """
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "test",
                "cluster": {"server": server, "certificate-authority-data": _embedded(authority)},
            }
        ],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "current-context": "test",
    }
    target.touch(mode=0o600)
    target.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return target


def certificate_user(pair: KeyPair) -> dict[str, Any]:
    return {
        "client-certificate-data": _embedded(pair.certificate),
        "client-key-data": _embedded(pair.key),
    }


def token_user(token: str) -> dict[str, Any]:
    return {"token": token}


def _embedded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")
