"""Runs the node's agent beside a real kubelet: as a process of its own in the node's namespaces,
with simulated cards.

The agent sees the node's /var/lib and process ids; a test sees them under other paths and numbers.
What the agent writes under /var/lib/fairlead/gpu is in `Agent.state` for the test.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kube.addresses import free_port
from tests.kube.clocks import HOUR, clock_ahead
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.deployed import rights_of_agents
from tests.kube.extender import NODE_SPACE, extended_scheduler
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.kubectl import KubectlError
from tests.kube.kubelet import CDI_FOLDER, NODE, RealNode, kubelet_folder
from tests.kube.node_images import BUSYBOX
from tests.kube.node_room import beside, end_one
from tests.kube.servers import FAIRLEAD, Page, Server, environment
from tests.programs import freeze, run_program
from tests.waiting import wait_until

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from shipped_guard import place_guards

Object = dict[str, Any]
MEMORY, CORE, WHOLE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "nvidia.com/gpu"
ACCOUNT = "fairlead-node-agent"
SECONDS = 90.0


@dataclass(frozen=True)
class NodeCards:
    """The cards of a node, for the agent and the exporter of it: their flags and variables."""

    flags: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


def simulated(models: str) -> NodeCards:
    return NodeCards(("--backend=sim", f"--sim-gpus={models}"))


class Agent:
    """`gpus`: cards, or models of simulated ones. `kubelet`: the program whose namespaces the agent
    enters; any program that runs there will do. Its clock is an hour ahead.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        kubelet: Component,
        gpus: str | NodeCards,
        flags: Sequence[str] = (),
        name: str = "agent",
    ) -> None:
        self.cluster = cluster
        self.kubelet = kubelet
        self.port = free_port()
        self.flags = flags
        self.cards = simulated(gpus) if isinstance(gpus, str) else gpus
        self.state = cluster.folder / "node" / "disk" / "fairlead" / "gpu"
        self.cdi = cluster.folder / "node" / "disk" / CDI_FOLDER
        self._argv: list[str | Path] = [
            *FAIRLEAD,
            "device-plugin",
            f"--node={NODE}",
            f"--kubeconfig={_own_kubeconfig(cluster)}",
            f"--cdi-dir=/var/lib/{CDI_FOLDER}",
            f"--listen=127.0.0.1:{self.port}",
            *self.cards.flags,
            *flags,
        ]
        self._name = name
        self.component = self._component()

    def start(self) -> None:
        """Start the agent. It is ready when the kubelet knows all its devices."""
        self.component = self._component()
        self.component.start()
        self.component.wait_until(
            Server(self.component, f"http://127.0.0.1:{self.port}").is_ready, SECONDS
        )

    def stop(self, by: int = signal.SIGTERM) -> None:
        """Stop the agent itself; the program that entered the namespaces for it ends with it."""
        for each in self.pids():
            os.kill(each, by)
        wait_until("the agent has ended", lambda: not self.component.is_running, SECONDS)

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def freeze(self) -> None:
        """Send SIGSTOP. The program that entered the namespaces stops itself, too."""
        freeze(*self.pids())

    def thaw(self) -> None:
        for each in (self.component.pid, *self.pids()):
            os.kill(each, signal.SIGCONT)

    def pids(self) -> list[int]:
        if not self.component.is_running:
            return []
        return [
            int(each)
            for each in Path(
                "/proc", str(self.component.pid), "task", str(self.component.pid), "children"
            )
            .read_text()
            .split()
        ]

    def readiness(self) -> str:
        """The answer to its readiness probe."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/readyz", timeout=5
            ) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError:
            return ""

    def times_registered(self) -> int:
        return self.component.log.read_text(encoding="utf-8").count(
            f"the kubelet has taken {MEMORY}"
        )

    def tokens(self) -> list[str]:
        """The tokens for which it has files."""
        folder = self.state / "containers"
        return sorted(each.name for each in folder.iterdir()) if folder.exists() else []

    def metrics(self) -> Page:
        return Server(self.component, f"http://127.0.0.1:{self.port}").metrics()

    def grants(self) -> list[Object]:
        path = self.state / "grants.json"
        return list(json.loads(path.read_bytes())) if path.exists() else []

    def limits(self, container: str, pod: str) -> str:
        """The limits file of a container, found by its row of the grants file."""
        (token,) = {
            row["token"]
            for row in self.grants()
            if (row["pod"], row["container"]) == (pod, container)
        }
        return (self.state / "containers" / token / "limits").read_text()

    def checkpoint(self) -> list[Object]:
        reported = json.loads(
            (
                kubelet_folder(self.cluster) / "device-plugins" / "kubelet_internal_checkpoint"
            ).read_bytes()
        )
        return list(reported["Data"]["PodDeviceEntries"] or ())

    def _component(self) -> Component:
        return Component(
            self._name,
            beside(self.kubelet, *self._argv),
            self.cluster.logs / f"{self._name}.log",
            environment() | clock_ahead(HOUR) | self.cards.variables,
        )


def _own_kubeconfig(cluster: ControlPlane) -> Path:
    """A kubeconfig for the account of `deploy/node-agent.yaml`, with a token as the kubelet gives
    it to a pod of this node: it names the node.
    """
    path = cluster.folder / "node-agent.kubeconfig"
    if path.exists():
        return path
    admin, name = cluster.admin, "node-agent"
    admin.apply(rights_of_agents())
    parts = [
        {
            "name": "main",
            "image": BUSYBOX,
            "imagePullPolicy": "Never",
            "command": ["sleep", "1000000"],
        }
    ]
    spec = {
        "nodeName": NODE,
        "serviceAccountName": ACCOUNT,
        "containers": parts,
        "terminationGracePeriodSeconds": 0,
    }
    admin.create(
        [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": NODE_SPACE},
                "spec": spec,
            }
        ]
    )
    words = ("--bound-object-kind=Pod", f"--bound-object-name={name}", "--duration=2h")
    token = admin.run("create", "token", ACCOUNT, "-n", NODE_SPACE, *words).strip()
    return write_kubeconfig(path, cluster.server, cluster.authority, token_user(token))


class Line:
    """A real node with its agent, the extender and a scheduler that calls the extender."""

    def __init__(self, cluster: ControlPlane, node: RealNode, agent: Agent) -> None:
        self.cluster = cluster
        self.kubelet = node.kubelet
        self.containerd = node.containerd
        self.agent = agent

    def label(self, **labels: str | None) -> None:
        words = [f"{key}-" if text is None else f"{key}={text}" for key, text in labels.items()]
        self.cluster.admin.run("label", "node", NODE, "--overwrite", *words)

    def node(self) -> Object:
        (found,) = [
            each for each in self.cluster.admin.get("nodes") if each["metadata"]["name"] == NODE
        ]
        return found

    def use(self, gpus: str | NodeCards) -> None:
        """Replace the agent with another one that has other cards."""
        self.agent.stop()
        self.agent = Agent(self.cluster, self.kubelet, gpus, self.agent.flags)
        self.agent.start()

    def shown(self, resource: str) -> tuple[str | None, str | None]:
        """Capacity and allocatable of the resource."""
        status = self.node()["status"]
        return status["capacity"].get(resource), status["allocatable"].get(resource)

    def create(self, *pods: Object) -> None:
        self.cluster.admin.create(pods)

    def pod(self, name: str) -> Object:
        (found,) = self._pods(name)
        return found

    def _pods(self, name: str) -> list[Object]:
        return self.cluster.admin.get(
            "pods", "-n", "default", f"--field-selector=metadata.name={name}"
        )

    def _status(self, name: str) -> Object:
        """Empty before a controller has made the pod."""
        return next((pod["status"] for pod in self._pods(name)), {})

    def restarts(self, name: str) -> int:
        """Restarts of all its containers; 0 before the kubelet has reported them."""
        return sum(each["restartCount"] for each in self._status(name).get("containerStatuses", ()))

    def phase(self, name: str) -> str:
        return str(self._status(name).get("phase"))

    def runs(self, *names: str) -> None:
        for name in names:
            wait_until(
                lambda name=name: f"{name} runs\n{self.reported(name)}",
                lambda name=name: self.phase(name) == "Running",
                SECONDS,
            )

    def reported(self, *names: str) -> str:
        """Details for the message of a failure."""
        pods = [f"{name}: {self._status(name)}" for name in names]
        return "\n".join((*pods, *self.events(), self.agent.component.log_tail(40)))

    def events(self, name: str = "") -> list[str]:
        found = self.cluster.admin.get(
            "events",
            "-n",
            "default",
            *([f"--field-selector=involvedObject.name={name}"] if name else []),
        )
        return [f"{each['reason']}: {each['message']}" for each in found]

    def cards(self) -> list[Object]:
        """The inventory."""
        return list(json.loads(self.node()["metadata"]["annotations"]["fairlead.io/gpus"]))

    def modes(self) -> dict[str, str]:
        return {card["uuid"]: card["mode"] for card in self.cards()}

    def condition(self, kind: str) -> tuple[str, str]:
        """Status and reason of the condition."""
        found = [
            (each["status"], each["reason"])
            for each in self.node()["status"]["conditions"]
            if each["type"] == kind
        ]
        return found[0] if found else ("", "")

    def is_ready(self) -> bool:
        return self.condition("Ready")[0] == "True"

    def annotation(self, name: str, key: str) -> str:
        return str(self.pod(name)["metadata"].get("annotations", {}).get(key, ""))

    def printed(self, name: str, container: str = "app") -> list[str]:
        """What the container has printed since its start, once it has printed everything."""
        wait_until(
            lambda: f"{name} has printed all\n{self.reported(name)}",
            lambda: self.log(name, container).endswith("end\n"),
            SECONDS,
        )
        return self.log(name, container).splitlines()

    def region(self, name: str, container: str) -> str:
        """The inode of its region, as the container sees it."""
        (found,) = [
            text
            for text in self.printed(name, container)
            if text.startswith("region ") and text.split()[1].isdigit()
        ]
        return found

    def words(self, name: str) -> list[str]:
        """Every message about the pod that its owner can read."""
        return [*self.events(name), str(self.pod(name)["status"].get("message", ""))]

    @contextmanager
    def exporter(self, *flags: str) -> Iterator[Server]:
        """The GPU exporter of this node, in its namespaces."""
        port = free_port()
        argv = [
            *FAIRLEAD,
            "gpu-exporter",
            f"--listen=127.0.0.1:{port}",
            *self.agent.cards.flags,
        ]
        argv += ["--collect-interval=500", *flags]
        own = {**environment(), **self.agent.cards.variables, "NODE_NAME": NODE}
        component = Component(
            "gpu-exporter", beside(self.kubelet, *argv), self.cluster.logs / "gpu-exporter.log", own
        )
        server = Server(component, f"http://127.0.0.1:{port}")
        component.start()
        try:
            component.wait_until(server.is_ready, SECONDS)
            yield server
        finally:
            end_one(component)

    def inspected(self, *flags: str) -> str:
        """The output of `kubectl inspect cgpu`, without blanks at the ends of lines."""
        argv = [str(Path(sys.executable).with_name("kubectl-inspect-cgpu")), *flags]
        own = {**environment(), "KUBECONFIG": str(self.cluster.kubeconfig)}
        answer = run_program(argv, env=own, check=True)
        return "\n".join(text.rstrip() for text in answer.stdout.split("\n"))

    def delete(self, name: str) -> None:
        self.cluster.admin.run(
            "delete", "pod", name, "-n", "default", "--grace-period=0", "--force"
        )

    def each_refused(self, pods: dict[str, tuple[Object, str]]) -> None:
        """Each of these pods waits, or has failed, with this message."""
        self.create(*(pod for pod, _ in pods.values()))
        for name, (_, reported) in pods.items():
            wait_until(
                lambda name=name: f"{name} is refused\n{self.reported(name)}",
                lambda name=name, reported=reported: any(
                    reported in each for each in self.words(name)
                ),
                SECONDS,
            )
            assert self.phase(name) in ("Pending", "Failed")

    def log(self, name: str, container: str = "app") -> str:
        """The container's log; "" while the kubelet, which has just started, serves none."""
        try:
            return self.cluster.admin.run("-n", "default", "logs", name, "-c", container)
        except KubectlError as error:
            if "could not find the requested resource" in str(error) or ("waiting to start") in str(
                error
            ):
                return ""
            raise

    def remove_all(self) -> None:
        """Delete the pods of `shared`. Pods of training jobs, which other tests have left, would be
        created again and again.
        """
        own = ("-n", "default", "--selector=fairlead-test=node-agent")
        self.cluster.admin.run(
            "delete", "pods", *own, "--grace-period=0", "--force", "--wait=false"
        )

        def left() -> list[str]:
            return [str(each["metadata"]) for each in self.cluster.admin.get("pods", *own)]

        wait_until(lambda: f"no pod is left: {left()}", lambda: not left(), SECONDS)


@contextmanager
def running_line(
    cluster: ControlPlane, node: RealNode, gpus: str | NodeCards, *flags: str
) -> Iterator[Line]:
    """`flags`: the agent's flags. The package has the memory guard of this machine meanwhile."""
    place_guards((platform.machine(),))
    with extended_scheduler(cluster):
        line = Line(cluster, node, Agent(cluster, node.kubelet, gpus, flags))
        try:
            line.agent.start()
            yield line
        finally:
            line.agent.stop()


def shared(
    name: str,
    *containers: Object,
    init: Sequence[Object] = (),
    restart: str = "Always",
    **metadata: Any,
) -> Object:
    """A pod for Fairlead's scheduler."""
    spec = {
        "schedulerName": "fairlead-scheduler",
        "containers": [*containers],
        "initContainers": [*init],
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 0,
    }
    labels = {"fairlead-test": "node-agent", **metadata.pop("labels", {})}
    meta = {"name": name, "namespace": "default", "labels": labels, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def container(
    name: str, units: int, program: str, *, core: int = 0, whole: int = 0, **more: Any
) -> Object:
    limits = {
        key: str(count) for key, count in ((MEMORY, units), (CORE, core), (WHOLE, whole)) if count
    }
    command = ["sh", "-c", program]
    return {
        "name": name,
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": command,
        "resources": {"limits": limits},
        **more,
    }
