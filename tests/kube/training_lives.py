"""Leads one training job through its life, and compares what `arena` shows of it with kubectl.

A pod waits for its node until the test labels one, and runs until the test ends it: no step depends
on time.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.kube.control_plane import ControlPlane
from tests.kube.job_truth import JobObjects, JobTruth, job_truth, left_of_jobs, read_job
from tests.kube.kwok_stages import EXIT_CODE, RUN_TIME
from tests.kube.objects import Object, gpu_node
from tests.kube.servers import run_arena
from tests.waiting import wait_until

POOL = "test.fairlead.io/pool"
AGREE_SECONDS = 90.0


def pool_node(number: int) -> Object:
    """A node of 16 GPUs that takes none of these tests' pods before `Life.give_node`."""
    node = gpu_node(f"gpu-{number}", 16)
    node["status"]["addresses"] = [
        {"type": "InternalIP", "address": f"10.1.0.{number}"},
        {"type": "Hostname", "address": f"gpu-{number}"},
    ]
    return node


@dataclass(frozen=True)
class Life:
    """One job in a namespace of its own. `resource` is kubectl's word (`mpijobs`)."""

    cluster: ControlPlane
    resource: str
    namespace: str
    name: str

    @property
    def type(self) -> str:
        return self.resource.removesuffix("s")

    def arena(self, *words: str) -> str:
        return run_arena(*words, "-n", self.namespace, kubeconfig=self.cluster.kubeconfig)

    def submit(self, *flags: str, waits: bool = True) -> None:
        """Submit the job in a new namespace; with `waits`, its pods wait for a node from
        `give_node`.
        """
        self.cluster.admin.run("create", "namespace", self.namespace)
        pool = [f"--selector={POOL}={self.namespace}"] if waits else []
        printed = self.arena(
            "submit",
            self.type,
            f"--name={self.name}",
            "--image=train:1",
            *pool,
            *flags,
            "python train.py",
        )
        assert printed == f"{self.type}.kubeflow.org/{self.name} created\n"

    def give_node(self, node: str) -> None:
        self.cluster.admin.run("label", "node", node, f"{POOL}={self.namespace}", "--overwrite")

    def patch(self, spec: dict[str, Any]) -> None:
        self.cluster.admin.run(
            "patch",
            self.resource,
            self.name,
            "-n",
            self.namespace,
            "--type=merge",
            "-p",
            json.dumps({"spec": spec}),
        )

    def end_pod(self, pod: str, exit_code: int) -> None:
        """End the pod's container now."""
        self.cluster.admin.run(
            "annotate",
            "pod",
            pod,
            "-n",
            self.namespace,
            f"{EXIT_CODE}={exit_code}",
            f"{RUN_TIME}=0s",
        )

    @property
    def objects(self) -> JobObjects:
        found = read_job(self.cluster.admin, self.resource, self.name, self.namespace)
        assert found is not None, f"{self.resource}/{self.name} is gone"
        return found

    @property
    def chief(self) -> str:
        chief = self.objects.chief
        assert chief is not None
        return str(chief["metadata"]["name"])

    def until(self, what: str, is_so: Callable[[JobObjects], bool]) -> None:
        wait_until(f"{self.type} {self.name}: {what}", lambda: is_so(self.objects))

    def until_condition(self, type_: str) -> None:
        self.until(f"its condition {type_} is true", lambda objects: objects.has(type_))

    def until_pods(self, count: int, phase: str) -> None:
        """Wait until the job has exactly this number of pods, all in this phase."""
        self.until(
            f"{count} pods are {phase}",
            lambda objects: [pod["status"]["phase"] for pod in objects.pods] == [phase] * count,
        )

    def until_gone(self) -> None:
        """Wait until nothing of the job is left in its namespace. The garbage collector learns of
        new kinds only every 30 s.
        """
        admin = self.cluster.admin
        wait_until(
            f"nothing is left of {self.type} {self.name}",
            lambda: not left_of_jobs(admin, self.namespace),
            120,
        )

    def nudged(self) -> JobObjects:
        """Write a change without effect, so that the job's operator looks at it again. Returns the
        job.
        """
        self.cluster.admin.run(
            "annotate",
            self.resource,
            self.name,
            "-n",
            self.namespace,
            f"test.fairlead.io/nudge={time.time()}",
            "--overwrite",
        )
        return self.objects

    def agreed(self, status: str) -> JobTruth:
        """The truth, once kubectl shows this status and `arena list`, `get` and `top job` agree
        with kubectl about everything.

        A cluster changes: what `arena` prints counts only when kubectl shows the same before and
        after.
        """
        limit = time.monotonic() + AGREE_SECONDS
        while True:
            before, asked_at = self._truth(), time.time()
            reported = [self._row("list"), self._document(), self._row("top", "job")]
            answered_at, truth = time.time(), self._truth()
            wanted = [
                _wanted_row(self, truth, in_list=True),
                _wanted_document(truth),
                _wanted_row(self, truth, in_list=False),
            ]
            durations = {each.pop("duration") for each in reported}
            is_in_time = durations <= _wanted_durations(truth, asked_at, answered_at)
            if (
                truth == before
                and truth.status == status
                and reported == wanted
                and is_in_time
                and _is_long_over(truth, asked_at)
            ):
                return truth
            assert time.monotonic() < limit, (
                f"{self.type} {status}\nshown: {reported}\nwant:  {wanted}\n{durations} of {truth}"
            )

    def _truth(self) -> JobTruth:
        return job_truth(self.cluster.admin, self.resource, self.name, self.namespace)

    def _row(self, *verb: str) -> dict[str, Any]:
        """The row of the only job, with AGE as DURATION."""
        head, row = (
            re.split(r"\s{2,}", line.strip()) for line in self.arena(*verb).splitlines()[:2]
        )
        cells = dict(zip(head, row, strict=True))
        cells["duration"] = cells.pop("AGE" if "AGE" in cells else "DURATION")
        return cells

    def _document(self) -> dict[str, Any]:
        reported = json.loads(self.arena("get", self.name, "-o", "json"))
        kept = ("status", "node", "nodeIP", "requestGPUs", "chief")
        pods = {each["name"]: {key: each[key] for key in kept} for each in reported["instances"]}
        job = {
            key: reported[key]
            for key in (
                "uuid",
                "status",
                "duration",
                "requestGPUs",
                "allocatedGPUs",
                "chiefName",
                "node",
            )
        }
        return {**job, "pods": pods}


def _wanted_row(life: Life, truth: JobTruth, *, in_list: bool) -> dict[str, Any]:
    shows_none = in_list and truth.status in ("SUCCEEDED", "FAILED", "SUSPENDED")
    return {
        "NAME": life.name,
        "STATUS": truth.status,
        "TRAINER": life.type.upper(),
        "GPU(Requested)": str(truth.requested),
        "GPU(Allocated)": "N/A" if shows_none else str(truth.allocated),
        "NODE": truth.node or "N/A",
    }


def _wanted_document(truth: JobTruth) -> dict[str, Any]:
    pods = {
        name: {
            "status": pod.status,
            "node": pod.node,
            "nodeIP": pod.host_ip,
            "requestGPUs": pod.gpus,
            "chief": pod.is_chief,
        }
        for name, pod in truth.pods.items()
    }
    return {
        "uuid": truth.uid,
        "status": truth.status,
        "requestGPUs": truth.requested,
        "allocatedGPUs": truth.allocated,
        "chiefName": next((name for name, pod in truth.pods.items() if pod.is_chief), ""),
        "node": truth.node or "N/A",
        "pods": pods,
    }


def _is_long_over(truth: JobTruth, now: float) -> bool:
    """Two seconds after its end a duration that still grew would be visible; a job that lives need
    not wait.
    """
    return truth.ended is None or now > truth.ended + 2


def _wanted_durations(truth: JobTruth, asked_at: float, answered_at: float) -> set[str]:
    """Every duration that may be printed between the two moments, in the table's spelling and in
    the document's, for a job that has ended.
    """
    if truth.started is None:
        seconds = range(1)
    elif truth.ended is not None:
        seconds = range(int(truth.ended - truth.started), int(truth.ended - truth.started) + 1)
    else:
        seconds = range(int(asked_at - truth.started) - 1, int(answered_at - truth.started) + 2)
    return {f"{each}s" for each in seconds} | {f"{each // 60}m" for each in seconds if each >= 60}
