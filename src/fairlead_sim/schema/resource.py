"""How a kind of Kubernetes object is addressed: group, version, plural, scope, verbs.

One value describes one served resource. Kinds are compared by identity (they are keys of hot
dictionaries): take them from a registry, do not build a second one that looks the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead_sim.schema.crd import CustomVersion

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, eq=False, slots=True)
class ResourceKind:
    """A served resource.

    `subresources` are the names after the object's name in a path (`status`, `scale`, `log`, …).

    `is_custom` marks what a CustomResourceDefinition defines: no strategic merge, and its objects
    keep `kind` inside of lists; `custom` is the rest of the definition. `stored_as` is the kind in
    which the objects are stored if this is another view of them; `note` warns writers of a wrong
    expectation. `has_generation`: whether `metadata.generation` counts changes of the spec.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    is_custom: bool = False
    stored_as: ResourceKind | None = None
    note: str = ""
    has_generation: bool = True
    custom: CustomVersion | None = None

    @property
    def api_version(self) -> str:
        """`v1` or `apps/v1`: the `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """`pods` or `deployments.apps`: how the API server's messages name the resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_kind(self) -> str:
        """`Pod` or `Deployment.apps`: how the messages about invalid objects name the kind."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def list_kind(self) -> str:
        return self.custom.list_kind if self.custom else f"{self.kind}List"

    def __repr__(self) -> str:
        return f"ResourceKind({self.group_resource}/{self.version})"
