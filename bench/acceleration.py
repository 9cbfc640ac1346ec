"""From the click that accelerates a claim to a Dataset that is Bound."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.contracts.api_client import ApiClient
from tests.kube.console_line import Administrator, console, install_rights
from tests.kube.fluid import running_fluid
from tests.kube.kubectl import Kubectl
from tests.kube.laptop import running_laptop
from tests.kube.programs import program
from tests.kube.servers import Server
from tests.waiting import wait_until

from bench.support.options import options
from fairlead.wire.data.stand_in import stand_in_objects

CLAIM: Final = "raw"
SET: Final = f"{CLAIM}-acc"
FLUID: Final = "/apis/data.fluid.io/v1alpha1"
OWN, PEER = "click", "kubectl create"
AIM_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.02
_BOUND_SECONDS: Final = 240.0


@dataclass
class Clicked:
    """A cluster with Fluid and a console, and who clicks there."""

    server: Server
    own: Administrator
    admin: Kubectl
    api: ApiClient
    kubeconfig: Path


@dataclass
class Times:
    """Seconds since the click, or since kubectl was started."""

    made: list[float]
    bound: list[float]


def measure_click_to_bound() -> None:
    """A claim accelerated by one click, against the same objects by `kubectl create -f`.

        python -m bench click_to_bound [--runs 3] [--world real|simulated]

    `real`: a real API server with Fluid's real controllers, and a console with the rights of an
    installation. `simulated`: the laptop, whose clock runs in real time, with the stand-in of
    Fluid. Both take turns, each run in a new namespace. The click is the request that the page
    sends; kubectl is a process. `made` is the time until both objects exist, all that differs
    between the two: what follows is Fluid's, which looks at what is not ready every 20 s.
    """
    parser = options(measure_click_to_bound)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--world", choices=["real", "simulated"], default="real")
    asked = parser.parse_args()
    worlds = {"real": _real_world, "simulated": _simulated_world}
    found = {OWN: Times([], []), PEER: Times([], [])}
    with tempfile.TemporaryDirectory() as name, worlds[asked.world](Path(name)) as world:
        for number in range(asked.runs):
            for way in (OWN, PEER):
                _run(world, f"{way.split()[0]}-{number}", way, found[way])
                made, bound = found[way].made[-1], found[way].bound[-1]
                print(
                    f"{way}: made {made:.2f} s, Bound {bound:.2f} s; load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
    print()
    for way, times in found.items():
        made, bound = statistics.median(times.made), statistics.median(times.bound)
        print(f"{way:16} made {made:6.2f} s   Bound {bound:6.2f} s   medians of {asked.runs}")
    more = statistics.median(found[OWN].bound) - statistics.median(found[PEER].bound)
    print(f"\naim: {more:+.2f} s to Bound (<= +{AIM_SECONDS:.0f} s)")


@contextmanager
def _real_world(folder: Path) -> Iterator[Clicked]:
    with running_fluid(folder) as fluid:
        cluster = fluid.cluster
        install_rights(cluster)
        api = ApiClient("real", cluster.kubeconfig, keeps_connections=True)
        with console(cluster, "clicks") as server:
            own = Administrator(cluster.admin)
            yield Clicked(server, own, cluster.admin, api, cluster.kubeconfig)


@contextmanager
def _simulated_world(folder: Path) -> Iterator[Clicked]:
    flags = ("--sign-in", "--scenario=empty", "--speed=1")
    with running_laptop(folder / "laptop.log", *flags) as laptop:
        laptop.kubectl.apply(stand_in_objects())
        laptop.kubectl.run(
            *("-n", "fluid-system", "rollout", "status", "deployment/dataset-controller"),
            "--timeout=120s",
        )
        api = ApiClient("simulated", laptop.kubeconfig, keeps_connections=True)
        own = Administrator(laptop.kubectl, space="default")
        yield Clicked(laptop.console, own, laptop.kubectl, api, laptop.kubeconfig)


def _run(world: Clicked, space: str, way: str, times: Times) -> None:
    _make_claim(world, space)
    place = f"/volumes/{space}/{CLAIM}/acceleration"
    status, preview = world.own.send(world.server, "POST", f"{place}?dryRun=true", {"workers": 1})
    assert status == 200 and preview["valid"], preview
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "objects.yaml"
        file.write_text(preview["manifests"], encoding="utf-8")
        argv = [str(program("kubectl")), "create", "-f", str(file)]
        env = {**os.environ, "KUBECONFIG": str(world.kubeconfig), "HOME": home}
        began = time.monotonic()
        if way == OWN:
            status, begun = world.own.send(world.server, "POST", place, {"workers": 1})
            assert status == 202, begun
        else:
            subprocess.run(argv, env=env, check=True, capture_output=True)
    times.made.append(_seconds_until(world, began, space, "alluxioruntimes", "made"))
    times.bound.append(_seconds_until(world, began, space, "datasets", "Bound"))


def _seconds_until(world: Clicked, began: float, space: str, plural: str, state: str) -> float:
    place = f"{FLUID}/namespaces/{space}/{plural}/{SET}"

    def is_so() -> bool:
        found = world.api.get(place)
        if found.status != 200 or state == "made":
            return found.status == 200
        return bool((found.body.get("status") or {}).get("phase") == state)

    wait_until(
        f"{plural} {space}/{SET} is {state}", is_so, _BOUND_SECONDS, pause_seconds=_LOOK_SECONDS
    )
    return time.monotonic() - began


def _make_claim(world: Clicked, space: str) -> None:
    """A namespace with a claim that is bound."""
    size, modes = {"storage": "4Gi"}, ["ReadWriteMany"]
    volume = {
        "capacity": size,
        "accessModes": modes,
        "storageClassName": "",
        "nfs": {"server": "192.0.2.1", "path": "/raw"},
        "claimRef": {"namespace": space, "name": CLAIM},
    }
    wish = {
        "accessModes": modes,
        "storageClassName": "",
        "volumeName": f"{space}-{CLAIM}",
        "resources": {"requests": size},
    }
    world.admin.create(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}},
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"{space}-{CLAIM}"},
                "spec": volume,
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": CLAIM, "namespace": space},
                "spec": wish,
            },
        ]
    )
    place = f"/api/v1/namespaces/{space}/persistentvolumeclaims/{CLAIM}"
    wait_until(
        "the claim is Bound",
        lambda: (world.api.get(place).body.get("status") or {}).get("phase") == "Bound",
    )
