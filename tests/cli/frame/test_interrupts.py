"""Ctrl-C at any moment: status 130 or death by the signal, never a traceback, and a job that is
partly created is deleted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.arena import kubeconfig
from tests.cli.jobs.scripted_jobs import collection, discovery, script
from tests.edge.scripted import Reply, ScriptedServer
from tests.programs import run_program
from tests.waiting import HANG_SECONDS, wait_until

ENDINGS = (130, -signal.SIGINT, 0)
"""0: the program ended before the signal arrived."""
STARTED = "from fairlead.run.programs import run_arena; run_arena()"
ANNOUNCED = (
    "import _signal as signal, os\n"
    "real = signal.signal\n"
    "def announce(number, handler):\n"
    "    signal.signal = real\n"
    "    real(number, handler)\n"
    "    os.write(1, b'up')\n"
    f"signal.signal = announce\n{STARTED}"
)
"""Prints `up` when the program has installed its handler for Ctrl-C. Before that the interpreter
handles it and prints its own message.
"""
NEVER = 600.0
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def begin(words: list[str], folder: Path, url: str, code: str = STARTED) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, "--kubeconfig", str(kubeconfig(folder, url)), *words]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)


def wait_for(server: ScriptedServer, method: str, count: int = 1) -> None:
    def reported() -> str:
        return f"{count} {method}: {[(each.method, each.path) for each in server.seen]}"

    wait_until(
        reported, lambda: sum(each.method == method for each in server.seen) >= count, 60, 0.005
    )


@pytest.mark.parametrize(
    "moments", [range(0, 16, 3), pytest.param(range(16), marks=pytest.mark.long)], ids=len
)
@pytest.mark.parametrize(
    "words",
    [["list"], ["version"], ["submit", "mpijob", "--name=a", "--image=i", "--workers=1", "run"]],
    ids=" ".join,
)
def test_at_any_moment_of_its_start(words: list[str], moments: range, tmp_path: Path) -> None:
    """Moments from the first to well after the requests are sent; the server never answers."""
    with ScriptedServer(
        script(**{"/apis": [Reply(delay=NEVER)], REVIEW: [Reply(delay=NEVER)]})
    ) as server:
        for moment in moments:
            command = begin(words, tmp_path, server.url, ANNOUNCED)
            assert command.stdout is not None
            assert command.stdout.read(2) == b"up"
            time.sleep(moment * 0.015)
            command.send_signal(signal.SIGINT)
            _, printed = command.communicate(timeout=HANG_SECONDS)
            assert command.returncode in ENDINGS, (moment, command.returncode)
            assert b"Traceback" not in printed and b"KeyboardInterrupt" not in printed, (
                moment,
                printed.decode(),
            )


def test_ctrl_c_is_in_hand_before_anything_takes_time() -> None:
    """Only the interpreter's own modules are loaded until then, and three small files
    of Fairlead.
    """
    code = (
        "import sys, _signal\n"
        "before = set(sys.modules)\n"
        "def look(*_):\n"
        "    print(*sorted(set(sys.modules) - before))\n"
        "    raise SystemExit\n"
        "_signal.signal = look\n"
        f"{STARTED}"
    )
    loaded = run_program([sys.executable, "-I", "-c", code], check=True).stdout.split()
    assert loaded == ["__future__", "fairlead", "fairlead.run", "fairlead.run.programs", "gc"]


def test_a_job_that_is_half_made_is_taken_away(tmp_path: Path) -> None:
    """The job is created, and the request for its ConfigMap is never answered."""
    given = tmp_path / "given"
    given.write_text("x")
    made = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "a", "namespace": "default", "uid": "u"},
        "spec": {"runPolicy": {}, "pytorchReplicaSpecs": {}},
    }
    steps = script(pytorchjobs=[Reply(made, 201)])
    steps |= {
        "/apis": [discovery("pytorchjobs", verbs=["create"])],
        f"{collection('pytorchjobs')}/a": [Reply(made)],
        "/api/v1/namespaces/default/configmaps": [Reply(delay=NEVER)],
    }
    with ScriptedServer(steps) as server:
        words = [
            "submit",
            "pytorchjob",
            "--name=a",
            "--image=i",
            "--workers=1",
            f"--config-file={given}:/etc/given",
            "run",
        ]
        command = begin(words, tmp_path, server.url)
        wait_for(server, "POST", 3)  # the user's name, the job, and the request that hangs
        command.send_signal(signal.SIGINT)
        out, printed = command.communicate(timeout=HANG_SECONDS)
        deleted = [each.path for each in server.seen if each.method == "DELETE"]
    assert (command.returncode, out, printed) == (130, b"", b"")
    assert deleted == [f"{collection('pytorchjobs')}/a"]


def test_its_parent_may_have_it_ignore_ctrl_c(tmp_path: Path) -> None:
    """`nohup` and background jobs of scripts do this: the signal is ignored from the start and
    stays ignored.
    """
    with ScriptedServer(script(**{"/apis": [Reply(delay=1.0), *script()["/apis"]]})) as server:
        ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{STARTED}"
        command = begin(["list"], tmp_path, server.url, ignoring)
        wait_for(server, "GET")
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=HANG_SECONDS)
    assert command.returncode != 130 and command.returncode != -signal.SIGINT
