"""A page that is protected by a web configuration, checked with real readers of such files and
pages: promtool and Prometheus.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import bcrypt
import yaml
from tests.kube.addresses import free_port
from tests.kube.certificates import Authority
from tests.kube.component import Component
from tests.kube.prometheus import running_prometheus
from tests.waiting import HANG_SECONDS, wait_until

from fairlead.model.refusal import Refusal
from fairlead.wire.files.web_config import parse_web_config

HASH = bcrypt.hashpw(b"word", bcrypt.gensalt(4)).decode()
PAIR = "cert_file: server.pem, key_file: server.key"
BOTH_TAKE = [
    f"tls_server_config: {{{PAIR}}}",
    (
        f"tls_server_config: {{{PAIR}, client_auth_type: RequireAndVerifyClientCert, "
        f"client_ca_file: ca.pem}}"
    ),
    (
        f"tls_server_config: {{{PAIR}, client_auth_type: VerifyClientCertIfGiven, client_ca_file: "
        f"ca.pem, min_version: TLS13}}"
    ),
    (
        f"tls_server_config: {{{PAIR}, client_auth_type: RequestClientCert, curve_preferences: "
        f"[X25519], prefer_server_cipher_suites: false}}"
    ),
    (
        f"tls_server_config: {{{PAIR}, cipher_suites: [TLS_AES_128_GCM_SHA256, "
        f"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA], max_version: TLS12}}"
    ),
    f"basic_auth_users: {{prometheus: {HASH}}}",
    (
        f"basic_auth_users: {{a: {HASH}}}\nhttp_server_config: {{http2: false, headers: "
        f"{{X-Frame-Options: deny, X-XSS-Protection: '1'}}}}"
    ),
    f"tls_server_config: {{{PAIR}, client_auth_type: ''}}",
]
NONE_TAKES = [
    "tls_server_config: {cert_fil: a, key_file: b}",
    "tls_config: {}",
    "tls_server_config: {key_file: server.key}",
    f"tls_server_config: {{{PAIR}, client_auth_type: Require}}",
    f"tls_server_config: {{{PAIR}, client_ca_file: ca.pem}}",
    f"tls_server_config: {{{PAIR}, min_version: '1.2'}}",
    f"tls_server_config: {{{PAIR}, cipher_suites: [RC4]}}",
    f"tls_server_config: {{{PAIR}, curve_preferences: [P256]}}",
    f"tls_server_config: {{{PAIR}, prefer_server_cipher_suites: maybe}}",
    "basic_auth_users: {a: word}",
    "basic_auth_users: [a]",
    f"basic_auth_users: {{a: {HASH}, a: {HASH}}}",
    f"basic_auth_users: {{a: {HASH}}}\nhttp_server_config: {{headers: {{Server: x}}}}",
    (
        f"basic_auth_users: {{a: {HASH}}}\nhttp_server_config: {{headers: {{X-Frame-Options: "
        f"always}}}}"
    ),
    "basic_auth_users: {a: [",
]


def is_taken_by_promtool(file: Path, text: str) -> bool:
    file.write_text(text)
    return (
        subprocess.run(
            ["promtool", "check", "web-config", str(file)],
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        ).returncode
        == 0
    )


def test_prometheus_takes_the_same_files_and_scrapes_the_page_that_they_guard(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path, "ca")
    authority.issue("server", names=["127.0.0.1"])
    own = authority.issue("prometheus")
    for texts, is_good in ((BOTH_TAKE, True), (NONE_TAKES, False)):
        for text in texts:
            theirs, reported = (
                is_taken_by_promtool(tmp_path / "asked.yaml", text),
                not isinstance(parse_web_config(text), Refusal),
            )
            assert (theirs, reported) == (is_good, is_good), text
    config = tmp_path / "web.yaml"
    config.write_text(BOTH_TAKE[1] + "\n" + BOTH_TAKE[5] + "\n")
    port = free_port()
    argv = [
        sys.executable,
        "-m",
        "fairlead",
        "gpu-exporter",
        "--backend=sim",
        f"-a=127.0.0.1:{port}",
        f"-web-config-file={config}",
        "-c",
        "500",
    ]
    exporter = Component(
        "gpu-exporter",
        argv,
        tmp_path / "exporter.log",
        {"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )

    def job(name: str, password: str, certificate: bool = True) -> dict[str, Any]:
        tls = {"ca_file": str(authority.certificate)}
        mine = {"cert_file": str(own.certificate), "key_file": str(own.key)} if certificate else {}
        place = {"targets": [f"127.0.0.1:{port}"]}
        user = {"username": "prometheus", "password": password}
        return {
            "job_name": name,
            "scheme": "https",
            "static_configs": [place],
            "tls_config": {**tls, **mine},
            "basic_auth": user,
        }

    jobs = [job("known", "word"), job("guesses", "words"), job("nobody", "word", certificate=False)]
    exporter.start()
    try:
        exporter.wait_until(lambda: "GPU metrics of" in exporter.log_tail(), 60)
        with running_prometheus({}, tmp_path / "prometheus.log", more=jobs) as prometheus:
            assert prometheus.wait_for_data('fairlead_gpu_up{job="known"} == 1')

            def errors() -> dict[str, str]:
                return {each["labels"]["job"]: each["lastError"] for each in prometheus.targets()}

            wait_until(
                "the others are refused",
                lambda: all(errors()[name] for name in ("guesses", "nobody")),
                30,
            )
            assert (
                errors()["known"] == ""
                and "401" in errors()["guesses"]
                and "HTTP" not in errors()["nobody"]
            )
            config.write_text(
                yaml.safe_dump(
                    {**yaml.safe_load(config.read_text()), "basic_auth_users": {"somebody": HASH}}
                )
            )
            wait_until("who was taken out is out", lambda: "401" in errors()["known"], 30)
    finally:
        exporter.stop()
