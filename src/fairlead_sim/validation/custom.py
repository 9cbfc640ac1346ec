"""The CustomResourceDefinitions that the API server refuses, and what it fills in.

The faults that people make, in its words. A definition that passes can be served: the code that
serves it does not check again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.crd import condition_of
from fairlead_sim.schema.crd_schema import INT_OR_STRING, PRESERVE, schema_errors
from fairlead_sim.schema.pattern import fault_of
from fairlead_sim.schema.status import (
    FieldError,
    forbidden_field,
    required,
    unsupported,
    wrong_value,
)

_is_dns_label = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?").fullmatch
_DNS_LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
    "an alphabetic character, and end with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_SCHEMA_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_RULE = (
    f'protected groups must have approval annotation "{_APPROVAL}", see '
    "https://github.com/kubernetes/enhancements/pull/1111"
)


def with_defaults(definition: Object) -> Object:
    """The definition with defaults: names from the kind, conversion `None`, and stored versions.

    The storage version is added to the versions that were ever stored.
    """
    spec = definition.get("spec")
    if not isinstance(spec, dict):
        return definition
    names, status = spec.get("names") or {}, definition.get("status") or {}
    kind = str(names.get("kind") or "")
    filled = {"conversion": {"strategy": "None"}, **spec}
    if kind:
        filled["names"] = {
            "singular": kind.lower(),
            "listKind": f"{kind}List",
            **{key: value for key, value in names.items() if value},
        }
    stored = list(status.get("storedVersions") or ())
    stored += [
        version["name"]
        for version in _versions(spec)
        if version.get("storage") and version.get("name") not in (None, *stored)
    ]
    return {**definition, "spec": filled, "status": {**status, "storedVersions": stored}}


def definition_errors(definition: Object, old: Object | None) -> list[FieldError]:
    """Every fault of a definition, and what may not change about `old`."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    errors = list(_frame_errors(definition, spec, names))
    errors += _version_errors(_versions(spec))
    storage = [version for version in _versions(spec) if version.get("storage")]
    if len(storage) != 1:
        errors.append(
            wrong_value(
                "spec.versions",
                _versions(spec),
                "must have exactly one version marked as storage version",
            )
        )
    errors += _names_errors(names)
    return [*errors, *_change_errors(definition, old)] if old is not None else errors


def _versions(spec: Object) -> list[Object]:
    versions = spec.get("versions")
    return (
        [version for version in versions if isinstance(version, dict)]
        if isinstance(versions, list)
        else []
    )


def _frame_errors(definition: Object, spec: Object, names: Object) -> Iterator[FieldError]:
    metadata, group = definition["metadata"], str(spec.get("group") or "")
    if metadata["name"] != f"{names.get('plural', '')}.{group}":
        yield wrong_value(
            "metadata.name", metadata["name"], ('must be spec.names.plural+"."+spec.group')
        )
    if not group:
        yield required("spec.group")
    elif "." not in group:
        yield wrong_value("spec.group", group, "should be a domain with at least one dot")
    if group.endswith((".k8s.io", ".kubernetes.io")) and not (
        metadata.get("annotations") or {}
    ).get(_APPROVAL):
        yield required(f"metadata.annotations[{_APPROVAL}]", _APPROVAL_RULE)
    scope = spec.get("scope")
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield unsupported("spec.scope", scope, ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        yield wrong_value("spec.preserveUnknownFields", True, why)
    yield from _conversion_errors(spec.get("conversion") or {})


def _conversion_errors(conversion: Object) -> Iterator[FieldError]:
    strategy, webhook = conversion.get("strategy"), conversion.get("webhook") or {}
    if strategy not in ("None", "Webhook"):
        yield unsupported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif strategy == "Webhook":
        if not webhook.get("clientConfig"):
            yield required(
                "spec.conversion.webhookClientConfig", "required when strategy is set to Webhook"
            )
        if not webhook.get("conversionReviewVersions"):
            yield required("spec.conversion.conversionReviewVersions")


def _names_errors(names: Object) -> list[FieldError]:
    errors = [
        required(f"spec.names.{key}")
        for key in ("plural", "singular", "kind", "listKind")
        if not names.get(key)
    ]
    for key in ("plural", "singular"):
        if names.get(key) and not _is_dns_label(names[key]):
            errors.append(wrong_value(f"spec.names.{key}", names[key], _DNS_LABEL_RULE))
    for key in ("kind", "listKind"):
        if names.get(key) and not _is_dns_label(names[key].lower()):
            rule = f"may have mixed case, but should otherwise match: {_DNS_LABEL_RULE}"
            errors.append(wrong_value(f"spec.names.{key}", names[key], rule))
    for key in ("shortNames", "categories"):
        for index, name in enumerate(names.get(key) or ()):
            if not _is_dns_label(str(name)):
                errors.append(wrong_value(f"spec.names.{key}[{index}]", name, _DNS_LABEL_RULE))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        errors.append(
            wrong_value(
                "spec.names.listKind", names["listKind"], "kind and listKind may not be the same"
            )
        )
    return errors


def _version_errors(versions: list[Object]) -> list[FieldError]:
    """Schemas and columns that all versions share are reported once, with the names that they have
    inside the real server.
    """
    errors = []
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions]
    for index, version in enumerate(versions):
        place = f"spec.versions[{index}]"
        if not _is_dns_label(str(version.get("name") or "")):
            errors.append(wrong_value(f"{place}.name", version.get("name") or "", _DNS_LABEL_RULE))
        if not isinstance(schemas[index], dict):
            errors.append(required(f"{place}.schema.openAPIV3Schema"))
    for place, schema in _labelled(
        schemas, "spec.validation.openAPIV3Schema", "spec.versions[{}].schema.openAPIV3Schema"
    ):
        errors += _schema_faults(place, schema, "at the root") if isinstance(schema, dict) else []
    columns = [version.get("additionalPrinterColumns") or [] for version in versions]
    scales = [(version.get("subresources") or {}).get("scale") for version in versions]
    for place, scale in _labelled(
        scales, "spec.subresources.scale", "spec.versions[{}].subresources.scale"
    ):
        errors += _scale_errors(place, scale) if isinstance(scale, dict) else []
    for place, shown in _labelled(
        columns, "spec.additionalPrinterColumns", "spec.versions[{}].additionalPrinterColumns"
    ):
        errors += [
            error
            for index, column in enumerate(shown)
            for error in _column_errors(f"{place}[{index}]", column)
        ]
    return errors


def _labelled(values: list[Any], shared: str, own: str) -> list[tuple[str, Any]]:
    if values and all(value == values[0] for value in values):
        return [(shared, values[0])]
    return [(own.format(index), value) for index, value in enumerate(values)]


def _column_errors(place: str, column: Object) -> list[FieldError]:
    errors = [] if column.get("name") else [required(f"{place}.name")]
    rule = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column.get("type"):
        errors.append(required(f"{place}.type", rule))
    elif column["type"] not in _COLUMN_TYPES:
        errors.append(wrong_value(f"{place}.type", column["type"], rule))
    return [*errors, *_path_errors(f"{place}.JSONPath", column.get("jsonPath"))]


def _scale_errors(place: str, scale: Object) -> list[FieldError]:
    errors = [
        error
        for key in ("specReplicasPath", "statusReplicasPath")
        for error in _path_errors(f"{place}.{key}", scale.get(key))
    ]
    for key, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        if not errors and not str(scale[key]).startswith(f"{root}."):
            errors.append(
                wrong_value(f"{place}.{key}", scale[key], f"should be a json path under {root}")
            )
    return errors


def _path_errors(place: str, path: Any) -> list[FieldError]:
    if not path:
        return [required(place)]
    return (
        []
        if path.startswith(".")
        else [wrong_value(place, path, "must be a simple json path starting with .")]
    )


def _schema_faults(place: str, schema: Mapping[str, Any], where: str) -> list[FieldError]:
    """That every described field has a type, which is what makes a schema structural."""
    kind = schema.get("type")
    errors = []
    if kind is not None and kind not in _SCHEMA_TYPES:
        errors.append(unsupported(f"{place}.type", kind, _SCHEMA_TYPES))
    elif where == "at the root" and kind not in (None, "object"):
        errors.append(wrong_value(f"{place}.type", kind, "must be object at the root"))
    elif kind is None and not (
        where != "at the root" and (schema.get(INT_OR_STRING) or schema.get(PRESERVE))
    ):
        errors.append(required(f"{place}.type", f"must not be empty {where}"))
    errors += _value_faults(place, schema)
    if where == "at the root" and _describes_metadata(
        (schema.get("properties") or {}).get("metadata") or {}
    ):
        why = (
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )
        errors.append(forbidden_field(f"{place}.properties[metadata]", why))
    for key in sorted(schema.get("properties") or ()):
        errors += _inner_faults(
            f"{place}.properties[{key}]", schema["properties"][key], "for specified object fields"
        )
    errors += _inner_faults(
        f"{place}.additionalProperties",
        schema.get("additionalProperties"),
        "for specified object fields",
    )
    return [
        *errors,
        *_inner_faults(f"{place}.items", schema.get("items"), "for specified array items"),
    ]


def _value_faults(place: str, schema: Mapping[str, Any]) -> list[FieldError]:
    """A pattern that is none, a default that the schema itself refuses."""
    errors = []
    if fault := fault_of(schema.get("pattern", "")):
        why = f"must be a valid regular expression, but isn't: error parsing regexp: {fault}"
        errors.append(wrong_value(f"{place}.pattern", schema["pattern"], why))
    if schema.get("default") is None or errors:
        return errors
    return [
        FieldError(f"{place}.default{error.field}", error.reason, error.message)
        for error in schema_errors(schema, schema["default"])
    ]


def _describes_metadata(schema: Mapping[str, Any]) -> bool:
    return any(key not in ("name", "generateName") for key in schema.get("properties") or ())


def _inner_faults(place: str, schema: Any, where: str) -> list[FieldError]:
    return _schema_faults(place, schema, where) if isinstance(schema, Mapping) else []


def _change_errors(new: Object, old: Object) -> list[FieldError]:
    """Errors of a change: group, scope and names must stay, once established.

    No version may go in which something may still be stored.
    """
    errors = []
    if condition_of(old, "Established") == "True":
        for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
            before, after = _at(old["spec"], path), _at(new["spec"], path)
            if before != after:
                errors.append(wrong_value(".".join(("spec", *path)), after, "field is immutable"))
    known = [version.get("name") for version in _versions(new["spec"])]
    for index, name in enumerate((new.get("status") or {}).get("storedVersions") or ()):
        if name not in known:
            errors.append(
                wrong_value(f"status.storedVersions[{index}]", name, _MISSING.format(name))
            )
    return errors


_MISSING = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in "
    "spec.versions until a storage migration ensures "
    "no data remains persisted in {0} and removes {0} from status.storedVersions"
)


def _at(spec: Any, path: Sequence[str]) -> Any:
    for key in path:
        spec = spec.get(key) if isinstance(spec, Mapping) else None
    return spec
