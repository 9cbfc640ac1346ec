"""How arena writes down whose a job is, and who may see everybody's (docs/spec/arena-cli.md#whoami,
docs/spec/arena-cli.md#isolation-of-users).

A person's id is a name that fits into a label, no secret. Administrators stand in a ConfigMap of arena's own
namespace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

CONFIG_MAP: Final = "arena-config"
_ADMINS: Final = "adminUsers"


def person_id(name: str) -> str:
    """What stands in the label `arena.kubeflow.org/uid` of a person's jobs.

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
