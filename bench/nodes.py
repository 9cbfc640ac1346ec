"""The node agent: its answers, and what it adds on a real kubelet."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
from grpc import aio
from tests.edge.kubelet.wire_bytes import packed, unpacked
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.kubelet import running_node
from tests.kube.node_images import BUSYBOX
from tests.kube.servers import FAIRLEAD, environment
from tests.kubelet.agent import MEMORY, WHOLE, Line, container, running_line, shared
from tests.waiting import wait_until

from bench.support.clusters import FirstSeen, api_server
from bench.support.options import options
from bench.support.processes import cpu_seconds, memory
from fairlead.edge.kubelet.device_plugin import DevicePlugin
from fairlead.model.devices.granted import DeviceRefusal
from fairlead.model.devices.kubelet import CdiDevices, ContainerEdits, OfferedDevice
from fairlead.rules.devices.ids import uuid_of
from fairlead_sim.gpus.node_cards import simulated_uuid

NODE = "bench-node"
NODE_AGENT_MEMORY = "aliyun.com/gpu-mem"
AT_ONCE = "fairlead.test/at-once"
CARDS = 8
UNITS = 4
_PLUGIN = "/v1beta1.DevicePlugin/"
Object = dict[str, Any]


class PlayedKubelet:
    """A kubelet that takes registrations and dials back; it reports the holders in `holders`."""

    def __init__(self, folder: Path) -> None:
        self.plugins = folder / "device-plugins"
        self.ids: dict[str, list[str]] = {}
        self.channels: dict[str, aio.Channel] = {}
        self.holders: list[bytes] = []
        self._folder = folder
        self._watching: list[asyncio.Task[None]] = []
        self._servers: list[aio.Server] = []

    async def start(self) -> None:
        unary = grpc.unary_unary_rpc_method_handler
        served = {
            self.plugins / "kubelet.sock": (
                "v1beta1.Registration",
                {"Register": unary(self._register)},
            ),
            self._folder / "pod-resources" / "kubelet.sock": (
                "v1.PodResourcesLister",
                {"List": unary(self._list)},
            ),
        }
        for path, (service, handlers) in served.items():
            path.parent.mkdir(parents=True)
            server = aio.server()
            server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(service, handlers),)
            )
            server.add_insecure_port(f"unix:{path}")
            await server.start()
            self._servers.append(server)

    async def _register(self, request: bytes, _context: aio.ServicerContext[bytes, bytes]) -> bytes:
        fields = {
            number: value.decode()
            for number, value in unpacked(request)
            if isinstance(value, bytes) and number < 4
        }
        channel = aio.insecure_channel(
            f"unix:{self.plugins / fields[2]}", options=[("grpc.default_authority", "localhost")]
        )
        self.channels[fields[3]] = channel
        self._watching.append(asyncio.create_task(self._watch(fields[3], channel)))
        return b""

    async def _watch(self, resource: str, channel: aio.Channel) -> None:
        listed: aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(
            f"{_PLUGIN}ListAndWatch"
        )
        async for raw in listed(b""):
            devices = [unpacked(each) for _, each in unpacked(raw) if isinstance(each, bytes)]
            self.ids[resource] = [_text(dict(each)[1]) for each in devices]

    async def _list(self, _request: bytes, _context: aio.ServicerContext[bytes, bytes]) -> bytes:
        return b"".join(self.holders)

    async def stop(self) -> None:
        for task in self._watching:
            task.cancel()
        for server in self._servers:
            await server.stop(None)

    def hold(self, pod: str, resource: str, ids: Iterable[str]) -> None:
        devices = [(2, packed((1, resource), (2, each))) for each in ids]
        self.holders.append(
            packed((1, packed((1, pod), (2, "default"), (3, packed((1, "app"), *devices)))))
        )

    async def call(self, resource: str, method: str, message: bytes) -> bytes:
        ask: aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channels[resource].unary_unary(
            f"{_PLUGIN}{method}"
        )
        return await ask(message, timeout=30)

    async def give(self, resource: str, pod: str, ids: Sequence[str]) -> float:
        """Seconds of both calls for one container."""
        asked = packed(*((1, each) for each in ids))
        began = time.perf_counter()
        await self.call(resource, "Allocate", packed((1, asked)))
        between = time.perf_counter()
        self.hold(pod, resource, ids)
        again = time.perf_counter()
        await self.call(resource, "PreStartContainer", asked)
        return time.perf_counter() - again + between - began


class AtOnce:
    def registered(self) -> None:
        return

    def preferred(
        self, available: Sequence[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        return available[:size]

    async def allocate(self, ids: Sequence[str]) -> ContainerEdits | CdiDevices | DeviceRefusal:
        return CdiDevices(("fairlead.io/gpu=alloc-0123456789abcdef",))

    async def start(self, ids: Sequence[str]) -> DeviceRefusal | None:
        return None


def serve_at_once(folder: str, ids: list[str]) -> None:
    plugin = DevicePlugin(Path(folder), "at-once.sock", AT_ONCE, AtOnce(), needs_start=True)
    plugin.offer([OfferedDevice(each) for each in ids])
    asyncio.run(plugin.run())


async def measure(cluster: ControlPlane, folder: Path, containers: int, seconds: int) -> None:
    kubelet = PlayedKubelet(folder / "kubelet")
    await kubelet.start()
    # A runtime that was found to do CDI, so that both ways that a container takes are the deferred
    # ones.
    (folder / "state").mkdir()
    (folder / "state" / "runtime.json").write_text(
        json.dumps({"kubelet v1.36.3 containerd://2.2.9": True}), encoding="utf-8"
    )
    argv = [
        *FAIRLEAD,
        "device-plugin",
        f"--node={NODE}",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--kubelet-dir={folder / 'kubelet'}",
    ]
    argv += [
        f"--cdi-dir={folder / 'cdi'}",
        f"--state-dir={folder / 'state'}",
        f"--run-dir={folder / 'run'}",
        "--listen=127.0.0.1:0",
    ]
    argv += ["--backend=sim", f"--sim-gpus={CARDS}xNVIDIA-H200", "--test-image=none"]
    async with AsyncExitStack() as leaving:
        leaving.push_async_callback(kubelet.stop)
        agent = await asyncio.create_subprocess_exec(
            *argv, env=environment(), stderr=subprocess.DEVNULL
        )
        leaving.callback(agent.kill)
        while len(kubelet.ids.get(NODE_AGENT_MEMORY, ())) < CARDS * 139:  # noqa: ASYNC110 - two programs on their way
            await asyncio.sleep(0.1)
        ids = kubelet.ids[NODE_AGENT_MEMORY]
        peer = multiprocessing.get_context("spawn").Process(
            target=serve_at_once, args=(str(kubelet.plugins), ids), daemon=True
        )
        peer.start()
        leaving.callback(peer.kill)
        while len(kubelet.ids.get(AT_ONCE, ())) < len(ids):  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.1)
        sets = [ids[at : at + UNITS] for at in range(0, UNITS * containers, UNITS)]
        took: dict[str, list[float]] = {NODE_AGENT_MEMORY: [], AT_ONCE: []}
        for number, chosen in enumerate(sets):
            cluster.admin.create([_pod(f"pod-{number}", uuid_of(chosen[0]))])
            for resource in (
                (NODE_AGENT_MEMORY, AT_ONCE) if number % 2 else (AT_ONCE, NODE_AGENT_MEMORY)
            ):
                took[resource].append(await kubelet.give(resource, f"pod-{number}", chosen))
        for resource, name in ((NODE_AGENT_MEMORY, "the agent"), (AT_ONCE, "answered at once")):
            parts = ", ".join(
                f"p{percent} {_part(took[resource], percent)}" for percent in (50, 90, 99)
            )
            print(f"{name}: Allocate and PreStartContainer {parts}", flush=True)
        marked = cluster.admin.get("pods", "-n", "default")
        count = sum(
            each["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "true"
            for each in marked
        )
        print(f"{count} of {len(marked)} pods carry their mark", flush=True)
        await asyncio.sleep(10)
        cpu, began = cpu_seconds(agent.pid), time.monotonic()
        await asyncio.sleep(seconds)
        share = (cpu_seconds(agent.pid) - cpu) / (time.monotonic() - began)
        resident, most = (memory(agent.pid, name) for name in ("VmRSS", "VmHWM"))
        print(
            f"idle for {seconds} s: {share:.2%} of a core, {resident:.0f} MiB, at most {most:.0f}"
        )


def _part(seconds: Sequence[float], percent: int) -> str:
    return f"{sorted(seconds)[min(len(seconds) - 1, len(seconds) * percent // 100)] * 1000:.2f} ms"


def _text(value: str | bytes | int) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _pod(name: str, uuid: str) -> Object:
    index = next(index for index in range(CARDS) if simulated_uuid(NODE, index) == uuid)
    grant = json.dumps(
        {"app": [{"uuid": uuid, "index": index, "units": UNITS, "mib": 4000, "core": 0}]}
    )
    annotations = {"fairlead.io/gpu-allocation": grant, "ALIYUN_COM_GPU_MEM_ASSIGNED": "false"}
    container = {
        "name": "app",
        "image": "none",
        "resources": {"limits": {NODE_AGENT_MEMORY: str(UNITS)}},
    }
    meta = {"name": name, "namespace": "default", "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"nodeName": NODE, "containers": [container]},
    }


def _node() -> Object:
    info = {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://2.2.9"}
    more = (
        "architecture bootID kernelVersion kubeProxyVersion machineID operatingSystem osImage "
        "systemUUID"
    )
    blank = dict.fromkeys(more.split(), "")
    meta = {"name": NODE, "labels": {"cgpu": "true"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "status": {"nodeInfo": {**blank, **info}},
    }


def measure_node_agent() -> None:
    """The node's agent as a process with eight simulated cards: its answers, and its idle cost.

        python -m bench node_agent [--containers 300] [--seconds 60]

    etcd and kube-apiserver are real; the kubelet is played by this script, which hands out ids and
    reports their holders. Each container is allocated and then started, one after the other; beside
    it a plugin in a process of its own, by the same library, answers the same calls at once. A
    start has the pod's mark written on the real API server. Afterwards nothing happens, and the
    agent's CPU and memory over `--seconds` are printed.
    """
    parser = options(measure_node_agent)
    parser.add_argument("--containers", type=int, default=250)
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    with api_server() as cluster, tempfile.TemporaryDirectory(prefix="agent-") as folder:
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": "default"},
        }
        cluster.admin.create([_node(), account])
        asyncio.run(measure(cluster, Path(folder), args.containers, args.seconds))


PODS = "/api/v1/pods"


def _bound_to_running_run(count: int) -> None:
    with (
        running_control_plane() as cluster,
        running_node(cluster, with_cdi=True) as node,
        running_line(cluster, node, "1xTesla-T4", f"--test-image={BUSYBOX}") as line,
    ):
        line.label(cgpu="true")
        wait_until("the node shows its memory", lambda: line.shown(MEMORY) == ("14", "14"))
        bound = FirstSeen(cluster, PODS, _is_bound, "default/")
        runs = FirstSeen(cluster, PODS, _runs, "default/")
        time.sleep(1)
        took: dict[str, list[float]] = {"plain": [], "shared": []}
        for number in range(count):
            for kind, units in (("plain", 0), ("shared", 4)):
                took[kind].append(_one(line, f"{kind}-{number}", units, bound, runs))
        middle = {kind: statistics.median(seconds) * 1000 for kind, seconds in took.items()}
        for kind, seconds in took.items():
            late = sorted(seconds)[len(seconds) * 9 // 10] * 1000
            print(f"{kind}: bound until it runs p50 {middle[kind]:.0f} ms, p90 {late:.0f} ms")
        print(f"p50 of a shared pod is {middle['shared'] - middle['plain']:.0f} ms later")


def _one(line: Line, name: str, units: int, bound: FirstSeen, runs: FirstSeen) -> float:
    line.create(shared(name, container("app", units, "sleep 1000000")))
    key = f"default/{name}"
    wait_until(f"{name} runs", lambda: key in runs.at, pause_seconds=0.02)
    line.delete(name)
    wait_until(f"{name} is gone", lambda: not line.agent.grants(), pause_seconds=0.1)
    return runs.at[key] - bound.at[key]


def _is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _runs(pod: Object) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def measure_bound_to_running() -> None:
    """From a pod's binding until it runs, with shared memory and without.

    Real kubelet, containerd 2.

        python -m bench bound_to_running [--pods 20]

    Needs root, as every real kubelet does. One pod after the other, a plain one and a shared one
    in turns, each of one container; both by the scheduler that asks our extender. Times are of a
    watch of the API server.
    """
    parser = options(measure_bound_to_running)
    parser.add_argument("--pods", type=int, default=20)
    _bound_to_running_run(parser.parse_args().pods)


SHARED, WHOLES = (("0", "0"), ("14", "14")), (("1", "1"), ("0", "0"))
"""`nvidia.com/gpu`, then memory, as capacity and allocatable."""


def _mode_switch_run(count: int, status_seconds: float) -> None:
    took: dict[str, list[tuple[float, float]]] = {"idle": [], "after its holder": []}
    with (
        running_control_plane() as cluster,
        running_node(cluster, with_cdi=True, status_seconds=status_seconds) as node,
        running_line(cluster, node, "1xTesla-T4", f"--test-image={BUSYBOX}") as line,
    ):
        for number in range(count):
            for mode, shows in (("true", SHARED), ("false", WHOLES)):
                time.sleep(random.uniform(0, status_seconds))
                line.label(cgpu=mode)
                took["idle"].append(
                    _until(line, shows, "shared" if mode == "true" else "exclusive")
                )
            line.label(cgpu="true")
            _until(line, SHARED, "shared")
            line.create(shared(f"holder-{number}", container("app", 4, "sleep 1000000")))
            line.runs(f"holder-{number}")
            line.label(cgpu="false")
            wait_until(
                "the card drains",
                lambda: set(line.modes().values()) == {"draining"},
                pause_seconds=0.02,
            )
            line.delete(f"holder-{number}")
            took["after its holder"].append(_until(line, WHOLES, "exclusive"))
    print(f"the kubelet reports to the API server every {status_seconds:g} s")
    for what, seconds in took.items():
        for place, each in (
            ("the agent's inventory", [agent for agent, _ in seconds]),
            ("the node's resources", [node for _, node in seconds]),
        ):
            print(
                f"{what}: until {place} p50 {statistics.median(each):.2f} s, most "
                f"{max(each):.2f} "
                f"s of {len(each)}"
            )


def _until(
    line: Line, shows: tuple[tuple[str, str], tuple[str, str]], mode: str
) -> tuple[float, float]:
    """Seconds until the agent has the mode, and until the node's resources show it."""
    began = time.monotonic()
    wait_until(
        "the agent has changed", lambda: set(line.modes().values()) == {mode}, pause_seconds=0.02
    )
    agent = time.monotonic() - began
    wait_until(
        "the node has changed",
        lambda: (line.shown(WHOLE), line.shown(MEMORY)) == shows,
        pause_seconds=0.02,
    )
    return agent, time.monotonic() - began


def measure_mode_switch() -> None:
    """From `kubectl label node … cgpu=…` to the resources of the new mode, on a real kubelet.

        python -m bench mode_switch [--switches 10] [--status-seconds 10]

    Needs root. Two rows: an idle node, and from the end of a card's last holder until its card has
    joined the other mode. `--status-seconds` is the kubelet's `nodeStatusUpdateFrequency`, 10 s by
    default in Kubernetes: the interval of its reports to the API server. Beside each figure stands
    the same until the agent's own list has changed, which the kubelet receives.
    """
    parser = options(measure_mode_switch)
    parser.add_argument("--switches", type=int, default=10)
    parser.add_argument("--status-seconds", type=float, default=10.0)
    chosen = parser.parse_args()
    _mode_switch_run(chosen.switches, chosen.status_seconds)
