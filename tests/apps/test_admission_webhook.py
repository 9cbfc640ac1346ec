"""The webhook: it says what the rules say, refuses what is no review, and serves the newest certificate of its files."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.apps.test_api_server import ask as send
from tests.kube.admission_cases import ATTEMPTS, SENT, Attempt, Object, result
from tests.kube.certificates import Authority, KeyPair

from fairlead.apps import admission_webhook
from fairlead.apps.admission_webhook import BODY_BYTES_MAX, ServingCertificate, webhook_app
from fairlead.apps.server import bind_socket, serve
from fairlead.errors import UserError

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


def serial(port: int) -> int:
    """Of the certificate that the server shows."""
    from cryptography import x509

    return x509.load_pem_x509_certificate(ssl.get_server_certificate(("127.0.0.1", port), timeout=5).encode()).serial_number


def put(pair: KeyPair, folder: Path) -> tuple[Path, Path]:
    """As the files of a Secret, replaced in one step each."""
    names = (folder / "tls.crt", folder / "tls.key")
    for source, name in zip((pair.certificate, pair.key), names, strict=True):
        (folder / "new").write_bytes(source.read_bytes())
        (folder / "new").rename(name)
    return names


async def test_a_renewed_certificate_is_served_without_a_restart_and_a_bad_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission_webhook, "RELOAD_SECONDS", 0.05)
    authority = Authority(tmp_path, "ca")
    first, second = (authority.issue(name, names=["127.0.0.1"]) for name in ("first", "second"))
    certificate = ServingCertificate(*put(first, tmp_path))
    sock, ready = bind_socket("127.0.0.1", 0), asyncio.Event()
    port = sock.getsockname()[1]
    serving = [
        asyncio.create_task(serve(webhook_app(), sock=sock, ssl=certificate.context, ready=ready)),
        asyncio.create_task(certificate.follow()),
    ]
    try:
        await asyncio.wait_for(ready.wait(), 5)
        before = await asyncio.to_thread(serial, port)
        (tmp_path / "tls.crt").write_bytes(b"no certificate")
        await asyncio.sleep(0.3)
        assert await asyncio.to_thread(serial, port) == before
        assert "the old certificate goes on" in caplog.text
        put(second, tmp_path)
        await asyncio.sleep(0.3)
        assert await asyncio.to_thread(serial, port) != before
    finally:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def test_files_that_are_no_certificate_are_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    first, second = (authority.issue(name) for name in ("first", "second"))
    with pytest.raises(UserError, match=r"cannot read `.*nowhere.pem`: no such file"):
        ServingCertificate(first.certificate, tmp_path / "nowhere.pem")
    with pytest.raises(UserError, match=r"are no certificate and its key: .*mismatch"):
        ServingCertificate(first.certificate, second.key)
    if os.geteuid():
        first.key.chmod(0)
        with pytest.raises(UserError, match="are no certificate and its key"):
            ServingCertificate(first.certificate, first.key)
