"""A laptop's kubeconfig contains the addresses of its clock and its GPU values, so that `arena`
needs only KUBECONFIG.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.arena import arena
from tests.cli.job_objects import moment
from tests.cli.jobs.scripted_jobs import script
from tests.edge.scripted import Reply, ScriptedServer, Stream
from tests.run.laptop_config import laptop_config

HOURS = 3600
PAGE = (
    'nvidia_gpu_duty_cycle{allocate_mode="exclusive",minor_number="3",namespace_name="default",node_name="n1",'
    'pod_name="bert-worker-0",uuid="GPU-1"} 71\n'
)


def pages(server: ScriptedServer) -> dict[str, str]:
    return {"console": server.url, "gpuExporter": f"{server.url}/metrics"}


def answers(**more: list[Reply | Stream]) -> dict[str, list[Reply | Stream]]:
    face = {
        "now": moment(3 * HOURS).replace("Z", ".5Z"),
        "speed": 1.0,
        "isPaused": True,
        "since": None,
        "until": None,
    }
    clock: dict[str, list[Reply | Stream]] = {
        "/api/v1/clock": [Reply(face)],
        "/metrics": [Reply(PAGE.encode())],
    }
    return {**script(), **clock, **more}


def test_durations_count_from_the_laptops_time(tmp_path: Path) -> None:
    with ScriptedServer(answers()) as server:
        path = laptop_config(tmp_path, server.url, pages(server))
        for way in ({"KUBECONFIG": str(path)}, {"KUBECONFIG": f"{tmp_path / 'absent'}:{path}"}):
            done = arena(tmp_path, "list", **way)
            assert [line.split()[3] for line in done.stdout.splitlines()] == [
                "DURATION",
                "3h",
                "3h",
            ], done.stderr


def test_gpu_values_are_the_laptops_page(tmp_path: Path) -> None:
    with ScriptedServer(answers()) as server:
        path = laptop_config(tmp_path, server.url, pages(server))
        done = arena(tmp_path, "top", "job", "bert", "-T", "mpi", KUBECONFIG=str(path))
        assert "3                 71.0%" in done.stdout and done.stderr == ""


def test_a_prometheus_that_is_named_comes_first(tmp_path: Path) -> None:
    nothing = {"status": "success", "data": {"resultType": "vector", "result": []}}
    query: list[Reply | Stream] = [Reply(nothing)]
    with ScriptedServer(answers() | {"/api/v1/query": query}) as server:
        path = laptop_config(tmp_path, server.url, pages(server))
        done = arena(
            tmp_path,
            "top",
            "job",
            "bert",
            "-T",
            "mpi",
            KUBECONFIG=str(path),
            PROMETHEUS_ADDRESS=server.url,
        )
        assert "71.0%" not in done.stdout and "GPU metrics unavailable: no samples" in done.stderr


@pytest.mark.parametrize(
    "extension", [None, "http://x", {"console": 7}, {"gpuExporter": "http://x"}]
)
def test_what_no_laptop_wrote_is_a_cluster_as_any_other(extension: object, tmp_path: Path) -> None:
    with ScriptedServer(answers()) as server:
        done = arena(
            tmp_path, "list", KUBECONFIG=str(laptop_config(tmp_path, server.url, extension))
        )
        assert done.returncode == 0, done.stderr
        assert "3h" not in done.stdout and not server.requests_of("/api/v1/clock")


def test_a_laptop_whose_console_is_gone_still_lists(tmp_path: Path) -> None:
    with ScriptedServer(script()) as server:
        gone = {"console": "http://127.0.0.1:1", "gpuExporter": "http://127.0.0.1:1/metrics"}
        path = laptop_config(tmp_path, server.url, gone)
        assert arena(tmp_path, "list", KUBECONFIG=str(path)).returncode == 0
        done = arena(tmp_path, "top", "job", "bert", "-T", "mpi", KUBECONFIG=str(path))
        assert (
            done.returncode == 0
            and "GPU metrics unavailable: page `http://127.0.0.1:1/metrics` cannot be read"
            in done.stderr
        )
