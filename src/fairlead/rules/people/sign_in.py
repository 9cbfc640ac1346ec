"""Sign-ins: their cookie, how long they last, how often one may try, and where a browser goes after.

The cookie is a random id with a signature. The store has only a hash of the id: a copy of the store
signs in nowhere, and a made-up id costs no look into the store.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from fairlead.model.records.sign_ins import SignIn

ID_BYTES: Final = 32
KEY_BYTES: Final = 32
IDLE_MS: Final = 8 * 3_600_000
LONGEST_MS: Final = 24 * 3_600_000
"""A sign-in ends when it is not used for `IDLE_MS`, and `LONGEST_MS` after it began."""
CODE_SECONDS: Final = 600.0
"""The time in which a one-time code works."""
OIDC_SECONDS: Final = 600.0
"""The time in which a user signs in at the OIDC provider."""
TRIES_MAX: Final = 10
TRIES_SECONDS: Final = 60.0
TOKEN_MAX: Final = 16_384
"""Characters of a token. Those of API servers have one or two thousand."""
_NEXT_MAX: Final = 2_048
_CLIENTS_MAX: Final = 10_000
_SIGNED_FOR: Final = b"fairlead sign-in\0"


def hash_of(secret: bytes) -> str:
    """What the store keeps of an id or a key: 64 hexadecimal digits."""
    return hashlib.sha256(secret).hexdigest()


def csrf_of(id: bytes) -> str:
    """What every write of this sign-in must send back. It does not reveal the id."""
    return _text(hmac.digest(id, b"fairlead csrf", "sha256"))


def signed_cookie(id: bytes, key: bytes) -> str:
    """The value of the cookie."""
    return f"{_text(id)}.{_text(_signature(id, key))}"


def id_of_cookie(cookie: str, keys: Sequence[bytes]) -> bytes | None:
    """The id in a cookie that one of the keys signed; None for any other text.

    >>> key, other = b"k" * 32, b"o" * 32
    >>> id_of_cookie(signed_cookie(b"i" * 32, key), (other, key)) == b"i" * 32
    True
    >>> id_of_cookie(signed_cookie(b"i" * 32, other), (key,)) is None
    True
    """
    left, dot, right = cookie.partition(".")
    id, signature = _bytes(left), _bytes(right)
    if not dot or id is None or signature is None or len(id) != ID_BYTES:
        return None
    is_signed = [hmac.compare_digest(signature, _signature(id, key)) for key in keys]
    return id if any(is_signed) else None


def derived(key: bytes, purpose: str, state: str) -> str:
    """A secret that belongs to a state and is kept nowhere: nonce and verifier of a sign-in at an
    OIDC provider.
    """
    return _text(hmac.digest(key, f"fairlead {purpose}\0{state}".encode(), "sha256"))


def is_over(sign_in: SignIn, now: int) -> bool:
    """`now`: milliseconds."""
    return now >= sign_in.ends_at or now >= sign_in.seen_at + IDLE_MS


def local_path(next: str) -> str:
    """Where a browser goes after signing in: a path below the console, "/" for anything else.

    >>> local_path("/jobs?page=2"), local_path("//evil.example/"), local_path("https://evil.example")
    ('/jobs?page=2', '/', '/')
    >>> local_path("/\\\\evil.example"), local_path("/a\\n/b"), local_path("/a/../../b")
    ('/', '/', '/')
    """
    path = next.partition("?")[0].partition("#")[0]
    is_local = (
        next.startswith("/")
        and not next.startswith("//")
        and "\\" not in next
        and next.isascii()
        and next.isprintable()
        and " " not in next
        and "%" not in path
        and not {"..", "."}.intersection(path.split("/"))
        and len(next) <= _NEXT_MAX
    )
    return next if is_local else "/"


class Tries:
    """How often a client may fail to sign in: `TRIES_MAX` times in `TRIES_SECONDS`."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, list[float]] = OrderedDict()

    def begin(self, client: str, now: float) -> float:
        """Count one try. The seconds after which the client may try again, 0 = it may now."""
        past = [at for at in self._failed.pop(client, ()) if now - TRIES_SECONDS < at <= now]
        self._failed[client] = past
        while len(self._failed) > _CLIENTS_MAX:
            self._failed.popitem(last=False)
        if len(past) >= TRIES_MAX:
            return max(1.0, past[0] + TRIES_SECONDS - now)
        past.append(now)
        return 0.0

    def succeeded(self, client: str) -> None:
        """The last try does not count."""
        past = self._failed.get(client)
        if past:
            past.pop()


def _signature(id: bytes, key: bytes) -> bytes:
    return hmac.digest(key, _SIGNED_FOR + id, "sha256")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes | None:
    """None for what `_text` does not make: each value has one spelling."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    return data if _text(data) == text else None
