"""A namespace of a cluster with Fluid, real or simulated, and what people and programs do there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.contracts.api_client import ApiClient
from tests.contracts.simulated import simulated_server
from tests.kube.fluid import CONTROLLERS, DRIVER, NAMESPACE, NODES, Fluid
from tests.kube.helm import Helm
from tests.kube.kubectl import own_folders
from tests.kube.places import Object, Place, make_namespace
from tests.kube.programs import program
from tests.kube.servers import run_fairlead
from tests.programs import run_program
from tests.waiting import wait_until

from fairlead.wire.data.stand_in import stand_in_objects
from fairlead_sim.scenario.scenario import NodePool, Scenario
from fairlead_sim.world.driver import Driver
from fairlead_sim.world.world import World

CLAIM = "raw"
NAME = "raw-acc"
"""Of the data set, as Fairlead names it."""
SPEED = 20.0
_DAY = 86400.0


@dataclass(frozen=True)
class FluidWorld:
    """One of the two clusters. `folder`: for what programs keep. `fluid`: the real controllers; in
    the simulated cluster they live while their Deployments are ready.
    """

    name: str
    kubeconfig: Path
    folder: Path
    fluid: Fluid | None = None

    def stop_controllers(self) -> None:
        """Fluid does not run any more; returns when its pods are gone, too."""
        if self.fluid is not None:
            self.fluid.stop_controllers()
        # in this order, because the first one would start the other one again
        for name in CONTROLLERS:
            self._scale(name, 0)
            wait_until(f"{name} does not run", lambda name=name: not self.has_ready(name))

    def start_controllers(self) -> None:
        """Runs the controller of data sets, which starts that of runtimes when there is one."""
        if self.fluid is not None:
            self.fluid.start_controllers()
        self._scale("dataset-controller", 1)
        wait_until("the controller runs", lambda: self.has_ready("dataset-controller"))

    def _scale(self, name: str, replicas: int) -> None:
        words = (f"deployment/{name}", f"--replicas={replicas}", f"--namespace={NAMESPACE}")
        self.kubectl("scale", *words)

    def has_ready(self, deployment: str) -> bool:
        wanted = "jsonpath={.status.readyReplicas}"
        return bool(self.kubectl("get", "deployment", deployment, "-n", NAMESPACE, "-o", wanted))

    @property
    def nodes_with_driver(self) -> set[str]:
        """Whose kubelet has registered Fluid's volume driver."""
        wanted = "jsonpath={range .items[*]}{.metadata.name} {.spec.drivers[*].name}{'\\n'}{end}"
        lines = self.kubectl("get", "csinodes", "-o", wanted).splitlines()
        return {node for node, *drivers in map(str.split, lines) if DRIVER in drivers}

    def place(self, namespace: str) -> DataPlace:
        """A new namespace."""
        found = DataPlace(
            ApiClient(self.name, self.kubeconfig, keeps_connections=True),
            namespace,
            time.time,
            time.sleep,
            step=0.5,
            patience=180.0,
            world=self,
        )
        make_namespace(found)
        return found

    def kubectl(self, *words: str) -> str:
        """What it prints."""
        argv = [str(program("kubectl")), f"--kubeconfig={self.kubeconfig}", *words]
        answer = run_program(argv, env=own_folders(self.folder))
        assert answer.returncode == 0, answer.stderr
        return answer.stdout


@dataclass
class DataPlace(Place):
    """A Place with Fluid."""

    world: FluidWorld

    def fairlead(self, *words: str, status: int = 0) -> str:
        """Output and messages of `fairlead … -n NAMESPACE`; its exit status must be `status`."""
        kubeconfig = self.world.kubeconfig
        return run_fairlead(
            kubeconfig, *words, f"--namespace={self.namespace}", status=status, seconds=240
        )

    def helm(self, *words: str, driver: str) -> str:
        """Helm 3, with its releases in this kind of object; Fluid's own has `configmap`."""
        home = self.world.folder / f"helm-{driver}"
        helm = Helm("helm3", home, self.world.kubeconfig, {"HELM_DRIVER": driver})
        return helm.run(*words, f"--namespace={self.namespace}")

    def claim(self, name: str, mode: str = "ReadWriteMany", size: str = "4Gi") -> None:
        """A claim that is bound to a volume of its own."""
        volume = f"{self.namespace}-{name}-volume"
        storage = {"storage": size}
        spec = {
            "capacity": storage,
            "accessModes": [mode],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "nfs": {"server": "192.0.2.1", "path": "/raw"},
            "claimRef": {"namespace": self.namespace, "name": name},
        }
        wish = {
            "accessModes": [mode],
            "storageClassName": "",
            "volumeName": volume,
            "resources": {"requests": storage},
        }
        self.create(
            _object("PersistentVolume", volume, spec), _object("PersistentVolumeClaim", name, wish)
        )
        self.until(
            f"claim {name} is Bound", lambda: self.phase("persistentvolumeclaims", name) == "Bound"
        )

    def pod(self, name: str, *, claim: str = "", node: str = "", memory: str = "") -> None:
        """A pod that runs until it is deleted."""
        container: Object = {"name": "main", "image": "app:1"}
        if memory:
            container["resources"] = {"requests": {"memory": memory}}
        spec: Object = {"containers": [container], "terminationGracePeriodSeconds": 0}
        if claim:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        if node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        self.create(_object("Pod", name, spec))
        self.until(f"pod {name} runs", lambda: self.phase("pods", name) == "Running")
        if claim == NAME and self.world.fluid is not None:
            # as Fluid's driver on the node does, which is a pod of KWOK here
            node = self.the("pods", name)["spec"]["nodeName"]
            label = f"fluid.io/f-{self.namespace}-{NAME}=true"
            self.world.kubectl("label", "node", node, label)

    def phase(self, plural: str, name: str) -> str:
        """`status.phase`; "" if there is none, "gone" if there is no object."""
        found = self.get(plural, name)
        return "gone" if found is None else str((found.get("status") or {}).get("phase", ""))


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@contextmanager
def simulated_world(folder: Path) -> Iterator[FluidWorld]:
    """A simulated cluster with the same nodes and the stand-in of Fluid. It runs faster than the
    wall clock.
    """
    pool = NodePool(names=NODES, cpu=64, memory="512Gi")
    world = World(Scenario(title="data sets", node_pools=(pool,)), 1, time.time() - _DAY)
    with simulated_server(
        folder, world.clock, cluster=world.cluster, written=world.logs, programs=world.programs
    ) as server:
        driver: Driver = server.do(lambda cluster: Driver(world, SPEED))
        living = asyncio.run_coroutine_threadsafe(driver.run(), server.loop)
        found = FluidWorld("simulated", server.kubeconfig, folder)
        try:
            server.do(lambda cluster: [cluster.create(each) for each in stand_in_objects()])
            wait_until(
                "the stand-in of Fluid is ready", lambda: found.has_ready("dataset-controller")
            )
            # `accelerate` refuses a cluster on whose nodes no pod could mount the data set
            wait_until(
                "each node has Fluid's driver", lambda: found.nodes_with_driver == set(NODES)
            )
            yield found
        finally:
            living.cancel()
