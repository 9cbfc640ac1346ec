"""The effect of each flag of `submit` on the objects that `--dry-run` prints without a cluster.

See docs/spec/arena-cli.md#effects-of-the-flags.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from tests.cli.submitting import at, dry_run

MPI = "mpijob --name=j --image=i"
PT = "pytorchjob --name=j --image=i"
TF = "tfjob --name=j --image=i"
LAUNCHER, WORKER = "spec|mpiReplicaSpecs|Launcher", "spec|mpiReplicaSpecs|Worker"
MASTER, PT_WORKER = "spec|pytorchReplicaSpecs|Master", "spec|pytorchReplicaSpecs|Worker"
TF_WORKER, PS, CHIEF, EVALUATOR = (
    f"spec|tfReplicaSpecs|{role}" for role in ("Worker", "PS", "Chief", "Evaluator")
)
POD, FIRST, LABELS = "template|spec", "template|spec|containers|0", "template|metadata|labels"
GANG = "pod-group.scheduling.sigs.k8s.io/"

CASES: list[tuple[str, dict[str, Any]]] = [
    # replicas, GPUs and similar flags
    (
        MPI,
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "spec|slotsPerWorker": 1,
            f"{LAUNCHER}|replicas": 1,
            f"{WORKER}|replicas": 1,
        },
    ),
    (
        f"{MPI} --workers 3 --gpus 2",
        {f"{WORKER}|replicas": 3, "spec|slotsPerWorker": 2, f"{LAUNCHER}|{FIRST}|resources": None},
    ),
    (
        f"{MPI} --gpus 2",
        {
            f"{WORKER}|{FIRST}|resources": {
                k: {"nvidia.com/gpu": "2"} for k in ("requests", "limits")
            }
        },
    ),
    (f"{MPI} --workers 3 --gpus 2", {"metadata|annotations|requestGPUsOfJobOwner": "6"}),
    (
        f"{PT} --workers 3 --gpus 2",
        {
            f"{MASTER}|replicas": 1,
            f"{PT_WORKER}|replicas": 2,
            "metadata|annotations|requestGPUsOfJobOwner": "6",
        },
    ),
    (PT, {f"{MASTER}|replicas": 1, PT_WORKER: None, f"{MASTER}|restartPolicy": "Never"}),
    (
        f"{PT} --workers 2",
        {
            f"{PT_WORKER}|restartPolicy": "OnFailure",
            f"{MASTER}|{LABELS}|master-pod-name": "j-master-0",
        },
    ),
    (
        f"{TF} --ps 2 --workers 3 --ps-gpus 1 --gpus 2 --evaluator",
        {"metadata|annotations|requestGPUsOfJobOwner": "10"},
    ),
    (
        f"{TF} --ps 2 --workers 3",
        {
            f"{PS}|replicas": 2,
            f"{TF_WORKER}|replicas": 3,
            CHIEF: None,
            f"{TF_WORKER}|restartPolicy": "Never",
        },
    ),
    (
        f"{TF} --workers 1",
        {
            f"{CHIEF}|replicas": 1,
            TF_WORKER: None,
            "metadata|annotations|arena.kubeflow.org/disable-tf-config": "true",
        },
    ),
    (
        f"{TF} --workers 2 --chief",
        {
            f"{CHIEF}|replicas": 1,
            f"{TF_WORKER}|replicas": 2,
            f"{TF_WORKER}|restartPolicy": "OnFailure",
        },
    ),
    (f"{TF} --evaluator --workers 2", {f"{EVALUATOR}|replicas": 1}),
    (
        f"{MPI} --device amd.com/gpu=2",
        {
            f"{WORKER}|{FIRST}|resources|limits|amd.com/gpu": "2",
            f"{LAUNCHER}|{FIRST}|resources": None,
        },
    ),
    (
        f"{PT} --device a.b/c=1 --gpus 1",
        {f"{MASTER}|{FIRST}|resources|requests": {"nvidia.com/gpu": "1", "a.b/c": "1"}},
    ),
    (
        f"{PT} --gpumemory 4 --gpucore 30",
        {
            f"{MASTER}|{FIRST}|resources|limits": {
                "aliyun.com/gpu-mem": "4",
                "aliyun.com/gpu-core.percentage": "30",
            }
        },
    ),
    (
        f"{MPI} --cpu 2 --memory 4Gi",
        {f"{WORKER}|{FIRST}|resources|limits": {"cpu": "2", "memory": "4Gi"}},
    ),
    (f"{MPI} --cpu 2", {f"{LAUNCHER}|{FIRST}|resources|requests": {"cpu": "2"}}),
    (f"{PT} --memory 4Gi", {f"{MASTER}|{FIRST}|resources|requests": {"memory": "4Gi"}}),
    (
        f"{TF} --ps 1 --workers 2 --worker-cpu 1 --worker-cpu-limit 2 --ps-memory 1Gi",
        {
            f"{TF_WORKER}|{FIRST}|resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            f"{PS}|{FIRST}|resources|limits": {"memory": "1Gi"},
        },
    ),
    (
        f"{TF} --chief --workers 2 --chief-cpu 3",
        {f"{CHIEF}|{FIRST}|resources|limits|cpu": "3", f"{TF_WORKER}|{FIRST}|resources": None},
    ),
    (
        f"{TF} --evaluator --evaluator-memory 3Gi",
        {f"{EVALUATOR}|{FIRST}|resources|limits|memory": "3Gi"},
    ),
    (
        f"{TF} --worker-memory-limit 3Gi",
        {f"{CHIEF}|{FIRST}|resources": {"limits": {"memory": "3Gi"}}},
    ),
    # images, command
    (
        "tfjob --name=j --worker-image=w --ps-image=p --ps 1 --workers 2",
        {f"{TF_WORKER}|{FIRST}|image": "w", f"{PS}|{FIRST}|image": "p"},
    ),
    (
        f"{TF} --ps-image=p --ps 1 --workers 2",
        {f"{TF_WORKER}|{FIRST}|image": "i", f"{PS}|{FIRST}|image": "p"},
    ),
    (
        f"{PT} --image-pull-policy IfNotPresent",
        {f"{MASTER}|{FIRST}|imagePullPolicy": "IfNotPresent"},
    ),
    (
        PT,
        {
            f"{MASTER}|{FIRST}|imagePullPolicy": "Always",
            f"{MASTER}|{FIRST}|command": ["sh", "-c", "run it"],
        },
    ),
    (f"{PT} --shell bash", {f"{MASTER}|{FIRST}|command|0": "bash"}),
    (
        MPI,
        {
            f"{LAUNCHER}|{FIRST}|command": ["sh", "-c", "run it"],
            f"{WORKER}|{FIRST}|command": None,
        },
    ),
    (
        f"{PT} --image-pull-secret a --image-pull-secret b",
        {f"{MASTER}|{POD}|imagePullSecrets": [{"name": "a"}, {"name": "b"}]},
    ),
    (f"{PT} --working-dir /w", {f"{MASTER}|{FIRST}|workingDir": "/w"}),
    (PT, {f"{MASTER}|{FIRST}|workingDir": "/root"}),
    # annotations and labels
    (
        f"{PT} -a x=1 -l y=2",
        {"metadata|annotations|x": "1", "metadata|labels|y": "2", f"{MASTER}|{LABELS}|y": "2"},
    ),
    (f"{PT} -a x=1", {f"{MASTER}|template|metadata|annotations|x": "1"}),
    (
        f"{PT} -l app=other",
        {
            "metadata|labels": {
                "app": "pytorchjob",
                "release": "j",
                "createdBy": "PyTorchJob",
                "heritage": "fairlead",
            }
        },
    ),
    (MPI, {f"{WORKER}|{LABELS}|group_name": "kubeflow.org", f"{WORKER}|{LABELS}|release": "j"}),
    (f"{PT} --selector zone=a", {f"{MASTER}|{POD}|nodeSelector": {"zone": "a"}}),
    (
        f"{TF} --ps 1 --workers 2 --selector zone=a --ps-selector zone=b",
        {
            f"{TF_WORKER}|{POD}|nodeSelector": {"zone": "a"},
            f"{PS}|{POD}|nodeSelector": {"zone": "b"},
        },
    ),
    (
        f"{TF} --chief --workers 2 --chief-selector a=b",
        {f"{CHIEF}|{POD}|nodeSelector": {"a": "b"}, f"{TF_WORKER}|{POD}|nodeSelector": None},
    ),
    (f"{PT} --toleration all", {f"{MASTER}|{POD}|tolerations": [{"operator": "Exists"}]}),
    (
        f"{PT} --toleration a=b:NoSchedule,Equal --toleration c:NoExecute --toleration d",
        {
            f"{MASTER}|{POD}|tolerations": [
                {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
                {"key": "c", "operator": "Exists", "effect": "NoExecute"},
                {"key": "d", "operator": "Exists"},
            ]
        },
    ),
    # scheduling
    (f"{PT} -p high", {f"{MASTER}|{POD}|priorityClassName": "high"}),
    (f"{PT} --scheduler s", {f"{MASTER}|{POD}|schedulerName": "s"}),
    (f"{PT} --service-account s", {f"{MASTER}|{POD}|serviceAccountName": "s"}),
    (f"{PT} --restart-policy OnFailure", {f"{MASTER}|restartPolicy": "OnFailure"}),
    (f"{PT} --queue", {"metadata|annotations|scheduling.x-k8s.io/suspend": "true"}),
    (
        f"{PT} --gang --workers 3",
        {
            f"{MASTER}|{LABELS}|{GANG}name": "pytorchjob-j",
            f"{PT_WORKER}|{LABELS}|{GANG}min-available": "3",
        },
    ),
    (
        f"{MPI} --gang --workers 3",
        {f"{WORKER}|{LABELS}|{GANG}min-available": "3", f"{LAUNCHER}|{LABELS}|{GANG}name": None},
    ),
    (f"{TF} --gang --workers 3 --ps 2 --chief", {f"{PS}|{LABELS}|{GANG}min-available": "6"}),
    (
        f"{PT} --hostIPC --hostPID",
        {
            f"{MASTER}|{POD}|hostIPC": True,
            f"{MASTER}|{POD}|hostPID": True,
            f"{MASTER}|{POD}|hostNetwork": None,
        },
    ),
    (
        f"{PT} --hostNetwork",
        {
            f"{MASTER}|{POD}|hostNetwork": True,
            f"{MASTER}|{POD}|dnsPolicy": "ClusterFirstWithHostNet",
        },
    ),
    (
        f"{PT} --hostNetwork -a k8s.aliyun.com/eni=true",
        {f"{MASTER}|{POD}|hostNetwork": None, f"{MASTER}|{POD}|dnsPolicy": None},
    ),
    (
        f"{PT} --rdma",
        {
            f"{MASTER}|{FIRST}|resources|limits|rdma/hca": "1",
            f"{MASTER}|{FIRST}|securityContext|capabilities|add": ["IPC_LOCK"],
        },
    ),
    (
        f"{MPI} --gputopology --gpus 1 --workers 2",
        {
            f"{WORKER}|{FIRST}|resources|limits": {"aliyun.com/gpu": "1"},
            f"{WORKER}|{LABELS}|gpu-topology": "j",
            f"{WORKER}|{LABELS}|gpu-topology-replica": "2",
            f"{WORKER}|{POD}|hostNetwork": True,
            f"{WORKER}|{POD}|volumes": None,
        },
    ),
    # storage
    (
        f"{PT} --share-memory 8Gi",
        {
            f"{MASTER}|{POD}|volumes|0": {
                "name": "dshm",
                "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"},
            }
        },
    ),
    (
        MPI,
        {
            f"{WORKER}|{POD}|volumes|0|emptyDir|sizeLimit": "2Gi",
            f"{WORKER}|{FIRST}|volumeMounts|0|mountPath": "/dev/shm",
        },
    ),
    (
        f"{PT} -d claim:/data",
        {
            f"{MASTER}|{POD}|volumes|1": {
                "name": "claim",
                "persistentVolumeClaim": {"claimName": "claim"},
            },
            f"{MASTER}|{FIRST}|volumeMounts|1": {"name": "claim", "mountPath": "/data"},
        },
    ),
    (
        f"{MPI} -d claim:/data",
        {f"{LAUNCHER}|{POD}|volumes|1": None, f"{WORKER}|{POD}|volumes|1|name": "claim"},
    ),
    (f"{MPI} -d claim:/data --mounts-on-launcher", {f"{LAUNCHER}|{POD}|volumes|1|name": "claim"}),
    (
        f"{PT} --data-dir /a --data-dir /b:/c",
        {
            f"{MASTER}|{POD}|volumes|1": {"name": "training-data-0", "hostPath": {"path": "/a"}},
            f"{MASTER}|{FIRST}|volumeMounts|1|mountPath": "/a",
            f"{MASTER}|{FIRST}|volumeMounts|2": {"name": "training-data-1", "mountPath": "/c"},
        },
    ),
    (
        f"{PT} --sync-mode git --sync-source https://h/team/repo.git --working-dir /w",
        {
            f"{MASTER}|{POD}|initContainers|0|name": "init-code",
            f"{MASTER}|{POD}|initContainers|0|env": [
                {"name": "GIT_SYNC_REPO", "value": "https://h/team/repo.git"},
                {"name": "GIT_SYNC_DEST", "value": "repo"},
                {"name": "GIT_SYNC_ROOT", "value": "/code"},
                {"name": "GIT_SYNC_ONE_TIME", "value": "true"},
            ],
            f"{MASTER}|{FIRST}|volumeMounts|1": {"name": "code-sync", "mountPath": "/w/code"},
            f"{MASTER}|{POD}|volumes|1": {"name": "code-sync", "emptyDir": {}},
        },
    ),
    (
        f"{PT} --sync-mode rsync --sync-source h::m --sync-image r:1",
        {
            f"{MASTER}|{POD}|initContainers|0|command": ["rsync", "-avP", "h::m", "/code"],
            f"{MASTER}|{POD}|initContainers|0|image": "r:1",
        },
    ),
    # policies
    (MPI, {"spec|runPolicy": {"cleanPodPolicy": "All", "backoffLimit": 0}}),
    (PT, {"spec|runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0}}),
    (TF, {"spec|runPolicy": {"cleanPodPolicy": "Running"}, "spec|successPolicy": None}),
    (f"{TF} --retry 3", {"spec|runPolicy|backoffLimit": 3}),
    (
        f"{MPI} --retry 3 --clean-task-policy None",
        {"spec|runPolicy": {"cleanPodPolicy": "None", "backoffLimit": 3}},
    ),
    (
        f"{PT} --running-timeout 1h2m3s --ttl-after-finished 2m",
        {
            "spec|runPolicy|activeDeadlineSeconds": 3723,
            "spec|runPolicy|ttlSecondsAfterFinished": 120,
        },
    ),
    (f"{TF} --starting-timeout 90s", {"spec|startingDeadlineSeconds": 90}),
    (f"{TF} --success-policy AllWorkers", {"spec|successPolicy": "AllWorkers"}),
    (f"{TF} --success-policy ChiefWorker", {"spec|successPolicy": None}),
    (
        f"{TF} --role-sequence w,p,c,e",
        {"metadata|annotations|job-role-sequence": "Worker,PS,Chief,Evaluator"},
    ),
    (f"{PT} --nproc-per-node 4", {"spec|nprocPerNode": "4"}),
    (
        f"{PT} --model-name m --model-source s3://x",
        {"metadata|labels|modelName": "m", "metadata|annotations|modelSource": "s3://x"},
    ),
    # ports and placement of TFJobs
    (TF, {f"{CHIEF}|{FIRST}|ports": [{"name": "tfjob-port", "containerPort": 2222}]}),
    (
        f"{TF} --workers 2 --ps 1 --worker-port 3000 --ps-port 3001",
        {f"{TF_WORKER}|{FIRST}|ports|0|containerPort": 3000},
    ),
    (
        f"{TF} --workers 2 --chief --chief-port 3002",
        {f"{CHIEF}|{FIRST}|ports|0|containerPort": 3002},
    ),
    (
        f"{TF} --workers 2 --worker-affinity-policy spread",
        {
            (
                f"{TF_WORKER}|{POD}|affinity|podAntiAffinity|"
                "preferredDuringSchedulingIgnoredDuringExecution|0|podAffinityTerm|topologyKey"
            ): "kubernetes.io/hostname"
        },
    ),
    (
        f"{TF} --workers 2 --ps 2 --ps-affinity-policy binpack --ps-affinity-constraint required",
        {
            (
                f"{PS}|{POD}|affinity|podAffinity|requiredDuringSchedulingIgnoredDuringExecution|"
                "0|labelSelector|matchLabels"
            ): {
                "app": "tfjob",
                "release": "j",
                "training.kubeflow.org/replica-type": "ps",
            },
            f"{TF_WORKER}|{POD}|affinity": None,
        },
    ),
]


@pytest.mark.parametrize(
    ("line", "expected"),
    CASES,
    ids=[f"{line.partition(' ')[0]}{line.partition('=i')[2]}" for line, _ in CASES],
)
def test_what_a_flag_does(line: str, expected: dict[str, Any]) -> None:
    job = dry_run(f"{line} -- run it")[0]
    assert {path: at(job, path) for path in expected} == expected


def env_of(line: str, role: str = MASTER) -> dict[str, Any]:
    job = dry_run(f"{line} run")[0]
    return {
        each["name"]: each.get("value", each.get("valueFrom"))
        for each in at(job, f"{role}|{FIRST}|env")
    }


def test_a_container_without_a_gpu_sees_none_of_the_nodes() -> None:
    assert env_of(PT)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert env_of(f"{MPI} --gpus 1", LAUNCHER)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in env_of(f"{PT} --gpus 1")
    for sharing in ("-l aliyun.com/gpu-count=1", "--device aliyun.com/gpu-mem=4", "--gpumemory 4"):
        assert "NVIDIA_VISIBLE_DEVICES" not in env_of(f"{PT} {sharing}")


def test_variables_come_from_the_job_the_person_and_secrets_and_the_person_wins() -> None:
    assert env_of(f"{PT} --gpus 2 --workers 3 -e A=1=2 -e B=") == {
        "workers": "3",
        "gpus": "2",
        "A": "1=2",
        "B": "",
    }
    assert env_of(f"{PT} -e NVIDIA_VISIBLE_DEVICES=all -e gpus=9") == {
        "workers": "1",
        "gpus": "9",
        "NVIDIA_VISIBLE_DEVICES": "all",
    }
    secrets = env_of(f"{PT} --gpus 1 --env-from-secret T=s --env-from-secret U=s:k")
    assert (secrets["T"], secrets["U"]) == (
        {"secretKeyRef": {"name": "s", "key": "T"}},
        {"secretKeyRef": {"name": "s", "key": "k"}},
    )
    assert env_of(f"{PT} --rdma")["MASTER_ADDR"] == "j-master-0"
    assert env_of(f"{PT} --nproc-per-node auto")["PET_NPROC_PER_NODE"] == "auto"


def test_ports_on_the_nodes_network_are_the_jobs_own_and_always_the_same() -> None:
    def port(line: str) -> int:
        return int(
            at(dry_run(f"{line} --hostNetwork run")[0], f"{CHIEF}|{FIRST}|ports|0|containerPort")
        )

    assert 20000 <= port(TF) < 30000 and port(TF) == port(TF)
    assert port(TF) != port(f"{TF} -n other")


def test_config_files_become_one_config_map_per_folder(tmp_path: Path) -> None:
    text, binary = tmp_path / "a.txt", tmp_path / "b"
    text.write_text("hello\n")
    binary.write_bytes(b"\xff\x00")
    job, *maps = dry_run(
        f"{PT} --config-file {text}:/etc/one/a.txt --config-file {binary}:/etc/one/b "
        f"--config-file {text} run"
    )
    names = [each["metadata"]["name"] for each in maps]
    assert [each["kind"] for each in maps] == ["ConfigMap", "ConfigMap"]
    assert names[0] == "j-" + hashlib.md5(b"/etc/one").hexdigest()[:15]
    assert (maps[0]["data"], maps[0]["binaryData"], maps[1]["data"]) == (
        {"a.txt": "hello\n"},
        {"b": "/wA="},
        {"a.txt": "hello\n"},
    )
    mounted = at(job, f"{MASTER}|{FIRST}|volumeMounts")[1:]
    assert mounted[0] == {"name": names[0], "mountPath": "/etc/one/a.txt", "subPath": "a.txt"}
    assert mounted[2]["mountPath"] == str(text)
    assert [each["name"] for each in at(job, f"{MASTER}|{POD}|volumes")[1:]] == names


def test_tensorboard_reads_the_claim_that_holds_the_logs() -> None:
    job, deployment, service = dry_run(
        f"{PT} --tensorboard --logdir /data/logs -d big:/data -d other:/x "
        "--tensorboard-image t:1 "
        "run"
    )
    assert (deployment["metadata"]["name"], service["metadata"]["name"]) == (
        "j-tensorboard",
        "j-tensorboard",
    )
    pod = at(deployment, "spec|template|spec")
    assert (
        pod["volumes"] == [{"name": "big", "persistentVolumeClaim": {"claimName": "big"}}]
        and "affinity" not in pod
    )
    assert (
        pod["containers"][0]["image"] == "t:1"
        and "--logdir=/data/logs" in pod["containers"][0]["command"]
    )
    assert (at(service, "spec|type"), at(service, "spec|ports|0|port")) == ("NodePort", 6006)
    assert (
        at(service, "spec|selector").items()
        <= at(deployment, "spec|template|metadata|labels").items()
    )
    assert at(deployment, "metadata|labels|role") == "tensorboard"
    assert len(at(job, f"{MASTER}|{POD}|volumes")) == 3


def test_tensorboard_without_a_claim_runs_where_the_chief_writes() -> None:
    job, deployment, _ = dry_run(f"{TF} --tensorboard --workers 2 run")
    [path] = {
        each["hostPath"]["path"]
        for each in at(job, f"{TF_WORKER}|{POD}|volumes")
        if "hostPath" in each
    }
    assert (
        path.startswith("/arena_logs/training")
        and at(deployment, "spec|template|spec|volumes|0|hostPath|path") == path
    )
    [term] = at(
        deployment,
        "spec|template|spec|affinity|podAffinity|requiredDuringSchedulingIgnoredDuringExecution",
    )
    assert term["labelSelector"]["matchLabels"] == {
        "training.kubeflow.org/job-name": "j",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "0",
    }


def test_the_config_file_of_arena_gives_secrets_images_and_the_order_of_roles(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "imagePullSecrets=a, "
        "b\ntfjob_role_sequence=p,w\nsync_git_image=g:1\ntensorboard_image=t:2\n"
    )
    env = {"ARENA_CONFIG": str(config)}
    job, deployment, _ = dry_run(f"{TF} --sync-mode git --sync-source x --tensorboard run", env)
    assert at(job, f"{CHIEF}|{POD}|imagePullSecrets") == [{"name": "a"}, {"name": "b"}]
    assert at(job, "metadata|annotations|job-role-sequence") == "PS,Worker"
    assert at(job, f"{CHIEF}|{POD}|initContainers|0|image") == "g:1"
    assert at(deployment, "spec|template|spec|containers|0|image") == "t:2"
    job = dry_run(f"{TF} --image-pull-secret own run", env)[0]
    assert at(job, f"{CHIEF}|{POD}|imagePullSecrets") == [{"name": "own"}]
