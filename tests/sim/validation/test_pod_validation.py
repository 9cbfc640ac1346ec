"""The rules of pods do not fail on anything that a controller copies from a custom resource;
tests/contracts checks that they are right.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead_sim.objects import resources as served
from fairlead_sim.validation.pod import new_pod_errors, pod_errors
from fairlead_sim.validation.workload import workload_errors

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_SPEC: dict[str, Any] = {
    "restartPolicy": "Never",
    "os": {"name": "linux"},
    "schedulingGates": [{"name": "a"}],
    "tolerations": [
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    ],
    "nodeSelector": {"a": "b"},
    "hostname": "x",
    "activeDeadlineSeconds": 3,
    "affinity": {
        "nodeAffinity": {
            _REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]}
                ]
            }
        },
        "podAffinity": {
            _REQUIRED: [{"topologyKey": "x", "labelSelector": {"matchLabels": {"a": "b"}}}]
        },
    },
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}],
    "containers": [
        {
            "name": "a",
            "image": "x",
            "ports": [{"containerPort": 1, "name": "x"}],
            "env": [{"name": "a", "value": "x"}],
            "volumeMounts": [{"name": "v", "mountPath": "/x"}],
            "livenessProbe": {"exec": {"command": ["x"]}, "periodSeconds": 1},
            "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
            "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "2"}, "requests": {"cpu": "1"}},
        }
    ],
}
_JUNK: tuple[Any, ...] = (
    None,
    1,
    1.5,
    True,
    "x",
    [],
    {},
    [1],
    ["x"],
    {"a": 1},
    [{"a": 1}],
    [[]],
    {"name": {}},
    [{"name": []}],
    -1,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, held in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from _places(held, (*path, key))


def _errors(spec: Any) -> list[Any]:
    job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": spec}}}
    return [
        *pod_errors("spec", spec),
        *new_pod_errors("spec", spec),
        *workload_errors(served.JOBS, job),
    ]


def test_a_good_pod_has_no_faults() -> None:
    assert _errors(_SPEC) == []


@pytest.mark.parametrize(
    "place",
    [place for place in _places(_SPEC) if place],
    ids=lambda place: ".".join(map(str, place)),
)
def test_a_value_of_any_type_anywhere_is_no_accident(place: tuple[Any, ...]) -> None:
    for junk in _JUNK:
        spec = copy.deepcopy(_SPEC)
        owner: Any = spec
        for key in place[:-1]:
            owner = owner[key]
        owner[place[-1]] = junk
        assert all(error.message for error in _errors(spec))
