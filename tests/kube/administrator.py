"""The administrator of a real control plane: kubectl, but reads, creations and applies go straight
to the API server.

A kubectl process costs 50 ms of CPU for a read and 150 ms for a write, most of it for its start
and for definitions that it fetches again each time; tests ask thousands of times. The requests are
those of kubectl, with the same field manager and the same strict check of fields. What these
requests cannot do, and what the server refuses, goes to kubectl itself, so that each error has its
words.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tests.kube.certificates import KeyPair
from tests.kube.kubectl import Kubectl, Objects

ANSWER_SECONDS = 120.0
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SELECTORS = {"-l": "labelSelector", "--selector": "labelSelector"}
_SELECTORS |= {"--field-selector": "fieldSelector"}


class _LeftToKubectl(Exception):
    """The request failed, or cannot be written here."""


@dataclass(frozen=True)
class _Resource:
    """A resource as the API server describes it; `names`: its plural, singular and short ones."""

    prefix: str
    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool
    names: frozenset[str]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        place = f"/namespaces/{quote(namespace)}" if self.is_namespaced and namespace else ""
        return f"{self.prefix}{place}/{self.plural}{'/' + quote(name) if name else ''}"


class Administrator(Kubectl):
    """A Kubectl with a client certificate that has all rights on a real API server."""

    def __init__(
        self,
        program: Path,
        kubeconfig: Path,
        scratch: Path,
        *,
        port: int,
        authority: Path,
        pair: KeyPair,
    ) -> None:
        super().__init__(program, kubeconfig, scratch)
        self._port = port
        self._authority = authority
        self._pair = pair
        self._known: list[_Resource] = []
        self._of_thread = threading.local()

    def get(self, resources: str, *arguments: str) -> Objects:
        try:
            namespace, selectors = _reading(arguments)
            return [
                item
                for name in resources.split(",")
                for item in self._list(self._named(name), namespace, selectors)
            ]
        except _LeftToKubectl:
            self._known = []
            return super().get(resources, *arguments)

    def _send(self, verb: str, objects: Iterable[dict[str, Any]], *flags: str) -> None:
        """Raises KubectlError for the objects that the server refuses; the others are written."""
        refused = []
        self._close()  # a write on a connection that the server closed would be lost or doubled
        for item in objects:
            try:
                self._write(verb, item)
            except _LeftToKubectl:
                self._known = []
                refused.append(item)
        super()._send(verb, refused, *flags)

    def _write(self, verb: str, item: dict[str, Any]) -> None:
        resource = self._of_kind(item.get("apiVersion"), item.get("kind"))
        metadata = item.get("metadata", {})
        namespace = metadata.get("namespace", "default")
        strict = {"fieldValidation": "Strict"}
        if verb == "create":
            question = urlencode({**strict, "fieldManager": "kubectl-create"})
            self._ask("POST", f"{resource.path(namespace)}?{question}", item)
        elif "name" in metadata:
            question = urlencode({**strict, "fieldManager": "kubectl", "force": "true"})
            self._ask("PATCH", f"{resource.path(namespace, metadata['name'])}?{question}", item)
        else:
            raise _LeftToKubectl

    def _list(self, resource: _Resource, namespace: str, selectors: dict[str, str]) -> Objects:
        question = f"?{urlencode(selectors)}" if selectors else ""
        items: Objects = self._ask("GET", resource.path(namespace) + question)["items"]
        for item in items:  # as kubectl prints them
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
            item["metadata"].pop("managedFields", None)
        return items

    def _named(self, name: str) -> _Resource:
        """The resource that kubectl would choose: the first of this name."""
        short, _, group = name.lower().partition(".")
        for resource in self._resources():
            if short in resource.names and group in ("", resource.group):
                return resource
        raise _LeftToKubectl

    def _of_kind(self, api_version: object, kind: object) -> _Resource:
        for resource in self._resources():
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        raise _LeftToKubectl

    def _resources(self) -> list[_Resource]:
        if not self._known:
            self._known = [
                resource
                for path in ("/api", "/apis")
                for resource in _described(self._ask("GET", path, accept=DISCOVERY))
            ]
        return self._known

    def _ask(
        self, method: str, path: str, body: Any = None, accept: str = "application/json"
    ) -> Any:
        """The answer's document. Reads are asked twice if the first connection was closed."""
        headers = {"Accept": accept, "Content-Type": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/apply-patch+yaml"
        content = None if body is None else json.dumps(body).encode()
        for is_last in (method != "GET", True):
            try:
                connection = self._connection()
                connection.request(method, path, content, headers)
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self._close()
                if is_last:
                    raise _LeftToKubectl from error
            else:
                if answer.status not in (200, 201):
                    raise _LeftToKubectl
                return json.loads(text)
        raise AssertionError("the second attempt returns or raises")

    def _connection(self) -> http.client.HTTPSConnection:
        """One per thread, because a connection answers one request at a time."""
        kept: http.client.HTTPSConnection | None = getattr(self._of_thread, "connection", None)
        if kept is None:
            context = ssl.create_default_context(cafile=str(self._authority))
            context.load_cert_chain(*self._pair)
            kept = self._of_thread.connection = http.client.HTTPSConnection(
                "127.0.0.1", self._port, timeout=ANSWER_SECONDS, context=context
            )
        return kept

    def _close(self) -> None:
        kept = getattr(self._of_thread, "connection", None)
        if kept is not None:
            kept.close()
            self._of_thread.connection = None


def _reading(arguments: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The namespace ("" for all) and the selectors that the arguments of `get` name."""
    namespace, selectors = "", {}
    words = iter(arguments)
    for word in words:
        flag, has_value, value = word.partition("=")
        if word == "-A":
            namespace = ""
        elif word == "-n":
            namespace = next(words)
        elif _SELECTORS.get(flag, "") not in ("", *selectors):
            selectors[_SELECTORS[flag]] = value if has_value else next(words)
        else:
            raise _LeftToKubectl
    return namespace, selectors


def _described(discovery: dict[str, Any]) -> Iterator[_Resource]:
    """The resources of an APIGroupDiscoveryList, those of preferred versions first."""
    for item in discovery["items"]:
        group = item["metadata"].get("name", "")
        for version in item["versions"]:
            prefix = (
                f"/apis/{group}/{version['version']}" if group else f"/api/{version['version']}"
            )
            for each in version.get("resources", ()):
                names = (each["resource"], each.get("singularResource", ""))
                names += tuple(each.get("shortNames", ()))
                yield _Resource(
                    prefix,
                    group,
                    version["version"],
                    each["resource"],
                    each["responseKind"]["kind"],
                    each["scope"] == "Namespaced",
                    frozenset(filter(None, names)),
                )
