"""A minimal Kubernetes client for the contract suite: a request in, status and decoded body out."""

from __future__ import annotations

import base64
import copy
import http.client
import json
import select
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml
from tests.waiting import wait_until

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Answer:
    """The server's answer. `body` is decoded JSON, or the text where it is no JSON."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", "")) if isinstance(self.body, dict) else ""


class ApiClient:
    """One API server, reached by its kubeconfig. `name` is `simulated` or `real`.

    Requests to the real one share a connection, one per thread, because each handshake costs both
    sides CPU time. With `keeps_connections` those to the simulated one do, too: it then waits a
    moment for them when it ends.
    """

    def __init__(self, name: str, kubeconfig: Path, *, keeps_connections: bool = False) -> None:
        document = yaml.load(kubeconfig.read_text(encoding="utf-8"), yaml.CSafeLoader)
        cluster, self._user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self.name = name
        self.kubeconfig = kubeconfig
        self._keeps_connections = keeps_connections or name == "real"
        self._impersonation: list[tuple[str, str]] = []
        self._of_thread = threading.local()
        self._address = urlsplit(cluster["server"])
        self._authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=self._authority)
        if "client-certificate-data" in self._user:
            self._load_pair()

    def as_stranger(self, token: str = "") -> ApiClient:
        """The same server, used without the kubeconfig's credentials."""
        stranger = copy.copy(self)
        stranger._tls = ssl.create_default_context(cadata=self._authority)
        stranger._user = {"token": token} if token else {}
        stranger._of_thread = threading.local()
        return stranger

    def as_user(self, name: str, *groups: str, **more: str) -> ApiClient:
        """The same credentials, impersonating another user; `more` are further headers of
        impersonation (`uid`).
        """
        acting = copy.copy(self)
        named = {
            f"Impersonate-{key.capitalize()}": value
            for key, value in {"user": name, **more}.items()
        }
        acting._impersonation = [
            *named.items(),
            *(("Impersonate-Group", group) for group in groups),
        ]
        return acting

    def _load_pair(self) -> None:
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(
                base64.b64decode(self._user["client-certificate-data"])
                + base64.b64decode(self._user["client-key-data"])
            )
            pair.flush()
            self._tls.load_cert_chain(pair.name)

    def connect(self, seconds: float = 20.0) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self._address.hostname or "", self._address.port, timeout=seconds, context=self._tls
        )

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._user['token']}"} if "token" in self._user else {}

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request; `body` is sent unchanged when it is bytes, otherwise as JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            **self.headers(),
            **(headers or {}),
        }
        target = _with_query(path, query)
        kept: http.client.HTTPSConnection | None = getattr(self._of_thread, "connection", None)
        self._of_thread.connection = None  # until it has answered
        if kept is not None and _is_open(kept):
            connection = kept
        else:
            connection = self.connect()
        try:
            self._send(connection, method, target, data, given)
            response = connection.getresponse()
            raw = response.read()
        except BaseException as error:
            connection.close()
            if connection is kept and method == "GET" and isinstance(error, ConnectionError):
                # The server ends connections that were not used for 90 s, also just now.
                return self.ask(method, path, body, query=query, headers=headers)
            raise
        if self._keeps_connections:
            self._of_thread.connection = connection
        else:
            connection.close()
        return Answer(
            response.status,
            _decoded(raw),
            {key.lower(): value for key, value in response.getheaders()},
        )

    def _send(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        target: str,
        data: bytes | None,
        headers: dict[str, str],
    ) -> None:
        """Works like `connection.request`, with headers that may come twice."""
        connection.putrequest(method, target)
        for name, value in (
            *headers.items(),
            *self._impersonation,
            ("Content-Length", str(len(data or b""))),
        ):
            connection.putheader(name, value)
        connection.endheaders(data)

    def get(self, path: str, **query: Any) -> Answer:
        return self.ask("GET", path, query=query)

    def post(self, path: str, body: Any, **query: Any) -> Answer:
        return self.ask("POST", path, body, query=query)

    def put(self, path: str, body: Any, **query: Any) -> Answer:
        return self.ask("PUT", path, body, query=query)

    def patch(self, path: str, body: Any, kind: str = MERGE, **query: Any) -> Answer:
        return self.ask("PATCH", path, body, query=query, headers={"Content-Type": kind})

    def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return self.ask("DELETE", path, body, query=query)

    def table(self, path: str, **query: Any) -> Answer:
        return self.ask("GET", path, query=query, headers={"Accept": TABLE})

    @contextmanager
    def watch(
        self, path: str, *, accept: str = "application/json", **query: Any
    ) -> Iterator[Iterator[Object]]:
        """The events of a watch in their order; the connection ends with the block."""
        connection = self.connect()
        try:
            target = _with_query(path, {"watch": "true", **query})
            connection.request("GET", target, headers={"Accept": accept, **self.headers()})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            yield (json.loads(line) for line in response if line.strip())
        finally:
            connection.close()


def _is_open(connection: http.client.HTTPSConnection) -> bool:
    """Whether the server has not closed it since its last answer."""
    return connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]


def _with_query(path: str, query: dict[str, Any] | None) -> str:
    return f"{path}?{urlencode(query, doseq=True)}" if query else path


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def until(what: str, is_so: Callable[[], bool]) -> None:
    """Repeat the request until the condition holds."""
    wait_until(what, is_so, pause_seconds=0.05)
