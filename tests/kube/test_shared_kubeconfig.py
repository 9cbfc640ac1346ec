"""A kubeconfig that a laptop and kubectl write in turns: the real kubectl reads it, changes it, and
respects the same lock.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.kube.kubectl import own_folders
from tests.kube.programs import program
from tests.programs import run_program

from fairlead.edge.files.own_files import replace_whole
from fairlead.run import laptop_kubeconfig
from fairlead.run.laptop_kubeconfig import SharedKubeconfig
from fairlead_sim.api.credentials import kubeconfig_entries, make_credentials

ENTRIES = kubeconfig_entries(
    "https://127.0.0.1:6443",
    make_credentials(),
    {"fairlead.io/laptop": {"console": "c", "gpuExporter": "g"}},
)


def config(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [str(program("kubectl")), f"--kubeconfig={path}", "config", *words]
    return run_program(argv, env={**os.environ, **own_folders(path.parent)})


def contexts(path: Path) -> list[str]:
    return sorted(config(path, "get-contexts", "-o", "name").stdout.split())


def test_kubectl_reads_and_writes_what_a_laptop_merged_and_the_laptop_takes_out_what_kubectl_wrote(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config"
    for words in (
        ("set-cluster", "prod", "--server=https://prod:6443"),
        ("set-context", "prod", "--cluster=prod", "--user=ann"),
    ):
        assert config(path, *words).returncode == 0
    assert config(path, "use-context", "prod").returncode == 0
    before = path.read_bytes()
    shared = SharedKubeconfig(path)
    shared.write(ENTRIES)
    assert contexts(path) == ["fairlead", "prod"]
    assert config(path, "current-context").stdout == "prod\n"
    shown = json.loads(
        config(path, "view", "--raw", "--minify", "--context=fairlead", "-o", "json").stdout
    )
    assert shown["clusters"] == [ENTRIES["clusters"]] and shown["users"] == [ENTRIES["users"]]
    assert config(path, "set-context", "fairlead", "--namespace=research").returncode == 0
    shared.end()
    assert contexts(path) == ["prod"]
    shared.write(ENTRIES)
    shared.end()
    assert config(path, "set-context", "prod", "--namespace=default").returncode == 0
    assert config(path, "set-context", "prod", "--namespace=").returncode == 0
    assert path.read_bytes() == before, "kubectl writes its own file as it was"


def test_the_lock_is_kubectls_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(*file: Any) -> None:
        refused.append(config(path, "set-context", "prod"))
        replace_whole(*file)

    refused: list[subprocess.CompletedProcess[str]] = []
    monkeypatch.setattr(laptop_kubeconfig, "replace_whole", replace)
    path = tmp_path / "config"
    shared = SharedKubeconfig(path)
    shared.write(ENTRIES)
    assert [each.returncode for each in refused] == [1] and f"{path}.lock" in refused[0].stderr
    assert config(path, "set-context", "prod").returncode == 0
