"""The webhook: it says what the rules say, and refuses what is no review."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.asgi import ask as send
from tests.kube.admission_cases import ATTEMPTS, SENT, Attempt, Object, result

from fairlead.apps.admission_webhook import BODY_BYTES_MAX, webhook_app

APP = webhook_app()
AS_JSON = {"content-type": "application/json; charset=utf-8"}
RESOURCES = {"status": ("UPDATE", "pods", "status"), "binding": ("CREATE", "pods", "binding"), "bindings": ("CREATE", "bindings", None)}


async def ask(path: str, **request: Any) -> Object:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", **request}}
    status, answer = await send(APP, "POST", path, json.dumps(review).encode(), AS_JSON)
    assert status == 200, answer
    response: Object = answer["response"]
    assert response["uid"] == "u"
    return response


def asked(operation: str, resource: str = "pods", sub: str | None = None, user: str = "alice", **more: Any) -> Object:
    return {"operation": operation, "resource": {"resource": resource}, "subResource": sub, "userInfo": {"username": user}, **more}


@pytest.mark.parametrize("case", SENT)
async def test_new_pods_are_sent_where_the_rules_say(case: str) -> None:
    spec, scheduler = SENT[case]
    spec = {"schedulerName": "default-scheduler", **spec}
    response = await ask("/scheduler", **asked("CREATE", object={"metadata": {"name": "p"}, "spec": spec}))
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    sent = {**spec, **{each["path"].removeprefix("/spec/"): each["value"] for each in patch}}
    assert (response["allowed"], sent["schedulerName"]) == (True, scheduler)
    assert bool(patch) == (scheduler != spec["schedulerName"])


@pytest.mark.parametrize("case", ATTEMPTS)
async def test_writers_are_refused_as_the_rules_say(case: str) -> None:
    attempt: Attempt = ATTEMPTS[case]
    operation, resource, sub = RESOURCES.get(attempt.how, ("CREATE" if attempt.how == "create" else "UPDATE", "pods", None))
    old = {"metadata": {"annotations": attempt.before}} if operation == "UPDATE" else None
    new = {"metadata": {"annotations": result(attempt)}}
    response = await ask("/grants", **asked(operation, resource, sub, attempt.user, object=new, oldObject=old))
    assert response["allowed"] == (not attempt.refused)
    if attempt.refused:
        told = f"only Fairlead writes the annotation {attempt.refused}"
        assert response["status"] == {"code": 403, "reason": "Forbidden", "message": told}


async def test_what_is_deleted_is_left_to_whoever_deletes() -> None:
    old = {"metadata": {"annotations": {"ALIYUN_COM_GPU_MEM_IDX": "0"}}}
    assert (await ask("/grants", **asked("DELETE", object=None, oldObject=old)))["allowed"]


@pytest.mark.parametrize(("operation", "sub"), [("UPDATE", None), ("CREATE", "binding"), ("UPDATE", "status")])
async def test_only_new_pods_are_sent_to_a_scheduler(operation: str, sub: str | None) -> None:
    spec = {"containers": [{"name": "a", "resources": {"limits": {"aliyun.com/gpu-mem": "4"}}}]}
    assert "patch" not in await ask("/scheduler", **asked(operation, sub=sub, object={"metadata": {}, "spec": spec}))


async def test_a_pod_that_nobody_could_run_is_refused_with_the_reason() -> None:
    spec = {"containers": [{"name": "a", "resources": {"limits": {"aliyun.com/gpu-mem": "much"}}}]}
    response = await ask("/scheduler", **asked("CREATE", object={"metadata": {}, "spec": spec}))
    assert (response["allowed"], response["status"]["code"]) == (False, 400)
    assert "quantity `much` is not a Kubernetes quantity" in response["status"]["message"]


@pytest.mark.parametrize("path", ["/scheduler", "/grants"])
async def test_bad_input_gets_a_sentence(path: str) -> None:
    for body, told in ((b"{", "no AdmissionReview: Input data was truncated"), (b"{}", "is not admission.k8s.io/v1 AdmissionReview")):
        status, answer = await send(APP, "POST", path, body, AS_JSON)
        assert (status, told in answer) == (400, True), answer
    assert (await send(APP, "POST", path, b"{}"))[0] == 415
    assert (await send(APP, "POST", path, b" " * (BODY_BYTES_MAX + 1), AS_JSON))[0] == 413
    assert (await send(APP, "GET", path))[0] == 405


async def test_probes_are_answered() -> None:
    assert [(await send(APP, "GET", path))[0] for path in ("/healthz", "/readyz", "/elsewhere")] == [200, 200, 404]
