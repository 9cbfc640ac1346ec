"""One registry over HTTP, as one user. Blocking; a connection per request.

A registry that wants a token names where it is issued, with its first refusal. Tokens are valid for
a minute, so each refusal is answered with a new one, once.
"""

from __future__ import annotations

import http.client
import os
import re
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit

import msgspec
from msgspec import Struct

from fairlead import __version__
from fairlead.edge.connection.connection import trust
from fairlead.edge.connection.connection_failure import explain_connection
from fairlead.edge.connection.http_blocking import open_connection, request_target
from fairlead.edge.connection.proxy import proxy_for
from fairlead.edge.registry.address import RegistryAddress
from fairlead.errors import OutsideError

if TYPE_CHECKING:
    import ssl

SYSTEM: Final = "registry"
READ_SECONDS: Final = 60.0
"""The longest wait for bytes of an answer: some registries store a large blob meanwhile."""
_ANSWER_BYTES: Final = 1 << 20
_PIECE_BYTES: Final = 1 << 18
_SENT_AT_ONCE: Final = 1 << 18
_CHALLENGE: Final = re.compile(r'\b(\w{1,64})="([^"]*)"')
_NO_LOGIN: Final = "give --username and --password-file of a user who may push there"


class Content(NamedTuple):
    """The body of a request. `file` is read from where it stands."""

    file: IO[bytes] | bytes
    size: int
    type: str = "application/octet-stream"


class RegistryAnswer(NamedTuple):
    """`headers`: by lower-case name. `address`: of the request."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    address: str

    @property
    def location(self) -> str:
        """Where an upload goes on, as a whole address."""
        return urljoin(self.address, self.headers.get("location", ""))


class _Token(Struct):
    token: str = ""
    access_token: str = ""


class _Fault(Struct):
    code: str = ""
    message: str = ""


class _Faults(Struct):
    errors: list[_Fault] = []


class RegistryUnreachable(OutsideError):
    """The registry did not answer, or is busy: another try may succeed."""


class RegistryClient:
    """`scope`: what the next requests need, as registries with tokens write it."""

    def __init__(self, address: RegistryAddress, read_seconds: float = READ_SECONDS) -> None:
        self.address = address
        self._read_seconds = read_seconds
        self._authorization = ""
        self._tls: dict[bool, ssl.SSLContext] = {}

    def check(self) -> None:
        """Raises OutsideError unless a registry answers at the address."""
        answer = self.ask("GET", "/v2/")
        if answer.status != 200:
            raise self.failure("is no registry of images", answer, "check host, port and scheme")

    def ask(
        self,
        method: str,
        path: str,
        content: Content | None = None,
        accepts: str = "",
    ) -> RegistryAnswer:
        """The answer to a request. `path`: of the registry, or a whole address that it named.

        Raises OutsideError if there is none, or if the registry refuses the user.
        """
        address = urljoin(self.address.server, path)
        is_own = address.startswith(f"{self.address.server}/")
        answer = self._send(
            method, address, content, self._authorization if is_own else "", accepts
        )
        if answer.status != 401 or not is_own:
            return answer
        self._authorization = self._authorize(answer)
        if content is not None and not isinstance(content.file, bytes):
            content.file.seek(0)
        answer = self._send(method, address, content, self._authorization, accepts)
        if answer.status == 401:
            raise self.failure("does not accept this user", answer, _NO_LOGIN)
        return answer

    def failure(self, what: str, answer: RegistryAnswer, hint: str = "") -> OutsideError:
        """The failure for an unexpected answer, with the registry's reason."""
        reason = _reason(answer)
        words = f"{answer.status} {reason}" if reason else str(answer.status)
        made = RegistryUnreachable if answer.status in (429, 500, 502, 503, 504) else OutsideError
        return made(SYSTEM, f"`{self.address.server}` {what}: it answers {words}", hint)

    # --- who may push -----------------------------------------------------------------------------

    def _authorize(self, refused: RegistryAnswer) -> str:
        """The header that the registry wants, by its refusal."""
        wanted = refused.headers.get("www-authenticate", "")
        scheme = wanted.partition(" ")[0].lower()
        if scheme == "basic":
            if not self.address.login:
                raise self.failure("wants a user", refused, _NO_LOGIN)
            return self.address.login
        fields = dict(_CHALLENGE.findall(wanted))
        realm = fields.get("realm", "")
        if scheme != "bearer" or not realm:
            raise self.failure(f"wants `{wanted[:100]}`, which Fairlead does not have", refused)
        self._check_realm(realm)
        asked = {key: fields[key] for key in ("service", "scope") if fields.get(key)}
        address = f"{realm}{'&' if '?' in realm else '?'}{urlencode(asked)}"
        answer = self._send("GET", address, None, self.address.login, "application/json")
        if answer.status != 200:
            what = f"sends to `{urlsplit(realm).netloc}` for a token, which is not given"
            raise self.failure(what, answer, _NO_LOGIN)
        try:
            found = msgspec.json.decode(answer.body, type=_Token)
        except msgspec.MsgspecError as error:
            raise OutsideError(SYSTEM, f"`{realm}` answers with no token", "") from error
        return f"Bearer {found.token or found.access_token}"

    def _check_realm(self, realm: str) -> None:
        """A registry with TLS cannot have the password sent in clear text."""
        schemes = ("https",) if self.address.server.startswith("https:") else ("https", "http")
        if urlsplit(realm).scheme not in schemes:
            raise OutsideError(
                SYSTEM,
                f"`{self.address.server}` sends to `{realm[:200]}` for a token, which is not https",
                "Fairlead sends no password there; ask the operator of the registry",
            )

    # --- one request ------------------------------------------------------------------------------

    def _send(
        self, method: str, address: str, content: Content | None, authorization: str, accepts: str
    ) -> RegistryAnswer:
        headers = {"User-Agent": f"fairlead/{__version__}", "Content-Length": "0"}
        if authorization:
            headers["Authorization"] = authorization
        if accepts:
            headers["Accept"] = accepts
        if content is not None:
            headers |= {"Content-Length": str(content.size), "Content-Type": content.type}
        elif method in ("GET", "HEAD"):
            del headers["Content-Length"]
        parts = urlsplit(address)
        server = f"{parts.scheme}://{parts.netloc}"
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        proxy = proxy_for(server, None, os.environ)
        line = open_connection(
            server,
            context=self._context(is_own=server == self.address.server)
            if parts.scheme == "https"
            else None,
            proxy=proxy,
            read_seconds=self._read_seconds,
        )
        line.blocksize = _SENT_AT_ONCE
        body = None if content is None else content.file
        try:
            line.request(method, request_target(server, target, proxy), body, headers)
            response = line.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return RegistryAnswer(response.status, found, response.read(_ANSWER_BYTES), address)
        except (OSError, http.client.HTTPException) as error:
            what, hint = explain_connection(
                f"the registry `{server}`",
                "REGISTRY",
                server,
                error,
                authority="`--ca-file`",
                proxy=proxy,
            )
            raise RegistryUnreachable(SYSTEM, what, hint) from error
        finally:
            line.close()

    def _context(self, *, is_own: bool) -> ssl.SSLContext:
        """The authority is that of the registry; other servers have those of this machine, too."""
        import ssl

        found = self._tls.get(is_own)
        if found is None:
            found = self._tls[is_own] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if self.address.ca_pem is None or not is_own:
                found.load_default_certs()
            if self.address.ca_pem is not None:
                trust(found, self.address.ca_pem, f"`{self.address.server}`", "check --ca-file")
        return found


def _reason(answer: RegistryAnswer) -> str:
    try:
        faults = msgspec.json.decode(answer.body, type=_Faults).errors
    except msgspec.MsgspecError:
        faults = []
    if not faults:
        return http.client.responses.get(answer.status, "")
    return ascii(f"{faults[0].code}: {faults[0].message}"[:300])[1:-1]
