"""The resource that a request path names.

`/api/v1/namespaces/a/pods/b/log` is subresource `log` of pod `b`; `/api/v1/namespaces/a/status` is
a subresource of the namespace, and `/api/v1/namespaces/a` the namespace itself: the one place where
the grammar is not regular.
"""

from __future__ import annotations

from dataclasses import dataclass

_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """What a path addresses; `namespace` is None across namespaces and for cluster-wide kinds,
    `name` is "" for a collection.
    """

    group: str
    version: str
    plural: str
    namespace: str | None = None
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> ResourcePath | None:
    """The resource of a path below `/api/V/` or `/apis/G/V/`; None for any other path.

    >>> path = parse_path("/apis/apps/v1/namespaces/default/deployments/web/scale")
    >>> path.group, path.version, path.plural, path.namespace, path.name, path.subresource
    ('apps', 'v1', 'deployments', 'default', 'web', 'scale')
    """
    steps = path.strip("/").split("/")
    if steps[0] == "api" and len(steps) > 2:
        group, version, rest = "", steps[1], steps[2:]
    elif steps[0] == "apis" and len(steps) > 3:
        group, version, rest = steps[1], steps[2], steps[3:]
    else:
        return None
    namespace: str | None = None
    if (
        rest[0] == "namespaces"
        and len(rest) > 2
        and not (not group and rest[2] in _OF_NAMESPACES and len(rest) == 3)
    ):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or "" in rest:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return ResourcePath(group, version, plural, namespace, name, subresource)
