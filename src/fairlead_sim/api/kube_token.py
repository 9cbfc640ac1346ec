"""The tokens of ServiceAccounts: their claims and their signature.

A JWT as any client expects it, signed with one secret key (HS256): the same claims give the same
token, and only the server that signed it can verify it. The reader checks whether its account still
exists and whether it has expired.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import msgspec
from msgspec import Struct, field

ISSUER = "https://kubernetes.default.svc"
"""Also the audience of tokens that name no other."""


class Named(Struct, frozen=True):
    """An object that a token is bound to; another one of the same name is not it."""

    name: str
    uid: str


class Bound(Struct, frozen=True, omit_defaults=True):
    """The claim `kubernetes.io`."""

    namespace: str
    serviceaccount: Named
    pod: Named | None = None
    secret: Named | None = None
    node: Named | None = None


class Claims(Struct, frozen=True):
    """The claims of a token; times are whole epoch seconds."""

    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str
    jti: str
    bound: Bound = field(name="kubernetes.io")
    nbf: int
    sub: str


def render_token(claims: Claims, key: bytes) -> str:
    """The signed token."""
    header = {"alg": "HS256", "kid": _encoded(hashlib.sha256(key).digest())[:16]}
    signed = f"{_encoded(msgspec.json.encode(header))}.{_encoded(msgspec.json.encode(claims))}"
    return f"{signed}.{_signature(signed, key)}"


def parse_token(text: str, key: bytes) -> Claims | None:
    """The claims of a token that was signed with `key`; None for everything else."""
    signed, _, signature = text.rpartition(".")
    if not hmac.compare_digest(_signature(signed, key).encode(), signature.encode()):
        return None
    return msgspec.json.decode(_decoded(signed.partition(".")[2]), type=Claims)


def looks_like_token(text: str) -> bool:
    """Whether it has the form of such a token, with any signature."""
    try:
        header, claims, _ = text.split(".")
        return all(
            isinstance(msgspec.json.decode(_decoded(part)), dict) for part in (header, claims)
        )
    except ValueError:
        return False


def token_id(*parts: Any) -> str:
    """A UUID by its looks, always the same for the same parts."""
    text = hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def _signature(signed: str, key: bytes) -> str:
    return _encoded(hmac.new(key, signed.encode(), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
