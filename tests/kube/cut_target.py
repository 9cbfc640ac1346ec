"""A cluster that ends a run of the installer after one write that had an effect."""

from __future__ import annotations

from fairlead.edge.queries.installation_target import KubeInstallationTarget
from fairlead.model.actions import Manifest, ObjectRef, PatchObject, object_ref
from fairlead.model.refusal import Refusal


class CutOffError(Exception):
    """The run is interrupted here."""


class CutTarget(KubeInstallationTarget):
    """The next write after one that had an effect raises CutOffError.

    So a chain of runs ends, one after the other, in every state that an interruption can leave.
    """

    _has_written = False

    def put(self, manifest: Manifest, *, is_forced: bool = False) -> Manifest:
        self._end()
        found = self.get(object_ref(manifest))
        made = super().put(manifest, is_forced=is_forced)
        self._has_written = found is None or _version(found) != _version(made)
        return made

    def remove(self, target: ObjectRef, *, is_foreground: bool = False) -> bool:
        self._end()
        found = self.get(target)
        self._has_written = found is not None and not found["metadata"].get("deletionTimestamp")
        return super().remove(target, is_foreground=is_foreground)

    def change(self, action: PatchObject) -> Refusal | None:
        self._end()
        self._has_written = True
        return super().change(action)

    def open_gate(self, pod: ObjectRef, gate: str) -> Refusal | None:
        self._end()
        refusal = super().open_gate(pod, gate)
        self._has_written = refusal is None
        return refusal

    def _end(self) -> None:
        if self._has_written:
            raise CutOffError


def _version(obj: Manifest) -> str:
    return str(obj["metadata"]["resourceVersion"])
