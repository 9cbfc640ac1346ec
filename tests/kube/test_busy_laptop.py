"""What does the laptop do while thousands of pods are being made? It answers everybody, and ends
when it is told to.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.kube.kubectl import KubectlError
from tests.kube.laptop import running_laptop
from tests.waiting import wait_until

LOGS = Path(__file__).resolve().parents[2] / "test-output" / "kube"
CONTAINERS = [{"name": "tensorflow", "image": "train:1h"}]
STOP_SECONDS = 5.0
ANSWER_SECONDS = 5.0


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


def test_absurd_numbers_are_refused_and_large_ones_stop_nobody() -> None:
    with running_laptop(LOGS / "busy-laptop.log") as laptop:
        with pytest.raises(
            KubectlError, match=("Invalid value: 1000000000: must be less than or equal to 2000")
        ):
            laptop.kubectl.create([training_job("absurd", 1_000_000_000)])
        laptop.kubectl.create([training_job(f"large-{number}", 2000) for number in range(3)])
        asked = time.monotonic()
        assert laptop.kubectl.run("get", "nodes", "-o", "name")
        assert time.monotonic() - asked < ANSWER_SECONDS
        wait_until(
            ("the first burst is there"), lambda: bool(laptop.kubectl.get("pods", "-n", "default"))
        )
        asked = time.monotonic()
        laptop.component.stop()
        assert time.monotonic() - asked < STOP_SECONDS
        assert laptop.component.exit_status == 0
