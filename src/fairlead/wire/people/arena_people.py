"""How arena records the owner of a job, and which users may see the jobs of all users.

Specification: docs/spec/arena-cli.md#whoami, docs/spec/arena-cli.md#isolation-of-users.

A user's id is a hash that fits into a label; it is no secret. A ConfigMap in arena's namespace
lists the administrators.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

CONFIG_MAP: Final = "arena-config"
_ADMINS: Final = "adminUsers"


def person_id(name: str) -> str:
    """The value of the label `arena.kubeflow.org/uid` on a user's jobs.

    >>> person_id("alice")
    '6384e2b2184bcbf58eccf10ca7a6563c'
    """
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()


def parse_admins(config: Mapping[str, str]) -> frozenset[str]:
    """Names of administrators, from the data of the ConfigMap.

    >>> sorted(parse_admins({"adminUsers": "root, alice,,"})), parse_admins({})
    (['alice', 'root'], frozenset())
    """
    return frozenset(name.strip() for name in config.get(_ADMINS, "").split(",") if name.strip())
