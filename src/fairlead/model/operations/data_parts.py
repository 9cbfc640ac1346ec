"""The objects of one data set, as operations refer to them."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.actions import ObjectRef
from fairlead.model.jobs.datasets import FLUID_API


class DataSetParts(Struct, frozen=True):
    """All objects of one data set, as read. `data_set`: None if only others are left.

    `rest`: what Fluid made for it, in the order in which it is shown: its claim, volume
    (`NAMESPACE-NAME`), the ConfigMaps of its Helm release, the pods of its cache.
    """

    namespace: str
    name: str
    data_set: ObjectRef | None = None
    runtimes: tuple[ObjectRef, ...] = ()
    rest: tuple[ObjectRef, ...] = ()

    @property
    def removed(self) -> tuple[ObjectRef, ...]:
        """What is deleted; Fluid removes the rest."""
        return (*((self.data_set,) if self.data_set else ()), *self.runtimes)


def fluid_ref(kind: str, namespace: str, name: str, uid: str = "") -> ObjectRef:
    """
    >>> fluid_ref("AlluxioRuntime", "n", "d").plural
    'alluxioruntimes'
    """
    return ObjectRef(FLUID_API, kind, name, namespace, uid, f"{kind.lower()}s")
