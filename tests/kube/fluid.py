"""Starts Fluid beside a test cluster: its chart in the cluster, and its real controllers as plain
processes.

KWOK plays the pods of the chart and of the caches. What a controller asks of Alluxio, by `exec` in
the pod of a master, a script answers. So data sets, claims, volumes, releases and the programs that
make them are real; files and caches are not.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.helm import Helm
from tests.kube.kwok_stages import ended_stage
from tests.kube.objects import Object, cpu_node
from tests.kube.programs import module_folder, program
from tests.waiting import wait_until

NAMESPACE = "fluid-system"
RELEASE = "fluid"
DRIVER = "fuse.csi.fluid.io"
NODES = ("node-1", "node-2", "node-3", "node-4")
WITHOUT_CRD_JOB = ("--set", "crdUpgrade.enabled=false")
"""The job of the chart that upgrades definitions: its image cannot run here."""
CONTROLLERS = {
    "dataset-controller": "fluid-dataset",
    "alluxioruntime-controller": "fluid-alluxio",
}
"""Deployment and program."""
TOTAL, FILES = 1 << 30, 12
"""What Alluxio reports of each source: bytes, and files."""
_NOT_HERE = ("--enable-leader-election", "--leader-election-namespace", "--pprof-addr")
"""Flags of the chart that a single process beside the cluster does not need."""
_NEED_LIBRARY = ("alluxio", "fluid-dataloader/alluxio")
_ALLUXIO = f"""\
#!/bin/sh
case "$*" in
"fsadmin report summary")
  echo "Alluxio cluster summary:"
  echo "    Total Capacity: 2048.00MB"
  echo "    Used Capacity: 0B" ;;
"fsadmin report metrics")
  echo "Cluster.BytesReadLocal  (Type: COUNTER, Value: 0B)"
  echo "Cluster.BytesReadRemote  (Type: COUNTER, Value: 0B)"
  echo "Cluster.BytesReadUfsAll  (Type: COUNTER, Value: 0B)"
  echo "Master.FilesCompleted  (Type: COUNTER, Value: {FILES})" ;;
"fsadmin report capacity") echo "Capacity information for all workers:" ;;
"fsadmin report") echo "Alluxio cluster summary:" ;;
"fs count /")
  echo "File Count               Folder Count             Folder Size"
  printf '{FILES} 1 {TOTAL}' ;;
"fs loadMetadata -R /") ;;
"getConf "*) ;;
*) echo "alluxio $* is not played here" >&2; exit 1 ;;
esac
"""
_PROGRAMS = {"alluxio": _ALLUXIO, "du": '#!/bin/sh\nprintf "1.0G\\t%s" "$2"\n'}


@dataclass(frozen=True)
class Fluid:
    """Fluid in a cluster. `components`: its controllers by the name of their Deployment; the first
    one watches data sets, the other one Alluxio's runtimes.
    """

    cluster: ControlPlane
    components: dict[str, Component]

    def stop_controllers(self) -> None:
        for component in self.components.values():
            component.stop()

    def start_controllers(self) -> None:
        for component in self.components.values():
            component.start()


@contextmanager
def running_fluid(folder: Path) -> Iterator[Fluid]:
    """A control plane with four nodes, Fluid's chart installed, and its controllers at work."""
    commands, stages = _commands(folder / "commands"), folder / "loads.yaml"
    folder_of_home = folder / "home"
    stages.write_text(yaml.safe_dump(ended_stage("load-ended", "role", "dataload-pod", 1000)))
    flags = {"kwok": [f"--config={stages}"]}
    with running_control_plane(flags=flags, commands=commands) as cluster:
        join_nodes(cluster)
        helm = Helm("helm3", folder_of_home, cluster.kubeconfig)
        install(helm)
        components = {name: _controller(cluster, name, folder_of_home) for name in CONTROLLERS}
        _unpack_charts(folder_of_home)
        fluid = Fluid(cluster, components)
        try:
            fluid.start_controllers()
            yield fluid
        finally:
            fluid.stop_controllers()


def join_nodes(cluster: ControlPlane) -> None:
    """Four nodes, Ready, with Fluid's volume driver as its node plugin registers it."""
    cluster.admin.create([cpu_node(name) for name in NODES])
    wait_until(
        "the nodes are Ready",
        lambda: cluster.admin.run("get", "nodes", "--no-headers").count(" Ready ") == len(NODES),
    )
    uids = {
        node["metadata"]["name"]: node["metadata"]["uid"] for node in cluster.admin.get("nodes")
    }
    cluster.admin.create(_driver_of(name, uids[name]) for name in NODES)


def _driver_of(node: str, uid: str) -> Object:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node, "ownerReferences": [owner]},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": node, "topologyKeys": []}]},
    }


def chart_folder() -> Path:
    """Fluid's own chart; its definitions are in `crds`."""
    return module_folder("FLUID") / "charts" / "fluid" / "fluid"


def install(helm: Helm) -> None:
    """Fluid's chart with its definitions, without the webhook: its program does not run here.

    By Fluid's default its controllers choose ports at random: the workers of two data sets may get
    the same one, and where the first has workers on all nodes, the other never runs.
    """
    words = ("install", RELEASE, str(chart_folder()), f"--namespace={NAMESPACE}")
    values = "webhook.enabled=false,runtime.alluxio.portAllocatePolicy=bitmap"
    helm.run(*words, "--create-namespace", *WITHOUT_CRD_JOB, "--set", values)


def _controller(cluster: ControlPlane, name: str, home: Path) -> Component:
    """The program of a Deployment of the chart, with the flags and the environment that stand
    there.
    """
    (deployment,) = (
        each
        for each in cluster.admin.get("deployments", "-n", NAMESPACE)
        if each["metadata"]["name"] == name
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    flags = [each for each in container["args"] if each.partition("=")[0] not in _NOT_HERE]
    work = home / name
    work.mkdir(parents=True, exist_ok=True)
    environment = {
        **{each["name"]: each["value"] for each in container["env"] if "value" in each},
        "PATH": f"{_programs_of(home)}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "TMPDIR": str(work),
        "FLUID_WORKDIR": str(work),
        "MY_POD_NAMESPACE": NAMESPACE,
        "KUBECONFIG": str(cluster.write_user_kubeconfig(name, ["system:masters"])),
    }
    argv = [program(CONTROLLERS[name]), "start", *flags, "--metrics-addr=0"]
    return Component(name, argv, cluster.logs / f"{name}.log", environment)


def _programs_of(home: Path) -> Path:
    """A folder with the controllers' Helm, by the name under which their image has it."""
    folder = home / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "ddc-helm").exists():
        (folder / "ddc-helm").symlink_to(program("helm3"))
    return folder


def _unpack_charts(home: Path) -> None:
    """The charts of caches and loads as the controllers' image has them: each with its library."""
    source = module_folder("FLUID") / "charts"
    for name in _NEED_LIBRARY:
        target = home / "charts" / name
        shutil.copytree(source / name, target, copy_function=shutil.copyfile)
        library = target / "charts" / "library"
        shutil.copytree(source / "library", library, copy_function=shutil.copyfile)


def _commands(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, text in _PROGRAMS.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    return folder
