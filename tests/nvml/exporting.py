"""Runs the GPU exporter as a process, on the driver that the tests play."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.nvml.stub import StubState
from tests.waiting import HANG_SECONDS, wait_until

from fairlead.model.metric import Sample
from fairlead.wire.metrics.prom_text import parse_page

SECONDS = 60.0


class Exporter:
    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def page(self) -> str:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            assert answer.status == 200
            return str(answer.read().decode())

    def samples(self) -> list[Sample]:
        return parse_page(self.page()).samples

    def values(self, name: str, label: str = "gpu", **labels: str) -> dict[str, float]:
        """Values of a family by one label."""
        found = [
            each
            for each in self.samples()
            if each.name == name and labels.items() <= each.labels.items()
        ]
        assert len({each.labels.get(label, "") for each in found}) == len(found), "a series twice"
        return {each.labels.get(label, ""): each.value for each in found}

    def until(self, what: str, name: str, expected: dict[str, float], **labels: str) -> None:
        wait_until(
            lambda: f"{what}: {name} is {self.values(name, **labels)}",
            lambda: self.values(name, **labels) == expected,
            SECONDS,
            0.02,
        )


@contextmanager
def exporting(
    library: Path, state: StubState, home: Path, *flags: str, env: Mapping[str, str] | None = None
) -> Iterator[Exporter]:
    argv = [
        sys.executable,
        "-m",
        "fairlead",
        "gpu-exporter",
        "--listen=127.0.0.1:0",
        f"--nvml-library={library}",
        "-c",
        "100",
        *flags,
    ]
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "STUB_NVML": str(state.folder),
        "NODE_NAME": "n1",
    }
    kubelet = home / "kubelet"
    process = subprocess.Popen(
        [*argv, f"--kubelet-dir={kubelet}"],
        stderr=subprocess.PIPE,
        text=True,
        env=own | dict(env or {}),
    )
    reader = None
    try:
        assert process.stderr is not None
        line = ""
        while " http://127.0.0.1:" not in line:
            line = process.stderr.readline()
            assert line, "it ended without a word"
        reader = threading.Thread(target=process.stderr.read, daemon=True)
        reader.start()
        yield Exporter(process, "http://" + line.split(" http://", 1)[1].split("/", 1)[0])
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(HANG_SECONDS)
        if reader is not None:
            reader.join(HANG_SECONDS)
        process.stderr.close()
