"""Sign-ins: their cookie, how long they last, how often a client may try, where a browser goes.

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

from msgspec import Struct

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
_RANDOM_IN_STATE: Final = 24
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


class SignedId(Struct, frozen=True):
    """An id, and the key that signed it."""

    id: bytes
    key: bytes


def read_cookie(cookie: str, keys: Sequence[bytes]) -> SignedId | None:
    """The id in a cookie, if one of the keys signed it; None for any other text.

    >>> key, other = b"k" * 32, b"o" * 32
    >>> read_cookie(signed_cookie(b"i" * 32, key), (other, key)).id == b"i" * 32
    True
    >>> read_cookie(signed_cookie(b"i" * 32, other), (key,)) is None
    True
    """
    left, dot, right = cookie.partition(".")
    id, signature = _bytes(left), _bytes(right)
    if not dot or id is None or signature is None or len(id) != ID_BYTES:
        return None
    for key in keys:
        if hmac.compare_digest(signature, _signature(id, key)):
            return SignedId(id, key)
    return None


def new_state(random: bytes, now: int) -> bytes:
    """The id of a sign-in at an OIDC provider: it has its time in it. `random`: 24 bytes."""
    return random[:_RANDOM_IN_STATE] + now.to_bytes(ID_BYTES - _RANDOM_IN_STATE)


def state_ends_at(state: bytes) -> int:
    """Until when the sign-in at the provider must be over, in milliseconds."""
    return int.from_bytes(state[_RANDOM_IN_STATE:]) + round(OIDC_SECONDS * 1000)


def state_text(state: bytes) -> str:
    """As the provider gets it and sends it back."""
    return _text(state)


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

    def wait(self, client: str, now: float) -> float:
        """The seconds after which the client may try again; 0 = now."""
        past = self._past(client, now)
        return max(1.0, past[0] + TRIES_SECONDS - now) if len(past) >= TRIES_MAX else 0.0

    def failed(self, client: str, now: float) -> None:
        """Count one failure."""
        self._failed[client] = [*self._past(client, now), now]
        self._failed.move_to_end(client)
        while len(self._failed) > _CLIENTS_MAX:
            self._failed.popitem(last=False)

    def succeeded(self, client: str) -> None:
        """A try that was counted as a failure was none."""
        past = self._failed.get(client)
        if past:
            past.pop()

    def _past(self, client: str, now: float) -> list[float]:
        return [at for at in self._failed.get(client, ()) if now - TRIES_SECONDS < at <= now]


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
