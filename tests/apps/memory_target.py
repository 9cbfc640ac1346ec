"""A cluster in memory for the loops of `fairlead install` and `uninstall`: it keeps what is put,
records every write in order, and refuses what the test asks it to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fairlead.errors import UserError
from fairlead.model.actions import Manifest, ObjectRef, PatchObject, object_ref
from fairlead.model.installation import SYSTEM_NAMESPACE
from fairlead.model.refusal import Refusal
from fairlead.wire.installation.inventory import inventory_ref
from fairlead.wire.installation.release import release_name, release_ref

Identity = tuple[str, str, str, str]


class MemoryTarget:
    """See `ports.InstallationTarget`. `writes`: as (verb, title). `unforced`: titles of puts.

    `own`: identities that `fairlead install` wrote. `held`: identities that stay after `remove`.
    `refusals`: what changes are answered in turn, "" = done; the last one repeats. `after_put`: is
    called with each object after it is kept.
    """

    def __init__(self) -> None:
        self.objects: dict[Identity, dict[str, Any]] = {}
        self.own: set[Identity] = set()
        self.held: set[Identity] = set()
        self.writes: list[tuple[str, str]] = []
        self.puts: list[Manifest] = []
        self.changes: list[PatchObject] = []
        self.unforced: list[str] = []
        self.server: tuple[int, int] | None = (1, 36)
        self.runs_no_program = False
        self.gated: list[ObjectRef] = []
        self.unscheduled: list[ObjectRef] = []
        self.refusals: list[str] = [""]
        self.after_put: Callable[[dict[str, Any]], object] = str

    def keep(self, manifest: Any) -> None:
        """An object of another program."""
        self.objects[object_ref(manifest).identity] = manifest

    def server_version(self) -> tuple[int, int] | None:
        return self.server

    def is_simulated(self) -> bool:
        return self.runs_no_program

    def unserved(self, targets: Iterable[ObjectRef]) -> list[ObjectRef]:
        return []

    def get(self, target: ObjectRef) -> Manifest | None:
        return self.objects.get(target.identity)

    def try_objects(
        self, manifests: Sequence[Manifest], *, is_forced: bool = False
    ) -> list[Manifest | Exception]:
        return list(manifests)

    def may_write(self, targets: Sequence[ObjectRef]) -> list[ObjectRef]:
        return []

    def may_patch(self, targets: Sequence[ObjectRef], subresource: str = "") -> list[ObjectRef]:
        return []

    def written(self, targets: Iterable[ObjectRef]) -> list[ObjectRef]:
        return [each for each in targets if each.identity in self.own & self.objects.keys()]

    def list_objects(self, kind: ObjectRef) -> list[Manifest]:
        wanted = (kind.group_version[0], kind.kind)
        return [each for identity, each in self.objects.items() if identity[:2] == wanted]

    def ending_objects(self, namespace: str) -> list[Manifest]:
        return []

    def put(self, manifest: Manifest, *, is_forced: bool = False) -> Manifest:
        target = object_ref(manifest)
        self.writes.append(("put", target.title))
        self.puts.append(manifest)
        if not is_forced:
            self.unforced.append(target.title)
        self.objects[target.identity] = dict(manifest)
        if target.kind == "CustomResourceDefinition":
            established = {"type": "Established", "status": "True"}
            self.objects[target.identity]["status"] = {"conditions": [established]}
        self.own.add(target.identity)
        self.after_put(self.objects[target.identity])
        return manifest

    def try_remove(self, targets: Sequence[ObjectRef]) -> list[Exception | None]:
        return [None] * len(targets)

    def remove(self, target: ObjectRef, *, is_foreground: bool = False) -> bool:
        self.writes.append(("remove", target.title))
        if target.identity in self.held:
            return True
        return self.objects.pop(target.identity, None) is not None

    def change(self, action: PatchObject) -> Refusal | None:
        why = self.refusals.pop(0) if len(self.refusals) > 1 else self.refusals[0]
        if why:
            return Refusal(why)
        self.changes.append(action)
        found = self.objects.get(action.target.identity)
        if found is not None and not action.is_strategic:
            self.objects[action.target.identity] = _merged(found, action.patch)
        return None

    def installation_namespaces(self) -> list[Manifest]:
        return []

    def inventory(self, first: str) -> Manifest | None:
        return self.get(inventory_ref(first))

    def release(self, first: str, chart: str) -> Manifest | None:
        return self.get(release_ref(first, chart))

    def helm_releases(self, first: str, chart: str) -> list[str]:
        found = self.release(first, chart)
        return [] if found is None else [release_name(found)]

    def gated_pods(self, gate: str) -> list[ObjectRef]:
        return list(self.gated)

    def unscheduled_pods(self, scheduler: str) -> list[ObjectRef]:
        return list(self.unscheduled)

    def open_gate(self, pod: ObjectRef, gate: str) -> Refusal | None:
        refusal = self.change(PatchObject(pod, {}))
        if refusal is None:
            self.gated.remove(pod)
        return refusal


class KeptLease:
    """`ports.WorkLease` in memory. `checked_at`: how many writes the cluster had at each check.
    `lost_after`: with this many writes the Lease is lost. `taken`: is called when it is taken.
    """

    def __init__(
        self,
        cluster: MemoryTarget,
        lost_after: int | None = None,
        taken: Callable[[], object] = lambda: None,
    ) -> None:
        self.checked_at: list[int] = []
        self._cluster = cluster
        self._lost_after = lost_after
        self._taken = taken

    @property
    def target(self) -> ObjectRef:
        return ObjectRef("coordination.k8s.io/v1", "Lease", "operation", SYSTEM_NAMESPACE)

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        self._taken()
        yield self._check

    def _check(self) -> None:
        count = written_count(self._cluster)
        self.checked_at.append(count)
        if count == self._lost_after:
            raise UserError("the Lease of the installation was lost: another holds the lease")


def written_count(cluster: MemoryTarget) -> int:
    return len(cluster.writes) + len(cluster.changes)


def _merged(found: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """As a merge patch: null removes, mappings are merged, all other values replace."""
    made = {key: value for key, value in found.items() if patch.get(key, "") is not None}
    for key, value in patch.items():
        if isinstance(value, Mapping):
            made[key] = _merged(made.get(key) or {}, value)
        elif value is not None:
            made[key] = value
    return made


def release_record(name: str = "gpus") -> dict[str, Any]:
    """The ConfigMap that a release of the chart has, without the definition of the quota tree."""
    place = release_ref(SYSTEM_NAMESPACE)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": place.name, "namespace": place.namespace},
        "data": {"release": name, "version": "0.1.0", "definitions": "false", "values": "{}"},
    }


class Time:
    """Seconds that only `sleep` moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
