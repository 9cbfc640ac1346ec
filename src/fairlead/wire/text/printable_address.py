"""Addresses for messages, logs, answers and reports: without the user and password before `@`.

Every address that a person wrote (a flag, a variable, a field of a kubeconfig) passes through this
module before it is printed.
"""

from __future__ import annotations

import re
from typing import Final

_ADDRESS: Final = re.compile(
    r"(https?://)([^\s`\"'<>]*+)|(://)(?:[^\s`\"'<>/@]*+@)++", re.IGNORECASE
)
"""http: up to the last `@` of a word, since a password may contain an unencoded `/`, `?`, `#` or
`@`. Other schemes: up to the first `/`, since `oci://registry/model@sha256:…` has no user.
"""


def printable_address(address: str) -> str:
    """One address without its userinfo, even if it cannot be parsed.

    Everything up to the last `@` is removed, because a password may contain any character.

    >>> printable_address("http://ann:p/w@proxy:3128"), printable_address("ann:pw@proxy:3128")
    ('http://proxy:3128', 'proxy:3128')
    """
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address.rpartition("@")[2]
    if "@" in scheme:  # `u:p://w@host`: the password contains what looks like the end of a scheme
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
