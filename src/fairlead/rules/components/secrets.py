"""Secrets in the values and manifests of a component, which records and inventories would show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fairlead.model.actions import Manifest, object_ref

_SECRETS: Final = (
    *("password", "passwd", "passphrase", "token", "credential", "apikey", "privatekey"),
    *("accesskey", "accesskeyid", "accesskeysecret", "secretkey", "clientsecret"),
)
"""Ends of keys whose value is a secret; without `s`, digits and signs, in lower case."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_URL_PASSWORD: Final = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_PEM: Final = "PRIVATE KEY-----"


def plain_secrets(values: Mapping[str, Any]) -> list[str]:
    """Paths of values that look like a secret in plain text.

    >>> plain_secrets({"db": {"password": "x", "existingSecret": "db"}, "url": "a://u:p@host/"})
    ['db.password', 'url']
    """
    return list(_paths(values, ""))


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _paths(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _paths(inner, f"{path}[{number}]")
    elif isinstance(value, str) and value and _is_secret(path, value):
        yield path


def _is_secret(path: str, value: str) -> bool:
    """`existingSecret: NAME` names one, `clientSecret: TEXT` is one."""
    if _URL_PASSWORD.search(value) or _PEM in value:
        return True
    key = re.sub(r"\[\d+\]|[-_\d]", "", path.rpartition(".")[2]).lower().removesuffix("s")
    if key.endswith(_SECRETS):
        return True
    return key.endswith("secret") and not _NAME.fullmatch(value)


def secrets_with_data(objects: Iterable[Manifest]) -> list[str]:
    """Titles of Secrets with content."""
    return [
        object_ref(each).title
        for each in objects
        if each["kind"] == "Secret" and (each.get("data") or each.get("stringData"))
    ]
