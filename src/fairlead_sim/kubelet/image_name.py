"""The grammar of image names (`distribution/reference`), and the kubelet's words for errors."""

from __future__ import annotations

import re
from typing import Final

_ATOM: Final = "[a-z0-9]+"
_PATH_PART: Final = rf"{_ATOM}(?:(?:[._]|__|-+){_ATOM})*"
_HOST_PART: Final = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST: Final = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_is_name = re.compile(
    rf"{_HOST}/{_PATH_PART}(?:/{_PATH_PART})*(?::{_TAG})?(?:@{_DIGEST})?"
).fullmatch
_is_identifier = re.compile("[a-f0-9]{64}").fullmatch
_HUB: Final = "docker.io"


def image_name_fault(text: str) -> str:
    """Why no image can have this name; "" for a good one.

    >>> image_name_fault("nvcr.io/nvidia/pytorch:24.01"), image_name_fault("bad image")
    ('', 'invalid reference format')
    >>> image_name_fault("Team/App")
    'invalid reference format: repository name (App) must be lowercase'
    """
    if _is_identifier(text):
        return f"invalid repository name ({text}), cannot specify 64-byte hexadecimal strings"
    host, rest = _split(text)
    repository = rest.partition(":")[0]
    if repository.lower() != repository:
        return f"invalid reference format: repository name ({repository}) must be lowercase"
    return "" if _is_name(f"{host}/{rest}") else "invalid reference format"


def _split(text: str) -> tuple[str, str]:
    """The registry, and what it holds: a first part that looks like a host is one, everything else
    is the Docker Hub's.
    """
    host, slash, rest = text.partition("/")
    if not slash:
        return _HUB, f"library/{text}"
    is_host = host == "localhost" or "." in host or ":" in host or host.lower() != host
    return (host, rest) if is_host else (_HUB, text)
