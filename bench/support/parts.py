"""Fairlead's processes beside a cluster, under the shipped accounts, each behind its own door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.servers import FAIRLEAD, Server, environment

from bench.support.audit import AuditLog, Requests, credential_of
from bench.support.doors import Door, Loop
from bench.support.processes import cpu_seconds, memory
from fairlead.edge.kube.kube_api import NODE_WATCH_SECONDS, WATCH_SECONDS

SYSTEM: Final = "fairlead-system"
NODE_SPACE: Final = "fairlead-nodes"
SECONDS: Final = 400.0


class Usage(NamedTuple):
    """Since its start: CPU seconds, bytes to and from the API server, requests."""

    cpu: float
    down: int
    up: int
    requests: Requests


class Part:
    """One process. `watch_seconds`: the mean length of its watches. `ready_line`: what its log has
    when it serves, for one that answers only by TLS.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        loop: Loop,
        name: str,
        account: str,
        words: Sequence[str],
        *,
        node: str = "",
        ready_line: str = "",
    ) -> None:
        self.name = name
        self._ready_line = ready_line
        self.watch_seconds = sum(NODE_WATCH_SECONDS if node else WATCH_SECONDS) / 2
        self.port = free_port()
        self.door = Door(loop, cluster.port)
        space = NODE_SPACE if node else SYSTEM
        bound = ("--bound-object-kind=Node", f"--bound-object-name={node}") if node else ()
        asked = ("create", "token", account, "-n", space, "--duration=6h", *bound)
        token = cluster.admin.run(*asked).strip()
        self._credential = credential_of(token)
        kubeconfig = write_kubeconfig(
            cluster.folder / f"{name}.kubeconfig",
            f"https://127.0.0.1:{self.door.port}",
            cluster.authority,
            token_user(token),
        )
        argv = [*FAIRLEAD, *words, f"--listen=127.0.0.1:{self.port}"]
        own = {"NODE_NAME": node} if node else {}
        if words[0] == "gpu-exporter":
            own["KUBECONFIG"] = str(kubeconfig)
        else:
            argv.append(f"--kubeconfig={kubeconfig}")
        self.component = Component(
            name, argv, cluster.logs / f"{name}.log", {**environment(), **own}
        )
        scheme = "https" if ready_line else "http"
        self.server = Server(self.component, f"{scheme}://127.0.0.1:{self.port}")

    def wait_until_ready(self) -> None:
        line = self._ready_line
        is_ready = (lambda: line in self.component.log_tail()) if line else self.server.is_ready
        self.component.wait_until(is_ready, SECONDS)

    def stop(self) -> None:
        self.component.stop()
        self.door.close()

    def usage(self, audit: AuditLog) -> Usage:
        return Usage(
            cpu_seconds(self.component.pid),
            self.door.down,
            self.door.up,
            audit.counted(self._credential),
        )

    def open_watches(self, audit: AuditLog) -> int:
        return audit.open_watches(self._credential)

    def named_requests(self, audit: AuditLog) -> dict[str, int]:
        """What it has asked since its start, but for Leases."""
        return {
            title: count for (who, title), count in audit.named.items() if who == self._credential
        }

    @property
    def mib(self) -> float:
        """Resident memory."""
        return memory(self.component.pid, "VmRSS")

    @property
    def mib_of_files(self) -> float:
        """Resident memory that maps files."""
        return memory(self.component.pid, "RssFile")
