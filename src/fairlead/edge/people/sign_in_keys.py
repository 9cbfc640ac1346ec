"""The key that signs the console's cookies, in a Secret that all replicas read.

The first console makes it. Its rights are to read this one Secret, and to create Secrets, which a
policy limits to its name (`wire/installation/policies/console_policies`).
"""

from __future__ import annotations

import base64
import binascii
import secrets
from typing import Any, Final

from fairlead.edge.files.sign_in_key import key_of
from fairlead.edge.kube.api_failure import Conflict
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.resource import SECRETS
from fairlead.errors import NotFound, OutsideError

KEY: Final = "key"
OLD_KEY: Final = "old-key"
_KEY_BYTES: Final = 32
_TRIES: Final = 3


async def kept_keys(api: KubeApi, namespace: str, name: str) -> tuple[bytes, ...]:
    """The key of this Secret, made where it is missing; then the one of the time before, if it has
    one.

    Raises UserError for a key that is too short, OutsideError if the Secret cannot be read or made.
    """
    for _ in range(_TRIES):
        try:
            found = await api.get(SECRETS, name, namespace)
        except NotFound:
            found = await _made(api, namespace, name)
        if found is not None:
            data = found.get("data") or {}
            return tuple(
                key_of(_decoded(data.get(each, "")), f"{each}` of Secret `{namespace}/{name}")
                for each in (KEY, *((OLD_KEY,) if OLD_KEY in data else ()))
            )
    raise OutsideError("kubernetes", f"Secret `{namespace}/{name}` comes and goes", "try again")


def _decoded(text: str) -> bytes:
    """Empty for what is no base64."""
    try:
        return base64.b64decode(text, validate=True).strip()
    except binascii.Error:
        return b""


async def _made(api: KubeApi, namespace: str, name: str) -> Any:
    """None if another replica has made it meanwhile."""
    key = base64.b64encode(secrets.token_hex(_KEY_BYTES).encode()).decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/part-of": "fairlead"},
        },
        "data": {KEY: key},
    }
    try:
        return await api.create(SECRETS, secret, namespace)
    except Conflict:
        return None
