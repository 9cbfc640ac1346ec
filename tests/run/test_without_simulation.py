"""A production image does not contain the simulated cluster: servers and commands for real clusters
work without it, all others report that it is missing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.arena import environment
from tests.programs import run_program

WITHOUT_IT = "import sys; sys.modules['fairlead_sim'] = None; from fairlead.run.main import main; "
CODE = WITHOUT_IT + "sys.exit(main(sys.argv[1], sys.argv[2:]))"
EACH = WITHOUT_IT + (
    "[print(main('fairlead', line.split()), file=sys.stderr, flush=True) for line in sys.argv[1:]]"
)
"""Runs several command lines in one process, which loads the servers once; prints the exit status
of each to stderr.
"""


def run(home: Path, *line: str, code: str = CODE) -> subprocess.CompletedProcess[str]:
    return run_program([sys.executable, "-c", code, *line], env=environment(home))


def test_a_real_server_lacks_nothing_but_its_cluster(tmp_path: Path) -> None:
    servers = (
        *("console", "cluster-exporter", "scheduler-extender"),
        *("quota-controller", "people-controller"),
    )
    ended = run(tmp_path, *(f"{server} --listen 127.0.0.1:0" for server in servers), code=EACH)
    lines = ended.stderr.splitlines()
    assert [line for line in lines if line.isdecimal()] == ["1"] * len(servers), ended.stderr
    assert ended.stderr.count("there is no cluster to follow") == len(servers), ended.stderr


def test_a_simulated_server_names_what_it_lacks(tmp_path: Path) -> None:
    servers = ("up", "api-server", "gpu-exporter --backend sim")
    ended = run(tmp_path, *servers[:2], f"{servers[2]} --listen 127.0.0.1:0", code=EACH)
    lines = ended.stderr.splitlines()
    assert [line for line in lines if line.isdecimal()] == ["1"] * len(servers), ended.stderr
    for server in servers:
        assert f"`fairlead {server}` needs the simulated cluster" in ended.stderr, ended.stderr


def test_a_command_without_a_cluster_is_reported(tmp_path: Path) -> None:
    ended = run(tmp_path, "arena", "top", "node")
    assert ended.returncode == 1 and "needs the simulated cluster" in ended.stderr, ended.stderr


def test_what_needs_no_cluster_goes_on(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        "arena",
        "submit",
        "tfjob",
        "--name=a",
        "--image=i:1",
        "--dry-run",
        "python train.py",
    )
    assert (ended.returncode, "kind: TFJob" in ended.stdout or '"TFJob"' in ended.stdout) == (
        0,
        True,
    ), ended.stderr


STRANGERS = (
    "aiohttp",
    "fairlead.console",
    "fairlead.rules.quota",
    "fairlead.edge.kube.",
    "fairlead.edge.prometheus",
    "fairlead.kinds",
)
"""These modules take a third of the memory that the exporter may use on each node, and an exporter
without an API server needs none of them.
"""


def test_the_gpu_exporter_loads_nothing_of_the_other_servers() -> None:
    code = (
        "import sys, fairlead.run.servers.process, fairlead.run.node_exporter\n"
        f"print(*sorted(name for name in sys.modules if name.startswith({STRANGERS!r}) or "
        "name.startswith('fairlead_sim')))"
    )
    done = run_program([sys.executable, "-c", code], check=True)
    assert done.stdout.split() == []
