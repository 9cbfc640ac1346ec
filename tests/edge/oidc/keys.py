"""Keys of an OpenID Connect provider."""

from __future__ import annotations

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

RSA, OTHER = (rsa.generate_private_key(65537, 2048) for _ in range(2))
CURVE = ec.generate_private_key(ec.SECP256R1())


def public(key: Any, kid: str, **more: str) -> dict[str, Any]:
    kind = jwt.algorithms.ECAlgorithm if key is CURVE else jwt.algorithms.RSAAlgorithm
    return {**json.loads(kind.to_jwk(key.public_key())), "kid": kid, **more}
