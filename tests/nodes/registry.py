"""A registry of images on one address of this machine: the part of the OCI distribution
specification that a container runtime needs to pull.

It serves archives in OCI layout, and remembers who pulled what.
"""

from __future__ import annotations

import json
import sys
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NAME_NOTE = "org.opencontainers.image.ref.name"


@dataclass(frozen=True)
class Registry:
    """`pulled`: the address that asked, and the name of each image by tag."""

    url: str
    pulled: set[tuple[str, str]]

    def write_hosts(self, folder: Path) -> Path:
        """A folder for containerd's `config_path`: every registry's images come from here."""
        hosts = folder / "_default"
        hosts.mkdir(parents=True)
        text = f'server = "{self.url}"\n[host."{self.url}"]\ncapabilities = ["pull", "resolve"]\n'
        (hosts / "hosts.toml").write_text(text, encoding="utf-8")
        return folder


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    """Of connections that wait; three nodes open many at once, and the default is 5."""

    def handle_error(self, request: object, client_address: object) -> None:
        """A runtime hangs up when another of its pulls has brought the same blob."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Blob:
    archive: Path
    offset: int
    size: int


@contextmanager
def running_registry(address: str, port: int, archives: Sequence[Path]) -> Iterator[Registry]:
    """A registry of these archives for the block. It knows an image by the last part of its
    repository's name, so that images of every host and path are found.
    """
    blobs: dict[str, _Blob] = {}
    names: dict[str, dict[str, Any]] = {}
    for archive in archives:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name.startswith("blobs/sha256/"):
                    digest = f"sha256:{member.name.rpartition('/')[2]}"
                    blobs[digest] = _Blob(archive, member.offset_data, member.size)
            index = tar.extractfile("index.json")
            assert index is not None
            rows = json.load(index)["manifests"]
            names |= {row["annotations"][NAME_NOTE]: row for row in rows}
    pulled: set[tuple[str, str]] = set()

    class Asked(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(has_body=False)

        def do_GET(self) -> None:
            self._answer(has_body=True)

        def log_message(self, format: str, *args: object) -> None:
            return

        def _answer(self, *, has_body: bool) -> None:
            words = urlsplit(self.path).path.strip("/").split("/")
            if words == ["v2"]:
                self._send(b"{}", "application/json", has_body=has_body)
                return
            repository, kind, reference = words[-3:]
            row = names.get(f"{repository}:{reference}")
            if row is not None:
                pulled.add((self.client_address[0], f"{repository}:{reference}"))
            digest = row["digest"] if row is not None else reference
            blob = blobs.get(digest)
            if blob is None:
                self.send_error(404)
                return
            with blob.archive.open("rb") as archive:
                archive.seek(blob.offset)
                content = archive.read(blob.size)
            media = json.loads(content)["mediaType"] if kind == "manifests" else ""
            self._send(content, media or "application/octet-stream", digest, has_body=has_body)

        def _send(self, content: bytes, media: str, digest: str = "", *, has_body: bool) -> None:
            self.send_response(200)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(content)))
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            if has_body:
                self.wfile.write(content)

    server = _Server((address, port), Asked)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Registry(f"http://{address}:{port}", pulled)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
