"""A laptop whose time is stopped, is stepped and runs fast, as
kubectl and `fairlead time` show it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.programs import program
from tests.kube.servers import environment
from tests.programs import run_program
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 1)

LOGS = Path(__file__).resolve().parents[2] / "test-output" / "kube"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "talks"},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:2h"}]},
}


@pytest.fixture(scope="module")
def laptop() -> Iterator[Laptop]:
    LOGS.mkdir(parents=True, exist_ok=True)
    with running_laptop(LOGS / "time-laptop.log", "--scenario=documents-001", "--speed=20") as one:
        yield one


def fairlead_time(laptop: Laptop, *arguments: str) -> Any:
    command = [
        sys.executable,
        "-m",
        "fairlead",
        "time",
        *arguments,
        f"--state-dir={laptop.state_dir}",
        "-o",
        "json",
    ]
    done = run_program(command, env=environment(), check=True)
    return json.loads(done.stdout)


class Reader:
    """A kubectl that keeps running, and the lines that it has printed."""

    def __init__(self, laptop: Laptop, *arguments: str) -> None:
        command = [str(program("kubectl")), f"--kubeconfig={laptop.kubeconfig}", *arguments]
        known = {**environment(), **laptop.kubectl.folders}
        self.process = subprocess.Popen(
            command,
            env=known,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    @property
    def is_open(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def test_while_time_stands_writes_are_taken_streams_stay_open_and_nothing_moves(
    laptop: Laptop,
) -> None:
    kubectl = laptop.kubectl
    kubectl.apply([{**POD, "metadata": {"name": "talks", "namespace": "default"}}])
    kubectl.run("wait", "pod/talks", "--for=condition=Ready", "--timeout=60s")
    watch, logs = Reader(laptop, "get", "pods", "-w"), Reader(laptop, "logs", "-f", "talks")
    try:
        wait_until("the streams speak", lambda: len(watch.lines) >= 2 and len(logs.lines) >= 1)
        stood = fairlead_time(laptop, "pause")
        # a line printed before may still be on its way to the stream
        spoken = len(kubectl.run("logs", "talks").splitlines())
        wait_until("the stream has printed all of it", lambda: len(logs.lines) == spoken)
        made = kubectl.run("run", "waits", "--image=train:1m", "--restart=Never")
        assert made == "pod/waits created\n"
        wait_until(
            "the watch reports the write",
            lambda: any(line.startswith("waits") for line in watch.lines),
        )
        first = kubectl.run("get", "pods")
        for _ in range(3):
            threading.Event().wait(1.2)
            assert kubectl.run("get", "pods") == first, "ages stand still, and no scheduler acts"
        assert [line.split()[2] for line in first.splitlines()[1:] if line.startswith("waits")] == [
            "Pending"
        ]
        assert (watch.is_open, logs.is_open, len(logs.lines)) == (True, True, spoken)
        assert fairlead_time(laptop, "show") == stood
        fairlead_time(laptop, "resume")
        kubectl.run("wait", "pod/waits", "--for=condition=Ready", "--timeout=60s")
        assert any("Running" in line for line in watch.lines if line.startswith("waits"))
    finally:
        watch.stop()
        logs.stop()
        fairlead_time(laptop, "resume")


def test_a_day_goes_by_and_kubectl_sees_it(laptop: Laptop) -> None:
    fairlead_time(laptop, "pause")
    before = fairlead_time(laptop, "show")["now"]
    laptop.kubectl.run("run", "ends", "--image=train:5h", "--restart=Never")
    after = fairlead_time(laptop, "advance", "1d")
    assert (after["isPaused"], after["until"]) == (True, None)
    assert after["now"][:10] > before[:10] and after["now"][10:] == before[10:]
    line = next(
        line for line in laptop.kubectl.run("get", "pods").splitlines() if line.startswith("ends")
    )
    assert line.split() == ["ends", "0/1", "Completed", "0", "24h"]
    fairlead_time(laptop, "resume")


def test_each_step_is_one_instant_and_reports_its_writes(laptop: Laptop) -> None:
    fairlead_time(laptop, "pause")
    laptop.kubectl.run("run", "walks", "--image=train:1m", "--restart=Never")
    reported: list[str] = []
    for _ in range(60):
        stepped = fairlead_time(laptop, "step")
        reported += [
            f"{each['verb']} {each['kind']}/{each['name']}" for each in stepped["happened"]
        ]
        phase = laptop.kubectl.run("get", "pod", "walks", "-o", "jsonpath={.status.phase}")
        if phase == "Succeeded":
            break
    assert phase == "Succeeded"
    assert reported.count("modified Pod/walks") >= 3
    fairlead_time(laptop, "resume")
