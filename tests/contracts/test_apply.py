"""Contract: server-side apply. Who owns a field, what conflicts, and what an apply withdraws; every
case is sent to the simulated and to the real API server, and their answers are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from tests.contracts.api_client import JSON_PATCH, MERGE, STRATEGIC, ApiClient
from tests.contracts.applied import (
    DEPLOYMENTS,
    MAPS,
    SERVICES,
    Case,
    Object,
    Step,
    applying,
    differing,
    reported_owners,
)

# --- what is applied ------------------------------------------------------------------------------

PODS: Final = "/api/v1/namespaces/{s}/pods"
JOBS: Final = "/apis/batch/v1/namespaces/{s}/jobs"
SECRETS: Final = "/api/v1/namespaces/{s}/secrets"
CLAIMS: Final = "/api/v1/namespaces/{s}/persistentvolumeclaims"
ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/namespaces/{s}/roles"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/{s}/leases"


def _map(data: Object | None = None, **metadata: Any) -> Object:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return made if data is None else {**made, "data": data}


def _deployment(containers: Sequence[Object], **spec: Any) -> Object:
    labels = {"app": "a"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": labels}, "template": pod, **spec},
    }


def _main(**more: Any) -> Object:
    return {"name": "main", "image": "i:1", **more}


def _side(**more: Any) -> Object:
    return {"name": "side", "image": "s:1", **more}


def _pod(**spec: Any) -> Object:
    held = {"containers": [_main()], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": held}


def _service(*ports: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a"},
        "spec": {"selector": {"app": "a"}, "ports": list(ports), **spec},
    }


_WEB: Final = {"name": "web", "port": 80}
_TLS: Final = {"name": "tls", "port": 443}
_NAMES: Final = {"name": "dns", "port": 53, "protocol": "UDP"}

CASES: dict[str, Case] = {
    "created by apply": Case(MAPS, [applying("one", _map({"a": "1"}, labels={"l": "1"}))]),
    "created by post": Case(MAPS, [Step("POST", "one", _map({"a": "1"}, labels={"l": "1"}))]),
    "created by post, then applied": Case(
        MAPS, [Step("POST", "one", _map({"a": "1"})), applying("two", _map({"b": "2"}))]
    ),
    "a second manager": Case(
        MAPS, [applying("one", _map({"a": "1"})), applying("two", _map({"b": "2"}))]
    ),
    "equal values are shared": Case(
        MAPS,
        [
            applying("one", _map({"a": "1", "b": "1"})),
            applying("two", _map({"a": "1"})),
            applying("one", _map({"b": "1"})),
            applying("two", _map({})),
        ],
    ),
    "a conflict": Case(
        MAPS, [applying("one", _map({"a": "1"})), applying("two", _map({"a": "2"}))]
    ),
    "conflicts with two managers": Case(
        MAPS,
        [
            applying("one", _map({"a": "1", "b": "1"})),
            applying("two", _map({"c": "1"})),
            applying("three", _map({"a": "2", "b": "2", "c": "2"})),
        ],
    ),
    "force takes over": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"})),
            applying("two", _map({"a": "2"}), force=True),
            applying("one", _map({"a": "3"})),
        ],
    ),
    "force takes the last field": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"})),
            applying("two", _map({"a": "2"}), force=True),
        ],
    ),
    "a conflict with an update": Case(
        MAPS,
        [
            Step("POST", "one", _map({"a": "1"})),
            applying("two", _map({"a": "2"})),
            applying("two", _map({"a": "2"}), force=True),
        ],
    ),
    "a field withdrawn": Case(
        MAPS,
        [applying("one", _map({"a": "1", "b": "2"})), applying("one", _map({"a": "1"}))],
    ),
    "all fields withdrawn": Case(
        MAPS, [applying("one", _map({"a": "1", "b": "2"})), applying("one", _map())]
    ),
    "withdrawn from a shared field": Case(
        MAPS,
        [
            applying("one", _map({"a": "1", "b": "1"})),
            applying("two", _map({"b": "1"})),
            applying("one", _map({"a": "1"})),
        ],
    ),
    "labels and annotations withdrawn": Case(
        MAPS,
        [
            applying("one", _map(labels={"a": "1", "b": "1"}, annotations={"c": "1"})),
            applying("two", _map(labels={"d": "1"})),
            applying("one", _map(labels={"b": "1"})),
        ],
    ),
    "finalizers are a set": Case(
        MAPS,
        [
            applying("one", _map(finalizers=["x.io/a", "x.io/b"])),
            applying("two", _map(finalizers=["x.io/c", "x.io/b"])),
            applying("one", _map(finalizers=["x.io/b"])),
            applying("two", _map()),
            Step(MERGE, "three", {"metadata": {"finalizers": None}}),
        ],
    ),
    "a finalizer twice": Case(MAPS, [applying("one", _map(finalizers=["x.io/a", "x.io/a"]))]),
    "a field given null": Case(
        MAPS, [applying("one", _map({"a": "1"})), applying("one", _map({"a": None}))]
    ),
    "data given null": Case(
        MAPS,
        [applying("one", _map({"a": "1"})), applying("two", {**_map(), "data": None})],
    ),
    "an update changes a field": Case(
        MAPS,
        [
            applying("one", _map({"a": "1", "b": "1"})),
            Step(MERGE, "two", {"data": {"a": "2"}}),
            applying("one", _map({"b": "1"})),
        ],
    ),
    "an update removes a field": Case(
        MAPS,
        [
            applying("one", _map({"a": "1", "b": "1"})),
            Step(MERGE, "two", {"data": {"a": None}}),
            applying("one", _map({"a": "1", "b": "1"})),
        ],
    ),
    "an update changes nothing": Case(
        MAPS, [applying("one", _map({"a": "1"})), Step(MERGE, "two", {"data": {"a": "1"}})]
    ),
    "replaced": Case(
        MAPS,
        [
            applying("one", _map({"a": "1", "b": "1"})),
            Step("PUT", "two", {"data": {"b": "1", "c": "1"}}),
            Step(STRATEGIC, "three", {"data": {"d": "1"}}),
            Step(JSON_PATCH, "three", [{"op": "remove", "path": "/data/d"}]),
        ],
    ),
    "the same manager applies and updates": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"})),
            Step(MERGE, "one", {"data": {"a": "2", "b": "2"}}),
            applying("one", _map({"a": "1"})),
            applying("one", _map({"a": "1"}), force=True),
        ],
    ),
    "eleven updaters": Case(
        MAPS,
        [
            Step("POST", "m00", _map({"a": "0"})),
            *(
                Step(MERGE, f"m{number:02}", {"data": {f"a{number}": "1"}})
                for number in range(1, 13)
            ),
        ],
    ),
    "entries cleared by an empty list": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"})),
            Step(MERGE, "two", {"metadata": {"managedFields": []}}),
            Step(MERGE, "two", {"data": {"b": "1"}}),
            applying("one", _map({"c": "1"})),
        ],
    ),
    "entries cleared by an empty entry": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"})),
            Step(MERGE, "two", {"metadata": {"managedFields": [{}]}}),
        ],
    ),
    "entries cleared by a patch of paths": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"})),
            Step(
                JSON_PATCH,
                "two",
                [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}],
            ),
        ],
    ),
    "entries that a client writes": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"})),
            Step(
                MERGE,
                "two",
                {
                    "metadata": {
                        "managedFields": [
                            {
                                "manager": "three",
                                "operation": "Apply",
                                "apiVersion": "v1",
                                "fieldsType": "FieldsV1",
                                "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}},
                            }
                        ]
                    }
                },
            ),
            applying("one", _map({"a": "2"})),
        ],
    ),
    "entries that are none": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"})),
            Step(MERGE, "two", {"metadata": {"managedFields": [{"manager": "x"}]}}),
        ],
    ),
    "managed fields applied": Case(MAPS, [applying("one", _map({"a": "1"}, managedFields=[]))]),
    "applied again": Case(
        MAPS, [applying("one", _map({"a": "1"})), applying("one", _map({"a": "1"}))]
    ),
    "applied after a deletion": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"})),
            Step("DELETE", "one"),
            applying("two", _map({"b": "1"})),
        ],
    ),
    "a dry run": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"}), dryRun="All"),
            applying("one", _map({"a": "1"})),
            applying("two", _map({"a": "2"}), dryRun="All", force=True),
            applying("two", _map({"b": "2"})),
        ],
    ),
    "an unknown uid": Case(MAPS, [applying("one", _map({"a": "1"}, uid="x"))]),
    "a version of an absent object": Case(
        MAPS, [applying("one", _map({"a": "1"}, resourceVersion="7"))]
    ),
    "a stale version": Case(
        MAPS,
        [
            applying("one", _map({"a": "1"})),
            applying("one", _map({"a": "2"}, resourceVersion="1")),
        ],
    ),
    "a field that is not declared": Case(MAPS, [applying("one", {**_map(), "foo": 1})]),
    "a text for a map": Case(MAPS, [applying("one", {**_map(), "data": "x"})]),
    "a number for a text": Case(MAPS, [applying("one", _map({"a": 1}))]),
    "a text for a number": Case(
        DEPLOYMENTS, [applying("one", _deployment([_main()], replicas="x"))]
    ),
    "a text for a list": Case(PODS, [applying("one", _pod(containers="x"))]),
    "a truth for a text": Case(PODS, [applying("one", _pod(nodeName=True))]),
    "no name of a container": Case(PODS, [applying("one", _pod(containers=[{"image": "x"}]))]),
    "a container that is none": Case(PODS, [applying("one", _pod(containers=["x"]))]),
    "a container twice": Case(PODS, [applying("one", _pod(containers=[_main(), _main()]))]),
    "another kind": Case(MAPS, [applying("one", {**_map(), "kind": "Secret"})]),
    "another version": Case(MAPS, [applying("one", {**_map(), "apiVersion": "v2"})]),
    "the manager of a program": Case(MAPS, [Step("POST", "", _map({"a": "1"}))]),
    "a pod": Case(
        PODS,
        [
            Step(
                "POST",
                "one",
                _pod(
                    containers=[
                        _main(
                            env=[{"name": "A", "value": "1"}],
                            ports=[{"containerPort": 80}],
                            resources={"limits": {"cpu": "1000m"}},
                        )
                    ],
                    nodeSelector={"a": "b"},
                    volumes=[{"name": "v", "emptyDir": {}}],
                ),
            ),
            applying("two", {**_pod(), "metadata": {"name": "a", "labels": {"l": "1"}}}),
        ],
    ),
    "a pod's status": Case(
        PODS,
        [
            applying("one", _pod(nodeName="nowhere")),
            Step(
                MERGE,
                "kubelet",
                {
                    "status": {
                        "phase": "Running",
                        "podIP": "10.0.0.1",
                        "podIPs": [{"ip": "10.0.0.1"}],
                    }
                },
                "status",
            ),
            Step(
                STRATEGIC,
                "other",
                {"status": {"conditions": [{"type": "x.io/a", "status": "True"}]}},
                "status",
            ),
            applying(
                "third",
                {
                    **_pod(),
                    "spec": None,
                    "status": {"conditions": [{"type": "x.io/b", "status": "True"}]},
                },
                to="status",
            ),
        ],
    ),
    "a deployment": Case(
        DEPLOYMENTS,
        [
            applying("one", _deployment([_main(), _side()], replicas=2)),
            applying("two", _deployment([_main(args=["x"])])),
            applying("one", _deployment([_main()], replicas=2)),
            applying("one", _deployment([_main()])),
        ],
    ),
    "a deployment by post": Case(
        DEPLOYMENTS,
        [
            Step("POST", "one", _deployment([_main()], strategy={"type": "Recreate"})),
            Step(MERGE, "two", {"spec": {"replicas": 3}}),
        ],
    ),
    "containers of two managers": Case(
        DEPLOYMENTS,
        [
            applying("one", _deployment([_main(), _side()])),
            applying("two", _deployment([{"name": "side", "image": "s:1"}, _main()])),
            applying("one", _deployment([_main()])),
            applying("two", _deployment([_main()])),
        ],
    ),
    "a sidecar of an updater": Case(
        DEPLOYMENTS,
        [
            applying("one", _deployment([_main(), _side()])),
            Step(
                STRATEGIC,
                "two",
                {
                    "spec": {
                        "template": {
                            "spec": {
                                "containers": [
                                    {"name": "side", "args": ["x"]},
                                    {"name": "t", "image": "t"},
                                ]
                            }
                        }
                    }
                },
            ),
            applying("one", _deployment([_main()])),
        ],
    ),
    "environment and ports": Case(
        DEPLOYMENTS,
        [
            applying(
                "one",
                _deployment(
                    [
                        _main(
                            env=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
                            ports=[{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
                        )
                    ]
                ),
            ),
            applying(
                "two",
                _deployment(
                    [
                        {
                            "name": "main",
                            "env": [{"name": "B", "value": "2"}, {"name": "C", "value": "1"}],
                        }
                    ]
                ),
            ),
            applying(
                "one",
                _deployment(
                    [
                        _main(
                            env=[{"name": "C", "value": "1"}, {"name": "B", "value": "1"}],
                            ports=[{"containerPort": 81, "protocol": "UDP"}],
                        )
                    ]
                ),
            ),
        ],
    ),
    "a default comes back": Case(
        DEPLOYMENTS,
        [
            applying("one", _deployment([_main(imagePullPolicy="Never")], revisionHistoryLimit=3)),
            applying("one", _deployment([_main()])),
        ],
    ),
    "a quantity in other words": Case(
        DEPLOYMENTS,
        [
            applying("one", _deployment([_main(resources={"limits": {"cpu": "1000m"}})])),
            applying("one", _deployment([_main(resources={"limits": {"cpu": "1000m"}})])),
            applying("two", _deployment([_main(resources={"limits": {"cpu": "1"}})])),
        ],
    ),
    "a scale": Case(
        DEPLOYMENTS,
        [
            applying("one", _deployment([_main()], replicas=2)),
            Step(MERGE, "two", {"spec": {"replicas": 5}}, "scale"),
            applying("one", _deployment([_main()], replicas=2)),
            applying(
                "three",
                {
                    "apiVersion": "autoscaling/v1",
                    "kind": "Scale",
                    "metadata": {"name": "a"},
                    "spec": {"replicas": 6},
                },
                to="scale",
            ),
            *(
                applying(
                    "three",
                    {
                        "apiVersion": "autoscaling/v1",
                        "kind": "Scale",
                        "metadata": {"name": "a"},
                        "spec": {"replicas": replicas},
                    },
                    to="scale",
                    force=True,
                )
                for replicas in (6, 7)
            ),
        ],
    ),
    "ports of a service": Case(
        SERVICES,
        [
            applying("one", _service(_WEB, _TLS)),
            applying("two", _service(_NAMES)),
            applying("one", _service(_WEB)),
            applying("two", _service({**_WEB, "name": "other"})),
        ],
    ),
    "a service by post": Case(SERVICES, [Step("POST", "one", _service(_WEB, _TLS))]),
    "a selector is atomic": Case(
        SERVICES,
        [
            applying("one", _service(_WEB, selector={"a": "1"})),
            applying("two", _service(_WEB, selector={"b": "1"})),
            applying("two", _service(_WEB, selector={"b": "1"}), force=True),
        ],
    ),
    "a job": Case(
        JOBS,
        [
            applying(
                "one",
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": {"name": "a"},
                    "spec": {
                        "template": {"spec": {"restartPolicy": "Never", "containers": [_main()]}}
                    },
                },
            ),
            Step(MERGE, "two", {"spec": {"suspend": True}}),
        ],
    ),
    "a secret in plain words": Case(
        SECRETS,
        [
            Step(
                "POST",
                "one",
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": "a"},
                    "stringData": {"a": "b"},
                },
            ),
            applying(
                "two",
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": "a"},
                    "stringData": {"a": "c"},
                },
            ),
        ],
    ),
    "a claim": Case(
        CLAIMS,
        [
            Step(
                "POST",
                "one",
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": "a"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                },
            )
        ],
    ),
    "rules of a role": Case(
        ROLES,
        [
            applying(
                "one",
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "Role",
                    "metadata": {"name": "a"},
                    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
                },
            )
        ],
    ),
    "a lease": Case(
        LEASES,
        [
            Step(
                "POST",
                "one",
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": "a"},
                    "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15},
                },
            ),
            Step(MERGE, "one", {"spec": {"holderIdentity": "b"}}),
            Step(MERGE, "two", {"spec": {"holderIdentity": "c"}}),
        ],
    ),
    "client-side apply, then server-side": Case(
        MAPS,
        [
            Step(
                "POST",
                "kubectl-client-side-apply",
                _map(
                    {"a": "1", "b": "1"},
                    annotations={
                        "kubectl.kubernetes.io/last-applied-configuration": (
                            '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{},'
                            '"name":"a"},"data":{"a":"1","b":"1"}}\n'
                        )
                    },
                ),
            ),
            applying("other", _map({"a": "2"})),
            applying("kubectl", _map({"a": "2"})),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=[name.replace(" ", "-") for name in CASES])
def test_an_object_has_the_owners_that_it_has_on_the_real_server(
    worlds: list[tuple[ApiClient, str]], case: Case
) -> None:
    simulated, real = (reported_owners(api, space, case) for api, space in worlds)
    assert "\n".join(differing(simulated, real)) == ""
