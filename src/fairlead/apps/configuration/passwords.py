"""Checks names and passwords of HTTP's basic authentication against bcrypt hashes.

A check takes time on purpose (70 ms at cost 10): one thread does them, one after the other, so that
clients cannot occupy the event loop or the other cores. A right pair is remembered, as a digest
under a key of this process, until the hashes change.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final

import bcrypt

from fairlead.errors import UserError

KNOWN_MAX: Final = 100
"""`KNOWN_MAX`: correct passwords that are remembered.

Wrong ones are not: guesses could displace the correct ones.
"""
WAITING_MAX: Final = 100
"""`WAITING_MAX`: checks that may wait for the thread; further clients must try again later."""
_UNKNOWN_USER_HASH: Final = b"$2b$10$QQQQQQQQQQQQQQQQQQQQQOoXpFMTr3Y6oPRaBDKSW8zvBTdPLvQYC"
"""Checked for an unknown name, so that the time of an answer does not reveal which names exist."""
_BYTES_MAX: Final = 72
"""`_BYTES_MAX`: bytes that bcrypt reads; Go's programs accept longer passwords, too."""


class TooManyChecks(Exception):
    """Too many checks wait already: another one would wait for minutes."""


class Passwords:
    """The users of one reading of the file; another reading has new `Passwords`.

    Raises UserError for a hash that bcrypt cannot read: its user could never log in.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        for name, text in users.items():
            if not is_hash(text.encode()):
                raise UserError(
                    f"the password of `{name}` is a hash that bcrypt does not read",
                    f"`htpasswd -nBC 10 {name}` makes one",
                )
        self._users = {name: text.encode() for name, text in users.items()}
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, None] = {}
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def admit(self, header: str) -> bool:
        """Whether the value of an Authorization header is a user's. Raises TooManyChecks."""
        pair = _pair(header)
        if pair is None:
            return False
        name, password = pair
        digest = hmac.digest(self._key, b"%d:%s%s" % (len(name), name, password), hashlib.sha256)
        if digest in self._known:
            return True
        if self._waiting >= WAITING_MAX:
            raise TooManyChecks
        self._waiting += 1
        try:
            async with self._turn:
                return digest in self._known or await self._check(name, password, digest)
        finally:
            self._waiting -= 1

    async def _check(self, name: bytes, password: bytes, digest: bytes) -> bool:
        hashed = self._users.get(name.decode(errors="surrogateescape"))
        is_right = (
            await asyncio.to_thread(is_right_password, password, hashed or self._like())
            and hashed is not None
        )
        if is_right:
            if len(self._known) >= KNOWN_MAX:
                del self._known[next(iter(self._known))]
            self._known[digest] = None
        return is_right

    def _like(self) -> bytes:
        """A hash of no user, with the cost of the users' hashes."""
        cost = next(iter(self._users.values()), _UNKNOWN_USER_HASH).split(b"$")[2]
        return b"$2b$" + cost + _UNKNOWN_USER_HASH[6:]


def _pair(header: str) -> tuple[bytes, bytes] | None:
    """Name and password; None for anything but basic authentication."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(text.strip(), validate=True).partition(b":")
    except ValueError:
        return None
    return (name, password) if colon else None


def is_hash(hashed: bytes) -> bool:
    """Whether bcrypt can read the hash, tested at the lowest cost."""
    version, _, rest = hashed[1:].split(b"$")
    try:
        bcrypt.checkpw(b"", b"$%s$04$%s" % (version, rest))
    except ValueError:
        return False
    return True


def is_right_password(password: bytes, hashed: bytes) -> bool:
    """bcrypt compares in constant time. A malformed hash matches no password."""
    try:
        return bcrypt.checkpw(password[:_BYTES_MAX], hashed)
    except ValueError:
        return False
