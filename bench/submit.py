"""How soon is a job created? `arena submit` against `kubectl create` of the same objects, on a real API server, each in fresh processes.

    .venv/bin/python bench/submit.py [--runs 15]

Runs alternate, so that a busy machine is busy for both; medians are compared. kubectl's caches are warm.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_job_kinds
from tests.kube.programs import program

AIM_RATIO = 1.5
ARENA = str(Path(sys.executable).parent / "arena")
CASES = {
    "MPIJob": ["submit", "mpijob", "--image=i", "--workers=2", "--gpus=1"],
    "PyTorchJob and TensorBoard": ["submit", "pytorchjob", "--image=i", "--workers=2", "--gpus=1", "--tensorboard"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with running_control_plane() as cluster, tempfile.TemporaryDirectory() as home:
        install_job_kinds(cluster.admin)
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": home}
        print(f"{'objects':28}{'arena ms':>10}{'kubectl ms':>12}{'ratio':>8}   median of {runs} alternating runs, aim <= {AIM_RATIO}")
        for title, words in CASES.items():
            ours, theirs = measure(cluster, words, Path(home), env, runs, title.split()[0].lower())
            print(f"{title:28}{ours * 1000:>10.0f}{theirs * 1000:>12.0f}{ours / theirs:>8.2f}")


def measure(cluster: ControlPlane, words: list[str], home: Path, env: dict[str, str], runs: int, prefix: str) -> tuple[float, float]:
    """Median seconds of ours and of kubectl's; the first of each is not measured."""
    ours, theirs = [], []
    manifest = home / "objects.yaml"
    for number in range(runs + 1):
        printed = subprocess.run(
            [ARENA, *words, f"--name={prefix}-k{number}", "--dry-run", "run"], env=env, check=True, capture_output=True
        )
        manifest.write_bytes(printed.stdout)
        ours.append(timed([ARENA, *words, f"--name={prefix}-a{number}", "run"], env))
        theirs.append(timed([str(program("kubectl")), "create", "-f", str(manifest)], env))
    return statistics.median(ours[1:]), statistics.median(theirs[1:])


def timed(command: list[str], env: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
