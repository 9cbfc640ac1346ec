"""The record of a release of the Helm chart: a ConfigMap with its name, version and values.

It has the place of the inventory, which `fairlead install` writes.
"""

from __future__ import annotations

import msgspec

from fairlead.errors import OutsideError, UserError
from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.model.installation import OLDEST_VERSION
from fairlead.settings import HELM_CHART
from fairlead.wire.installation.inventory import COMPLETE, Inventory
from fairlead.wire.installation.values import parse_values, read_values, render_values


def release_ref(namespace: str, chart: str = HELM_CHART) -> ObjectRef:
    """The record of the chart's release in a namespace."""
    return ObjectRef("v1", "ConfigMap", f"{chart}-release", namespace)


class ReleaseRecord(msgspec.Struct, frozen=True):
    """`definitions`: whether the release has the definition of the quota tree ("true", "false").
    `values`: JSON, of an installation. `oldest`: as in an inventory.
    """

    release: str
    version: str
    definitions: str
    values: str
    oldest: str = OLDEST_VERSION


def release_name(manifest: Manifest) -> str:
    """Raises OutsideError for a ConfigMap that is no record."""
    return release_record(manifest).release


def parse_release(manifest: Manifest) -> Inventory:
    """The objects are those that this program's version has for the values.

    Without the release's namespace, which Helm makes. Raises OutsideError for a ConfigMap that is
    no record, or whose values this version does not know.
    """
    # Half of the time of an import is that of all objects of an installation.
    from fairlead.wire.installation.components import installed_objects

    record = release_record(manifest)
    place = object_ref(manifest)
    try:
        chosen = parse_values(read_values(record.values, place.title))
    except UserError as error:
        hint = f"use the fairlead of version {record.version}"
        raise OutsideError("kubernetes", f"{place.title}: {error.what}", hint) from error
    made_by_helm = ObjectRef("v1", "Namespace", place.namespace).identity
    refs = [
        object_ref(each)
        for each in installed_objects(chosen)
        if record.definitions == "true" or each["kind"] != "CustomResourceDefinition"
    ]
    return Inventory(
        record.version,
        COMPLETE,
        render_values(chosen),
        tuple(each for each in refs if each.identity != made_by_helm),
        place.namespace,
        record.release,
        record.oldest,
    )


def release_record(manifest: Manifest) -> ReleaseRecord:
    """Raises OutsideError for a ConfigMap that is no record."""
    try:
        return msgspec.convert(manifest["data"], ReleaseRecord)
    except (KeyError, msgspec.ValidationError) as error:
        what = f"{object_ref(manifest).title} is no record: {error}"
        raise OutsideError("kubernetes", what, "`helm upgrade` writes it again") from error
