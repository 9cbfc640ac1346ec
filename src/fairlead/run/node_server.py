"""The agent of one node, with its parts: kubelet, files, driver, API server."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from fairlead.apps.node_agent.agent import NodeAgent
from fairlead.apps.node_agent.desk import NodeAgentSettings
from fairlead.apps.server import bind_socket, parse_address
from fairlead.apps.service import run
from fairlead.edge.files.own_files import absolute
from fairlead.edge.kube.kube_api import NODE_WATCH_SECONDS, KubeApi
from fairlead.edge.node.node_api import KubeNodeApi
from fairlead.edge.node.process_homes import NodeProcesses
from fairlead.edge.nvml.mps import PIPES
from fairlead.errors import UserError
from fairlead.model.resources import MemoryUnit
from fairlead.ports import CardDriver, DeviceAnswers, ResourceServer
from fairlead.rules.devices.watchdog import OverGrantPolicy
from fairlead.run.invocation import Invocation, needing_simulation, required_connection, url_of

# gRPC reads it at import; without it, gRPC writes to stderr
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

from fairlead.edge.kubelet.device_plugin import DevicePlugin
from fairlead.edge.kubelet.pod_resources import PodResources
from fairlead.edge.node.agent_files import KubeletLists, NodeAgentFiles, NodeFolders

LONGEST_SOCKET: Final = 107
"""`LONGEST_SOCKET`: bytes of the longest path of a socket."""


async def run_device_plugin(asked: Invocation) -> None:
    """Until SIGTERM."""
    args = asked.args
    address = parse_address(args.listen)
    kubelet = absolute(args.kubelet_dir)
    folders = NodeFolders(
        kubelet / "device-plugins",
        absolute(args.cdi_dir),
        absolute(args.state_dir),
        absolute(args.run_dir),
    )
    _check(folders.plugins)
    connection = required_connection(asked)
    sock = bind_socket(*address)
    chosen = NodeAgentSettings(
        node=args.node,
        unit=MemoryUnit(args.memory_unit),
        namespace=args.namespace,
        test_image=args.test_image,
        ignored_xids=args.ignored_xids,
        over_grant=OverGrantPolicy(args.over_grant),
        mps_folder=str(PIPES),
        has_device_nodes=args.backend != "sim",
    )

    def serve(
        endpoint: str, resource: str, answers: DeviceAnswers, needs_start: bool
    ) -> ResourceServer:
        return DevicePlugin(folders.plugins, endpoint, resource, answers, needs_start=needs_start)

    resources = PodResources(kubelet / "pod-resources" / "kubelet.sock")
    async with AsyncExitStack() as ending:
        ending.push_async_callback(resources.close)
        driver = _driver(args.backend, args.node, args.sim_gpus, ending)
        api = await ending.enter_async_context(
            KubeApi(connection, watch_seconds=NODE_WATCH_SECONDS)
        )
        lists = KubeletLists(resources, folders.plugins)
        agent = NodeAgent(
            KubeNodeApi(api, args.node),
            driver,
            NodeAgentFiles(folders),
            lists,
            NodeProcesses(),
            serve,
            chosen,
            now=api.clock.now,
        )
        listening = f"GPUs of node {args.node} for its kubelet, figures on {url_of(sock)}/metrics"
        await run(agent.service(sock), on_ready=lambda: asked.messages.info(listening))


def _check(plugins: Path) -> None:
    """Raises UserError for a directory in which no kubelet can be reached."""
    longest = plugins / "fairlead-gpu-mem.sock"
    if len(os.fsencode(longest)) > LONGEST_SOCKET:
        raise UserError(
            f"`{longest}` is longer than the path of a socket may be ({LONGEST_SOCKET})",
            "name it by a short link",
        )
    if not plugins.is_dir():
        raise UserError(
            f"there is no `{plugins}`",
            "pass --kubelet-dir: the kubelet's directory, or where it is mounted",
        )


def _driver(backend: str, node: str, sim_gpus: str, ending: AsyncExitStack) -> CardDriver:
    if backend == "nvml":
        from fairlead.edge.nvml.driver import NvmlDriver

        driver = NvmlDriver()
        ending.callback(driver.close)
        return driver
    with needing_simulation("`fairlead device-plugin --backend sim`"):
        from fairlead_sim.gpus.node_cards import SimulatedDriver, parse_models
    return SimulatedDriver(node, parse_models(sim_gpus))
