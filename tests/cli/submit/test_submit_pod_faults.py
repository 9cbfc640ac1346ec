"""Requests for shared GPUs that no node can meet are refused before anything is created; other
requests create their objects. One claim at two paths is one volume.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.submitting import KeepingCluster, create

from fairlead.errors import UserError

BOTH = "asks for whole and shared GPUs; no node offers both"
PYTORCH = "submit pytorchjob --name j --image i"
SERVE = "serve custom --name j --version 1 --image i --port 80"
CRON = "cron tfjob --name j --image i --schedule '0 22 * * *'"
RAY = "submit rayjob --name j --image i --worker-replicas 1"
VOLCANO = "submit volcanojob --name j"


@pytest.mark.parametrize(
    "begin",
    [
        PYTORCH,
        "submit mpijob --name j --image i",
        "submit tfjob --name j --image i",
        SERVE,
        CRON,
    ],
)
@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ("--gpus 1 --gpumemory 4", BOTH),
        ("--gpus 1 --device aliyun.com/gpu-mem=4", BOTH),
        ("--gpumemory 4 --gpucore 7", "gpu-core 7 is not a multiple of 5 from 5 to 100"),
        ("--gpumemory 4 --gpucore 105", "gpu-core 105 is not a multiple of 5 from 5 to 100"),
        ("--gpucore 30", "gpu-core needs gpu-mem"),
        ("--gpumemory 7 --label aliyun.com/gpu-count=2", "gpu-mem 7 cannot be split over 2 GPUs"),
        (
            "--device aliyun.com/gpu-mem=4294967",
            "aliyun.com/gpu-mem counts GiB, not bytes: write 1",
        ),
    ],
)
@pytest.mark.parametrize("end", ["", "--dry-run"])
def test_flags_that_no_node_can_meet(begin: str, flags: str, why: str, end: str) -> None:
    cluster = KeepingCluster()
    with pytest.raises(UserError) as caught:
        create(shlex.split(f"{begin} {flags} {end} sleep"), cluster, None)
    assert why in caught.value.what and caught.value.what.startswith(
        "failed to validate command args: "
    )
    assert cluster.created == []


@pytest.mark.parametrize(
    "line",
    [f"{RAY} --worker-gpu 1 --gpumemory 4", f"{VOLCANO} --task-gpus 1 --task-replicas 1"],
)
def test_kinds_with_flags_of_their_own(line: str) -> None:
    cluster = KeepingCluster()
    if "gpumemory" in line:
        with pytest.raises(UserError) as caught:
            create(shlex.split(f"{line} sleep"), cluster, None)
        assert caught.value.what == (
            "failed to validate command args: a pod asks for whole and shared GPUs; no "
            "node offers both"
        )
        assert cluster.created == []
    else:
        assert create(shlex.split(f"{line} sleep"), cluster, None).status == 0


def pod(limits: dict[str, Any], kind: str = "Pod") -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "i", "resources": {"limits": limits}}]}
    whole: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": spec,
    }
    return (
        whole
        if kind == "Pod"
        else {**whole, "apiVersion": "apps/v1", "kind": kind, "spec": {"template": {"spec": spec}}}
    )


@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"nvidia.com/gpu": 1, "aliyun.com/gpu-mem": 4}, BOTH),
        ({"aliyun.com/gpu-core.percentage": "30"}, "gpu-core needs gpu-mem"),
        ({"aliyun.com/gpu-mem": "4Gi"}, "aliyun.com/gpu-mem counts GiB, not bytes: write 4"),
    ],
)
def test_objects_of_a_file(limits: dict[str, Any], why: str, kind: str, tmp_path: Path) -> None:
    path, cluster = tmp_path / "x.yaml", KeepingCluster()
    path.write_text(yaml.safe_dump(pod(limits, kind)))
    with pytest.raises(UserError) as caught:
        create(shlex.split(f"submit pytorchjob -f {path}"), cluster, None)
    assert why in caught.value.what and cluster.created == []


@pytest.mark.parametrize(
    "limits", [{"aliyun.com/gpu-mem": 4}, {"nvidia.com/gpu": "2"}, {"aliyun.com/gpu-mem": "15079"}]
)
def test_what_a_node_may_give_is_made(limits: dict[str, Any], tmp_path: Path) -> None:
    path, cluster = tmp_path / "x.yaml", KeepingCluster()
    path.write_text(yaml.safe_dump(pod(limits)))
    assert create(shlex.split(f"submit pytorchjob -f {path}"), cluster, None).status == 0
    assert len(cluster.created) == 1


CLAIM = [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]


@pytest.mark.parametrize("line", [f"{PYTORCH} --workers 2 --share-memory=", SERVE])
def test_one_claim_is_one_volume_that_is_seen_at_two_places(line: str) -> None:
    cluster = KeepingCluster()
    assert create(shlex.split(f"{line} -d c:/a -d c:/b sleep"), cluster, None).status == 0
    templates = list(_templates(cluster.created))
    assert templates
    for spec in templates:
        assert spec["volumes"] == CLAIM
        assert spec["containers"][0]["volumeMounts"] == [
            {"name": "c", "mountPath": "/a"},
            {"name": "c", "mountPath": "/b"},
        ]


def test_tensorboard_reads_the_claim_at_the_place_that_holds_its_logs() -> None:
    cluster = KeepingCluster()
    create(shlex.split(f"{PYTORCH} -d c:/a -d c:/training_logs --tensorboard sleep"), cluster, None)
    (board,) = (each for each in cluster.created if each["kind"] == "Deployment")
    (container,) = board["spec"]["template"]["spec"]["containers"]
    assert container["volumeMounts"] == [{"name": "c", "mountPath": "/training_logs"}]


def _templates(value: Any) -> Iterator[dict[str, Any]]:
    for each in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        if isinstance(each, dict) and isinstance(each.get("containers"), list):
            yield each
        else:
            yield from _templates(each)
