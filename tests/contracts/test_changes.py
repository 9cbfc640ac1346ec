"""Contract: the result of changing an object again and again: other strategies, other sizes,
immutable fields.

Every case is a few writes of one object, sent to both servers; the answers and the final spec must
be the same.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from tests.contracts.api_client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Answer, ApiClient, until
from tests.contracts.objects import Object, deployment, job, pod

_APPS, _BATCH, _CORE = (
    "/apis/apps/v1/namespaces/{s}",
    "/apis/batch/v1/namespaces/{s}",
    "/api/v1/namespaces/{s}",
)


class Step(NamedTuple):
    """One write: `PUT`, `DELETE` or the media type of a patch, and its body."""

    how: str
    body: Any = None


def _spec(how: str, **spec: Any) -> Step:
    return Step(how, {"spec": spec})


def _with(base: Object, **spec: Any) -> Object:
    return {**base, "spec": {**base["spec"], **spec}}


_POD_SPEC = {"containers": [{"name": "main", "image": "i:1"}]}
_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": _POD_SPEC}
_SELECTOR = {"matchLabels": {"app": "a"}}
_DEPLOYMENT = deployment("a")
_SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "a"},
    "spec": {"replicas": 0, "selector": _SELECTOR, "template": _TEMPLATE, "serviceName": "a"},
}
_DAEMONS = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "a"},
    "spec": {
        "selector": _SELECTOR,
        "template": {**_TEMPLATE, "spec": {**_POD_SPEC, "nodeSelector": {"no": "where"}}},
    },
}
_CRON = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "a"},
    "spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job()["spec"]}},
}
_CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "a"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "nobodys",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
_SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "a"},
    "stringData": {"a": "1"},
}
_BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "a"},
    "spec": {"minAvailable": 1},
}
_SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "a"},
    "spec": {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nobody"},
    },
}
_RECREATE = {"type": "Recreate"}
_ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}
_DEPLOYMENTS, _SETS, _DAEMON_SETS = (
    f"{_APPS}/deployments",
    f"{_APPS}/statefulsets",
    f"{_APPS}/daemonsets",
)
_JOBS, _CRON_JOBS = f"{_BATCH}/jobs", f"{_BATCH}/cronjobs"
_CASES: dict[str, tuple[str, Object, list[Step]]] = {
    "strategy to Recreate, merged": (_DEPLOYMENTS, _DEPLOYMENT, [_spec(MERGE, strategy=_RECREATE)]),
    "strategy to Recreate, merged with null": (
        *(_DEPLOYMENTS, _DEPLOYMENT),
        [
            _spec(MERGE, strategy={**_RECREATE, "rollingUpdate": None}),
            _spec(MERGE, strategy={"type": "RollingUpdate"}),
        ],
    ),
    "strategy to Recreate, strategic": (
        *(_DEPLOYMENTS, _DEPLOYMENT),
        [
            _spec(STRATEGIC, strategy=_RECREATE),
            _spec(STRATEGIC, strategy={"$retainKeys": ["type"], **_RECREATE}),
        ],
    ),
    "strategy to Recreate, applied": (
        *(_DEPLOYMENTS, _DEPLOYMENT),
        [
            Step(APPLY, _with(_DEPLOYMENT, strategy=_RECREATE)),
            Step(APPLY, _with(_DEPLOYMENT, strategy=_ROLLING)),
        ],
    ),
    "strategy to Recreate and back, replaced": (
        *(_DEPLOYMENTS, _DEPLOYMENT),
        [
            Step("PUT", _with(_DEPLOYMENT, strategy=_RECREATE)),
            Step("PUT", _DEPLOYMENT),
            Step("PUT", _with(_DEPLOYMENT, strategy=_ROLLING)),
        ],
    ),
    "the selector of a Deployment": (
        *(_DEPLOYMENTS, _DEPLOYMENT),
        [
            _spec(MERGE, selector={"matchLabels": {"app": "z"}}),
            _spec(
                MERGE,
                selector={"matchLabels": {"app": "z"}},
                template={"metadata": {"labels": {"app": "z"}}},
            ),
        ],
    ),
    "a Deployment's defaults are put back": (
        *(_DEPLOYMENTS, _DEPLOYMENT),
        [
            _spec(MERGE, replicas=None, revisionHistoryLimit=None, progressDeadlineSeconds=None),
            _spec(MERGE, replicas=0),
        ],
    ),
    "the label of a template alone": (
        _DEPLOYMENTS,
        _DEPLOYMENT,
        [_spec(MERGE, template={"metadata": {"labels": {"app": "z"}}})],
    ),
    "a template's restart policy": (
        *(_DEPLOYMENTS, _DEPLOYMENT),
        [
            _spec(STRATEGIC, template={"spec": {"restartPolicy": "Never"}}),
            _spec(STRATEGIC, template={"spec": {"restartPolicy": "Always"}}),
        ],
    ),
    "a StatefulSet's fields": (
        *(_SETS, _SET),
        [
            _spec(MERGE, serviceName="b"),
            _spec(MERGE, podManagementPolicy="Parallel"),
            _spec(MERGE, volumeClaimTemplates=[_CLAIM]),
            _spec(MERGE, updateStrategy={"type": "OnDelete"}),
            _spec(MERGE, updateStrategy={"type": "OnDelete", "rollingUpdate": None}),
            _spec(
                MERGE,
                minReadySeconds=5,
                revisionHistoryLimit=3,
                persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"},
            ),
            _spec(MERGE, ordinals={"start": 3}),
        ],
    ),
    "a DaemonSet's strategy": (
        *(_DAEMON_SETS, _DAEMONS),
        [
            _spec(MERGE, updateStrategy={"type": "OnDelete"}),
            _spec(MERGE, updateStrategy={"type": "OnDelete", "rollingUpdate": None}),
            _spec(
                MERGE,
                updateStrategy={
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": "50%"},
                },
            ),
            _spec(MERGE, updateStrategy={"rollingUpdate": {"maxSurge": 1}}),
            _spec(MERGE, updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
            _spec(MERGE, selector={"matchLabels": {"app": "z"}}),
        ],
    ),
    "a Job is suspended and resumed": (
        *(_JOBS, job()),
        [
            _spec(MERGE, suspend=None),
            _spec(MERGE, suspend=True),
            _spec(MERGE, suspend=True, parallelism=3, backoffLimit=2),
        ],
    ),
    "a suspended Job's template": (
        *(_JOBS, job()),
        [
            _spec(STRATEGIC, template={"spec": {"nodeSelector": {"a": "b"}}}),
            _spec(
                STRATEGIC, template={"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}
            ),
            _spec(
                STRATEGIC, template={"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}}}
            ),
            _spec(
                STRATEGIC,
                template={
                    "spec": {
                        "containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]
                    }
                },
            ),
            _spec(STRATEGIC, template={"spec": {"schedulingGates": [{"name": "a.b/c"}]}}),
        ],
    ),
    "a Job's other fields": (
        *(_JOBS, job()),
        [
            _spec(MERGE, completions=3),
            _spec(MERGE, completionMode="Indexed"),
            _spec(MERGE, activeDeadlineSeconds=100, ttlSecondsAfterFinished=5),
            _spec(MERGE, manualSelector=True),
            _spec(MERGE, podReplacementPolicy="Failed"),
        ],
    ),
    "an indexed Job's completions": (
        *(_JOBS, _with(job(), completionMode="Indexed", completions=2, parallelism=2)),
        [_spec(MERGE, completions=3), _spec(MERGE, completions=3, parallelism=3)],
    ),
    "a CronJob": (
        *(_CRON_JOBS, _CRON),
        [
            _spec(MERGE, schedule="*/5 * * * *", concurrencyPolicy="Forbid"),
            _spec(MERGE, timeZone="Europe/Berlin"),
            _spec(MERGE, timeZone=""),
            _spec(MERGE, jobTemplate={"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}),
            _spec(MERGE, jobTemplate={"spec": {"completions": 4}}),
        ],
    ),
    "a claim's size": (
        *(f"{_CORE}/persistentvolumeclaims", _CLAIM),
        [
            _spec(MERGE, resources={"requests": {"storage": "2Gi"}}),
            _spec(MERGE, resources={"requests": {"storage": "1Gi"}}),
            _spec(MERGE, resources={"requests": {"storage": "512Mi"}}),
            _spec(MERGE, accessModes=["ReadWriteMany"]),
            _spec(MERGE, volumeName="v"),
            _spec(MERGE, volumeName="w"),
        ],
    ),
    "a Secret": (
        *(f"{_CORE}/secrets", _SECRET),
        [
            Step(MERGE, {"stringData": {"b": "2"}}),
            Step(MERGE, {"type": "x"}),
            Step(MERGE, {"immutable": True}),
            Step(MERGE, {"data": None}),
        ],
    ),
    "a budget": (
        *("/apis/policy/v1/namespaces/{s}/poddisruptionbudgets", _BUDGET),
        [
            _spec(MERGE, maxUnavailable=1, minAvailable=None),
            _spec(MERGE, maxUnavailable="50%"),
            _spec(MERGE, selector={"matchLabels": {"a": "b"}}),
            _spec(MERGE, maxUnavailable="150%"),
            _spec(MERGE, unhealthyPodEvictionPolicy="Nope"),
        ],
    ),
    "an autoscaler": (
        *("/apis/autoscaling/v2/namespaces/{s}/horizontalpodautoscalers", _SCALER),
        [
            _spec(MERGE, minReplicas=2),
            _spec(MERGE, minReplicas=5),
            _spec(MERGE, maxReplicas=0),
            _spec(MERGE, scaleTargetRef={"name": "x"}),
        ],
    ),
    "a running pod": (
        *(f"{_CORE}/pods", pod()),
        [
            _spec(STRATEGIC, containers=[{"name": "main", "image": ""}]),
            _spec(STRATEGIC, containers=[{"name": "main", "image": "train:2"}]),
            _spec(STRATEGIC, containers=[{"name": "main", "image": " train:3"}]),
            _spec(MERGE, activeDeadlineSeconds=100),
            _spec(MERGE, activeDeadlineSeconds=200),
            _spec(MERGE, activeDeadlineSeconds=None),
            _spec(MERGE, terminationGracePeriodSeconds=5),
            _spec(MERGE, tolerations=[]),
            _spec(MERGE, nodeName="n"),
            _spec(STRATEGIC, ephemeralContainers=[{"name": "x", "image": "y"}]),
            _spec(STRATEGIC, containers=[{"name": "two", "image": "i"}]),
            _spec(STRATEGIC, containers=[{"name": "main", "resources": {"limits": {"cpu": "1"}}}]),
        ],
    ),
    "metadata": (
        *(
            f"{_CORE}/configmaps",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "a", "labels": {"a": "b"}},
            },
        ),
        [
            Step(MERGE, {"metadata": {"name": "b"}}),
            Step(MERGE, {"metadata": {"namespace": "default"}}),
            Step(MERGE, {"metadata": {"uid": "x"}}),
            Step(MERGE, {"metadata": {"creationTimestamp": None, "generation": 7}}),
            Step(MERGE, {"metadata": {"labels": None}}),
            Step(MERGE, {"metadata": {"deletionTimestamp": "2026-01-05T08:00:00Z"}}),
            Step(MERGE, {"metadata": {"finalizers": ["a.b/c"]}}),
            Step("DELETE"),
            Step(MERGE, {"metadata": {"finalizers": ["a.b/c", "a.b/d"]}}),
            Step(MERGE, {"metadata": {"finalizers": None}}),
        ],
    ),
    "a namespace": (
        *(
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
        ),
        [
            Step(MERGE, {"metadata": {"labels": {"kubernetes.io/metadata.name": "x"}}}),
            Step(MERGE, {"metadata": {"labels": None}}),
            Step(JSON_PATCH, [{"op": "remove", "path": "/spec/finalizers"}]),
        ],
    ),
}


@pytest.mark.parametrize(
    ("collection", "made", "steps"),
    _CASES.values(),
    ids=[name.replace(" ", "-") for name in _CASES],
)
def test_a_changed_object_becomes_what_it_becomes_on_the_real_server(
    worlds: list[tuple[ApiClient, str]], collection: str, made: Object, steps: list[Step]
) -> None:
    simulated, real = (
        _lived(api, space, collection.replace("{s}", space), made, steps) for api, space in worlds
    )
    assert simulated == real


def _lived(
    api: ApiClient, space: str, collection: str, made: Object, steps: list[Step]
) -> list[Any]:
    first = api.post(collection, made)
    assert first.status == 201, first.message
    path = f"{collection}/{made['metadata']['name']}"
    try:
        return [
            _reported(first, space),
            *(_reported(_asked(api, path, step), space) for step in steps),
        ]
    finally:
        # By default the garbage collector first takes a Job from its pods, and the next case has a
        # Job of this name.
        api.delete(path, {"propagationPolicy": "Background"}, gracePeriodSeconds=0)
        until("the object is gone", lambda: api.get(path).status == 404)


def _asked(api: ApiClient, path: str, step: Step) -> Answer:
    if step.how == "DELETE":
        return api.delete(path)
    if step.how == "PUT":
        return api.put(path, step.body)
    query = {"fieldManager": "contract", "force": "true"} if step.how == APPLY else {}
    return api.patch(path, step.body, step.how, **query)


def _reported(answer: Answer, space: str) -> list[Any]:
    if answer.status >= 400:
        # what follows is Go's comparison of two structs
        message, _, _ = answer.message.replace(space, "{s}").partition("\n")
        return [answer.status, answer.reason, message]
    kept = {
        key: value
        for key, value in answer.body.items()
        if key not in ("metadata", "status", "apiVersion", "kind")
    }
    # the volume with the account's token is a known difference (`differences.py`)
    if answer.body["kind"] == "Pod":
        kept["spec"] = {key: value for key, value in kept["spec"].items() if key != "volumes"}
        kept["spec"]["containers"] = [
            {key: value for key, value in container.items() if key != "volumeMounts"}
            for container in kept["spec"]["containers"]
        ]
    kept = json.loads(json.dumps(kept).replace(answer.body["metadata"]["uid"], "the uid"))
    return [answer.status, kept, sorted(answer.body["metadata"].get("labels") or {})]
