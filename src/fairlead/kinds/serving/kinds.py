"""The types of serving jobs, and the objects that belong to one.

They are found by arena's three labels only, so serving jobs of the reference arena are found too.

A Deployment with the labels is a serving job itself. For types whose operator creates Deployments
(KServe), the job is the operator's object and the Deployments are its workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from msgspec import Struct

from fairlead.model.jobs.serving import Service, Serving, ServingWorkload
from fairlead.model.pod import Pod
from fairlead.wire import names

Labelled = TypeVar("Labelled", ServingWorkload, Service, Pod)


class ServingType(Struct, frozen=True):
    """`title`: the name in tables, `word`: the short word for `-T`.

    `is_operated`: an operator creates its Deployments.
    """

    title: str
    word: str
    is_operated: bool = False


CUSTOM: Final = "custom-serving"
TENSORFLOW: Final = "tf-serving"
TRITON: Final = "triton-serving"
KSERVE: Final = "kserve"

TYPES: Final[Mapping[str, ServingType]] = {
    CUSTOM: ServingType("Custom", "custom"),
    TENSORFLOW: ServingType("Tensorflow", "tf"),
    TRITON: ServingType("Triton", "triton"),
    KSERVE: ServingType("KServe", "kserve", is_operated=True),
    "kf-serving": ServingType("KFServing", "kf"),
    "trt-serving": ServingType("Tensorrt", "trt"),
    "seldon-serving": ServingType("Seldon", "seldon"),
    "distributed-serving": ServingType("Distributed", "distributed"),
}
"""By the value of the label `servingType`."""

INFERENCE_SERVICES: Final = (
    "serving.kserve.io",
    "v1beta1",
    "inferenceservices",
    "InferenceService",
)
"""Group, version, plural and kind of KServe's object."""


def serving_type(word: str) -> str | None:
    """The type for a word after `-T`, in any case; None for an unknown word.

    >>> serving_type("TF"), serving_type("Tensorflow"), serving_type("kserve"), serving_type("x")
    ('tf-serving', 'tf-serving', 'kserve', None)
    """
    wanted = word.lower()
    return next(
        (
            label
            for label, each in TYPES.items()
            if wanted in (label, each.word, each.title.lower())
        ),
        None,
    )


def selector(name: str = "", version: str = "") -> str:
    """The label selector of all serving jobs, or of one; the same for workloads, Services and pods.

    >>> selector(), selector("bert", "v1")
    ('servingType', 'servingType,servingName=bert,servingVersion=v1')
    """
    wanted = ((names.LABEL_SERVING_NAME, name), (names.LABEL_SERVING_VERSION, version))
    return ",".join(
        [names.LABEL_SERVING_TYPE, *(f"{label}={value}" for label, value in wanted if value)]
    )


def servings_of(
    workloads: Iterable[ServingWorkload], services: Iterable[Service], pods: Iterable[Pod]
) -> tuple[Serving, ...]:
    """Serving jobs by namespace, name, version and type.

    Objects with an unknown type are ignored.
    """
    services_by, pods_by = _grouped(services), _grouped(pods)
    found: list[Serving] = []
    for key, mine in _grouped(workloads).items():
        _, type_, name, version = key
        if type_ not in TYPES:
            continue
        is_operated = TYPES[type_].is_operated
        deployments = tuple(each for each in mine if each.kind == "Deployment")
        for head in [each for each in mine if is_operated == (each.kind != "Deployment")]:
            workers = deployments if is_operated else (head,)
            before, behind = tuple(services_by.get(key, ())), tuple(pods_by.get(key, ()))
            found.append(Serving(type_, name, version, head, workers, before, behind))
    return tuple(
        sorted(
            found,
            key=lambda each: (
                each.namespace,
                each.name,
                each.version,
                each.type,
                each.workload.name,
            ),
        )
    )


def _grouped(objects: Iterable[Labelled]) -> dict[tuple[str, str, str, str], list[Labelled]]:
    """Objects by namespace and the three labels' values, which are equal within one serving job."""
    groups: dict[tuple[str, str, str, str], list[Labelled]] = {}
    for each in objects:
        labels = (names.LABEL_SERVING_TYPE, names.LABEL_SERVING_NAME, names.LABEL_SERVING_VERSION)
        type_, name, version = (each.labels.get(label, "") for label in labels)
        groups.setdefault((each.namespace, type_, name, version), []).append(each)
    return groups
