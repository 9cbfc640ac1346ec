"""The node's agent as a process of its own, with eight simulated cards: its answers, and its idling.

    .venv/bin/python -m bench.node_agent [--containers 300] [--seconds 60]

etcd and kube-apiserver are real; the kubelet is played by this script, which hands out ids and says who has
them. Each container is allocated and then started, one after the other; beside it a plugin in a process of
its own, by the same library, answers the same calls at once. A start has the pod's mark written on the real
API server. Afterwards nothing happens, and the agent's CPU and memory over so many seconds are told.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
from bench.filled_cluster import api_server
from bench.laptop_start import cpu_seconds, memory
from grpc import aio
from tests.edge.kubelet.wire_bytes import packed, unpacked
from tests.kube.control_plane import ControlPlane
from tests.kube.servers import FAIRLEAD, environment

from fairlead.edge.kubelet.device_plugin import DevicePlugin
from fairlead.model.devices.granted import DeviceRefusal
from fairlead.model.devices.kubelet import CdiDevices, ContainerEdits, OfferedDevice
from fairlead.rules.devices.ids import uuid_of
from fairlead_sim.gpus.node_cards import simulated_uuid

NODE = "bench-node"
MEMORY = "aliyun.com/gpu-mem"
AT_ONCE = "fairlead.test/at-once"
CARDS = 8
UNITS = 4
_PLUGIN = "/v1beta1.DevicePlugin/"
Object = dict[str, Any]


class PlayedKubelet:
    """It takes registrations and dials back; who holds what it tells as it is told."""

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
            self.plugins / "kubelet.sock": ("v1beta1.Registration", {"Register": unary(self._register)}),
            self._folder / "pod-resources" / "kubelet.sock": ("v1.PodResourcesLister", {"List": unary(self._list)}),
        }
        for path, (service, handlers) in served.items():
            path.parent.mkdir(parents=True)
            server = aio.server()
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
            server.add_insecure_port(f"unix:{path}")
            await server.start()
            self._servers.append(server)

    async def _register(self, request: bytes, _context: aio.ServicerContext[bytes, bytes]) -> bytes:
        told = {number: value.decode() for number, value in unpacked(request) if isinstance(value, bytes) and number < 4}
        channel = aio.insecure_channel(f"unix:{self.plugins / told[2]}", options=[("grpc.default_authority", "localhost")])
        self.channels[told[3]] = channel
        self._watching.append(asyncio.create_task(self._watch(told[3], channel)))
        return b""

    async def _watch(self, resource: str, channel: aio.Channel) -> None:
        listed: aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(f"{_PLUGIN}ListAndWatch")
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
        self.holders.append(packed((1, packed((1, pod), (2, "default"), (3, packed((1, "app"), *devices))))))

    async def call(self, resource: str, method: str, message: bytes) -> bytes:
        ask: aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channels[resource].unary_unary(f"{_PLUGIN}{method}")
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

    def preferred(self, available: Sequence[str], must_include: Collection[str], size: int) -> Sequence[str]:
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
    # A runtime that was found to do CDI, so that both ways that a container takes are the deferred ones.
    (folder / "state").mkdir()
    (folder / "state" / "runtime.json").write_text(json.dumps({"kubelet v1.36.3 containerd://2.2.9": True}), encoding="utf-8")
    argv = [*FAIRLEAD, "device-plugin", f"--node={NODE}", f"--kubeconfig={cluster.kubeconfig}", f"--kubelet-dir={folder / 'kubelet'}"]
    argv += [f"--cdi-dir={folder / 'cdi'}", f"--state-dir={folder / 'state'}", f"--run-dir={folder / 'run'}", "--listen=127.0.0.1:0"]
    argv += ["--backend=sim", f"--sim-gpus={CARDS}xNVIDIA-H200", "--test-image=none"]
    async with AsyncExitStack() as leaving:
        leaving.push_async_callback(kubelet.stop)
        agent = await asyncio.create_subprocess_exec(*argv, env=environment(), stderr=subprocess.DEVNULL)
        leaving.callback(agent.kill)
        while len(kubelet.ids.get(MEMORY, ())) < CARDS * 139:  # noqa: ASYNC110 - two programs on their way
            await asyncio.sleep(0.1)
        ids = kubelet.ids[MEMORY]
        peer = multiprocessing.get_context("spawn").Process(target=serve_at_once, args=(str(kubelet.plugins), ids), daemon=True)
        peer.start()
        leaving.callback(peer.kill)
        while len(kubelet.ids.get(AT_ONCE, ())) < len(ids):  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.1)
        sets = [ids[at : at + UNITS] for at in range(0, UNITS * containers, UNITS)]
        took: dict[str, list[float]] = {MEMORY: [], AT_ONCE: []}
        for number, chosen in enumerate(sets):
            cluster.admin.create([_pod(f"pod-{number}", uuid_of(chosen[0]))])
            for resource in (MEMORY, AT_ONCE) if number % 2 else (AT_ONCE, MEMORY):
                took[resource].append(await kubelet.give(resource, f"pod-{number}", chosen))
        for resource, name in ((MEMORY, "the agent"), (AT_ONCE, "answered at once")):
            parts = ", ".join(f"p{percent} {_part(took[resource], percent)}" for percent in (50, 90, 99))
            print(f"{name}: Allocate and PreStartContainer {parts}", flush=True)
        marked = cluster.admin.get("pods", "-n", "default")
        count = sum(each["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "true" for each in marked)
        print(f"{count} of {len(marked)} pods carry their mark", flush=True)
        await asyncio.sleep(10)
        cpu, began = cpu_seconds(agent.pid), time.monotonic()
        await asyncio.sleep(seconds)
        share = (cpu_seconds(agent.pid) - cpu) / (time.monotonic() - began)
        resident, most = (memory(agent.pid, name) for name in ("VmRSS", "VmHWM"))
        print(f"idle for {seconds} s: {share:.2%} of a core, {resident:.0f} MiB, at most {most:.0f}")


def _part(seconds: Sequence[float], percent: int) -> str:
    return f"{sorted(seconds)[min(len(seconds) - 1, len(seconds) * percent // 100)] * 1000:.2f} ms"


def _text(value: str | bytes | int) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _pod(name: str, uuid: str) -> Object:
    index = next(index for index in range(CARDS) if simulated_uuid(NODE, index) == uuid)
    grant = json.dumps({"app": [{"uuid": uuid, "index": index, "units": UNITS, "mib": 4000, "core": 0}]})
    said = {"fairlead.io/gpu-allocation": grant, "ALIYUN_COM_GPU_MEM_ASSIGNED": "false"}
    container = {"name": "app", "image": "none", "resources": {"limits": {MEMORY: str(UNITS)}}}
    meta = {"name": name, "namespace": "default", "annotations": said}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"nodeName": NODE, "containers": [container]}}


def _node() -> Object:
    info = {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://2.2.9"}
    more = "architecture bootID kernelVersion kubeProxyVersion machineID operatingSystem osImage systemUUID"
    told = dict.fromkeys(more.split(), "")
    meta = {"name": NODE, "labels": {"cgpu": "true"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"nodeInfo": {**told, **info}}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--containers", type=int, default=250)
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    with api_server() as cluster, tempfile.TemporaryDirectory(prefix="agent-") as folder:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}
        cluster.admin.create([_node(), account])
        asyncio.run(measure(cluster, Path(folder), args.containers, args.seconds))


if __name__ == "__main__":
    sys.exit(main())
