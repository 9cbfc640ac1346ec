"""The life of a data set by commands, as docs/how-to/data-sets.md describes it, on a laptop with
the stand-in of Fluid: accelerated, shown, preheated, scaled, removed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.documents.stand_in import install_stand_in
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.servers import run_fairlead

LOGS = Path(__file__).parents[2] / "test-output" / "kube"
MANIFEST = Path(__file__).parents[2] / "examples" / "fashion-mnist.yaml"
SPACE, CLAIM, NAME = "demo-ns", "fashion-demo-pvc", "fashion-demo-pvc-acc"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Laptop]:
    LOGS.mkdir(parents=True, exist_ok=True)
    flags = (f"--state-dir={tmp_path / 'world'}", "--speed=30", "--scenario=documents-004")
    with running_laptop(LOGS / "data-set-life.log", *flags) as running:
        running.kubectl.run("create", "ns", SPACE)
        running.kubectl.run("create", "-f", str(MANIFEST))
        install_stand_in(running)
        yield running


def fairlead(one: Laptop, *words: str, status: int = 0) -> str:
    return run_fairlead(one.kubeconfig, "dataset", *words, f"--namespace={SPACE}", status=status)


def shown(one: Laptop) -> Any:
    return json.loads(fairlead(one, "show", NAME, "-o", "json"))


@pytest.mark.turns(2, 1)
def test_a_data_set_lives_and_ends_by_commands(one: Laptop) -> None:
    fairlead(one, "accelerate", CLAIM, "--workers", "1", "--quota", "8Gi")
    assert (shown(one)["status"], shown(one)["runtimes"][0]["workersReady"]) == ("Ready", 1)
    preheated = fairlead(one, "preheat", NAME)
    assert f"data set {SPACE}/{NAME}: preheated" in preheated
    after = shown(one)
    assert [each["phase"] for each in after["preheats"]] == ["Complete"]
    assert after["cachedBytes"] == after["sizeBytes"]
    assert after["blockers"] == []
    scaled = fairlead(one, "scale", NAME, "--workers", "2")
    assert f"data set {SPACE}/{NAME}: done" in scaled
    assert shown(one)["runtimes"][0]["workersReady"] == 2
    planned = fairlead(one, "preheat", NAME, "--schedule", "0 3 * * *")
    assert "preheat created" in planned
    held = fairlead(one, "unaccelerate", NAME, status=1)
    assert "an operation runs: `DataLoad " in held
    name = shown(one)["preheats"][0]["name"]
    one.kubectl.run("delete", "dataload", name, f"--namespace={SPACE}")
    ended = fairlead(one, "unaccelerate", NAME)
    for part in ("Dataset", "AlluxioRuntime", "PersistentVolumeClaim", "PersistentVolume", "Pod"):
        assert any(f"{part} " in line and "gone" in line for line in ended.splitlines()), ended
    left = one.kubectl.run(
        *("get", "dataset,alluxioruntime,dataload,pvc,pods", f"--namespace={SPACE}"),
        "--output=name",
    )
    assert left.split() == [f"persistentvolumeclaim/{CLAIM}"]
