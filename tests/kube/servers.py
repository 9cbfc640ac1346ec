"""Runs a Fairlead process in a test as a person starts it: `fairlead VERB …` in a process of its
own.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.kube.addresses import free_port
from tests.kube.clocks import clock_ahead
from tests.kube.component import Component
from tests.programs import run_program
from tests.waiting import HANG_SECONDS

READY_SECONDS = 120.0


class Page:
    """A /metrics page, read by the official parser."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def value(self, name: str, **labels: str) -> float:
        """The value of the one sample with these labels (it may have more); LookupError unless
        there is exactly one.
        """
        found = [
            s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items()
        ]
        if len(found) != 1:
            raise LookupError(f"{len(found)} samples of `{name}` with {labels}")
        return float(found[0])

    def has(self, name: str) -> bool:
        return any(sample.name == name for sample in self.samples)

    def by(self, name: str, label: str) -> dict[str, float]:
        """Values by one label; where two samples share it, LookupError."""
        pairs = [
            (sample.labels[label], float(sample.value))
            for sample in self.samples
            if sample.name == name
        ]
        if len({key for key, _ in pairs}) != len(pairs):
            raise LookupError(f"samples of `{name}` share a `{label}`")
        return dict(pairs)

    def labels(self, name: str, **labels: str) -> dict[str, str]:
        """All labels of the one sample with these."""
        (found,) = (
            s.labels for s in self.samples if s.name == name and labels.items() <= s.labels.items()
        )
        return dict(found)

    def native(self) -> str:
        """The families under Fairlead's own prefix, for promtool: it complains about ecosystem
        names, which are contracts.
        """
        kept = [
            line
            for line in self.text.splitlines()
            if line.startswith(("fairlead_", "# HELP fairlead_", "# TYPE fairlead_"))
        ]
        return "\n".join(kept) + "\n"


class Server:
    """A running Fairlead process that serves HTTP on loopback."""

    def __init__(self, component: Component, url: str) -> None:
        self.component = component
        self.url = url

    @property
    def address(self) -> str:
        """`host:port`, as Prometheus names a target."""
        return self.url.removeprefix("http://")

    def get(self, path: str, seconds: float = 10.0) -> bytes:
        """The body of a GET; HTTPError for 4xx and 5xx."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=seconds) as answer:
            body: bytes = answer.read()
            return (
                gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body
            )

    def api(self, path: str, **parameters: str) -> Any:
        """An answer of the console's API."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        return json.loads(self.get(f"/api/v1{path}{query}"))

    def metrics(self) -> Page:
        return Page(self.get("/metrics").decode())

    def is_ready(self) -> bool:
        try:
            self.get("/readyz", seconds=2)
        except (OSError, urllib.error.HTTPError):
            return False
        return True

    def answers(self) -> bool:
        """Whether it serves its page; it may not be ready."""
        try:
            self.get("/metrics", seconds=2)
        except OSError:
            return False
        return True

    def log(self) -> str:
        return self.component.log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def running(
    verb: str,
    *arguments: str,
    log: Path,
    serves: Callable[[Server], bool] | None = None,
    clock: float = 0.0,
) -> Iterator[Server]:
    """`fairlead VERB --listen 127.0.0.1:PORT …` for the block, ready to serve.

    `serves`: the condition to wait for instead, for a process that will not become ready. `clock`:
    seconds by which its clock is ahead.
    """
    port = free_port()
    component = Component(
        f"fairlead {verb}",
        [*FAIRLEAD, verb, f"--listen=127.0.0.1:{port}", *arguments],
        log,
        environment() | clock_ahead(clock),
    )
    server = Server(component, f"http://127.0.0.1:{port}")
    try:
        component.start()
        component.wait_until(
            server.is_ready if serves is None else partial(serves, server), READY_SECONDS
        )
        yield server
    finally:
        component.stop()


FAIRLEAD = (sys.executable, "-m", "fairlead")


def environment() -> dict[str, str]:
    """This process's environment, without variables that would choose another cluster or
    Prometheus.
    """
    hidden = {"KUBECONFIG", "PROMETHEUS_ADDRESS", "PROMETHEUS_TOKEN", "FAIRLEAD_CONFIG"}
    return {
        name: value
        for name, value in os.environ.items()
        if name not in hidden and not name.lower().endswith("_proxy")
    }


def arena_answer(*arguments: str, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    """`arena … --kubeconfig F`, which has ended, with whatever status."""
    code = "from fairlead.run.programs import run_arena; run_arena()"
    argv = [sys.executable, "-c", code, *arguments, "--kubeconfig", str(kubeconfig)]
    return run_program(argv, env=environment())


def run_arena(*arguments: str, kubeconfig: Path) -> str:
    """Standard output of a command of `arena`; AssertionError with its standard error when it
    fails.
    """
    answer = arena_answer(*arguments, kubeconfig=kubeconfig)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def fairlead_answer(
    kubeconfig: Path, *words: str, stdin: str | None = None, seconds: float = HANG_SECONDS
) -> subprocess.CompletedProcess[str]:
    """A `fairlead` command that has ended, with whatever status."""
    argv = [*FAIRLEAD, *words, f"--kubeconfig={kubeconfig}"]
    return run_program(argv, env=environment(), stdin=stdin, seconds=seconds)


def run_fairlead(
    kubeconfig: Path, *words: str, status: int = 0, seconds: float = HANG_SECONDS
) -> str:
    """Output and messages of a command, whose exit status must be `status`."""
    answer = fairlead_answer(kubeconfig, *words, seconds=seconds)
    assert answer.returncode == status, answer.stdout + answer.stderr
    return answer.stdout + answer.stderr
