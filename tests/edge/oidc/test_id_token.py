"""ID tokens that are right but for one thing. PyJWT and cryptography make them."""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.edge.oidc.keys import CURVE, OTHER, RSA, public

from fairlead.edge.oidc.id_token import (
    LEEWAY_SECONDS,
    ExpectedToken,
    checked_identity,
    parse_header,
    signing_key,
)
from fairlead.model.people.external import ExternalIdentity
from fairlead.model.refusal import Refusal

ISSUER, CLIENT, NONCE = "https://sso.example", "console", "n-0S6"


KEYS = {"k": public(RSA, "k"), "e": public(CURVE, "e"), "bound": public(RSA, "bound", alg="RS256")}


def claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    whole = {
        "iss": ISSUER,
        "sub": "1234",
        "aud": CLIENT,
        "iat": now,
        "exp": now + 300,
        "nonce": NONCE,
        "name": "Bob",
        **more,
    }
    return {key: value for key, value in whole.items() if value is not None}


def token(key: Any = RSA, algorithm: str = "RS256", kid: str | None = "k", **more: Any) -> str:
    return jwt.encode(claims(**more), key, algorithm, headers={"kid": kid} if kid else {})


def unsigned(header: dict[str, Any], **more: Any) -> str:
    parts = (json.dumps(header).encode(), json.dumps(claims(**more)).encode(), b"")
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def checked(text: str, keys: Any = KEYS, claim: str = "sub") -> ExternalIdentity | str:
    header = parse_header(text)
    if isinstance(header, Refusal):
        return header.reason.rpartition("not accepted: ")[2]
    key = signing_key(keys, header)
    if key is None:
        return "no key"
    found = checked_identity(text, key, ExpectedToken(ISSUER, CLIENT, NONCE, claim))
    return found.reason.rpartition("not accepted: ")[2] if isinstance(found, Refusal) else found


def test_a_right_token_names_its_user() -> None:
    bob = ExternalIdentity(ISSUER, "1234", "Bob")
    assert checked(token()) == bob
    assert checked(token(algorithm="PS256")) == bob
    assert checked(token(CURVE, "ES256", "e")) == bob
    assert checked(token(aud=[CLIENT, "other"], azp=CLIENT)) == bob
    assert checked(token(kid=None), {"only": KEYS["k"]}) == bob


def test_clocks_may_differ_by_a_minute() -> None:
    now = int(time.time())
    near, far = LEEWAY_SECONDS - 10, LEEWAY_SECONDS + 10
    assert isinstance(checked(token(exp=now - near)), ExternalIdentity)
    assert isinstance(checked(token(iat=now + near, nbf=now + near)), ExternalIdentity)
    assert checked(token(exp=now - far)) == (
        "it has expired; compare the clocks of provider and console"
    )
    assert checked(token(iat=now + far)) == (
        "it is not valid yet; compare the clocks of provider and console"
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"aud": "other"}, "it is for another client"),
        ({"aud": [CLIENT, "other"]}, "it is for another client"),
        ({"aud": [CLIENT, "other"], "azp": "other"}, "it is for another client"),
        ({"azp": "other"}, "it is for another client"),
        ({"iss": "https://evil.example"}, "it is of another issuer"),
        ({"iss": f"{ISSUER}/"}, "it is of another issuer"),
        ({"nonce": "other"}, "its nonce is not the one of this sign-in"),
        ({"nonce": None}, "its nonce is not the one of this sign-in"),
        ({"nonce": 7}, "its nonce is not the one of this sign-in"),
        ({"sub": None}, "it lacks one of the claims iss, sub, aud, exp, iat"),
        ({"exp": None}, "it lacks one of the claims iss, sub, aud, exp, iat"),
    ],
)
def test_a_token_of_another_purpose_is_refused(more: dict[str, Any], why: str) -> None:
    assert checked(token(**more)) == why


def test_a_signature_of_another_kind_or_key_is_refused() -> None:
    kinds = "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA"
    none = f"its signature is none of {kinds}"
    assert checked(unsigned({"alg": "none"})) == none
    assert checked(unsigned({"alg": "None", "kid": "k"})) == none
    pem = RSA.public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1)
    signed = unsigned({"alg": "HS256", "kid": "k"}).removesuffix(".")
    mac = hmac.digest(pem, signed.encode(), "sha256")
    assert checked(f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}") == none
    assert checked(token(OTHER)) == "its signature is wrong"
    assert checked(token(kid="unknown")) == "no key"
    assert checked(token(kid=None)) == "no key", "with several keys none is meant"
    assert checked(token(kid="e")) == "no key", "an elliptic key makes no RSA signature"
    assert checked(token(algorithm="PS256", kid="bound")) != ExternalIdentity(ISSUER, "1234", "Bob")
    head, body, _ = token().split(".")
    assert checked(f"{head}.{body}.") == "its signature is wrong"
    other = base64.urlsafe_b64encode(json.dumps(claims(sub="root")).encode()).rstrip(b"=").decode()
    assert checked(f"{head}.{other}.{token().split('.')[2]}") == "its signature is wrong"


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c", "....", "é.é.é"])
def test_any_text_may_be_a_token(text: str) -> None:
    assert checked(text) == "it is malformed"


def test_an_address_names_a_user_only_if_it_is_verified() -> None:
    mail = {"email": "bob@example"}
    assert checked(token(**mail, email_verified=True), claim="email") == ExternalIdentity(
        ISSUER, "bob@example", "Bob"
    )
    for verified in (False, None, "true", 1):
        why = "the provider has not verified the address `bob@example`"
        assert checked(token(**mail, email_verified=verified), claim="email") == why
    assert checked(token(), claim="email") == "it has no claim `email`, which names the user"
