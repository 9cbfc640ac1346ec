"""HTTPS with the newest certificate from two files; an invalid pair is reported, and the current
one stays in use.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from tests.kube.certificates import Authority, KeyPair
from tests.waiting import HANG_SECONDS, until

from fairlead.apps import serving_certificate
from fairlead.apps.admission_webhook import webhook_app
from fairlead.apps.server import bind_socket
from fairlead.apps.service import ServedApp
from fairlead.apps.serving_certificate import ServingCertificate, trust_clients
from fairlead.errors import UserError


def serial(port: int) -> int:
    """The serial number of the certificate that the server presents."""
    return x509.load_pem_x509_certificate(
        ssl.get_server_certificate(("127.0.0.1", port), timeout=HANG_SECONDS).encode()
    ).serial_number


def put(pair: KeyPair, folder: Path) -> tuple[Path, Path]:
    """Replaces the files like those of a Secret, each in one step."""
    names = (folder / "tls.crt", folder / "tls.key")
    for source, name in zip((pair.certificate, pair.key), names, strict=True):
        (folder / "new").write_bytes(source.read_bytes())
        (folder / "new").rename(name)
    return names


async def test_a_renewed_certificate_is_served_without_a_restart_and_a_bad_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_certificate, "RELOAD_SECONDS", 0.05)
    authority = Authority(tmp_path, "ca")
    first, second = (authority.issue(name, names=["127.0.0.1"]) for name in ("first", "second"))
    certificate = ServingCertificate(*put(first, tmp_path))
    sock = bind_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    serving = asyncio.create_task(ServedApp(app=webhook_app(), sock=sock, tls=certificate).run())
    try:
        before = await asyncio.to_thread(serial, port)

        async def reported() -> bool:
            return "the old certificate goes on" in caplog.text

        async def renewed() -> bool:
            return await asyncio.to_thread(serial, port) != before

        (tmp_path / "tls.crt").write_bytes(b"no certificate")
        await until(reported)
        assert await asyncio.to_thread(serial, port) == before
        put(second, tmp_path)
        await until(renewed)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def test_invalid_certificate_files_are_reported(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    first, second = (authority.issue(name) for name in ("first", "second"))
    with pytest.raises(UserError) as caught:
        ServingCertificate(first.certificate, tmp_path / "nowhere.pem")
    assert caught.value.what == f"cannot read `{tmp_path}/nowhere.pem`: no such file or directory"
    with pytest.raises(UserError, match="mismatch"):
        ServingCertificate(first.certificate, second.key)
    if os.geteuid():
        first.key.chmod(0)
        with pytest.raises(UserError) as caught:
            ServingCertificate(first.certificate, first.key)
        assert f"`{first.key}`" in caught.value.what


async def test_with_a_client_authority_a_question_needs_its_certificate_and_a_probe_none(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path, "ca")
    server, caller = authority.issue("server", names=["127.0.0.1"]), authority.issue("caller")
    certificate = ServingCertificate(server.certificate, server.key)
    trust_clients(certificate.context, authority.certificate)
    sock = bind_socket("127.0.0.1", 0)
    served = ServedApp(app=webhook_app(asks_certificate=True), sock=sock, tls=certificate)
    serving = asyncio.create_task(served.run())
    try:
        await served.accepting.wait()
        answers = {}
        for name, pair in (("without", None), ("with", caller)):
            context = ssl.create_default_context(cafile=str(authority.certificate))
            if pair is not None:
                context.load_cert_chain(pair.certificate, pair.key)
            url = f"https://127.0.0.1:{sock.getsockname()[1]}"
            async with aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=context)
            ) as session:
                async with session.post(f"{url}/grants", json={}) as answer:
                    answers[name] = answer.status
                async with session.get(f"{url}/healthz") as answer:
                    assert answer.status == 200
        # 400: the body was read and is no AdmissionReview
        assert answers == {"without": 403, "with": 400}
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
