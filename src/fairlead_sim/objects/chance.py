"""Chance from the seed and the names of what is decided, never from one shared stream.

So adding a pod does not move another pod's numbers. The hash is BLAKE2, not `hash()`, so that
`PYTHONHASHSEED` changes nothing.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from random import Random

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated names: no vowels, no digits that look
like letters (as Kubernetes does).
"""


def digest(seed: int, *names: object) -> bytes:
    """16 bytes that depend on the seed and on every name, in order."""
    text = "\x1f".join((str(seed), *map(str, names)))
    return blake2b(text.encode(), digest_size=16).digest()


def chance(seed: int, *names: object) -> Random:
    """A generator of its own for one concern, e.g. `chance(seed, "pull", node, image)`."""
    return Random(digest(seed, *names))


def fraction(seed: int, *names: object) -> float:
    """One number in [0, 1) without the cost of a generator.

    >>> fraction(1, "a") == fraction(1, "a") != fraction(1, "b")
    True
    """
    return int.from_bytes(digest(seed, *names)[:7], "big") / (1 << 56)


def between(seed: int, low: float, high: float, *names: object) -> float:
    return low + (high - low) * fraction(seed, *names)


def uuid_of(seed: int, *names: object) -> str:
    """A random-looking UUID (version 4 shape).

    >>> len(uuid_of(1, "gpu")), uuid_of(1, "gpu")[14]
    (36, '4')
    """
    text = digest(seed, *names).hex()
    variant = "89ab"[int(text[16], 16) % 4]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


@lru_cache(maxsize=65536)
def suffix_of(seed: int, *names: object) -> str:
    """Five letters as Kubernetes appends to generated names."""
    raw = digest(seed, *names)
    return "".join(SUFFIX_LETTERS[byte % len(SUFFIX_LETTERS)] for byte in raw[:5])
