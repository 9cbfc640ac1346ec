"""Runs `arena` as a person types it, and training jobs whose programs follow the test's orders.

Nothing here waits for a program by time. A program reads orders from a pipe in its container, so a
test decides when a line is written and when the program ends.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.kube.control_plane import ControlPlane
from tests.kube.kubectl import KubectlError
from tests.kube.node_images import BUSYBOX
from tests.waiting import wait_until

IMAGE = (f"--image={BUSYBOX}", "--image-pull-policy=Never")
OBEYS = """mkfifo /tmp/orders
echo "I am $HOSTNAME"
while :; do
  read -r order rest < /tmp/orders || continue
  case "$order" in
    print) echo "$rest" ;; warn) echo "$rest" >&2 ;; count) seq 1 "$rest" ;; end) exit "$rest" ;;
  esac
done"""
"""A program that prints its name and then follows orders."""
SECONDS = 90.0
_RUN_ARENA = (
    "import faulthandler as f; f.dump_traceback_later(80, exit=True); from fairlead.run.programs "
    "import run_arena; run_arena()"
)
"""An `arena` that hangs prints where it does."""


class Arena:
    """arena, and kubectl beside it for the truth, in namespace `default` of the cluster."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.cluster = cluster
        self.environment = {
            "PATH": os.environ["PATH"],
            **cluster.admin.folders,
            "LANG": "C.UTF-8",
            "KUBECONFIG": str(cluster.kubeconfig),
        }

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-c", _RUN_ARENA, *words]

    def run(self, *words: str, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        ended = subprocess.run(
            self.argv(*words),
            input=given,
            capture_output=True,
            timeout=SECONDS,
            env=self.environment,
            check=False,
        )
        return subprocess.CompletedProcess(
            ended.args, ended.returncode, ended.stdout.decode(), ended.stderr.decode()
        )

    def shown(self, *words: str) -> str:
        """Standard output of a command, which must succeed."""
        ended = self.run(*words)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    @contextmanager
    def started(self, *words: str, **streams: int) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            self.argv(*words),
            env=self.environment,
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **streams,
            },
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def submit(self, kind: str, name: str, *flags: str, program_text: str = OBEYS) -> None:
        self.shown("submit", kind, f"--name={name}", *IMAGE, *flags, "--", program_text)

    def kubectl(self, *words: str) -> str:
        return self.cluster.admin.run("-n", "default", *words)

    def order(self, pod: str, *words: str) -> None:
        """Give the pod's program an order; it has followed it soon after."""
        self.kubectl("exec", pod, "--", "sh", "-c", f"echo {' '.join(words)} > /tmp/orders")

    def end(self, pod: str, status: int) -> None:
        """End the program of a pod. It is its container's first process, so the shell that gives
        the order may die with it (137).
        """
        try:
            self.order(pod, "end", str(status))
        except KubectlError as error:
            if not str(error).endswith("exit code 137"):
                raise

    def pod(self, name: str) -> dict[str, Any]:
        """The pod as stored; {} when there is none."""
        found = self.cluster.admin.get(
            "pods", "-n", "default", f"--field-selector=metadata.name={name}"
        )
        return found[0] if found else {}

    def phase(self, pod: str) -> str:
        return str(self.pod(pod).get("status", {}).get("phase", ""))

    def until_obeys(self, *pods: str) -> None:
        """Wait until the programs of these pods have created their pipe and printed their names."""
        for pod in pods:
            wait_until(f"the program of {pod} obeys", partial(self._has_spoken, pod), SECONDS)

    def until_running(self, pod: str) -> None:
        wait_until(f"{pod} runs", lambda: self.phase(pod) == "Running", SECONDS)

    def until_status(self, pod: str, *words: str) -> None:
        """Wait until kubectl's column STATUS shows one of these."""
        wait_until(
            f"{pod} is {' or '.join(words)}",
            lambda: status_of(self.kubectl("get", "pods", "--no-headers"), pod) in words,
            SECONDS,
        )

    def _has_spoken(self, pod: str) -> bool:
        statuses = self.pod(pod).get("status", {}).get("containerStatuses", ())
        return any("running" in status["state"] for status in statuses) and (
            "I am"
        ) in self.kubectl("logs", pod, "--all-containers")


def status_of(table: str, pod: str) -> str:
    """A pod's status in a table of kubectl or of `arena get`, where it is the column after READY or
    after NAME.
    """
    for line in table.splitlines():
        words = line.split()
        if words[:1] == [pod]:
            return words[2] if re.fullmatch(r"\d+/\d+", words[1]) else words[1]
    return ""


def two_containers(name: str) -> dict[str, Any]:
    """A PyTorchJob whose pod has the containers `pytorch` and `beside`; each prints its name and
    has it in NAME.
    """
    return pytorchjob(
        name, {"containers": [waiting_container("pytorch"), waiting_container("beside")]}
    )


def waiting_container(name: str) -> dict[str, Any]:
    command = ["sh", "-c", "echo from $NAME; sleep 100000"]
    return {
        "name": name,
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": command,
        "env": [{"name": "NAME", "value": name}],
    }


def pytorchjob(name: str, pod: dict[str, Any]) -> dict[str, Any]:
    """A PyTorchJob of one pod, `NAME-master-0`."""
    master = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": pod}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }
