"""Whose a pod is, in the word that a person used: the Deployment, not the ReplicaSet that it made."""

from __future__ import annotations

from typing import Final

from fairlead.model.pod import Owner, Pod

_HASH: Final = "pod-template-hash"


def named_owner(pod: Pod) -> Owner | None:
    """The controller of the pod; None = nobody made it but a person.

    A Deployment calls its ReplicaSets by its own name and the hash that their pods bear as a label.

    >>> owners = (Owner("ReplicaSet", "web-5d", "uid", controller=True),)
    >>> owner = named_owner(Pod("a", "web-5d-x", labels={"pod-template-hash": "5d"}, owners=owners))
    >>> owner.kind, owner.name
    ('Deployment', 'web')
    """
    owner = pod.controller
    suffix = f"-{pod.labels.get(_HASH, '')}"
    if owner is not None and owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        return Owner("Deployment", owner.name.removesuffix(suffix), "", controller=True, api_version="apps/v1")
    return owner
