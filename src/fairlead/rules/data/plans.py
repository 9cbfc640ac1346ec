"""The steps of operations on data sets: accelerate, preheat, and the end of an acceleration.

Specification: docs/spec/datasets.md#operations-on-data-sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.model.jobs.datasets import DATASET_KIND, FoundData
from fairlead.model.keys import ANNOTATION_OPERATION
from fairlead.model.operations.data_parts import DataSetParts, fluid_ref
from fairlead.model.operations.operation import (
    READY_SECONDS,
    CreateStep,
    GoneStep,
    OperationStep,
    ReadyStep,
    RemoveStep,
)

LOAD_SECONDS: Final = 86400.0
"""How long a preheat may take: a day, because it reads the whole source."""

Steps = tuple[OperationStep, ...]


def data_set_subject(namespace: str, name: str) -> str:
    """
    >>> data_set_subject("demo", "raw-acc")
    'dataset/demo/raw-acc'
    """
    return f"dataset/{namespace}/{name}"


def data_set_parts(
    found: FoundData, namespace: str, name: str, more: Sequence[ObjectRef] = ()
) -> DataSetParts:
    """`more`: volume, Secrets and pods of the data set that exist. A claim of its name that is not
    Fluid's is no part of it.
    """

    def is_named(each: object) -> bool:
        return (getattr(each, "namespace", ""), getattr(each, "name", "")) == (namespace, name)

    sets = [each for each in found.data_sets if is_named(each)]
    return DataSetParts(
        namespace,
        name,
        fluid_ref(DATASET_KIND, namespace, name, sets[0].uid) if sets else None,
        tuple(
            fluid_ref(each.kind, namespace, name, each.uid)
            for each in found.runtimes
            if is_named(each)
        ),
        (
            *(
                ObjectRef("v1", "PersistentVolumeClaim", name, namespace, each.uid)
                for each in found.claims
                if is_named(each) and each.is_fluids
            ),
            *more,
        ),
    )


def acceleration_steps(
    manifests: Sequence[Manifest],
    operation: str,
    *,
    is_begun: bool = False,
    seconds: float = READY_SECONDS,
) -> tuple[Steps, Steps]:
    """The steps, and those that follow a failure.

    `manifests`: the Dataset, then its runtime. `operation`: the operation's id, which marks both
    objects, so that the undo removes no object of another program. `is_begun`: the Dataset exists,
    left by a run that made no runtime.
    """
    data_set, runtime = manifests
    made = [runtime] if is_begun else [data_set, runtime]
    targets = [fluid_ref_of(each) for each in manifests]
    waiting = OperationStep(
        f"{targets[0].title} is Bound", ReadyStep((targets[0],), seconds=seconds)
    )
    undo = OperationStep(
        f"Remove {targets[0].title} and {targets[1].title}, if this operation made them",
        RemoveStep(tuple(targets), is_own_only=True),
    )
    return (*(_creation(each, operation) for each in made), waiting), (undo,)


def unacceleration_steps(parts: DataSetParts, *, seconds: float = READY_SECONDS) -> Steps:
    """Removes the Dataset, and when it is gone the runtimes; then waits for each kind of object.

    In this order Fluid needs seconds. If both are removed at once, the controller of the runtime
    fails at the Dataset, begins again, and asks the master that it has removed for a minute.
    """
    steps: list[OperationStep] = []
    if parts.data_set is not None:
        steps += [_removal((parts.data_set,)), _end((parts.data_set,), seconds)]
    if parts.runtimes:
        steps.append(_removal(parts.runtimes))
    kinds: dict[str, list[ObjectRef]] = {}
    for each in (*parts.runtimes, *parts.rest):
        kinds.setdefault(each.kind, []).append(each)
    return (*steps, *(_end(tuple(targets), seconds) for targets in kinds.values()))


def _removal(targets: tuple[ObjectRef, ...]) -> OperationStep:
    return OperationStep(f"Remove {_titles(targets)}", RemoveStep(targets))


def _end(targets: tuple[ObjectRef, ...], seconds: float) -> OperationStep:
    word = "is gone" if len(targets) == 1 else "are gone"
    return OperationStep(f"{_titles(targets)} {word}", GoneStep(targets, seconds=seconds))


def _titles(targets: Sequence[ObjectRef]) -> str:
    return ", ".join(each.title for each in targets)


def preheat_steps(
    manifest: Manifest, operation: str, *, seconds: float = LOAD_SECONDS
) -> tuple[Steps, Steps]:
    """The steps, and those that follow a failure or a cancellation.

    `manifest`: the DataLoad. One with a schedule never completes, so no step waits for it.
    """
    target = fluid_ref_of(manifest)
    steps = [_creation(manifest, operation)]
    if manifest["spec"].get("policy", "Once") == "Once":
        steps.append(
            OperationStep(f"{target.title} is Complete", ReadyStep((target,), seconds=seconds))
        )
    undo = RemoveStep((target,), is_own_only=True)
    return tuple(steps), (OperationStep(f"Remove {target.title}, if this operation made it", undo),)


def fluid_ref_of(manifest: Manifest) -> ObjectRef:
    """The reference of an object of Fluid, with its plural."""
    ref = object_ref(manifest)
    return fluid_ref(ref.kind, ref.namespace, ref.name)


def _creation(manifest: Manifest, operation: str) -> OperationStep:
    meta = manifest["metadata"]
    marked = {**(meta.get("annotations") or {}), ANNOTATION_OPERATION: operation}
    target = fluid_ref_of(manifest)
    return OperationStep(
        f"Create {target.title}",
        CreateStep({**manifest, "metadata": {**meta, "annotations": marked}}, target.plural),
    )
