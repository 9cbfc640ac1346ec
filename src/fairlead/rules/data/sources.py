"""A source of a data set that is no claim: what it may be, and checks before it is mounted.

Specification: docs/spec/datasets.md#other-sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from fairlead.model.installed.finding import Finding, State
from fairlead.model.jobs.acceleration import Acceleration, AccelerationFacts, CachedSource
from fairlead.rules.data.acceleration import check_cache

UNKNOWN_MEMORY: Final = 16 << 30
"""Bytes of memory of one worker, if no quota is named and the size of the source is unknown."""
KEY_OPTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "s3": ("aws.accessKeyId", "aws.secretKey"),
    "oss": ("fs.oss.accessKeyId", "fs.oss.accessKeySecret"),
}
"""Alluxio's options for the two keys of an object store, by the scheme of the source."""
ENDPOINT_OPTIONS: Final[Mapping[str, str]] = {
    "s3": "alluxio.underfs.s3.endpoint",
    "oss": "fs.oss.endpoint",
}
DEFAULT_KEYS: Final = ("accessKeyId", "accessKeySecret")
"""Names of both keys in a Secret, if none are named."""
SECRET_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
SECRET_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)
_URI: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([^\s/?#]*)((?:[/?#]\S*)?)", re.ASCII)
_MASKED_PARTS: Final = ("@", "?", "#")


def uri_fault(uri: str) -> tuple[str, str]:
    """Why it is no source, and what is one; ("", "") = it is one. No part that may be a key is
    repeated.

    >>> uri_fault("s3://bucket/faces"), uri_fault("bucket")[0]
    (('', ''), '`bucket` has no scheme')
    """
    example = "as `s3://bucket/folder`, `oss://bucket/folder`, `https://host/folder`, `pvc://claim`"
    if "://" not in uri:
        shown = "it" if any(each in uri for each in _MASKED_PARTS) else f"`{uri}`"
        return f"{shown} has no scheme", f"a URI {example}"
    scheme, place, rest = _parts(uri)
    if not scheme:
        return "it is no URI", f"without blanks, {example}"
    if "@" in place or "?" in rest:
        return (
            f"it names a user, a password or a query after `{scheme}://`",
            "put keys into a Secret: --from-secret",
        )
    if scheme == "dataset":
        return (
            f"`{uri}` is a data set",
            "pods of other namespaces mount it by a Dataset of their own, without a cache",
        )
    if not place and not (scheme in ("local", "hdfs") and len(rest) > 1):
        return f"`{uri}` names no place", f"a URI {example}"
    return "", ""


def scheme_of(uri: str) -> str:
    """
    >>> scheme_of("oss://bucket/faces")
    'oss'
    """
    return _parts(uri)[0]


def _parts(uri: str) -> tuple[str, str, str]:
    found = _URI.fullmatch(uri)
    return (found[1], found[2], found[3]) if found else ("", "", "")


def check_source(
    facts: AccelerationFacts,
    chosen: Acceleration,
    source: CachedSource,
    secrets: Mapping[str, bool | None],
) -> list[Finding]:
    """All checks. `secrets`: whether each named Secret exists; None = it may not be read."""
    return [
        *(_secret(chosen.namespace, name, is_there) for name, is_there in secrets.items()),
        *([] if secrets else _keys(source)),
        *check_cache(facts, chosen),
    ]


def _secret(namespace: str, name: str, is_there: bool | None) -> Finding:
    if is_there is None:
        mend = f"the right to get this Secret in `{namespace}` makes it known"
        return Finding("secret", State.UNKNOWN, f"the Secret `{name}` may not be read", mend)
    if is_there:
        return Finding("secret", State.OK, f"the Secret `{name}` exists")
    mend = f"`kubectl -n {namespace} create secret generic {name} --from-file=KEY=FILE`"
    return Finding("secret", State.FAIL, f"there is no Secret `{namespace}/{name}`", mend)


def _keys(source: CachedSource) -> list[Finding]:
    if scheme_of(source.uri) not in KEY_OPTIONS:
        return []
    sentence = "no Secret is named: this works for a public bucket only"
    return [Finding("secret", State.WARN, sentence, "--from-secret names one with both keys")]
