"""While thousands of pods are created, the laptop still answers every client, and it ends on
SIGTERM.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.kube.kubectl import KubectlError
from tests.kube.laptop import Laptop, running_laptop
from tests.waiting import wait_until

LOGS = Path(__file__).resolve().parents[2] / "test-output" / "kube"
CONTAINERS = [{"name": "tensorflow", "image": "train:1h"}]
JOBS, REPLICAS = 3, 2000


def training_job(name: str, replicas: int) -> dict[str, Any]:
    spec = {
        "tfReplicaSpecs": {
            "Worker": {"replicas": replicas, "template": {"spec": {"containers": CONTAINERS}}}
        }
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


@pytest.mark.turns(2, 0)
def test_absurd_numbers_are_refused_and_large_ones_stop_nothing() -> None:
    with running_laptop(LOGS / "busy-laptop.log") as laptop:
        with pytest.raises(
            KubectlError, match="Invalid value: 1000000000: must be less than or equal to 2000"
        ):
            laptop.kubectl.create([training_job("absurd", 1_000_000_000)])
        laptop.kubectl.create([training_job(f"large-{number}", REPLICAS) for number in range(JOBS)])
        assert laptop.kubectl.run("get", "nodes", "-o", "name")
        made = pods_made(laptop)
        assert made < JOBS * REPLICAS, "the nodes were answered while pods were still being made"
        wait_until("the first burst is there", lambda: pods_made(laptop) > 0)
        laptop.component.stop()  # SIGKILL after fifteen seconds
        assert laptop.component.exit_status == 0


def pods_made(laptop: Laptop) -> int:
    return len(laptop.kubectl.get("pods", "-n", "default"))
