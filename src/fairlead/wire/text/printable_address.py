"""Addresses as sentences, logs, answers and reports may show them: without the user and password before `@`.

Every address that a person wrote (a flag, a variable, a field of a kubeconfig) goes through here before it is
printed.
"""

from __future__ import annotations

import re
from typing import Final

_ADDRESS: Final = re.compile(r"(https?://)([^\s`\"'<>]*+)|(://)(?:[^\s`\"'<>/@]*+@)++", re.IGNORECASE)
"""Of http up to the last `@` of a word: a password may hold a `/`, `?`, `#` or `@` that nobody encoded. Of
other schemes up to the first `/`: `oci://registry/model@sha256:…` has no user."""


def printable_address(address: str) -> str:
    """One address without its userinfo, also one that cannot be parsed.

    Everything up to the last `@` is taken away, because a password may hold any letter.

    >>> printable_address("http://ann:p/w@proxy:3128"), printable_address("ann:pw@proxy:3128")
    ('http://proxy:3128', 'proxy:3128')
    """
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address.rpartition("@")[2]
    if "@" in scheme:  # `u:p://w@host`: the password begins before what looks like the end of a scheme
        return address.rpartition("@")[2]
    return f"{scheme}://{rest.rpartition('@')[2]}"


def without_userinfo(text: str) -> str:
    """A text without the userinfo of the URLs in it.

    >>> without_userinfo("no way to `https://ann:pw@host:1/x`, ask ann@example.com")
    'no way to `https://host:1/x`, ask ann@example.com'
    """
    return _ADDRESS.sub(_without, text) if "@" in text else text


def _without(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2].rpartition('@')[2]}" if found[1] else found[3]
