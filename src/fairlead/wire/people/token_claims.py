"""The claims of a token of a ServiceAccount that the API server has accepted.

The signature is not verified here. A token that the API server did not accept must not be read.
"""

from __future__ import annotations

import base64

import msgspec
from msgspec import Struct, field

from fairlead.model.people.token_bounds import NO_BOUNDS, BoundObject, TokenBounds
from fairlead.settings import USERS_NAMESPACE


class _Named(Struct, frozen=True):
    name: str = ""
    uid: str = ""


class _Bound(Struct):
    namespace: str = ""
    serviceaccount: _Named = _Named()
    secret: _Named | None = None


class _Claims(Struct):
    exp: float | None = None
    bound: _Bound = field(name="kubernetes.io", default_factory=_Bound)


def token_bounds(token: str) -> TokenBounds:
    """When the token ends. A text that is no such token has no bounds.

    >>> token_bounds("e30.eyJleHAiOjYwfQ.sig")  # {}.{"exp":60}
    TokenBounds(expires_at=60.0, bound=None)
    >>> token_bounds("opaque")
    TokenBounds(expires_at=None, bound=None)
    """
    parts = token.split(".")
    if len(parts) != 3:
        return NO_BOUNDS
    try:
        claims = msgspec.json.decode(
            base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims
        )
    except (ValueError, msgspec.MsgspecError):
        return NO_BOUNDS
    return TokenBounds(claims.exp, _object(claims.bound))


def _object(bound: _Bound) -> BoundObject | None:
    """The Secret, else the ServiceAccount. Of other namespaces the console may read neither."""
    if bound.namespace != USERS_NAMESPACE:
        return None
    named, plural = bound.secret, "secrets"
    if named is None:
        named, plural = bound.serviceaccount, "serviceaccounts"
    has_form = named.name and named.uid and "/" not in named.name + named.uid
    return BoundObject(plural, named.name, named.uid) if has_form else None
