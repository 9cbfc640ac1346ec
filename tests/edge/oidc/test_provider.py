"""A provider that hangs, changes its keys, calls itself something else, or answers nonsense. What a
right provider does is tried on a real one (tests/kube/test_sign_in.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from aiohttp import web
from msgspec import structs
from tests.edge.oidc.keys import OTHER, RSA, public

from fairlead.apps.server import bind_socket
from fairlead.edge.oidc.provider import (
    KEPT_SECONDS,
    KEYS_AGAIN_SECONDS,
    OidcSettings,
    OpenIdProvider,
    check_settings,
)
from fairlead.errors import OutsideError, UserError
from fairlead.model.people.external import ExternalIdentity, OidcRequest
from fairlead.model.refusal import Refusal

ASKED = OidcRequest("state", "nonce", "verifier", "http://localhost/back")


class Peer:
    """A provider whose answers a test sets. `asked`: paths, in order."""

    def __init__(self) -> None:
        self.issuer = ""
        self.keys = [public(RSA, "first")]
        self.signs = (RSA, "first")
        self.hangs: tuple[str, ...] = ()
        self.answers: dict[str, web.Response] = {}
        self.described: dict[str, Any] = {}
        self.asked: list[str] = []
        self.forms: list[tuple[str, dict[str, Any]]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if request.path in self.hangs:
            await asyncio.Event().wait()
        if request.path in self.answers:
            return self.answers[request.path]
        if request.path == "/.well-known/openid-configuration":
            whole = {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize?tenant=1",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
            }
            return web.json_response({**whole, **self.described})
        if request.path == "/keys":
            return web.json_response({"keys": self.keys})
        form = dict(await request.post())
        self.forms.append((request.headers.get("Authorization", ""), form))
        return web.json_response({"id_token": self.token()})

    def token(self) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "1234", "aud": "console", "iat": now, "exp": now + 60}
        key, kid = self.signs
        return jwt.encode({**claims, "nonce": "nonce"}, key, "RS256", headers={"kid": kid})


class Clock:
    at = 0.0

    def __call__(self) -> float:
        return self.at


@asynccontextmanager
async def provided(**more: Any) -> AsyncIterator[tuple[Peer, OpenIdProvider, Clock]]:
    peer, clock = Peer(), Clock()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", peer.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    sock = bind_socket("127.0.0.1", 0)
    await web.SockSite(runner, sock).start()
    port = sock.getsockname()[1]
    peer.issuer = f"http://127.0.0.1:{port}"
    settings = OidcSettings(peer.issuer, "console", "s3cret&/", **more)
    provider = OpenIdProvider(settings, seconds=0.5, monotonic=clock)
    try:
        yield peer, provider, clock
    finally:
        await provider.close()
        await runner.cleanup()


async def test_a_code_becomes_a_user_and_what_rarely_changes_is_kept() -> None:
    async with provided() as (peer, provider, _):
        address = await provider.sign_in_address(ASKED)
        assert address.startswith(f"{peer.issuer}/authorize?tenant=1&response_type=code&")
        for _ in range(2):
            found = await provider.identity_of("code", ASKED)
            assert found == ExternalIdentity(peer.issuer, "1234", "1234")
        assert sorted(peer.asked) == [
            "/.well-known/openid-configuration", "/keys", "/token", "/token",
        ]  # fmt: skip
        authorization, form = peer.forms[0]
        assert authorization == "Basic Y29uc29sZTpzM2NyZXQlMjYlMkY="
        assert (form["code_verifier"], "client_secret" in form) == ("verifier", False)


async def test_a_secret_goes_where_the_provider_wants_it() -> None:
    async with provided() as (peer, provider, _):
        peer.described = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        await provider.identity_of("code", ASKED)
        authorization, form = peer.forms[0]
        assert (authorization, form["client_secret"]) == ("", "s3cret&/")


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
async def test_a_provider_that_hangs_is_given_up(path: str) -> None:
    async with provided() as (peer, provider, _):
        peer.hangs = (path,)
        with pytest.raises(TimeoutError) as caught:
            await provider.identity_of("code", ASKED)
    assert str(caught.value) == (
        f"the OpenID Connect provider `{peer.issuer}` did not answer within 0.5 s"
    )


async def test_new_keys_are_read_when_a_token_names_one_and_not_for_every_unknown_name() -> None:
    async with provided() as (peer, provider, clock):
        assert isinstance(await provider.identity_of("code", ASKED), ExternalIdentity)
        peer.keys, peer.signs = [public(OTHER, "second")], (OTHER, "second")
        unknown = Refusal("the provider has no key with which its ID token is signed")
        for _ in range(3):
            assert await provider.identity_of("code", ASKED) == unknown
        assert peer.asked.count("/keys") == 1, "they were read a moment ago"
        clock.at += KEYS_AGAIN_SECONDS
        assert isinstance(await provider.identity_of("code", ASKED), ExternalIdentity)
        assert peer.asked.count("/keys") == 2


async def test_a_key_that_the_provider_has_withdrawn_counts_for_an_hour_at_most() -> None:
    async with provided() as (peer, provider, clock):
        await provider.identity_of("code", ASKED)
        peer.keys = [public(OTHER, "second")]
        clock.at += KEPT_SECONDS
        found = await provider.identity_of("code", ASKED)
    assert found == Refusal("the provider has no key with which its ID token is signed")


async def test_keys_for_encryption_and_of_unknown_kinds_sign_nothing() -> None:
    weak = {"kty": "oct", "k": "AAAA", "kid": "first"}
    for keys in (
        [{**public(RSA, "first"), "use": "enc"}],
        [weak],
        [{"kty": "new", "kid": "first"}],
    ):
        async with provided() as (peer, provider, _):
            peer.keys = keys
            assert isinstance(await provider.identity_of("code", ASKED), Refusal)


@pytest.mark.parametrize(
    ("path", "answer", "message"),
    [
        ("/.well-known/openid-configuration", web.Response(status=404), "answers 404 to"),
        ("/.well-known/openid-configuration", web.Response(text="<html>"), "with something else"),
        ("/.well-known/openid-configuration", web.Response(body=b" " * 2_000_000), "than 1 MiB"),
        ("/token", web.Response(status=500, text="secret"), "answers 500 to"),
        ("/token", web.Response(status=302, headers={"Location": "http://evil"}), "answers 302 to"),
        ("/token", web.json_response({"error": "invalid_client"}, status=401), "invalid_client"),
        ("/keys", web.Response(text="[]"), "with something else"),
    ],
)
async def test_a_provider_that_fails_is_named_with_what_it_did(
    path: str, answer: web.Response, message: str
) -> None:
    async with provided() as (peer, provider, _):
        peer.answers[path] = answer
        with pytest.raises(OutsideError) as caught:
            await provider.identity_of("code", ASKED)
    assert caught.value.what.startswith(f"the OpenID Connect provider `{peer.issuer}`")
    assert message in caught.value.what
    assert "s3cret" not in str(caught.value)


async def test_a_provider_that_calls_itself_something_else_is_refused_with_the_spelling() -> None:
    async with provided() as (peer, provider, _):
        peer.described = {"issuer": f"{peer.issuer}/"}
        with pytest.raises(OutsideError) as caught:
            await provider.sign_in_address(ASKED)
    assert caught.value.hint == f"set --oidc-issuer to `{peer.issuer}/`"


async def test_no_secret_is_sent_in_the_clear() -> None:
    async with provided() as (peer, provider, _):
        peer.described = {"token_endpoint": "http://sso.example/token"}
        with pytest.raises(OutsideError) as caught:
            await provider.identity_of("code", ASKED)
    assert "`http://sso.example/token`, which is not https" in caught.value.what


async def test_a_used_code_and_a_missing_token_are_refusals() -> None:
    async with provided() as (peer, provider, _):
        peer.answers["/token"] = web.json_response({"error": "invalid_grant"}, status=400)
        assert await provider.identity_of("code", ASKED) == Refusal(
            "the provider does not accept the code: it was used, or is too old"
        )
        peer.answers["/token"] = web.json_response({"access_token": "a"})
        assert await provider.identity_of("code", ASKED) == Refusal(
            "the provider returns no ID token; the scope must have openid"
        )


GOOD = OidcSettings("https://sso.example/realm", "console")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"issuer": "http://sso.example"}, "the issuer `http://sso.example` is no https address"),
        ({"issuer": "sso.example"}, "the issuer `sso.example` is no https address"),
        ({"issuer": "https://u:p@sso.example"}, "is no https address"),
        ({"issuer": "https://[::"}, "is no https address"),
        ({"client_id": ""}, "the OpenID Connect client has no id"),
        ({"user_claim": "name"}, "`name` cannot name a user"),
        ({"scopes": ("profile",)}, "the scopes do not have `openid`"),
    ],
)
def test_settings_that_sign_no_user_in_are_refused(change: dict[str, Any], what: str) -> None:
    check_settings(GOOD)
    with pytest.raises(UserError) as caught:
        check_settings(structs.replace(GOOD, **change))
    assert what in caught.value.what
