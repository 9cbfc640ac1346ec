"""Starts a real node beside the test cluster: a kubelet with containerd and runc, whose containers
really run.

The node is `NODE`; its image is `node_images.BUSYBOX`, and a pod that names another image waits for
ever, unless the place of the node has a registry. `node_room.py` explains where the node lives and
why nothing of it remains.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml
from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.driver import write_runtime
from tests.kube.kubeconfigs import certificate_user, write_kubeconfig
from tests.kube.node_images import PAUSE, write_images
from tests.kube.node_room import (
    BRIDGE,
    CNI_PROGRAMS,
    NODE_ADDRESS,
    beside,
    end_all,
    first_process,
    has_begun,
    node_room,
)
from tests.kube.programs import program
from tests.waiting import HANG_SECONDS, wait_until

NODE = "real-node"
CDI_FOLDER = "kubelet/cdi"
"""In /var/lib, beside the kubelet's own folders, so that it is visible from outside."""
POD_SUBNET = "10.98.0.0/24"
SOCKET = "/run/containerd/containerd.sock"
_CRI = "io.containerd.grpc.v1.cri"
_CRI_2 = "io.containerd.cri.v1.runtime"
_READY_SECONDS = 120.0


@dataclass(frozen=True)
class Place:
    """What distinguishes a node from others on the machine. The default shares the machine's
    network.

    `folder`: below the cluster's. `registries`: a folder as containerd's `config_path` is, with a
    host for each registry; None = all images are imported. `connect`: called with the first process
    of the node, to give its network namespace a link.
    """

    name: str = NODE
    folder: str = "node"
    address: str = NODE_ADDRESS
    pod_subnet: str = POD_SUBNET
    cgroup: str = ""
    registries: Path | None = None
    connect: Callable[[Component], None] | None = None


@dataclass(frozen=True)
class RealNode:
    """The node's programs, each of which may be ended and started again; `room`: the first process
    of its namespaces. `disk`: its /var/lib, as seen from outside.
    """

    kubelet: Component
    containerd: Component
    room: Component
    disk: Path

    def import_images(self, tar: Path) -> None:
        """Import more images for the node's containers."""
        _import(partial(_ctr, self.room, Path("ctr")), tar)


@contextmanager
def running_node(
    cluster: ControlPlane, *, with_cdi: bool = False, status_seconds: float = 1.0
) -> Iterator[RealNode]:
    """A Ready node for the block. `with_cdi`: with containerd 2; Debian's 1.6 does not support CDI.

    `status_seconds`: the interval in which the kubelet reports its node's status.
    """
    place = Place()
    with (
        node_room(),
        started_node(cluster, place, with_cdi=with_cdi, status_seconds=status_seconds) as node,
    ):
        node.kubelet.wait_until(lambda: is_ready(cluster, place.name), _READY_SECONDS)
        yield node


@contextmanager
def started_node(
    cluster: ControlPlane, place: Place, *, with_cdi: bool, status_seconds: float
) -> Iterator[RealNode]:
    """As `running_node`, at a place that the caller has reserved. It does not wait for the node to
    be Ready.
    """
    folder = cluster.folder / place.folder
    disk = folder / "disk"
    disk.mkdir(parents=True)
    logs = cluster.logs
    room = Component(
        place.folder,
        first_process(disk, has_own_network=place.connect is not None),
        logs / f"{place.folder}.log",
    )
    try:
        room.start()
        room.wait_until(lambda: _is_furnished(room), _READY_SECONDS)
        if place.connect is not None:
            place.connect(room)
        containerd = _containerd_2 if with_cdi else _containerd_1
        with (
            containerd(place, folder, room, logs) as runtime,
            _kubelet(cluster, place, folder, room, status_seconds) as kubelet,
        ):
            yield RealNode(kubelet, runtime, room, disk)
    finally:
        end_all(room)


def kubelet_folder(cluster: ControlPlane) -> Path:
    """The kubelet's /var/lib/kubelet, as seen from outside."""
    return cluster.folder / "node" / "disk" / "kubelet"


def _containerd_1(
    place: Place, folder: Path, room: Component, logs: Path
) -> AbstractContextManager[Component]:
    """Debian's containerd 1.6."""
    return _containerd(place, folder, room, logs, _containerd_config(folder), Path("/usr/bin"))


@contextmanager
def _containerd_2(place: Place, folder: Path, room: Component, logs: Path) -> Iterator[Component]:
    """containerd 2, which finds its shim on PATH, by name."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("containerd", "containerd-shim-runc-v2", "ctr"):
        (programs / name).symlink_to(program(name))
    (folder / "disk" / CDI_FOLDER).mkdir(parents=True)
    config = _containerd_2_config(place, folder)
    with _containerd(place, folder, room, logs, config, programs) as containerd:
        yield containerd


@contextmanager
def _containerd(
    place: Place, folder: Path, room: Component, logs: Path, config_text: str, programs: Path
) -> Iterator[Component]:
    config, images = folder / "containerd.toml", folder / "images.tar"
    config.write_text(config_text, encoding="utf-8")
    (folder / "bridge.conflist").write_text(json.dumps(_network(place)), encoding="utf-8")
    write_images(images)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    containerd = Component(
        "containerd",
        beside(room, programs / "containerd", "--config", config),
        logs / _log_name(place, "containerd"),
        environment,
    )
    ctr = partial(_ctr, room, programs / "ctr")
    try:
        containerd.start()
        containerd.wait_until(lambda: ctr("version").returncode == 0, _READY_SECONDS)
        _import(ctr, images)
        yield containerd
    finally:
        containerd.kill()


@contextmanager
def _kubelet(
    cluster: ControlPlane, place: Place, folder: Path, room: Component, status_seconds: float
) -> Iterator[Component]:
    config = folder / "kubelet.yaml"
    text = yaml.safe_dump(_kubelet_config(cluster, place, status_seconds))
    config.write_text(text, encoding="utf-8")
    user = cluster.issue_user(f"system:node:{place.name}", ["system:nodes"])
    kubeconfig = write_kubeconfig(
        folder / "kubelet.kubeconfig",
        cluster.server_for_nodes if place.connect else cluster.server,
        cluster.authority,
        certificate_user(user),
    )
    flags = [f"--config={config}", f"--kubeconfig={kubeconfig}"]
    flags += [f"--hostname-override={place.name}", f"--node-ip={place.address}"]
    argv = beside(room, program("kubelet"), *flags)
    kubelet = Component("kubelet", argv, cluster.logs / _log_name(place, "kubelet"))
    try:
        kubelet.start()
        yield kubelet
    finally:
        kubelet.kill()


def _is_furnished(room: Component) -> bool:
    """Whether the mounts exist; checks the last of them."""
    if not has_begun(room):
        return False
    return (
        subprocess.run(
            beside(room, "mountpoint", "-q", "/var/log"),
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        ).returncode
        == 0
    )


def _containerd_config(folder: Path) -> str:
    return f"""
version = 2
[grpc]
address = "{SOCKET}"
[plugins."{_CRI}"]
sandbox_image = "{PAUSE}"
# Without CAP_SYS_RESOURCE, as in a container, runc may not lower the score.
restrict_oom_score_adj = true
[plugins."{_CRI}".cni]
bin_dir = "{CNI_PROGRAMS}"
conf_dir = "{folder}"
[plugins."{_CRI}".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."{_CRI}".containerd.runtimes.runc.options]
BinaryName = "{write_runtime(folder)}"
"""


def _log_name(place: Place, program_name: str) -> str:
    return f"{program_name}.log" if place.connect is None else f"{place.name}-{program_name}.log"


def _containerd_2_config(place: Place, folder: Path) -> str:
    registry = "" if place.registries is None else f'config_path = "{place.registries}"'
    # Where the agent of an installation writes; an agent of a test writes to a folder that is
    # visible from outside.
    cdi = f"/var/lib/{CDI_FOLDER}" if place.connect is None else "/var/run/cdi"
    return f"""
version = 3
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE}"
[plugins."io.containerd.cri.v1.images".registry]
{registry}
[plugins."{_CRI_2}"]
restrict_oom_score_adj = true
enable_cdi = true
cdi_spec_dirs = ["{cdi}"]
[plugins."{_CRI_2}".cni]
bin_dirs = ["{CNI_PROGRAMS}"]
conf_dir = "{folder}"
[plugins."{_CRI_2}".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."{_CRI_2}".containerd.runtimes.runc.options]
BinaryName = "{write_runtime(folder)}"
"""


def _network(place: Place) -> dict[str, object]:
    addresses: dict[str, object] = {
        "type": "host-local",
        "ranges": [[{"subnet": place.pod_subnet}]],
    }
    if place.connect is not None:
        addresses["routes"] = [{"dst": "0.0.0.0/0"}]
    bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipam": addresses}
    return {"cniVersion": "0.4.0", "name": "fairlead", "plugins": [bridge]}


def _kubelet_config(
    cluster: ControlPlane, place: Place, status_seconds: float
) -> dict[str, object]:
    own = {"cgroupRoot": f"/{place.cgroup}", "nodeLeaseDurationSeconds": 12} if place.cgroup else {}
    return {
        **own,
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": place.address,
        "port": free_port(),
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(cluster.authority)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        # By default a status may be a minute old: a container that crashes again and again is then
        # mostly shown as `Error`.
        "syncFrequency": "2s",
        # The default is every ten seconds, which delays the report of a change of a node's devices.
        "nodeStatusUpdateFrequency": f"{status_seconds:g}s",
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "resolvConf": "",
        # Rotate logs at an eightieth of the usual size, and check as often as possible.
        "containerLogMaxSize": "128Ki",
        "containerLogMonitorInterval": "3s",
        # No DNS server answers at this address; without an address each pod gets a warning.
        "clusterDNS": ["10.96.0.10"],
        # The disk of a test machine may be nearly full, which must not influence these tests.
        "evictionHard": {
            "memory.available": "1Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def _ctr(
    room: Component, ctr: Path, *words: str, check: bool = False
) -> subprocess.CompletedProcess[bytes]:
    argv = beside(room, ctr, "--address", SOCKET, *words)
    return subprocess.run(argv, capture_output=True, timeout=HANG_SECONDS, check=check)


def _import(ctr: Callable[..., object], tar: Path) -> None:
    ctr("--namespace", "k8s.io", "images", "import", str(tar), check=True)


def is_ready(cluster: ControlPlane, name: str) -> bool:
    """Whether the node has reported that it is Ready."""
    nodes = [node for node in cluster.admin.get("nodes") if node["metadata"]["name"] == name]
    return any(
        each["type"] == "Ready" and each["status"] == "True"
        for node in nodes
        for each in node["status"].get("conditions", ())
    )


def remove_pods(cluster: ControlPlane, namespace: str) -> None:
    """Delete every pod of the namespace at once and wait until its kubelet has released it."""
    cluster.admin.run(
        "delete", "pods", "--all", "-n", namespace, "--grace-period=0", "--force", "--wait=false"
    )
    wait_until(
        f"no pod is left in {namespace}", lambda: not cluster.admin.get("pods", "-n", namespace)
    )
