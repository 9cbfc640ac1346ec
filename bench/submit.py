"""How soon a job is created: `arena submit` against `kubectl create` of the same objects.

    .venv/bin/python bench/submit.py [--runs 15]

On a real API server, each in fresh processes. Runs alternate, so that a busy machine is busy for both;
medians are compared, of wall and of CPU time. kubectl's caches are warm.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from tests.kube.control_plane import ControlPlane, running_control_plane  # noqa: E402
from tests.kube.crds import install_job_kinds  # noqa: E402
from tests.kube.programs import program  # noqa: E402

from fresh_process import Cost, run  # noqa: E402

AIM_RATIO = 1.5
ARENA = str(Path(sys.executable).parent / "arena")
CASES = {
    "MPIJob": ["submit", "mpijob", "--image=i", "--workers=2", "--gpus=1"],
    "PyTorchJob": ["submit", "pytorchjob", "--image=i", "--workers=2", "--gpus=1"],
    "PyTorchJob with TensorBoard": ["submit", "pytorchjob", "--image=i", "--workers=2", "--gpus=1", "--tensorboard"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with running_control_plane() as cluster, tempfile.TemporaryDirectory() as home:
        install_job_kinds(cluster.admin)
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": home}
        print(f"{'objects':30}{'arena: ms, CPU ms':>20}{'kubectl: ms, CPU ms':>22}{'ratio: wall, CPU':>20}")
        for number, (title, words) in enumerate(CASES.items()):
            ours, theirs = measure(cluster, words, Path(home), env, runs, f"case-{number}")
            print(
                f"{title:30}{ours.wall * 1000:>14.0f}{ours.cpu * 1000:>6.0f}{theirs.wall * 1000:>16.0f}{theirs.cpu * 1000:>6.0f}"
                f"{ours.wall / theirs.wall:>14.2f}{ours.cpu / theirs.cpu:>6.2f}",
                flush=True,
            )
        print(f"median of {runs} alternating runs, aim <= {AIM_RATIO}; load {os.getloadavg()[0]:.1f}")


def measure(cluster: ControlPlane, words: list[str], home: Path, env: dict[str, str], runs: int, prefix: str) -> tuple[Cost, Cost]:
    """The medians of ours and of kubectl's; the first of each is not measured."""
    ours: list[Cost] = []
    theirs: list[Cost] = []
    manifest = home / "objects.yaml"
    for number in range(runs + 1):
        printed = subprocess.run(
            [ARENA, *words, f"--name={prefix}-k{number}", "--dry-run", "run"], env=env, check=True, capture_output=True
        )
        manifest.write_bytes(printed.stdout)
        ours.append(run([ARENA, *words, f"--name={prefix}-a{number}", "run"], env))
        theirs.append(run([str(program("kubectl")), "create", "-f", str(manifest)], env))
    return median(ours[1:]), median(theirs[1:])


def median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


if __name__ == "__main__":
    main()
