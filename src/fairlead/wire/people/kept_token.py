"""The file in which `fairlead login` keeps a token, and the cluster that kubectl names to it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.model.people.record import KeptToken

_KIND: Final = "FairleadCredential"


class _File(msgspec.Struct, frozen=True):
    kind: str
    credential: KeptToken


def is_kept_token(data: bytes) -> bool:
    """Whether the bytes are such a file, so that it may be replaced."""
    try:
        parse_kept_token(data)
    except ValueError:
        return False
    return True


def render_kept_token(token: KeptToken) -> bytes:
    """The file. It is as secret as a password."""
    return msgspec.json.format(msgspec.json.encode(_File(_KIND, token))) + b"\n"


def parse_kept_token(data: bytes) -> KeptToken:
    """Raises ValueError; its text never has a part of the file, which may be another secret."""
    try:
        found = msgspec.json.decode(data, type=_File)
    except msgspec.DecodeError as error:
        raise ValueError("it is not a file of `fairlead kubeconfig create --exec`") from error
    if found.kind != _KIND or not found.credential.token:
        raise ValueError("it is not a file of `fairlead kubeconfig create --exec`")
    return found.credential


def parse_exec_info(text: str) -> dict[str, Any]:
    """The cluster in KUBERNETES_EXEC_INFO, with the names of a kubeconfig's fields.

    Raises ValueError if there is none.
    """
    if not text:
        raise ValueError("the variable KUBERNETES_EXEC_INFO is not set")
    try:
        cluster = msgspec.json.decode(text)["spec"]["cluster"]
    except (msgspec.DecodeError, LookupError, TypeError) as error:
        raise ValueError(
            "KUBERNETES_EXEC_INFO names no cluster; set `provideClusterInfo: true` in the "
            "kubeconfig"
        ) from error
    if not isinstance(cluster, dict):
        raise ValueError("KUBERNETES_EXEC_INFO has a cluster that is no object")
    return cluster
