"""The check of an ID token: signature, issuer, audience, times (all by PyJWT) and nonce.

Only asymmetric signatures count. With a shared secret, or with `none`, a client could sign for
itself.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, Final

import jwt
from msgspec import Struct

from fairlead.model.people.external import ExternalIdentity
from fairlead.model.refusal import Refusal

LEEWAY_SECONDS: Final = 60
"""By how much the clocks of provider and console may differ."""
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
_REQUIRED: Final = ("iss", "sub", "aud", "exp", "iat")
_REASONS: Final[Mapping[type[jwt.PyJWTError], str]] = {
    jwt.ExpiredSignatureError: "it has expired; compare the clocks of provider and console",
    jwt.ImmatureSignatureError: "it is not valid yet; compare the clocks of provider and console",
    jwt.InvalidAudienceError: "it is for another client",
    jwt.InvalidIssuerError: "it is of another issuer",
    jwt.InvalidAlgorithmError: f"its signature is none of {', '.join(ALGORITHMS)}",
    jwt.InvalidSignatureError: "its signature is wrong",
    jwt.MissingRequiredClaimError: f"it lacks one of the claims {', '.join(_REQUIRED)}",
}


class ExpectedToken(Struct, frozen=True):
    """`user_claim`: the claim that names the user: `sub`, or `email` if it is verified."""

    issuer: str
    client_id: str
    nonce: str
    user_claim: str = "sub"


class TokenHeader(Struct, frozen=True):
    """`key_id`: of the key that signed it, "" if it names none."""

    key_id: str
    algorithm: str


def parse_header(token: str) -> TokenHeader | Refusal:
    """What a token claims of its signature."""
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError:
        return _refusal("it is malformed")
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS:
        return _refusal(_REASONS[jwt.InvalidAlgorithmError])
    return TokenHeader(str(header.get("kid") or ""), str(algorithm))


def signing_key(keys: Mapping[str, dict[str, Any]], header: TokenHeader) -> jwt.PyJWK | None:
    """The key of this id for this algorithm. A token that names no id is of the only key, if there
    is one alone. `keys`: JSON Web Keys by id.
    """
    named = header.key_id
    found = keys.get(named) if named else next(iter(keys.values())) if len(keys) == 1 else None
    if found is None:
        return None
    try:
        return jwt.PyJWK(found, str(found.get("alg") or header.algorithm))
    except jwt.PyJWTError:
        return None  # it is not a key for this algorithm


def checked_identity(
    token: str, key: jwt.PyJWK, expected: ExpectedToken
) -> ExternalIdentity | Refusal:
    """The user of an ID token that is right in every respect, else why it is not."""
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=list(ALGORITHMS),
            audience=expected.client_id,
            issuer=expected.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": list(_REQUIRED)},
        )
    except jwt.PyJWTError as error:
        reasons = (text for kind, text in _REASONS.items() if isinstance(error, kind))
        return _refusal(next(reasons, "it is malformed"))
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(
        nonce.encode(), expected.nonce.encode()
    ):
        return _refusal("its nonce is not the one of this sign-in")
    return _authorized(claims, expected)


def _authorized(claims: Mapping[str, Any], expected: ExpectedToken) -> ExternalIdentity | Refusal:
    party = claims.get("azp")
    has_several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if party != expected.client_id if party is not None else has_several:
        return _refusal("it is for another client")
    claim = expected.user_claim
    uid = claims.get(claim)
    if not isinstance(uid, str) or not uid:
        return _refusal(f"it has no claim `{claim}`, which names the user")
    if claim == "email" and claims.get("email_verified") is not True:
        return _refusal(f"the provider has not verified the address `{uid[:200]}`")
    names = (claims.get(each) for each in ("name", "preferred_username", "email"))
    name = next((each for each in names if isinstance(each, str) and each), uid)
    return ExternalIdentity(expected.issuer, uid, name)


def _refusal(why: str) -> Refusal:
    return Refusal(f"the ID token of the provider is not accepted: {why}")
