"""Runs `fairlead up` in a test as a person starts it, on free ports. Its ready file names all
addresses.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.kube.kubectl import Kubectl
from tests.kube.programs import program
from tests.kube.servers import FAIRLEAD, READY_SECONDS, Server, environment


class Laptop:
    """The simulated cluster, its exporters and the console in one
    process; `kubectl` uses its API.
    """

    def __init__(
        self, component: Component, ready: dict[str, str], folder: Path, state_dir: Path
    ) -> None:
        self.state_dir = state_dir
        self.component = component
        self.console = Server(component, ready["console"].rstrip("/"))
        self.cluster_exporter = Server(component, _without_path(ready["cluster_exporter"]))
        self.gpu_exporter = Server(component, _without_path(ready["gpu_exporter"]))
        self.kubeconfig = Path(ready["kubeconfig"])
        self.kubectl = Kubectl(program("kubectl"), self.kubeconfig, folder)


@contextmanager
def running_laptop(log: Path, *arguments: str, state_home: Path | None = None) -> Iterator[Laptop]:
    """Run `fairlead up ARGUMENTS` for the block; it must end by itself on SIGTERM.

    Without sign-in, if the arguments do not ask for it.
    """
    folder = Path(tempfile.mkdtemp(prefix="fairlead-laptop-"))
    ready_file, home = folder / "ready.json", state_home or folder / "state"
    ports = [
        f"--{name}={free_port()}"
        for name in ("port", "api-port", "cluster-exporter-port", "gpu-exporter-port")
    ]
    argv = [*FAIRLEAD, "up", "--sign-in=false", *ports, f"--ready-file={ready_file}", *arguments]
    component = Component("fairlead up", argv, log, {**environment(), "XDG_STATE_HOME": str(home)})
    try:
        component.start()
        component.wait_until(
            lambda: ready_file.exists() and ready_file.stat().st_size > 0, READY_SECONDS
        )
        yield Laptop(
            component,
            json.loads(ready_file.read_text(encoding="utf-8")),
            folder,
            home / "fairlead" / "laptop",
        )
    finally:
        component.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _without_path(url: str) -> str:
    return url.removesuffix("/").removesuffix("/metrics")
