"""Definitions of Fluid's kinds for a stand-in: names, printer columns and subresources as Fluid
1.0.8 has them.

Schemas describe what Fairlead and the stand-in's controllers read and write. They refuse there what
Fluid's own definitions refuse. Whatever else a spec holds is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fairlead.model.actions import Manifest
from fairlead.wire.data.fluid import VERSION
from fairlead.wire.names import FLUID_GROUP

Schema = dict[str, Any]
Column = tuple[str, str, str, int]
"""Name, type, path and priority."""

_KEPT: Final = "x-kubernetes-preserve-unknown-fields"
_ANYTHING: Final[Schema] = {"type": "object", _KEPT: True}
_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_COUNT: Final[Schema] = {"type": "integer", "format": "int32"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_NUMBER: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_AMOUNT: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$",
    "x-kubernetes-int-or-string": True,
}
_NETWORK_MODE: Final[Schema] = {"type": "string", "enum": ["HostNetwork", "", "ContainerNetwork"]}
_AGE: Final[Column] = ("Age", "date", ".metadata.creationTimestamp", 0)
_WIDE: Final = 10
_SCALE: Final = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.currentWorkerNumberScheduled",
}
_SELECTED_SCALE: Final = {**_SCALE, "labelSelectorPath": ".status.selector"}
_ROLES: Final = ("Master", "Worker", "Fuse")


def stand_in_definitions() -> list[Manifest]:
    """The six kinds of Fluid that Fairlead reads and writes, with `metadata.name` alone."""
    return [
        _definition("Dataset", "dataset", _dataset(), _DATASET_COLUMNS),
        _definition(
            "AlluxioRuntime",
            "alluxio",
            _runtime(("master", "worker", "fuse", "jobMaster", "jobWorker", "apiGateway")),
            _runtime_columns(_ROLES, [("API Gateway", "string", _GATEWAY, _WIDE)]),
            _SELECTED_SCALE,
        ),
        _definition(
            "JindoRuntime",
            "jindo",
            _runtime(("master", "worker", "fuse"), modes=False),
            _runtime_columns(_ROLES),
            _SCALE,
        ),
        _definition("ThinRuntime", "", _runtime(("worker", "fuse")), ()),
        _definition(
            "JuiceFSRuntime",
            "juicefs",
            _runtime(("worker", "fuse", "jobWorker")),
            _runtime_columns(_ROLES[1:]),
            _SELECTED_SCALE,
        ),
        _definition("DataLoad", "load", _data_load(), _LOAD_COLUMNS),
    ]


def _definition(
    kind: str,
    short_name: str,
    schema: Schema,
    columns: Sequence[Column],
    scale: dict[str, str] | None = None,
) -> Manifest:
    singular = kind.lower()
    names: dict[str, Any] = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": f"{singular}s",
        "singular": singular,
    }
    if short_name:
        names |= {"categories": ["fluid"], "shortNames": [short_name]}
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, **({"scale": scale} if scale else {})},
    }
    if columns:
        version["additionalPrinterColumns"] = [_column(*each) for each in columns]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{FLUID_GROUP}"},
        "spec": {
            "group": FLUID_GROUP,
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _column(name: str, kind: str, path: str, priority: int) -> dict[str, Any]:
    column: dict[str, Any] = {"jsonPath": path, "name": name, "type": kind}
    return {**column, "priority": priority} if priority else column


_GATEWAY: Final = ".status.apiGateway.endpoint"
_DATASET_COLUMNS: Final[tuple[Column, ...]] = (
    ("Ufs Total Size", "string", ".status.ufsTotal", 0),
    ("Cached", "string", ".status.cacheStates.cached", 0),
    ("Cache Capacity", "string", ".status.cacheStates.cacheCapacity", 0),
    ("Cached Percentage", "string", ".status.cacheStates.cachedPercentage", 0),
    ("Phase", "string", ".status.phase", 0),
    ("HCFS URL", "string", ".status.hcfs.endpoint", _WIDE),
    ("TOTAL FILES", "string", ".status.fileNum", _WIDE + 1),
    ("CACHE HIT RATIO", "string", ".status.cacheStates.cacheHitRatio", _WIDE),
    _AGE,
)
_LOAD_COLUMNS: Final[tuple[Column, ...]] = (
    ("Dataset", "string", ".spec.dataset.name", 0),
    ("Phase", "string", ".status.phase", 0),
    _AGE,
    ("Duration", "string", ".status.duration", 0),
)


def _runtime_columns(roles: Sequence[str], more: Sequence[Column] = ()) -> list[Column]:
    columns: list[Column] = []
    for role in roles:
        path = f".status.{role.lower()}"
        columns += [
            (f"Ready {role}s", "integer", f"{path}NumberReady", _WIDE),
            (f"Desired {role}s", "integer", f".status.desired{role}NumberScheduled", _WIDE),
            (f"{role} Phase", "string", f"{path}Phase", 0),
        ]
    return [*columns, *more, _AGE]


# --- schemas --------------------------------------------------------------------------------------


def _fields(properties: Schema, *required: str, keeps: bool = False) -> Schema:
    """An object; `keeps`: with fields that are not described."""
    found: Schema = {"type": "object", "properties": properties}
    if required:
        found["required"] = list(required)
    return {**found, _KEPT: True} if keeps else found


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _object(spec: Schema, status: Schema) -> Schema:
    meta = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}}
    return _fields({**meta, "spec": spec, "status": status})


def _conditions(*times: str) -> Schema:
    words = dict.fromkeys(("type", "status", "reason", "message"), _TEXT)
    return _list(_fields({**words, **dict.fromkeys(times, _TIME)}, "status", "type"))


def _mount() -> Schema:
    key = _fields({"name": _TEXT, "key": _TEXT})
    secret = _fields({"name": _TEXT, "valueFrom": _fields({"secretKeyRef": key})}, "name")
    return _fields(
        {
            "mountPoint": {"type": "string", "minLength": 5},
            "name": {"type": "string", "minLength": 0},
            "path": _TEXT,
            "readOnly": _FLAG,
            "shared": _FLAG,
            "options": _TEXTS,
            "encryptOptions": _list(secret),
        },
        "mountPoint",
    )


def _dataset() -> Schema:
    runtimes = _list(
        _fields(
            {
                **dict.fromkeys(("name", "namespace", "category", "type"), _TEXT),
                "masterReplicas": _COUNT,
            }
        )
    )
    spec = _fields(
        {
            "accessModes": _list(_TEXT),
            "mounts": _list(_mount(), minItems=1),
            "nodeAffinity": _fields(
                {"required": _fields({"nodeSelectorTerms": _list(_ANYTHING)}, "nodeSelectorTerms")}
            ),
            "placement": {"type": "string", "enum": ["Exclusive", "", "Shared"]},
            "runtimes": runtimes,
            "tolerations": _list(_ANYTHING),
        },
        keeps=True,
    )
    status = _fields(
        {
            "cacheStates": _TEXTS,
            "conditions": _conditions("lastTransitionTime", "lastUpdateTime"),
            "datasetRef": _list(_TEXT),
            "fileNum": _TEXT,
            "hcfs": _fields({"endpoint": _TEXT, "underlayerFileSystemVersion": _TEXT}),
            "mounts": _list(_mount()),
            "operationRef": _TEXTS,
            "phase": _TEXT,
            "runtimes": runtimes,
            "ufsTotal": _TEXT,
        },
        "conditions",
        keeps=True,
    )
    return _object(spec, status)


def _runtime(roles: Sequence[str], *, modes: bool = True) -> Schema:
    """`roles`: its programs, with `modes` each with a network mode. Masters and workers have
    replicas.
    """
    programs = {}
    for role in roles:
        fields: Schema = {"networkMode": _NETWORK_MODE} if modes else {}
        if role in ("master", "worker"):
            fields["replicas"] = {**_COUNT, "minimum": 1}
        programs[role] = _fields(fields, keeps=True)
    level = _fields(
        {
            "mediumtype": {"type": "string", "enum": ["MEM", "SSD", "HDD"]},
            "volumeType": {
                "type": "string",
                "enum": ["hostPath", "emptyDir"],
                "default": "hostPath",
            },
            "path": {"type": "string", "minLength": 1},
            "quota": _AMOUNT,
            "quotaList": _TEXT,
            "high": _TEXT,
            "low": _TEXT,
            "volumeSource": _ANYTHING,
        },
        "mediumtype",
    )
    store = _fields({"levels": _list(level)})
    spec = _fields({"replicas": _COUNT, "tieredstore": store, **programs}, keeps=True)
    return _object(spec, _runtime_status())


def _runtime_status() -> Schema:
    counts = [f"{role.lower()}NumberReady" for role in _ROLES]
    counts += [f"{word}{role}NumberScheduled" for word in ("current", "desired") for role in _ROLES]
    phases = [f"{role.lower()}Phase" for role in _ROLES]
    return _fields(
        {
            **dict.fromkeys(counts, _COUNT),
            **dict.fromkeys((*phases, "valueFile", "selector", "setupDuration"), _TEXT),
            "cacheStates": _TEXTS,
            "conditions": _conditions("lastProbeTime", "lastTransitionTime"),
        },
        *sorted((*counts, *phases, "valueFile")),
        keeps=True,
    )


def _data_load() -> Schema:
    spec = _fields(
        {
            "dataset": _fields({"name": _TEXT, "namespace": _TEXT}, "name"),
            "loadMetadata": _FLAG,
            "policy": {"type": "string", "enum": ["Once", "Cron", "OnEvent"], "default": "Once"},
            "schedule": _TEXT,
            "target": _list(_fields({"path": _TEXT, "replicas": _COUNT}, "path")),
            "ttlSecondsAfterFinished": _COUNT,
        },
        keeps=True,
    )
    status = _fields(
        {
            "conditions": _conditions("lastProbeTime", "lastTransitionTime"),
            "duration": _TEXT,
            "infos": _TEXTS,
            "phase": _TEXT,
        },
        *("conditions", "duration", "phase"),
        keeps=True,
    )
    return _object(spec, status)
