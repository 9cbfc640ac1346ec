"""Where the objects go that a node's agent follows: into its machine."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.sharing import Withheld
from fairlead.rules.devices.machine import NodeMachine


class OwnNodeSink:
    """The node itself. `hear` is called whenever something may be different."""

    def __init__(self, machine: NodeMachine, hear: Callable[[], None]) -> None:
        self._machine = machine
        self._hear = hear

    def replace(self, rows: dict[str, Node], unreadable: Collection[str]) -> None:
        for node in rows.values():
            self._machine.node = node
        self._hear()

    def upsert(self, key: str, row: Node) -> None:
        self._machine.node = row
        self._hear()

    def remove(self, key: str) -> None:
        """A node that registers anew is heard of again; until then what is known of it stands."""


class OwnPodsSink:
    """The pods of the node, by uid."""

    def __init__(self, machine: NodeMachine, hear: Callable[[], None]) -> None:
        self._machine = machine
        self._hear = hear

    def replace(self, rows: dict[str, Pod], unreadable: Collection[str]) -> None:
        known = self._machine.pods or {}
        self._machine.pods = {**{uid: known[uid] for uid in unreadable if uid in known}, **rows}
        self._hear()

    def upsert(self, key: str, row: Pod) -> None:
        if self._machine.pods is not None:
            self._machine.pods[key] = row
        self._hear()

    def remove(self, key: str) -> None:
        if self._machine.pods is not None:
            self._machine.pods.pop(key, None)
        self._hear()


class TakenOutSink:
    """The cards that an operator took out."""

    def __init__(self, machine: NodeMachine, hear: Callable[[], None]) -> None:
        self._machine = machine
        self._hear = hear

    def replace(self, rows: dict[str, Withheld], unreadable: Collection[str]) -> None:
        """A ConfigMap that nobody can read leaves what it said before."""
        if not unreadable:
            self._set(frozenset().union(*(row.indexes for row in rows.values())))

    def upsert(self, key: str, row: Withheld) -> None:
        self._set(row.indexes)

    def remove(self, key: str) -> None:
        self._set(frozenset())

    def _set(self, indexes: frozenset[int]) -> None:
        self._machine.withheld = indexes
        self._hear()
