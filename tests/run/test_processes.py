"""Servers as a user starts them alone: what they refuse, and what they do while the API server is
away.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest
from tests.cli.arena import environment, run_main
from tests.examples import long_case
from tests.run.laptop import young_scenario
from tests.run.server_process import SECONDS, line_of, page_of, running, status_of
from tests.waiting import HANG_SECONDS, check_prompt, wait_until

NO_USER = (
    "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: c, "
    "context: {cluster: c}}], current-context: c}"
)


def refused(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_main("fairlead", arguments, environment(home))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("console", "--listen", "127.0.0.1:0"),
            "there is no cluster to follow: no kubeconfig and no service account",
        ),
        long_case(("cluster-exporter", "--listen", "127.0.0.1:0"), "there is no cluster to follow"),
        long_case(
            ("cluster-exporter", "--listen", "127.0.0.1:0", "--identity", "a"),
            "`--identity` names a process in the Lease",
        ),
        (
            ("console", "--listen", "0.0.0.0:0"),
            "without sign-in, every client that reaches `0.0.0.0`",
        ),
        long_case(("console", "--listen", "nowhere"), "`nowhere` is not an address to listen on"),
        long_case(("api-server", "--listen", ":0"), "can be reached from other machines"),
        long_case(
            (
                "gpu-exporter",
                "--backend=sim",
                "--listen",
                "127.0.0.1:0",
                "--collectors",
                "/absent.csv",
            ),
            "counters file `/absent.csv` cannot be read",
        ),
        long_case(
            ("gpu-exporter", "--backend=sim", "--listen", "127.0.0.1:0", "--compat", "gold"),
            "`gold` is no family of `--compat`",
        ),
        (
            (
                "console",
                "--listen",
                "127.0.0.1:0",
                "--kubeconfig",
                "KUBECONFIG",
                "--gpu-source",
                "prometheus",
            ),
            "`--gpu-source prometheus` needs a Prometheus",
        ),
        (
            (
                "console",
                "--listen",
                "127.0.0.1:0",
                "--kubeconfig",
                "KUBECONFIG",
                "--gpu-exporter",
                "gpu-1",
            ),
            "`gpu-1` is no address of an exporter's page",
        ),
    ],
)
def test_what_cannot_start_ends_with_a_sentence(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text(NO_USER)
    ended = refused(
        tmp_path,
        *(str(tmp_path / "config") if each == "KUBECONFIG" else each for each in arguments),
    )
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.startswith("error: ") and words in ended.stderr
    assert "\nhint: " in ended.stderr and "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "words",
    [("console",), ("cluster-exporter", "--leader-elect")],
    ids=["console", "cluster-exporter"],
)
def test_without_its_api_server_a_server_lives_is_not_ready_and_ends_on_sigterm(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    check_prompt(5, partial(_ended_without_api_server, words, tmp_path))


def _ended_without_api_server(words: tuple[str, ...], tmp_path: Path) -> float:
    """Seconds from SIGTERM to the end."""
    (tmp_path / "config").write_text(NO_USER)
    with running(tmp_path, *words, "--kubeconfig", str(tmp_path / "config")) as (process, url):
        assert (status_of(f"{url}/healthz"), status_of(f"{url}/readyz")) == (200, 503)
        assert "hint: check the address in the kubeconfig" in line_of(
            process, "refused the connection; "
        )
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=HANG_SECONDS) == 0
        return time.monotonic() - started


@pytest.mark.long
def test_a_snapshot_can_be_looked_at_in_the_console(tmp_path: Path) -> None:
    saved = tmp_path / "s"
    assert refused(tmp_path, "snapshot", "save", str(saved)).returncode == 0
    with running(tmp_path, "console", "--snapshot", str(saved)) as (_, url):
        assert status_of(f"{url}/readyz") == 200
        with urllib.request.urlopen(f"{url}/api/v1/overview", timeout=HANG_SECONDS) as answer:
            overview = json.load(answer)
        assert (overview["gpus"]["total"], overview["gpuNodes"]["total"]) == (32, 6)
        assert overview["gpuMemory"]["usedMiB"] > 0
        assert overview["generatedAt"].startswith("2026-01-05T11:00:00")


def page_with_cards(url: str) -> str:
    """Waits until the page has a card: the page exists before a card has answered."""
    wait_until("a card has answered", lambda: "\nfairlead_gpu_up{" in page_of(url), SECONDS, 0.05)
    return page_of(url)


@pytest.mark.long
def test_the_gpu_exporter_reads_its_counters_again_on_sighup(tmp_path: Path) -> None:
    counters = tmp_path / "counters.csv"
    counters.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n")
    with running(
        tmp_path, "gpu-exporter", "--backend=sim", "-f", str(counters), "-c", "3600000"
    ) as (process, url):
        assert "\nDCGM_FI_DEV_GPU_UTIL{" in page_with_cards(url)
        counters.write_text("DCGM_FI_DEV_FB_USED, gauge, Memory.\n")
        process.send_signal(signal.SIGHUP)
        wait_until(
            "the page has the new counter",
            lambda: "\nDCGM_FI_DEV_FB_USED{" in page_of(url),
            SECONDS,
            0.05,
        )
        assert "DCGM_FI_DEV_GPU_UTIL" not in page_of(url)


@pytest.mark.parametrize("verb", ["console", "cluster-exporter"])
def test_sighup_ends_no_server(verb: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(NO_USER)
    with running(tmp_path, verb, "--kubeconfig", str(tmp_path / "config")) as (process, url):
        assert status_of(f"{url}/healthz") == 200
        process.send_signal(signal.SIGHUP)
        # each on its own connection, in a turn of the event loop in which the server could stop
        # listening
        for _ in range(5):
            assert status_of(f"{url}/healthz") == 200
        assert process.poll() is None


@pytest.mark.long
def test_pods_and_their_uids_are_named_when_asked(tmp_path: Path) -> None:
    with running(
        tmp_path, "gpu-exporter", "--fake-gpus", "--all-nodes", "-k", "--kubernetes-enable-pod-uid"
    ) as (_, url):
        named = [
            line
            for line in page_with_cards(url).splitlines()
            if line.startswith("DCGM_FI_DEV_GPU_UTIL{") and 'pod="' in line
        ]
        assert named and all('pod_uid="' in line for line in named)


def test_a_gpu_exporter_alone_serves_simulated_devices(tmp_path: Path) -> None:
    words = (
        "--backend",
        "sim",
        "--no-hostname",
        "--seed",
        "3",
        "--scenario",
        young_scenario(tmp_path),
    )
    with running(tmp_path, "gpu-exporter", *words) as (process, url):
        samples = [
            line
            for line in page_with_cards(url).splitlines()
            if line.startswith("DCGM_FI_DEV_GPU_UTIL{")
        ]
        assert "Hostname" not in samples[0] and 'gpu="0"' in samples[0]
        assert not [line for line in samples if 'pod="' in line], "pods were not requested"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=HANG_SECONDS) == 0
