"""Everything that a person or a log can get out of Fairlead about a cluster, as texts by title."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.kube.kubectl import Kubectl
from tests.kube.servers import fairlead_answer

from fairlead.console.pages.endpoints import ENDPOINTS
from fairlead.errors import OutsideError
from fairlead.run.bug_report import bug_report
from fairlead.wire.names import LABEL_OPERATION

Ask = Callable[[str], tuple[int, Any]]
STREAMS = ("changes", "oidc_start", "oidc_callback")
"""Endpoints that do not end, or lead a browser elsewhere."""


def route_outputs(ask: Ask, who: str, places: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Title, status and text of every route that reads. `places`: its path by the name of the
    endpoint, where it has parameters that must name what exists.
    """
    for each in ENDPOINTS:
        if each.method != "GET" or each.name in STREAMS:
            continue
        path = places.get(each.name, each.path)
        status, body = ask(path)
        yield f"{who}: GET {path}", status, json.dumps(body, ensure_ascii=False)


def command_outputs(
    kubeconfig: Path, folder: Path, commands: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Output and messages of commands, and the file of a snapshot. `commands`: the words of each
    with its exit status.
    """
    for words, status in commands.items():
        answer = fairlead_answer(kubeconfig, *words.split())
        text = answer.stdout + answer.stderr
        assert answer.returncode == status, text
        yield words, text
    file = folder / "cluster.snapshot"
    answer = fairlead_answer(kubeconfig, "snapshot", "save", str(file), "--partial")
    assert answer.returncode == 0, answer.stderr
    yield "snapshot save", answer.stdout + answer.stderr
    yield "the snapshot", gzip.decompress(file.read_bytes()).decode()


def record_outputs(admin: Kubectl) -> Iterator[tuple[str, str]]:
    """Each record of an operation, with its plan."""
    for found in admin.get("configmaps", "-A", "-l", LABEL_OPERATION):
        name = found["metadata"]["name"]
        plan = gzip.decompress(base64.b64decode(found["binaryData"]["plan"])).decode()
        yield f"record {name}", json.dumps(found["data"]) + plan


def report_output(secret: str) -> tuple[str, str]:
    """The bug report of a command whose arguments and failure quote the secret."""
    argv = ["dataset", "add", "faces", "--option", f"fs.oss.accessKeySecret={secret}"]
    error = OutsideError("kubernetes", f"the API server quotes {secret}")
    return "bug report", bug_report("fairlead", argv, error)


def argv_output(pid: int) -> tuple[str, str]:
    """The command line of a process, which every user of its machine can read."""
    return f"argv of {pid}", Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
