"""A cluster that ends a run of the installer after some writes that had an effect."""

from __future__ import annotations

from tests.turns import turn

from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.queries.installation_target import KubeInstallationTarget
from fairlead.model.actions import Manifest, ObjectRef, PatchObject, object_ref
from fairlead.model.refusal import Refusal


class CutOffError(Exception):
    """The run is interrupted here."""


TURNS = 6


def most_writes() -> int:
    """Of one run, but for the first one of a chain."""
    return 1 if turn(TURNS) is None else TURNS


class CutTarget(KubeInstallationTarget):
    """The next write after those of run `run` that had an effect raises CutOffError.

    A chain of runs (0, 1, …) ends, one after the other, in states that an interruption can leave:
    in a sixth of them, the next turns in the others, and with `FAIRLEAD_TURN=all` in each.
    """

    def __init__(self, api: KubeBlocking, run: int) -> None:
        super().__init__(api)
        self._writes = most_writes() if run else 1 + (turn(TURNS) or 0)
        self.effects = 0

    def put(self, manifest: Manifest, *, is_forced: bool = False) -> Manifest:
        self._end()
        found = self.get(object_ref(manifest))
        made = super().put(manifest, is_forced=is_forced)
        self.effects += found is None or _version(found) != _version(made)
        return made

    def remove(self, target: ObjectRef, *, is_foreground: bool = False) -> bool:
        self._end()
        found = self.get(target)
        self.effects += found is not None and not found["metadata"].get("deletionTimestamp")
        return super().remove(target, is_foreground=is_foreground)

    def change(self, action: PatchObject) -> Refusal | None:
        self._end()
        self.effects += 1
        return super().change(action)

    def open_gate(self, pod: ObjectRef, gate: str) -> Refusal | None:
        self._end()
        refusal = super().open_gate(pod, gate)
        self.effects += refusal is None
        return refusal

    def _end(self) -> None:
        if self.effects >= self._writes:
            raise CutOffError


def _version(obj: Manifest) -> str:
    return str(obj["metadata"]["resourceVersion"])
