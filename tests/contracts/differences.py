"""Known differences between the simulated API server and the real one: each entry checks both and
returns what it sees.

`docs/reference/differences.md` is written from this list (`tools/docs_differences.py`), and
`test_differences` checks it on both servers. An entry whose two worlds agree is a failure: then the
line has to be removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.contracts.api_client import APPLY, STRATEGIC, Answer, ApiClient, until
from tests.contracts.objects import (
    Object,
    config_maps,
    deployment,
    deployments,
    pod,
    pods,
)

Look = Callable[[ApiClient, str], str]


@dataclass(frozen=True)
class Difference:
    """`look` uses a namespace of its own and answers in the words of `real` or `simulated`."""

    area: str
    what: str
    real: str
    simulated: str
    why: str
    look: Look


def _status(answer: Answer) -> str:
    return f"{answer.status} {answer.reason}".strip()


def _asked(
    method: str,
    path: str,
    body: Any = None,
    *,
    media: str = "application/json",
    accept: str = "application/json",
    **query: Any,
) -> Look:
    """The status of one request; `{s}` is the namespace."""

    def look(api: ApiClient, space: str) -> str:
        sent = (
            body
            if body is None or isinstance(body, bytes)
            else json.loads(json.dumps(body).replace("{s}", space))
        )
        headers = {"Content-Type": media, "Accept": accept}
        return _status(
            api.ask(method, path.replace("{s}", space), sent, query=query, headers=headers)
        )

    return look


def _warned(path: str, body: Object) -> Look:
    """The warning in the answer to a creation."""

    def look(api: ApiClient, space: str) -> str:
        warning = api.post(path.replace("{s}", space), body).headers.get("warning", "")
        return f"warns `{warning.removeprefix('299 - ').strip(chr(34))}`" if warning else "201"

    return look


# --- apply ----------------------------------------------------------------------------------------


def _cluster_as_manager(api: ApiClient, space: str) -> str:
    path = config_maps(space, "kube-root-ca.crt")
    until("the cluster has made it", lambda: api.get(path).status == 200)
    entries = api.get(path).body["metadata"].get("managedFields") or ()
    # the tests' programs have their version in their file's name
    named = ", ".join(f"`{re.sub(r'-[0-9.]+$', '', entry['manager'])}`" for entry in entries)
    return f"{named} is noted" if named else "no writer is noted"


def _other_version(api: ApiClient, space: str) -> str:
    """What one applied in `autoscaling/v2`, another changes in `autoscaling/v1`."""
    paths = {
        version: f"/apis/autoscaling/{version}/namespaces/{space}/horizontalpodautoscalers/a"
        for version in ("v1", "v2")
    }
    target = {"type": "Utilization", "averageUtilization": 50}
    wish = {
        **_SCALER,
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {
            **_SCALER["spec"],
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }
    api.patch(paths["v2"], wish, APPLY, fieldManager="one")
    api.patch(paths["v1"], {"spec": {"targetCPUUtilizationPercentage": 60}}, fieldManager="two")
    return _status(api.patch(paths["v2"], wish, APPLY, fieldManager="one"))


# --- objects --------------------------------------------------------------------------------------


def _token_volume(api: ApiClient, space: str) -> str:
    made = api.post(pods(space), pod()).body["spec"]
    return "a projected volume" if made.get("volumes") else "no volume"


def _wrong_type(api: ApiClient, space: str) -> str:
    api.post(pods(space), pod())
    answer = api.patch(pods(space, "a"), {"spec": "x"}, STRATEGIC)
    why = answer.message.rpartition(']": ')[2]
    return f"{answer.status}, `… {why}`"


def _two_families(api: ApiClient, space: str) -> str:
    spec = {"ipFamilies": ["IPv4", "IPv6"], "ports": [{"port": 80}]}
    answer = api.post(
        f"/api/v1/namespaces/{space}/services", {"metadata": {"name": "a"}, "spec": spec}
    )
    return f"{answer.status}, `… {answer.message.rpartition(': ')[2]}`"


def _attach(api: ApiClient, space: str) -> str:
    api.post(pods(space), pod())
    answer = api.ask("POST", f"{pods(space, 'a', 'attach')}?stdout=true")
    return f"{_status(answer)}, `{answer.message}`"


def _version(api: ApiClient, space: str) -> str:
    return f"`{api.get('/version').body['gitVersion']}`"


_HOST_PORTS = [{"containerPort": port, "hostPort": 80} for port in (80, 81)]
_JOB = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
_LABELLED_JOB = {
    "suspend": True,
    "template": {"metadata": {"labels": {"job-name": "other"}}, "spec": _JOB},
}
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
_MANY = {**deployment(), "spec": {**deployment()["spec"], "replicas": 2001, "paused": True}}

_SCALER: Object = {"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": _TARGET}}
_QUOTA = {"metadata": {"name": "a"}, "spec": {"hard": {"pods": "1"}}}
_POLICY = {"metadata": {"name": "a"}, "spec": {"podSelector": {}}}
_LIMITS = {
    "metadata": {"name": "a"},
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
}

DIFFERENCES = (
    Difference(
        "Server-side apply",
        "who wrote what the cluster makes itself",
        "`kube-controller-manager` is noted",
        "no writer is noted",
        "controllers write without a request; the first apply notes all as `before-first-apply`",
        _cluster_as_manager,
    ),
    Difference(
        "Server-side apply",
        "an applied field that another manager changed in a version with another name for it",
        "409 Conflict",
        "200",
        "owners are not converted between versions (HorizontalPodAutoscaler, Event)",
        _other_version,
    ),
    Difference(
        *(
            "Bodies",
            "a body of 500 levels",
            "201",
            "400 BadRequest",
            "200 levels are the limit (the real one: 10,000)",
        ),
        _asked(
            "POST",
            "/api/v1/namespaces/{s}/configmaps",
            b'{"metadata":{"name":"a"},"x":' + b'{"a":' * 500 + b"1" + b"}" * 501,
        ),
    ),
    Difference(
        *(
            "Bodies",
            "two YAML documents in one body",
            "201",
            "400 BadRequest",
            "the real one drops the second in silence",
        ),
        _asked(
            "POST",
            "/api/v1/namespaces/{s}/configmaps",
            b"metadata: {name: a}\n---\nmetadata: {name: b}\n",
            media="application/yaml",
        ),
    ),
    Difference(
        *(
            "Bodies",
            "a key twice, `fieldValidation=Strict`",
            "400 BadRequest",
            "201",
            "kubectl and other clients never send one",
        ),
        _asked(
            "POST",
            "/api/v1/namespaces/{s}/configmaps",
            b'{"metadata":{"name":"a","name":"a"}}',
            fieldValidation="Strict",
        ),
    ),
    Difference(
        *(
            "Bodies",
            "a text for an object in a strategic merge patch",
            "422, `… cannot restore struct from: string`",
        ),
        *(
            (
                "422, `… json: cannot unmarshal string into Go struct field Pod.spec of type "
                "v1.PodSpec`"
            ),
            "one decoder for all dialects",
        ),
        _wrong_type,
    ),
    *(
        Difference(
            "Answers",
            f"`Accept: {media}`",
            "200",
            "406 NotAcceptable",
            "answers are JSON",
            _asked("GET", config_maps("{s}"), accept=media),
        )
        for media in ("application/yaml", "application/vnd.kubernetes.protobuf")
    ),
    Difference(
        "Answers",
        "`/version`",
        "`v1.36.3`",
        "`v1.36.3+fairlead`",
        "it must not be mistaken for a real one",
        _version,
    ),
    Difference(
        *(
            "Paths",
            "the old `/api/v1/watch/…`",
            "200",
            "404 NotFound",
            "deprecated for years; `?watch=true` is there",
        ),
        _asked("GET", "/api/v1/watch/namespaces/{s}/configmaps", timeoutSeconds=1),
    ),
    Difference(
        "Paths",
        "`/metrics`",
        "200",
        "404",
        "the laptop's metrics are its exporters'",
        _asked("GET", "/metrics"),
    ),
    Difference(
        "Paths",
        "`/apis/apiregistration.k8s.io`",
        "200",
        "404",
        "no aggregated APIs",
        _asked("GET", "/apis/apiregistration.k8s.io"),
    ),
    Difference(
        *(
            "Paths",
            "`pods/attach` (`port-forward`, `debug`)",
            "400 BadRequest, `pod a does not have a host assigned`",
        ),
        *(
            (
                "501 NotImplemented, `pod a runs in a simulated cluster, where containers are "
                "scripts "
                "without a process or a network: no attach`"
            ),
        ),
        "nothing runs inside",
        _attach,
    ),
    Difference(
        "Objects",
        "a new pod's token",
        "a projected volume",
        "no volume",
        "no container would read it",
        _token_volume,
    ),
    Difference(
        *(
            "Objects",
            "one host port twice in a pod",
            "422 Invalid",
            "201",
            "ports lead nowhere here",
        ),
        _asked(
            "POST",
            "/api/v1/namespaces/{s}/pods",
            pod(spec={"containers": [{"name": "m", "image": "x", "ports": _HOST_PORTS}]}),
        ),
    ),
    Difference(
        *(
            "Objects",
            "a RuntimeClass that does not exist",
            "403 Forbidden",
            "201",
            "no runtime to choose",
        ),
        _asked("POST", "/api/v1/namespaces/{s}/pods", pod(spec={"runtimeClassName": "nobody"})),
    ),
    Difference(
        *(
            "Objects",
            "a Job whose pods carry another Job's name",
            "422 Invalid",
            "201",
            "the label is overwritten",
        ),
        _asked(
            "POST",
            "/apis/batch/v1/namespaces/{s}/jobs",
            {"metadata": {"name": "a"}, "spec": _LABELLED_JOB},
        ),
    ),
    Difference(
        *("Objects", "a Service of two families"),
        (
            "422, `… must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families "
            "are specified`"
        ),
        *("422, `… not configured on this cluster`", "the cluster has one family"),
        _two_families,
    ),
    Difference(
        *(
            "Objects",
            "2,001 replicas",
            "201",
            "422 Invalid",
            "a typing error shall not eat the laptop",
        ),
        _asked("POST", deployments("{s}"), _MANY),
    ),
    Difference(
        *("Kinds that are only kept", "a HorizontalPodAutoscaler", "201"),
        (
            "warns `the simulated cluster has no autoscaler: nothing is scaled and the status "
            "stays empty`"
        ),
        "no metrics API",
        _warned("/apis/autoscaling/v2/namespaces/{s}/horizontalpodautoscalers", _SCALER),
    ),
    Difference(
        *(
            "Kinds that are only kept",
            "a ResourceQuota",
            "201",
            "warns `the simulated cluster does not enforce resource quotas`",
        ),
        "the quota tree is what Fairlead is about",
        _warned("/api/v1/namespaces/{s}/resourcequotas", _QUOTA),
    ),
    Difference(
        *(
            "Kinds that are only kept",
            "a LimitRange",
            "201",
            "warns `the simulated cluster does not apply limit ranges`",
        ),
        "no admission plugins",
        _warned("/api/v1/namespaces/{s}/limitranges", _LIMITS),
    ),
    Difference(
        *(
            "Kinds that are only kept",
            "a NetworkPolicy",
            "201",
            "warns `the simulated cluster has no network: this policy holds nothing back`",
        ),
        "no network",
        _warned("/apis/networking.k8s.io/v1/namespaces/{s}/networkpolicies", _POLICY),
    ),
)
