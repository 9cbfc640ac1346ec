"""A cluster that was read already: a saved snapshot, or the embedded simulated one.

Answers what a live reader would answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from fairlead.errors import OutsideError
from fairlead.model.resources import PODS
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire.kube.kept_objects import KeptObjects

Object = dict[str, Any]


class SnapshotReader:
    """A `ClusterReader` over one value.

    `description`: its origin, for messages; `objects`: further objects in it.
    """

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        description: str,
        objects: Callable[[], Sequence[Object] | None] = lambda: None,
    ) -> None:
        self._objects = objects
        self._snapshot = snapshot
        self._description = description

    def read_nodes(
        self, names: Sequence[str] = (), *, with_readings: bool = False, with_withheld: bool = False
    ) -> ClusterSnapshot:
        whole = self._snapshot
        wanted = set(names) or whole.node_by_name.keys()
        return msgspec.structs.replace(
            whole,
            nodes=tuple(node for node in whole.nodes if node.name in wanted),
            pods=tuple(pod for pod in whole.pods if pod.is_holding and pod.node in wanted),
            gpus=tuple(gpu for gpu in whole.gpus if gpu.node in wanted) if with_readings else (),
        )

    def read_all(self, *, with_warnings: bool = True) -> ClusterSnapshot:
        return self._snapshot

    def read_namespace(self, namespace: str) -> ClusterSnapshot:
        pods = self._snapshot.sources.get(PODS)
        if pods is not None and pods.is_unread:
            raise OutsideError(
                "kubernetes", f"pods cannot be read: {pods.message or pods.state}", pods.hint
            )
        return self._snapshot.within((namespace,))

    def read_objects(self) -> KeptObjects | None:
        """The `sources` of the snapshot contain what could not be read when it was saved."""
        objects = self._objects()
        return None if objects is None else KeptObjects(objects)

    def describe(self) -> str:
        return self._description
