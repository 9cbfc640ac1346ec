"""The day of an administrator: jobs run, the day passes, every job is deleted, and the ledger still
has who held which GPU and what it cost. What is compared comes from the API server, read with
kubectl before the jobs are deleted.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, time, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.documents.usage_truth import capacity, held_seconds
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.servers import run_fairlead

LOGS = Path(__file__).parents[2] / "test-output" / "kube"
IDLE_JOB, BUSY_JOB = "sleeper", "trainer"
HOUR = 3600
PRICE = 10
GPU_SHARE = Fraction(9, 10)
MICRO = Fraction(1, 1_000_000)
JOB_NAME = "training.kubeflow.org/job-name"


def fairlead(one: Laptop, *words: str) -> str:
    return run_fairlead(one.kubeconfig, *words)


def now(one: Laptop) -> datetime:
    line = fairlead(one, "time", "show").splitlines()[0]
    return datetime.fromisoformat(line.partition(":")[2].strip().removesuffix(" UTC") + "+00:00")


def job(name: str, image: str, command: str) -> dict[str, Any]:
    container = {
        "name": "pytorch",
        "image": image,
        "command": ["sh", "-c", command],
        "resources": {
            "requests": {"cpu": "2", "memory": "4Gi"},
            "limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"},
        },
    }
    labels = {"arena.kubeflow.org/console-user": f"user-of-{name}"}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {
                    "replicas": 1,
                    "restartPolicy": "Never",
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [container]},
                    },
                }
            }
        },
    }


def cost(seconds_held: float, node: dict[str, Any]) -> Fraction:
    """By the specification: one GPU, two cores and 4 GiB of the node, for this time."""
    cores, mib = capacity(node)
    rest = (Fraction(2) / cores + Fraction(4096) / mib) / 2
    share = GPU_SHARE + (1 - GPU_SHARE) * rest
    return PRICE * Fraction(seconds_held) / HOUR * share


def read(one: Laptop, kind: str, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(one.kubectl.run("get", kind, *words, "-o", "json"))[
        "items"
    ]
    return found


def pod_of(pods: list[dict[str, Any]], job: str) -> dict[str, Any]:
    return next(each for each in pods if each["metadata"]["labels"][JOB_NAME] == job)


def node_of(pods: list[dict[str, Any]], job: str) -> str:
    return str(pod_of(pods, job)["spec"]["nodeName"])


def without_warnings(text: str) -> str:
    lines = [each for each in text.splitlines(keepends=True) if not each.startswith("warning:")]
    return "".join(lines)


def test_a_day_of_jobs_is_known_after_they_are_deleted() -> None:
    LOGS.mkdir(parents=True, exist_ok=True)
    flags = ("--scenario=documents-000", "--sign-in=true")
    with running_laptop(LOGS / "usage-story.log", *flags) as one:
        # A report ends with the last folded day, and the usage is that of 24 hours.
        begin = datetime.combine(now(one).date() + timedelta(days=1), time(3), UTC)
        fairlead(one, "time", "until", f"{begin:%Y-%m-%dT%H:%M:%SZ}")
        month = f"{now(one):%Y-%m}"
        price = ("--price", str(PRICE), "--currency", "EUR", "--valid-from", f"{month}-01")
        fairlead(one, "prices", "add", *price)
        jobs = [job(BUSY_JOB, "train:150m", "train"), job(IDLE_JOB, "tools", "sleep 14400")]
        one.kubectl.apply(jobs)
        fairlead(one, "time", "advance", "3h")
        during = f"{now(one):%Y-%m-%dT%H:%M:%SZ}"
        idle = json.loads(fairlead(one, "idle", "-o", "json"))["items"]
        seen = fairlead(one, "top", "node"), fairlead(one, "list", "-n", "default")
        fairlead(one, "time", "advance", "2h")
        pods, nodes = read(one, "pods", "-n", "default"), read(one, "nodes")
        one.kubectl.run("delete", "pytorchjobs", "--all", "-n", "default")
        midnight = datetime.fromisoformat(f"{during[:10]}T00:00:00+00:00") + timedelta(days=1)
        fairlead(one, "time", "until", f"{midnight + timedelta(hours=2):%Y-%m-%dT%H:%M:%SZ}")
        assert read(one, "pytorchjobs", "-A") == []

        owners = [(each["reason"], each["user"], each["node"]) for each in idle]
        assert ("idle", f"user-of-{IDLE_JOB}", node_of(pods, IDLE_JOB)) in owners
        assert all(f"user-of-{BUSY_JOB}" not in each for each in owners)

        report = json.loads(fairlead(one, "report", month, "-o", "json"))
        by_user = {each["name"]: each for each in report["users"]}
        by_name = {each["metadata"]["name"]: each for each in nodes}
        exact = dict[str, Fraction]()
        for name in (BUSY_JOB, IDLE_JOB):
            held = held_seconds(pod_of(pods, name))
            row = by_user[f"user-of-{name}"]
            assert round(row["gpuHours"] * HOUR) == held
            exact[name] = cost(held, by_name[node_of(pods, name)])
            assert abs(Fraction(row["cost"]) - exact[name]) < MICRO
        total = sum(exact.values())
        assert abs(Fraction(report["totals"]["cost"]) - total) <= MICRO / 2
        assert report["nodes"]["podsCost"] == report["totals"]["cost"]
        busy, slept = by_user[f"user-of-{BUSY_JOB}"], by_user[f"user-of-{IDLE_JOB}"]
        assert (busy["idlePercent"], slept["idlePercent"]) == (0, 100)
        usage = json.loads(fairlead(one, "usage", "--by", "user", "-o", "json"))
        assert usage["totals"]["cost"] == report["totals"]["cost"]

        assert without_warnings(fairlead(one, "at", during, "top", "node")) == seen[0]
        assert without_warnings(fairlead(one, "at", during, "list", "-n", "default")) == seen[1]
