"""Contract: kinds that are stored and have no effect. The same body is sent to both servers; what
comes back, and its table, must be the same.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.contracts.api_client import MERGE, ApiClient
from tests.contracts.conftest import new_space
from tests.contracts.objects import Object

Both = tuple[ApiClient, ApiClient]

_TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i:1"}]},
}
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
_CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
}
_MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
}
_PODS = {
    "type": "Pods",
    "pods": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "5"}},
}
_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
_PATH = {"path": "/", "pathType": "Prefix", "backend": _BACKEND}
_WEBHOOK = {
    "name": "w.contract.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "rules": [
        {
            "apiGroups": ["nobody.example.com"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["nothings"],
        }
    ],
}
_MATCH = {"resourceRules": _WEBHOOK["rules"]}
_MUTATION = {
    "patchType": "JSONPatch",
    "jsonPatch": {"expression": ('[JSONPatch{op: "test", path: "/a", value: 1}]')},
}

_KINDS: dict[str, tuple[str, Object]] = {
    "limit range": (
        "/api/v1/limitranges",
        {
            "spec": {
                "limits": [{"type": "Container", "max": {"cpu": "1"}, "default": {"memory": "1Gi"}}]
            }
        },
    ),
    "pod template": ("/api/v1/podtemplates", {"template": _TEMPLATE}),
    "replication controller": (
        "/api/v1/replicationcontrollers",
        {"spec": {"replicas": 0, "template": _TEMPLATE}},
    ),
    "resource quota": (
        "/api/v1/resourcequotas",
        {"spec": {"hard": {"pods": "10", "requests.cpu": 2}}},
    ),
    "controller revision": (
        "/apis/apps/v1/controllerrevisions",
        {"revision": 3, "data": {"spec": {"x": 1}}},
    ),
    "autoscaler": (
        "/apis/autoscaling/v2/horizontalpodautoscalers",
        {"spec": {"scaleTargetRef": _TARGET, "maxReplicas": 3}},
    ),
    "autoscaler by much": (
        "/apis/autoscaling/v2/horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": _TARGET,
                "maxReplicas": 3,
                "minReplicas": 2,
                "metrics": [_CPU, _MEMORY, _PODS],
            }
        },
    ),
    "old autoscaler": (
        "/apis/autoscaling/v1/horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": _TARGET,
                "maxReplicas": 3,
                "targetCPUUtilizationPercentage": 70,
            }
        },
    ),
    "ingress": (
        "/apis/networking.k8s.io/v1/ingresses",
        {
            "spec": {
                "ingressClassName": "x",
                "tls": [{"hosts": ["a.b"]}],
                "rules": [{"host": "a.b", "http": {"paths": [_PATH]}}],
            }
        },
    ),
    "default ingress": (
        "/apis/networking.k8s.io/v1/ingresses",
        {"spec": {"defaultBackend": _BACKEND}},
    ),
    "ingress class": (
        "/apis/networking.k8s.io/v1/ingressclasses",
        {
            "spec": {
                "controller": "x.io/y",
                "parameters": {"apiGroup": "k.io", "kind": "P", "name": "p"},
            }
        },
    ),
    "network policy": (
        "/apis/networking.k8s.io/v1/networkpolicies",
        {"spec": {"podSelector": {"matchLabels": {"a": "b"}}, "egress": [{}]}},
    ),
    "closed network policy": (
        "/apis/networking.k8s.io/v1/networkpolicies",
        {"spec": {"podSelector": {}}},
    ),
    "endpoint slice": (
        "/apis/discovery.k8s.io/v1/endpointslices",
        {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.2.3"]}],
            "ports": [{"name": "p", "port": 80}],
        },
    ),
    "runtime class": ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "nvidia"}),
    "csi driver": ("/apis/storage.k8s.io/v1/csidrivers", {"spec": {"podInfoOnMount": True}}),
    "csi node": (
        "/apis/storage.k8s.io/v1/csinodes",
        {"spec": {"drivers": [{"name": "d.io", "nodeID": "n", "topologyKeys": ["k"]}]}},
    ),
    "volume attachment": (
        "/apis/storage.k8s.io/v1/volumeattachments",
        {"spec": {"attacher": "a.io", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}},
    ),
    "volume class": (
        "/apis/storage.k8s.io/v1/volumeattributesclasses",
        {"driverName": "d.io", "parameters": {"iops": "5"}},
    ),
    "webhook": (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {"webhooks": [_WEBHOOK]},
    ),
    "mutating webhook": (
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        {"webhooks": [_WEBHOOK]},
    ),
    "policy": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        {"spec": {"matchConstraints": _MATCH, "validations": [{"expression": "true"}]}},
    ),
    "policy binding": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        {"spec": {"policyName": "nobody.example.com", "validationActions": ["Deny"]}},
    ),
    "mutating policy": (
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
        {
            "spec": {
                "matchConstraints": _MATCH,
                "mutations": [_MUTATION],
                "reinvocationPolicy": "Never",
            }
        },
    ),
    "mutating policy binding": (
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
        {"spec": {"policyName": "nobody.example.com"}},
    ),
    "event": (
        "/apis/events.k8s.io/v1/events",
        {
            "eventTime": "2026-01-05T08:00:00.000000Z",
            "type": "Normal",
            "reason": "Seen",
            "action": "Look",
            "note": "a note",
            "reportingController": "contract.example.com",
            "reportingInstance": "c-1",
            "regarding": {"kind": "Pod", "name": "p", "namespace": "SPACE"},
        },
    ),
}
# the status of these kinds is set by controllers that are not simulated
_SETTLED_BY_CONTROLLERS = ("resource quota", "replication controller", "policy")
_CLUSTER_WIDE = ("ingressclasses", "runtimeclasses", "csi", "volumeatt", "admissionregistration")


def _place(path: str, space: str) -> str:
    if any(word in path for word in _CLUSTER_WIDE):
        return path
    prefix, _, plural = path.rpartition("/")
    return f"{prefix}/namespaces/{space}/{plural}"


def _made(api: ApiClient, case: str, space: str) -> tuple[Any, Any, Any]:
    """The object as the server returns it, without what differs by nature; its row; the answer to
    deleting it.
    """
    path, body = _KINDS[case]
    if "regarding" in body:
        body = {**body, "regarding": {**body["regarding"], "namespace": space}}
    name = "stored.contract.example.com"
    collection = _place(path, space)
    made = api.post(collection, {"metadata": {"name": name}, **body})
    assert made.status == 201, (api.name, made.message)
    try:
        obj = api.get(f"{collection}/{name}").body
        row = api.table(f"{collection}/{name}").body["rows"][0]["cells"]
    finally:
        deleted = api.delete(f"{collection}/{name}").body["kind"]
    for key in (
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "namespace",
        "finalizers",
    ):
        obj["metadata"].pop(key, None)
    if case in _SETTLED_BY_CONTROLLERS:
        obj["status"], row = None, row[:1]
    return _spaceless(obj, space), [_ageless(cell) for cell in row], deleted


def _spaceless(value: Any, space: str) -> Any:
    if isinstance(value, dict):
        return {key: _spaceless(item, space) for key, item in value.items()}
    return (
        [_spaceless(item, space) for item in value]
        if isinstance(value, list)
        else "SPACE"
        if value == space
        else value
    )


def _ageless(cell: Any) -> Any:
    text = str(cell)
    return "<age>" if (text.endswith("s") and text[:-1].isdecimal()) or text[4:5] == "-" else cell


@pytest.mark.parametrize("case", _KINDS, ids=lambda case: case.replace(" ", "-"))
def test_both_servers_keep_the_same(both: Both, case: str) -> None:
    simulated, real = (_made(api, case, new_space(api)) for api in both)
    assert simulated == real


_INCOMPLETE: dict[str, Object] = {
    "/api/v1/podtemplates": {},
    "/api/v1/replicationcontrollers": {},
    "/apis/autoscaling/v2/horizontalpodautoscalers": {
        "spec": {"scaleTargetRef": {"kind": "D", "name": "x"}, "maxReplicas": 2, "minReplicas": 3}
    },
    "/apis/autoscaling/v1/horizontalpodautoscalers": {
        "spec": {"maxReplicas": 1, "scaleTargetRef": {"apiVersion": "a/v1"}}
    },
    "/apis/networking.k8s.io/v1/ingresses": {
        "spec": {
            "rules": [{"http": {"paths": [{"path": "x", "pathType": "Prefix", "backend": {}}]}}]
        }
    },
    "/apis/networking.k8s.io/v1/ingressclasses": {},
    "/apis/networking.k8s.io/v1/networkpolicies": {
        "spec": {"podSelector": {}, "policyTypes": ["X"]}
    },
    "/apis/discovery.k8s.io/v1/endpointslices": {"addressType": "x"},
    "/apis/node.k8s.io/v1/runtimeclasses": {},
    "/apis/storage.k8s.io/v1/volumeattributesclasses": {},
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": {
        "webhooks": [{"name": "x"}]
    },
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies": {},
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings": {},
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies": {},
}


@pytest.mark.parametrize("path", _INCOMPLETE)
def test_both_servers_refuse_the_same(both: Both, path: str) -> None:
    def refusal(api: ApiClient) -> tuple[int, str, list[str]]:
        answer = api.post(
            _place(path, "default"),
            {"metadata": {"name": "a.contract.example.com"}, **_INCOMPLETE[path]},
            dryRun="All",
        )
        causes = [
            f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]
        ]
        return answer.status, answer.reason, sorted(causes)

    simulated, real = both
    assert refusal(simulated) == refusal(real)


def test_one_autoscaler_in_two_versions(api: ApiClient, space: str) -> None:
    old, new = (
        f"/apis/autoscaling/{version}/namespaces/{space}/horizontalpodautoscalers"
        for version in ("v1", "v2")
    )
    spec = {"scaleTargetRef": _TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 70}
    assert api.post(old, {"metadata": {"name": "a"}, "spec": spec}).status == 201
    target = {"type": "Utilization", "averageUtilization": 70}
    assert api.get(f"{new}/a").body["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]
    api.patch(f"{new}/a", {"spec": {"maxReplicas": 5}}, MERGE)
    seen = api.get(f"{old}/a").body["spec"]
    assert (seen["maxReplicas"], seen["targetCPUUtilizationPercentage"], "metrics" in seen) == (
        5,
        70,
        False,
    )


def test_an_event_is_seen_from_both_groups(api: ApiClient, space: str) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": space}
    reported = {
        "metadata": {"name": "e.1"},
        "involvedObject": about,
        "reason": "Seen",
        "message": "a note",
        "type": "Normal",
        "count": 3,
    }
    assert api.post(f"/api/v1/namespaces/{space}/events", reported).status == 201
    seen = api.get(f"/apis/events.k8s.io/v1/namespaces/{space}/events/e.1").body
    assert (seen["note"], seen["regarding"]["name"], seen["deprecatedCount"]) == ("a note", "p", 3)
    assert "message" not in seen


def test_what_has_no_effect_is_reported(both: Both) -> None:
    """The only difference from the real server: a warning."""
    simulated, _ = both
    path, body = _KINDS["webhook"]
    answer = simulated.post(
        path, {"metadata": {"name": "a.contract.example.com"}, **body}, dryRun="All"
    )
    assert answer.status == 201 and "never calls its webhooks" in answer.headers["warning"]
