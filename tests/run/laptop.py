"""Runs `fairlead up` as a process, and sends it the requests of a user."""

from __future__ import annotations

import base64
import json
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.cli.arena import environment
from tests.waiting import HANG_SECONDS, wait_until

from fairlead_sim.scenario.file import read_scenario

START_SECONDS = 120.0
PORTS = (
    "--port",
    "0",
    "--api-port",
    "0",
    "--gpu-exporter-port",
    "0",
    "--cluster-exporter-port",
    "0",
)
BARE = (*PORTS, "--scenario", "empty")
"""A scenario without a history, so the laptop starts at once."""
OPEN = ("--sign-in=false",)


def young_scenario(folder: Path) -> str:
    """The default scenario with a short history: simulating its three hours takes
    twenty seconds.
    """
    path = folder / "young.toml"
    path.write_text(read_scenario("default")[0].replace('history = "3h"', 'history = "20m"'))
    return str(path)


class Laptop:
    """`is_open`: without sign-in, so that the tests read the console's pages without a cookie."""

    def __init__(
        self, folder: Path, *arguments: str, home: Path | None = None, is_open: bool = True
    ) -> None:
        self.home = home or folder
        self.ready_file = folder / "ready.json"
        self.log = (folder / "log").open("w+")
        argv = [
            sys.executable,
            "-m",
            "fairlead",
            "up",
            "--ready-file",
            str(self.ready_file),
            *(OPEN if is_open else ()),
            *arguments,
        ]
        self.process = subprocess.Popen(
            argv, stdout=self.log, stderr=subprocess.STDOUT, env=environment(self.home), text=True
        )

    def wait_ready(self) -> dict[str, str]:
        self.wait_for(self.ready_file)
        ready: dict[str, str] = json.loads(self.ready_file.read_text())
        return ready

    def wait_for(self, file: Path) -> None:
        wait_until(
            self.output,
            lambda: file.exists() or self.process.poll() is not None,
            START_SECONDS,
            0.05,
        )
        assert self.process.poll() is None, self.output()

    def end(self, number: int = signal.SIGTERM) -> float:
        """Sends the signal; returns the seconds until the process ended."""
        started = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(timeout=HANG_SECONDS)
        return time.monotonic() - started

    def output(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=HANG_SECONDS) as answer:
        text: str = answer.read().decode()
        return text


def kubeconfig_of(ready: dict[str, str]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(Path(ready["kubeconfig"]).read_text())
    return read


def post(ready: dict[str, str], path: str, body: dict[str, Any]) -> None:
    """A request with the certificate authority and the token of the kubeconfig."""
    _send(ready, path, json.dumps(body).encode())


def read(ready: dict[str, str], path: str) -> dict[str, Any]:
    """What the laptop's API server answers there."""
    found: dict[str, Any] = json.loads(_send(ready, path, None))
    return found


def _send(ready: dict[str, str], path: str, body: bytes | None) -> bytes:
    config = kubeconfig_of(ready)
    cluster = config["clusters"][0]["cluster"]
    trust = ssl.create_default_context(
        cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
    )
    headers = {
        "authorization": f"Bearer {config['users'][0]['user']['token']}",
        "content-type": "application/json",
    }
    request = urllib.request.Request(cluster["server"] + path, body, headers)
    with urllib.request.urlopen(request, context=trust, timeout=HANG_SECONDS) as answer:
        answered: bytes = answer.read()
    return answered
