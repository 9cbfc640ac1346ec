"""Uids and generated names without randomness.

Both are hashes of (seed, counter): different for every object, equal in every run.
"""

from __future__ import annotations

from hashlib import blake2b

# The API server's alphabet for generated suffixes: no vowels, so that no words appear.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED_PREFIX = 63 - _SUFFIX_LENGTH


def is_generated(name: str, prefix: str) -> bool:
    """Whether `name` is one that the server makes of `prefix`."""
    begin, suffix = name[:-_SUFFIX_LENGTH], name[-_SUFFIX_LENGTH:]
    return begin == prefix[:_MAX_GENERATED_PREFIX] and set(suffix) <= set(_SUFFIX_ALPHABET)


class ObjectNames:
    """A source of uids and name suffixes; `counter` is all of its state."""

    def __init__(self, seed: int, counter: int = 0) -> None:
        self._seed = seed
        self.counter = counter

    def _digest(self) -> bytes:
        self.counter += 1
        return blake2b(f"{self._seed}/{self.counter}".encode(), digest_size=16).digest()

    def uid(self) -> str:
        """A version 4 UUID by its looks."""
        raw = bytearray(self._digest())
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def generated(self, prefix: str) -> str:
        """`prefix` (cut to leave room in 63 characters) and five characters."""
        number = int.from_bytes(self._digest(), "big")
        suffix = ""
        for _ in range(_SUFFIX_LENGTH):
            number, index = divmod(number, len(_SUFFIX_ALPHABET))
            suffix += _SUFFIX_ALPHABET[index]
        return prefix[:_MAX_GENERATED_PREFIX] + suffix
