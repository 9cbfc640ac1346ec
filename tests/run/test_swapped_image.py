"""In dcgm-exporter's published manifests only the image is changed: their arguments and variables
start Fairlead's exporter, as a process.

The arguments and variables are those of its manifest and its Helm chart, from two versions. The
files that its images have in /etc/dcgm-exporter are in another folder here; nothing else differs.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from threading import Thread

import bcrypt
import pytest
import yaml
from tests.kube.certificates import Authority
from tests.programs import run_program
from tests.waiting import HANG_SECONDS, wait_until

from fairlead.apps.server import GRACE_SECONDS
from fairlead.wire.metrics.counters_csv import parse_counters

CSVS = Path(__file__).resolve().parents[2] / "src" / "fairlead" / "wire" / "metrics"
IMAGE_FOLDER = "/etc/dcgm-exporter"
CODE = (
    "import sys; from fairlead.run.main import main; sys.exit(main('dcgm-exporter', sys.argv[1:]))"
)
SECOND = {"DCGM_EXPORTER_LISTEN": ":9400", "DCGM_EXPORTER_KUBERNETES": "true"}
FOURTH = {**SECOND, "NODE_NAME": "node-1"}
DUMPS = [
    "--dump-enabled",
    "--dump-directory=/tmp/dumps",
    "--dump-retention=24",
    "--dump-compression",
]


@contextmanager
def swapped(
    folder: Path, arguments: list[str], variables: Mapping[str, str], *before: str
) -> Iterator[tuple[str, list[str]]]:
    """The address of the running exporter, and its output until it was ready."""
    here = {name: value.replace(IMAGE_FOLDER, str(folder)) for name, value in variables.items()}
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        **here,
        "DCGM_EXPORTER_LISTEN": "127.0.0.1:0",
    }
    argv = [
        *before,
        sys.executable,
        "-c",
        CODE,
        *(word.replace(IMAGE_FOLDER, str(folder)) for word in arguments),
    ]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stderr is not None
    printed: list[str] = []
    later = Thread(target=printed.extend, args=(process.stderr,))
    try:
        for line in process.stderr:
            printed.append(line)
            if found := re.search(r"https?://127\.0\.0\.1:\d+", line):
                later.start()
                yield found[0], printed
                break
        else:
            raise AssertionError(f"it ended: {printed}")
        process.send_signal(signal.SIGTERM)
        assert process.wait(10 * GRACE_SECONDS) == 0, "SIGTERM ends it well and soon"
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if later.ident is not None:
            later.join()
        process.stderr.close()


def get(url: str, tls: ssl.SSLContext | None = None, user: str = "") -> tuple[int, str]:
    headers = {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()} if user else {}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=HANG_SECONDS, context=tls
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The files that the image has in /etc/dcgm-exporter."""
    for csv in CSVS.glob("*.csv"):
        shutil.copy(csv, tmp_path)
    return tmp_path


def values(page: str, name: str) -> list[str]:
    return [line.rpartition(" ")[2] for line in page.splitlines() if line.startswith(f"{name}{{")]


def test_the_manifest_of_the_second_generation(image: Path) -> None:
    with swapped(image, [], SECOND) as (url, printed):
        status, page = get(f"{url}/metrics")
        assert (status, get(f"{url}/health")) == (200, (200, "OK"))
        assert values(page, "fairlead_exporter_config_rows_rejected") == ["0"]
        assert 'backend="nvml"' in page and values(page, "fairlead_exporter_nvml_up") == ["0"], (
            "no driver here, and no invented card"
        )
        assert not [line for line in printed if "no effect" in line]


def test_the_chart_of_the_second_generation_names_the_profiling_counters(image: Path) -> None:
    with swapped(image, ["-f", f"{IMAGE_FOLDER}/dcp-metrics-included.csv"], SECOND) as (
        url,
        printed,
    ):
        assert values(get(f"{url}/metrics")[1], "fairlead_exporter_config_rows_rejected") == ["0"]
        assert not [line for line in printed if "no effect" in line or "skipped" in line]


def test_the_chart_of_the_fourth_generation_with_everything_on(image: Path) -> None:
    authority = Authority(image, "ca")
    authority.issue("tls", names=["127.0.0.1"])
    secret = bcrypt.hashpw(b"word", bcrypt.gensalt(4)).decode()
    config = {
        "tls_server_config": {"cert_file": "tls.pem", "key_file": "tls.key"},
        "basic_auth_users": {"prometheus": secret},
    }
    (image / "web-config.yaml").write_text(yaml.safe_dump(config))
    settings = {
        "version": 1,
        "metrics": {"file": str(image / "default-counters.csv")},
        "collection": {"interval": "1s"},
    }
    (image / "config.yaml").write_text(yaml.safe_dump(settings))
    variables = {
        **FOURTH,
        "DCGM_EXPORTER_WEB_CONFIG_FILE": f"{IMAGE_FOLDER}/web-config.yaml",
        "DCGM_EXPORTER_CONFIG_FILE": f"{IMAGE_FOLDER}/config.yaml",
        "DCGM_EXPORTER_LOG_FORMAT": "json",
        "DCGM_EXPORTER_WEB_READ_TIMEOUT": "10s",
        "DCGM_EXPORTER_WEB_WRITE_TIMEOUT": "30s",
        "DCGM_EXPORTER_HEALTH_REQUIRE_GPUS": "true",
        "DISABLE_STARTUP_VALIDATE": "true",
    }
    with swapped(image, DUMPS, variables) as (url, printed):
        tls = ssl.create_default_context(cafile=str(authority.certificate))
        assert url.startswith("https://")
        assert get(f"{url}/metrics", tls)[0] == 401
        assert get(f"{url}/health", tls)[0] == 503, "it was asked to be unhealthy without cards"
        status, page = get(f"{url}/metrics", tls, "prometheus:word")
        assert (status, values(page, "fairlead_exporter_config_rows_rejected")) == (200, ["0"])
        assert 'node_name="node-1"' in page
        reported = [line for line in printed if "no effect" in line]
        assert len(reported) == 1 and "`--dump-enabled`, `--dump-directory`" in reported[0]
        # a thread reads what the process prints
        wait_until("the log has a line", lambda: any(each.startswith("{") for each in printed), 30)
        logged = [json.loads(line) for line in printed if line.startswith("{")]
        assert all(set(line) >= {"time", "level", "logger", "msg"} for line in logged) and logged


def test_the_page_cannot_be_open_by_mistake(image: Path) -> None:
    (image / "web-config.yaml").write_text("")
    ended = run_program(
        [
            sys.executable,
            "-c",
            CODE,
            f"-web-config-file={image}/web-config.yaml",
            "-a",
            "127.0.0.1:0",
        ]
    )
    assert (
        ended.returncode == 1 and "it guards nothing" in ended.stderr and "hint: " in ended.stderr
    )


def test_its_version_is_one_line() -> None:
    for word in ("--version", "-v", "-version"):
        ended = run_program([sys.executable, "-c", CODE, word])
        assert (ended.returncode, ended.stderr) == (0, "")
        assert re.fullmatch(r"DCGM Exporter version fairlead-\d+\.\d+\.\d+\n", ended.stdout)


def test_systemd_may_hand_over_the_socket() -> None:
    """As in sd_listen_fds: descriptor 3, in the process with the id LISTEN_PID."""
    handing = (
        "os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_PID=str(os.getpid()), "
        "LISTEN_FDS='1'); os.execv(sys.argv[2], sys.argv[2:])"
    )
    with create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        own = [sys.executable, "-c", CODE, "--web-systemd-socket"]
        argv = [sys.executable, "-c", f"import os, sys; {handing}", str(sock.fileno()), *own]
        process = subprocess.Popen(
            argv, stderr=subprocess.PIPE, text=True, pass_fds=(sock.fileno(),)
        )
    try:
        assert process.stderr is not None
        assert any(f"http://127.0.0.1:{port}/metrics" in line for line in process.stderr)
        assert get(f"http://127.0.0.1:{port}/metrics")[0] == 200
    finally:
        process.terminate()
        process.communicate()
    ended = run_program([sys.executable, "-c", CODE, "--web-systemd-socket"])
    assert ended.returncode == 1 and "systemd hands over no socket" in ended.stderr


def test_the_three_files_of_the_image_have_no_row_that_is_refused() -> None:
    """tests/image looks for them in the image."""
    names = {"default-counters.csv", "dcp-metrics-included.csv", "1.x-compatibility-metrics.csv"}
    assert {csv.name for csv in CSVS.glob("*.csv")} == names
    for name in names:
        found = parse_counters((CSVS / name).read_text(encoding="utf-8"))
        assert found.counters and not found.rejected, name
