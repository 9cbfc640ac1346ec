"""Decides by a name whether its value is a secret: `HF_TOKEN`, `redis-password`, `Authorization`.

A name is split into words at punctuation and capitals, and the words decide; the value itself is
never examined. The time is linear in the length of the name.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

LONGEST_NAME: Final = 256
"""Characters of a name that is split into words; a longer one is searched for substrings only."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_IN_A_WORD: Final = (
    "secret",
    "passw",
    "passphrase",
    "credential",
    "htpasswd",
    "dockerconfig",
    "authorization",
)
_ENDS_A_WORD: Final = ("token", "tokens", "key", "keys", "pwd", "apipass", "dbpass")
_WHOLE_WORDS: Final = frozenset(
    ("pass", "bearer", "cookie", "cookies", "jwt", "sk", "dockercfg", "pat")
)
_COUNTS_TOKENS: Final = frozenset(
    ("max", "min", "num", "batched", "eos", "bos", "pad", "unk", "mask", "count")
)
"""Words that make `token` a unit of text in language models: `--max-tokens`."""
_REFERENCES: Final = frozenset(
    (
        *(
            "name",
            "names",
            "ref",
            "refs",
            "class",
            "namespace",
            "type",
            "path",
            "file",
            "dir",
            "url",
            "uri",
            "endpoint",
        ),
        *("host", "port", "mode", "seconds", "version", "length", "size", "optional", "provider"),
    )
)
"""Last words of names whose value is a place or kind of a secret: `secretName`, `TOKEN_PATH`."""
_STRUCTURE: Final = frozenset(
    (
        *(
            "topologyKey",
            "matchLabelKeys",
            "mismatchLabelKeys",
            "imagePullSecrets",
            "imagePullSecret",
            "image_pull_secrets",
        ),
        *("automountServiceAccountToken", "key"),
    )
)
"""Fields of Kubernetes and its operators that refer to secrets and keys but contain none."""
_STRUCTURE_ABOVE: Final = frozenset(
    ("serviceAccountToken", "tokenRequests", "secrets", "secret", "keys", "envSecretKeyRefs")
)
"""Fields with names of Secrets below them, in a map or list.

A text in place of those is a secret.
"""


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether the value of a variable, a flag, a header or a property is a secret, by its name.

    >>> all(map(is_secret_name, ("HF_TOKEN", "--api-key", "akSecret", "DBPASSWORD", "key")))
    True
    >>> any(map(is_secret_name, ("MODEL", "max-tokens", "tokenizer", "secretName", "PWD", "")))
    False
    """
    if name in ("PWD", "OLDPWD"):
        return False
    if len(name) > LONGEST_NAME:
        return any(part in name.lower() for part in (*_IN_A_WORD, *_ENDS_A_WORD))
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or (len(words) > 1 and words[-1] in _REFERENCES):
        return False
    if words[-1] == "auth":
        return True
    return any(_is_secret_word(word, words) for word in words)


def is_secret_field(name: str, *, is_text: bool) -> bool:
    """As `is_secret_name`, for a key of an object.

    A field with the name of a Secret or of a label is none.

    `is_text`: its value is a text or a number.

    >>> names = ("akSecret", "secret", "topologyKey", "key", "aRef")
    >>> [is_secret_field(name, is_text=True) for name in names]
    [True, True, False, False, False]
    >>> is_secret_field("secret", is_text=False)
    False
    """
    if name in _STRUCTURE or (name in _STRUCTURE_ABOVE and not is_text):
        return False
    return is_secret_name(name)


def _is_secret_word(word: str, words: list[str]) -> bool:
    if word in ("token", "tokens"):
        return _COUNTS_TOKENS.isdisjoint(words)
    return (
        word in _WHOLE_WORDS
        or word.endswith(_ENDS_A_WORD)
        or any(part in word for part in _IN_A_WORD)
    )
