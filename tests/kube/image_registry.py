"""A real registry of images (github.com/distribution/distribution), with no users, with a password
file, or with tokens of a server of the test's own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import bcrypt
import jwt
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from tests.kube.addresses import free_port
from tests.kube.certificates import KeyPair
from tests.kube.component import Component
from tests.kube.programs import program
from tests.kube.servers import environment

USER, PASSWORD = "pusher", "a%20pass:word"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"


@dataclass
class ImageRegistry:
    """`host`: with the port. `folder`: what it stores."""

    component: Component
    host: str
    scheme: str
    folder: Path

    def start(self) -> None:
        self.component.start()
        self.component.wait_until(self.answers, 30)

    def answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://{self.host}/v2/", timeout=2).close()
        except urllib.error.HTTPError:
            return True  # with TLS: a request without it is refused
        except OSError:
            return False
        return True

    def stored(self) -> set[str]:
        """The tags, as REPOSITORY:TAG, read from its disk."""
        place = self.folder / "docker" / "registry" / "v2" / "repositories"
        return {
            f"{tag.parents[2].relative_to(place)}:{tag.name}"
            for tag in place.glob("**/_manifests/tags/*")
        }

    def get(self, path: str, accepts: str = INDEX_TYPE) -> bytes:
        """Of a registry without users and TLS."""
        request = urllib.request.Request(f"http://{self.host}{path}", headers={"Accept": accepts})
        with urllib.request.urlopen(request, timeout=20) as answer:
            found: bytes = answer.read()
            return found


@contextmanager
def image_registry(
    folder: Path,
    *,
    address: str = "127.0.0.1",
    tls: KeyPair | None = None,
    has_users: bool = False,
    auth: dict[str, Any] | None = None,
) -> Iterator[ImageRegistry]:
    """A running registry for the block."""
    folder.mkdir(parents=True)
    port = free_port()
    http: dict[str, Any] = {"addr": f"{address}:{port}", "secret": "of-this-test"}
    if tls is not None:
        http["tls"] = {"certificate": str(tls.certificate), "key": str(tls.key)}
    if has_users:
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        (folder / "users").write_text(f"{USER}:{hashed}\n", encoding="utf-8")
        auth = {"htpasswd": {"realm": "tests", "path": str(folder / "users")}}
    config = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "stored")}},
        "http": http,
        **({"auth": auth} if auth else {}),
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    component = Component(
        "the registry of images",
        [program("registry"), "serve", str(file)],
        folder / "registry.log",
        environment() | {"OTEL_TRACES_EXPORTER": "none"},
    )
    made = ImageRegistry(
        component, f"{address}:{port}", "https" if tls else "http", folder / "stored"
    )
    try:
        made.start()
        yield made
    finally:
        component.stop()


@dataclass
class TokenServer:
    """Issues tokens to USER. `scopes`: those that were asked for."""

    realm: str
    authority: Path
    scopes: list[list[str]] = field(default_factory=list)

    @property
    def auth(self) -> dict[str, Any]:
        """The registry's configuration."""
        return {
            "token": {
                "realm": self.realm,
                "service": "tests",
                "issuer": "tests",
                "rootcertbundle": str(self.authority),
                "signingalgorithms": ["ES256", "RS256"],
            }
        }


@contextmanager
def token_server(pair: KeyPair, authority: Path, seconds: int = 60) -> Iterator[TokenServer]:
    """A server of tokens that are valid for `seconds`, signed with the key of `pair`, which this
    authority certified."""
    made = TokenServer("", authority)
    key = load_pem_private_key(pair.key.read_bytes(), None)
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    chain = [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()]
    wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    algorithm = "RS256" if "RSA" in type(key).__name__ else "ES256"

    class Asked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            scopes = " ".join(parse_qs(urlsplit(self.path).query).get("scope", [""])).split()
            made.scopes.append(scopes)
            if self.headers.get("Authorization") != wanted:
                self.send_error(401)
                return
            body = json.dumps({"token": token(scopes)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    def token(scopes: list[str]) -> str:
        access = []
        for scope in scopes:
            kind, name, actions = scope.split(":")
            access.append({"type": kind, "name": name, "actions": actions.split(",")})
        now = int(time.time())
        times = {"iat": now, "nbf": now - 5, "exp": now + seconds}
        claims = {"iss": "tests", "sub": USER, "aud": "tests", "jti": str(now), **times}
        return jwt.encode(
            {**claims, "access": access},
            key,  # type: ignore[arg-type]  # of certificates, none is of another kind
            algorithm,
            {"x5c": chain},
        )

    server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    made.realm = f"http://127.0.0.1:{server.server_address[1]}/token"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
