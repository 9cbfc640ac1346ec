"""Creating a serving job of each type: what its main object is, and the objects of a spec."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec import Struct

from fairlead.kinds.serving import kserve, manifest
from fairlead.kinds.serving.kinds import INFERENCE_SERVICES, KSERVE
from fairlead.kinds.serving.spec import ServingSpec
from fairlead.kinds.submission import Served
from fairlead.model.actions import Manifest


class ServingKind(Struct, frozen=True):
    """See `kinds.parts.kind.CreatedKind`. `TYPE`: the value of arena's label."""

    TYPE: str
    KIND: str
    GROUP: str
    PLURAL: str
    CREATED_VERSIONS: tuple[str, ...]
    READS_SCHEMA: bool = False


class ServingSubmission(Struct, frozen=True):
    """See `kinds.submission.AnySubmission`. `write`: makes the objects, the main one first; it owns
    the others.
    """

    kind: ServingKind
    write: Callable[[ServingSpec], list[Manifest]]
    instead: None = None

    def version(self, served: Served) -> str | None:
        return next((each for each in self.kind.CREATED_VERSIONS if each in served.versions), None)

    def objects(
        self, spec: ServingSpec, version: str, spec_fields: Collection[str] | None = None
    ) -> list[Manifest]:
        return self.write(spec)


def _of_deployment(type_: str) -> ServingSubmission:
    kind = ServingKind(type_, "Deployment", "apps", "deployments", ("v1",))
    return ServingSubmission(kind, manifest.objects)


_GROUP, _VERSION, _PLURAL, _KIND = INFERENCE_SERVICES
SUBMISSIONS: Final[Mapping[str, ServingSubmission]] = {
    **{type_: _of_deployment(type_) for type_ in manifest.SERVERS},
    KSERVE: ServingSubmission(
        ServingKind(KSERVE, _KIND, _GROUP, _PLURAL, (_VERSION,)), kserve.objects
    ),
}
"""By the value of the label `servingType`."""
