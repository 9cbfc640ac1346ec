"""Shared parts of the tests of `arena attach`: jobs, the server's certificate authority, an
environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.jobs.scripted_jobs import PODS, listed, script
from tests.edge.exec_server import ExecServer, Script
from tests.edge.kubeconfigs import encoded, write_kubeconfig
from tests.edge.pki import Authority
from tests.waiting import wait_until

POD_LIST = "/api/v1/namespaces/default/pods"
CA = Authority()
SECONDS = 60


def jobs(*pods: Any) -> Script:
    return script() | {POD_LIST: [listed(pods or PODS)]}


def environment(folder: Path, server: ExecServer) -> dict[str, str]:
    config = write_kubeconfig(
        folder / "config",
        cluster={"server": server.url, "certificate-authority-data": encoded(CA.pem)},
    )
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "KUBECONFIG": str(config),
    }


def eventually(holds: Callable[[], bool], what: str) -> None:
    wait_until(what, holds, SECONDS, 0.02)
