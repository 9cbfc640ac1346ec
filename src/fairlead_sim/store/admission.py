"""Admission before a write or a deletion: mutating policies change the object, validating ones
refuse it.

It is called for the cluster's own controllers, too. A pod that a ReplicaSet creates from a template
is judged like one that a user creates; only status, and what kubelets write to their pods, is not
admitted.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from fairlead_sim.schema.resource import ResourceKind

Object = dict[str, Any]

CREATE = "CREATE"
UPDATE = "UPDATE"
DELETE = "DELETE"


class Write(NamedTuple):
    """`user` sends the request, "" = a part of the cluster itself. `old` is None for a create;
    for a deletion `new` is the same object.
    `subresource`: `binding`, `token`, or ""; of a token, `new` is the TokenRequest and `old` the
    ServiceAccount."""

    verb: str
    ref: ResourceKind
    user: str
    new: Object
    old: Object | None = None
    subresource: str = ""


class Admission(Protocol):
    """Mutating and validating admission of a write."""

    def __call__(self, write: Write) -> Object:
        """The object to store. Raises ApiStatus for what may not be written."""
        ...
