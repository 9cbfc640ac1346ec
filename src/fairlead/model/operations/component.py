"""A component: a program of the platform that an administrator deploys, upgrades and removes.

Specification: docs/spec/components.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

from fairlead.model.actions import ObjectRef


class ComponentGroup(StrEnum):
    """In the order in which they are shown."""

    SCHEDULING = "Scheduling"
    ELASTICITY = "Elasticity"
    DATA = "Data acceleration"
    INTERACTION = "Interaction"
    MONITORING = "Monitoring"
    WORKFLOW = "Workflow"


class Backend(StrEnum):
    """What writes the objects of a component. `OTHER`: Fairlead never does."""

    NATIVE = "native"
    HELM = "helm"
    OTHER = "other"


class ComponentState(StrEnum):
    """`FOREIGN`: the program is there and another one deployed it, so Fairlead never changes it."""

    NOT_INSTALLED = "NotInstalled"
    INSTALLING = "Installing"
    READY = "Ready"
    DEGRADED = "Degraded"
    UPGRADING = "Upgrading"
    REMOVING = "Removing"
    FAILED = "Failed"
    FOREIGN = "Foreign"


class Need(Struct, frozen=True):
    """Another component that has to be there. `version`: the oldest that will do, "" = any."""

    id: str
    version: str = ""


class ComponentValue(Struct, frozen=True):
    """A value of a chart that administrators change most. `name`: with dots into mappings.

    A `list` or a `mapping` is written as YAML: tolerations, an affinity.
    """

    name: str
    type: Literal["text", "number", "boolean", "list", "mapping"]
    title: str
    title_zh: str


class Component(Struct, frozen=True, kw_only=True):
    """An entry of the catalogue.

    `part`: the field of an installation's `parts` that it is, "" = none. `version`: the newest that
    was tried; Fairlead's own parts have that of the program. `namespace`: the default. `chart`: the
    name of its Helm chart. `definitions`: names of its CustomResourceDefinitions. `workloads`: what
    has to be ready, without namespaces. `images`: parts of the names of images by which another
    program's copy is found. `fixed`: values of the chart that are always so. `conflicts`: ids of
    components that cannot be there at the same time. `is_required`: it is always there. `values`:
    of the chart, which has more. `is_placed`: it works in no other namespace.
    """

    id: str
    group: ComponentGroup
    title: str
    title_zh: str
    backend: Backend
    part: str = ""
    version: str = ""
    namespace: str = ""
    chart: str = ""
    definitions: tuple[str, ...] = ()
    workloads: tuple[ObjectRef, ...] = ()
    images: tuple[str, ...] = ()
    depends: tuple[Need, ...] = ()
    conflicts: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = {}
    values: tuple[ComponentValue, ...] = ()
    is_placed: bool = False
    is_required: bool = False


class ComponentRow(Struct, frozen=True, kw_only=True):
    """How a component is. `state` None = it could not be read; `message` has the reason.

    `version`: the installed one, `available`: what `deploy` or `upgrade` would bring; "" = unknown.
    `managed_by`: `native`, `helm` or `other`; "" = it is not installed. `release`: of Helm.
    `can_upgrade`: the available version is newer. `operation`: of the operation that runs.
    """

    id: str
    group: ComponentGroup
    title: str
    title_zh: str
    state: ComponentState | None
    version: str = ""
    available: str = ""
    managed_by: str = ""
    namespace: str = ""
    release: str = ""
    message: str = ""
    can_upgrade: bool = False
    is_required: bool = False
    operation: str = ""


class ComponentInventory(Struct, frozen=True, kw_only=True):
    """What Fairlead wrote natively for a component. `state`: `writing`, `removing` or `complete`.

    `id`: of the component, `operation`: the last that wrote it. `values`: YAML. `namespace`: of the
    record, `place`: of the component.
    """

    id: str
    version: str
    state: str
    namespace: str
    place: str
    objects: tuple[ObjectRef, ...] = ()
    values: str = ""
    operation: str = ""
