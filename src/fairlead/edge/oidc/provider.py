"""One OpenID Connect provider (`ports.OidcProvider`): authorization code with PKCE.

What the provider describes of itself and its keys are kept for an hour. A token that names an
unknown key makes the keys be read again: providers change keys without notice.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import jwt
import msgspec
from yarl import URL

from fairlead import __version__
from fairlead.edge.connection.connection import trust
from fairlead.edge.connection.connection_failure import explain_connection
from fairlead.edge.connection.proxy import proxy_for, through_proxy
from fairlead.edge.oidc.id_token import (
    ExpectedToken,
    TokenHeader,
    checked_identity,
    parse_header,
    signing_key,
)
from fairlead.errors import OutsideError, UserError
from fairlead.model.people.external import ExternalIdentity, OidcRequest
from fairlead.model.refusal import Refusal

ANSWER_SECONDS: Final = 10.0
KEPT_SECONDS: Final = 3600.0
KEYS_AGAIN_SECONDS: Final = 10.0
"""The shortest time between two readings of the keys: anyone can send unknown key ids."""
_ANSWER_BYTES: Final = 1 << 20
_SYSTEM: Final = "oidc"


class OidcSettings(msgspec.Struct, frozen=True):
    """`client_secret`: "" for a public client. `ca_file`: "" = the machine's authorities."""

    issuer: str
    client_id: str
    client_secret: str = ""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    user_claim: str = "sub"
    ca_file: str = ""


class Described(msgspec.Struct, frozen=True):
    """What a provider describes of itself (OpenID Connect Discovery)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Keys(msgspec.Struct):
    keys: list[dict[str, Any]] = []


class _Tokens(msgspec.Struct):
    id_token: str = ""


class _Failure(msgspec.Struct):
    error: str = ""


class OpenIdProvider:
    """One provider. Close it when done. `monotonic`: seconds of a clock that nothing sets."""

    def __init__(
        self,
        settings: OidcSettings,
        *,
        seconds: float = ANSWER_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        check_settings(settings)
        self._settings = settings
        self._seconds = seconds
        self._monotonic = monotonic
        self._tls = _tls(settings)
        self._session: aiohttp.ClientSession | None = None
        self._described: tuple[float, Described] | None = None
        self._keys: tuple[float, dict[str, dict[str, Any]]] | None = None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def sign_in_address(self, asked: OidcRequest) -> str:
        async with self._in_time():
            described = await self._description()
        digest = hashlib.sha256(asked.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": asked.callback,
            "scope": " ".join(self._settings.scopes),
            "state": asked.state,
            "nonce": asked.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        mark = "&" if urlsplit(described.authorization_endpoint).query else "?"
        return f"{described.authorization_endpoint}{mark}{urlencode(query)}"

    async def identity_of(self, code: str, asked: OidcRequest) -> ExternalIdentity | Refusal:
        async with self._in_time():
            described = await self._description()
            token = await self._token(described, code, asked)
            if isinstance(token, Refusal):
                return token
            header = parse_header(token)
            if isinstance(header, Refusal):
                return header
            key = await self._key(described, header)
        if key is None:
            return Refusal("the provider has no key with which its ID token is signed")
        expected = ExpectedToken(
            self._settings.issuer, self._settings.client_id, asked.nonce, self._settings.user_claim
        )
        return checked_identity(token, key, expected)

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except TimeoutError as error:
            raise TimeoutError(
                f"the OpenID Connect provider `{self._settings.issuer}` did not answer within "
                f"{self._seconds:g} s"
            ) from error

    async def _description(self) -> Described:
        now = self._monotonic()
        if self._described is not None and now < self._described[0] + KEPT_SECONDS:
            return self._described[1]
        issuer = self._settings.issuer
        address = issuer.rstrip("/") + "/.well-known/openid-configuration"
        status, body = await self._ask("GET", address)
        if status != 200:
            raise self._failure(f"answers {status} to `{address}`", _ISSUER_HINT)
        described: Described = self._decoded(body, Described, address)
        if described.issuer != issuer:
            itself = described.issuer[:200]
            raise self._failure(f"calls itself `{itself}`", f"set --oidc-issuer to `{itself}`")
        for each in (
            described.authorization_endpoint,
            described.token_endpoint,
            described.jwks_uri,
        ):
            if not _is_secure(each):
                raise self._failure(f"names the address `{each[:200]}`, which is not https", "")
        self._described = now, described
        return described

    async def _token(self, described: Described, code: str, asked: OidcRequest) -> str | Refusal:
        """The ID token for a code. A code that was used is refused by the provider."""
        own = self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": asked.callback,
            "code_verifier": asked.verifier,
        }
        headers = {}
        if own.client_secret and (
            "client_secret_basic" in described.token_endpoint_auth_methods_supported
        ):
            pair = f"{quote(own.client_id, safe='')}:{quote(own.client_secret, safe='')}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        elif own.client_secret:
            form |= {"client_id": own.client_id, "client_secret": own.client_secret}
        else:
            form["client_id"] = own.client_id
        status, body = await self._ask("POST", described.token_endpoint, form, headers)
        if status == 200:
            found = self._decoded(body, _Tokens, described.token_endpoint).id_token
            return found or Refusal("the provider returns no ID token; the scope must have openid")
        error = self._error(body)
        if status in (400, 401) and error == "invalid_grant":
            return Refusal("the provider does not accept the code: it was used, or is too old")
        if status in (400, 401) and error:
            raise self._failure(
                f"refuses this console: {error[:100]}",
                "compare client id, client secret and redirect address with the provider's",
            )
        raise self._failure(f"answers {status} to `{described.token_endpoint}`", "")

    async def _key(self, described: Described, header: TokenHeader) -> jwt.PyJWK | None:
        key = signing_key(await self._read_keys(described, KEPT_SECONDS), header)
        if key is None:
            key = signing_key(await self._read_keys(described, KEYS_AGAIN_SECONDS), header)
        return key

    async def _read_keys(self, described: Described, seconds: float) -> dict[str, dict[str, Any]]:
        """By id. Those that were read less than `seconds` ago are not read again."""
        now = self._monotonic()
        if self._keys is not None and now < self._keys[0] + seconds:
            return self._keys[1]
        status, body = await self._ask("GET", described.jwks_uri)
        if status != 200:
            raise self._failure(f"answers {status} to `{described.jwks_uri}`", "")
        found = self._decoded(body, _Keys, described.jwks_uri).keys
        keys = {str(each.get("kid") or ""): each for each in found if each.get("use") != "enc"}
        self._keys = now, keys
        return keys

    async def _ask(
        self,
        method: str,
        address: str,
        form: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes]:
        proxy = proxy_for(address, None, os.environ)
        try:
            async with self._open_session().request(
                method,
                URL(address, encoded=True),
                data=form,
                headers={
                    "User-Agent": f"fairlead/{__version__}",
                    "Accept": "application/json",
                    **(headers or {}),
                },
                allow_redirects=False,
                **through_proxy(proxy),
            ) as response:
                body = bytearray()
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > _ANSWER_BYTES:
                        raise self._failure(f"answers `{address}` with more than 1 MiB", "")
                return response.status, bytes(body)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            peer = f"the OpenID Connect provider `{self._settings.issuer}`"
            what, hint = explain_connection(
                peer, "`--oidc-issuer`", address, error, authority="`--oidc-ca-file`", proxy=proxy
            )
            raise OutsideError(_SYSTEM, what, hint) from error

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls),
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _decoded(self, body: bytes, type: Any, address: str) -> Any:
        try:
            return msgspec.json.decode(body, type=type)
        except msgspec.MsgspecError as error:
            raise self._failure(f"answers `{address}` with something else", _ISSUER_HINT) from error

    def _error(self, body: bytes) -> str:
        try:
            return msgspec.json.decode(body, type=_Failure).error
        except msgspec.MsgspecError:
            return ""

    def _failure(self, what: str, hint: str) -> OutsideError:
        return OutsideError(
            _SYSTEM, f"the OpenID Connect provider `{self._settings.issuer}` {what}", hint
        )


_ISSUER_HINT: Final = "check --oidc-issuer: it is the address before `/.well-known`"


def check_settings(settings: OidcSettings) -> None:
    """Raises UserError for settings with which no user could sign in."""
    if not _is_secure(settings.issuer):
        raise UserError(
            f"the issuer `{settings.issuer[:200]}` is no https address",
            "name the provider as `--oidc-issuer https://…`; plain http is for loopback alone",
        )
    if not settings.client_id:
        raise UserError("the OpenID Connect client has no id", "add --oidc-client-id ID")
    if settings.user_claim not in ("sub", "email"):
        raise UserError(
            f"`{settings.user_claim[:100]}` cannot name a user",
            "write --oidc-user-claim sub, or email",
        )
    if "openid" not in settings.scopes:
        raise UserError("the scopes do not have `openid`", "add it to --oidc-scopes")


def _is_secure(address: str) -> bool:
    """Whether it is https, or http of this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or parts.username is not None:
        return False
    return parts.scheme == "https" or (
        parts.scheme == "http" and host in ("localhost", "127.0.0.1", "::1")
    )


def _tls(settings: OidcSettings) -> ssl.SSLContext:
    """Raises UserError if the file of the authorities cannot be read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not settings.ca_file:
        context.load_default_certs()
        return context
    try:
        pem = Path(settings.ca_file).read_bytes()
    except OSError as error:
        raise UserError(
            f"`{settings.ca_file}` cannot be read: {(error.strerror or str(error)).lower()}",
            "check --oidc-ca-file",
        ) from error
    trust(context, pem, f"`{settings.issuer}`", "check --oidc-ca-file")
    return context
