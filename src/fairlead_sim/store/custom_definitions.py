"""How a CustomResourceDefinition comes to be served, and how it goes.

It gets its names (or a condition with the definition that has them), is served at once, and when it
is deleted waits until its last object is gone. The objects stay in one bucket of the store while
the definition exists, whatever its versions become.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.wire.kube.time import render_time
from fairlead_sim.objects.conditions import conditions_of, find_condition, status_of, with_condition
from fairlead_sim.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    INSTALLED_KINDS,
    RESOURCES,
)
from fairlead_sim.objects.watch_log import DELETED, LoggedChange, Object
from fairlead_sim.schema.crd import FINALIZER, condition_of, served_kinds, storage_kind
from fairlead_sim.schema.resource import ResourceKind

if TYPE_CHECKING:
    from fairlead_sim.store.cluster import StoredCluster

_NAME_CONFLICTS = (
    ("plural", "Plural"),
    ("singular", "Singular"),
    ("shortNames", "ShortNames"),
    ("kind", "Kind"),
    ("listKind", "ListKind"),
)


class CustomDefinitions:
    """Follows the definitions of a cluster.

    `served` are the kinds of all of them, in the order of discovery.
    """

    def __init__(self, cluster: StoredCluster) -> None:
        self._cluster = cluster
        self._served: dict[str, tuple[ResourceKind, ...]] = {}
        known = (*(ref for ref in RESOURCES if ref.is_custom), *INSTALLED_KINDS)
        self._stored = {ref.group_resource: ref for ref in known}
        self._followed: set[str] = set()
        cluster.subscribe(CUSTOM_RESOURCE_DEFINITIONS, self._changed)

    @property
    def served(self) -> tuple[ResourceKind, ...]:
        return tuple(kind for name in sorted(self._served) for kind in self._served[name])

    def _changed(self, event: LoggedChange) -> None:
        name = event.object["metadata"]["name"]
        definition = self._cluster.get(CUSTOM_RESOURCE_DEFINITIONS, None, name)
        if definition is None or event.type == DELETED:
            self._serve(name, ())
            self._settle_others(event.object)
            return
        self._serve(name, served_kinds(definition, self._stored_kind(definition)))
        if "deletionTimestamp" in definition["metadata"]:
            self._clean(definition)
        else:
            self._settle(definition)

    # --- names ------------------------------------------------------------------------------------

    def _settle(self, definition: Object) -> None:
        """Give the definition the names that are free.

        Both conditions and the names are one write.
        """
        status = status_of(definition)
        accepted, wanted = status.get("acceptedNames") or {}, definition["spec"]["names"]
        if accepted == wanted and condition_of(definition, "Established") == "True":
            return
        names, reason, message = self._free_names(definition, wanted, accepted)
        time, is_good = render_time(self._cluster.clock.now()), reason == "NoConflicts"
        conditions = with_condition(
            conditions_of(definition), "NamesAccepted", str(is_good), reason, message, time
        )
        if condition_of(definition, "Established") != "True":
            reason, message = (
                ("InitialNamesAccepted", "the initial names have been accepted")
                if is_good
                else _NOT_ACCEPTED
            )
            conditions = with_condition(
                conditions, "Established", str(is_good), reason, message, time
            )
        new = {**status, "acceptedNames": names, "conditions": conditions}
        if new != status:
            self._cluster.update_status({**definition, "status": new})
            self._settle_others(definition)

    def _free_names(
        self, definition: Object, wanted: Object, accepted: Object
    ) -> tuple[Object, str, str]:
        resources, kinds = self._names_in_use(definition)
        names, reason, message = dict(accepted), "NoConflicts", "no conflicts found"
        for key, word in _NAME_CONFLICTS:
            used = kinds if key in ("kind", "listKind") else resources
            values = wanted.get(key) or ()
            listed = (values,) if isinstance(values, str) else values
            taken = [value for value in listed if value in used]
            if taken:
                detail = ", ".join(f'"{value}" is already in use' for value in taken)
                reason, message = f"{word}Conflict", f"[{detail}]" if len(taken) > 1 else detail
            elif values:
                names[key] = values
            else:
                names.pop(key, None)
        if wanted.get("categories"):
            names["categories"] = wanted["categories"]
        else:
            names.pop("categories", None)
        return names, reason, message

    def _names_in_use(self, definition: Object) -> tuple[set[str], set[str]]:
        """The resource names and the kinds that other definitions of the same group have."""
        resources: set[str] = set()
        kinds: set[str] = set()
        for other in self._others(definition):
            names = (other.get("status") or {}).get("acceptedNames") or {}
            resources |= {
                names.get("plural", ""),
                names.get("singular", ""),
                *(names.get("shortNames") or ()),
            }
            kinds |= {names.get("kind", ""), names.get("listKind", "")}
        return resources - {""}, kinds - {""}

    def _others(self, definition: Object) -> list[Object]:
        own, group = definition["metadata"]["name"], definition["spec"]["group"]
        definitions = self._cluster.list(CUSTOM_RESOURCE_DEFINITIONS)
        return [
            other
            for other in definitions
            if other["spec"]["group"] == group and other["metadata"]["name"] != own
        ]

    def _settle_others(self, definition: Object) -> None:
        """Names may have become free."""
        for other in self._others(definition):
            if (
                condition_of(other, "NamesAccepted") == "False"
                and "deletionTimestamp" not in other["metadata"]
            ):
                self._settle(other)

    # --- serving ----------------------------------------------------------------------------------

    def _stored_kind(self, definition: Object) -> ResourceKind:
        """Where its objects are kept: for a kind that the simulated world itself knows, the place
        where its controllers look.
        """
        name = definition["metadata"]["name"]
        namespaced = definition["spec"]["scope"] == "Namespaced"
        stored = self._stored.get(name)
        if (
            stored is None
            or stored.namespaced is not namespaced
            or stored.kind != definition["spec"]["names"]["kind"]
        ):
            stored = self._stored[name] = storage_kind(definition)
            self._cluster.serve(stored)
        return stored

    def _serve(self, name: str, kinds: tuple[ResourceKind, ...]) -> None:
        before = self._served.pop(name, ())
        if kinds:
            self._served[name] = kinds
        self._cluster.set_views(before, kinds)

    # --- going ------------------------------------------------------------------------------------

    def _clean(self, definition: Object) -> None:
        """Delete the objects; when none is left, release the definition.

        Objects with finalizers may take their time.
        """
        if FINALIZER not in definition["metadata"].get("finalizers", ()):
            return
        name, stored = definition["metadata"]["name"], self._stored_kind(definition)
        if name not in self._followed:
            self._followed.add(name)
            self._cluster.subscribe(stored, lambda event: self._removed(name, event))
        held = find_condition(conditions_of(definition), "Terminating")
        if held is not None and held["reason"] == "InstanceDeletionPending":
            words = "CustomResource deletion is in progress"
            self._cluster.update_status(
                _terminating(
                    definition, "InstanceDeletionInProgress", words, self._cluster.clock.now()
                )
            )
            for obj in self._cluster.list(stored):
                self._cluster.delete(
                    stored, obj["metadata"].get("namespace"), obj["metadata"]["name"]
                )
        self._finish(name, stored)

    def _removed(self, name: str, event: LoggedChange) -> None:
        if event.type == DELETED:
            self._finish(name, self._stored[name])

    def _finish(self, name: str, stored: ResourceKind) -> None:
        definition = self._cluster.get(CUSTOM_RESOURCE_DEFINITIONS, None, name)
        if (
            definition is None
            or "deletionTimestamp" not in definition["metadata"]
            or next(self._cluster.scan(stored), None) is not None
        ):
            return
        metadata = definition["metadata"]
        finalizers = [kept for kept in metadata.get("finalizers", ()) if kept != FINALIZER]
        if finalizers != metadata.get("finalizers", []):
            self._cluster.update({**definition, "metadata": {**metadata, "finalizers": finalizers}})


_NOT_ACCEPTED = ("NotAccepted", "not all names are accepted")


def terminating(definition: Object, now: float) -> Object:
    """The definition as its deletion leaves it: held by the
    finalizer until its objects are gone.
    """
    metadata = definition["metadata"]
    if FINALIZER in metadata.get("finalizers", ()) or "deletionTimestamp" in metadata:
        return definition
    words = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    going = _terminating(definition, "InstanceDeletionPending", words, now)
    return {
        **going,
        "metadata": {**metadata, "finalizers": [*metadata.get("finalizers", ()), FINALIZER]},
    }


def _terminating(definition: Object, reason: str, message: str, now: float) -> Object:
    conditions = with_condition(
        conditions_of(definition), "Terminating", "True", reason, message, render_time(now)
    )
    return {**definition, "status": {**status_of(definition), "conditions": conditions}}
