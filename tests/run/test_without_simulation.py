"""A production image is without the simulated cluster: real servers and commands do not miss it, the others say what they lack."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = "import sys; sys.modules['fairlead_sim'] = None; from fairlead.run.main import main; sys.exit(main(sys.argv[1], sys.argv[2:]))"


def run(home: Path, *line: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    return subprocess.run([sys.executable, "-c", CODE, *line], capture_output=True, text=True, timeout=60, env=env, check=False)


@pytest.mark.parametrize("server", ["console", "cluster-exporter", "scheduler-extender", "quota-controller"])
def test_a_real_server_lacks_nothing_but_its_cluster(server: str, tmp_path: Path) -> None:
    ended = run(tmp_path, "fairlead", server, "--listen", "127.0.0.1:0")
    assert (ended.returncode, "there is no cluster to follow" in ended.stderr) == (1, True), ended.stderr


@pytest.mark.parametrize("server", ["up", "api-server", "gpu-exporter --backend sim"])
def test_a_simulated_server_says_what_it_lacks(server: str, tmp_path: Path) -> None:
    listening = ["--listen", "127.0.0.1:0"] if server.startswith("gpu-exporter") else []
    ended = run(tmp_path, "fairlead", *server.split(), *listening)
    assert ended.returncode == 1 and f"`fairlead {server}` needs the simulated cluster" in ended.stderr, ended.stderr


def test_a_command_without_a_cluster_says_so(tmp_path: Path) -> None:
    ended = run(tmp_path, "arena", "top", "node")
    assert ended.returncode == 1 and "needs the simulated cluster" in ended.stderr, ended.stderr


def test_what_needs_no_cluster_goes_on(tmp_path: Path) -> None:
    ended = run(tmp_path, "arena", "submit", "tfjob", "--name=a", "--image=i:1", "--dry-run", "python train.py")
    assert (ended.returncode, "kind: TFJob" in ended.stdout or '"TFJob"' in ended.stdout) == (0, True), ended.stderr


STRANGERS = ("aiohttp", "fairlead.console", "fairlead.rules.quota", "fairlead.edge.kube.", "fairlead.edge.prometheus", "fairlead.kinds")
"""A third of the memory that the exporter may take on each node, and nothing of it is asked of an exporter that knows no API server."""


def test_the_gpu_exporter_loads_nothing_of_the_other_servers() -> None:
    code = (
        "import sys, fairlead.run.servers.process, fairlead.run.node_exporter\n"
        f"print(*sorted(name for name in sys.modules if name.startswith({STRANGERS!r}) or name.startswith('fairlead_sim')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []
