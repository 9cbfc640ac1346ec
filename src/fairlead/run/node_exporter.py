"""The GPU exporter of one node whose cards are simulated: pods have them for true."""

from __future__ import annotations

import os
import time
from contextlib import AsyncExitStack

from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.apps.pod_map import PodMap
from fairlead.apps.server import bind_socket
from fairlead.apps.service import run
from fairlead.edge.files.clock import WallClock
from fairlead.edge.files.own_files import absolute
from fairlead.run.invocation import Invocation, url_of
from fairlead_sim.gpus.node_cards import parse_models, simulated_node

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # read when it is imported; else it writes to stderr as it likes

from fairlead.edge.kubelet.pod_resources import PodResources
from fairlead.edge.node.agent_files import GrantsFile


async def run_node_exporter(asked: Invocation, chosen: GpuExporterSettings, address: tuple[str, int]) -> None:
    """Until SIGTERM."""
    args = asked.args
    devices = simulated_node(chosen.node, parse_models(args.sim_gpus), time.time, chosen.interval_seconds)
    resources = PodResources(absolute(args.kubelet_dir) / "pod-resources" / "kubelet.sock")
    sock = bind_socket(*address)
    async with AsyncExitStack() as ending:
        ending.push_async_callback(resources.close)
        pods = PodMap(resources, GrantsFile(absolute(args.grants_file)), args.pod_map_ttl)
        exporter = GpuExporter(devices, WallClock(), chosen, pods=pods)
        said = f"GPU metrics of node {chosen.node} on {url_of(sock)}/metrics"
        await run(exporter.service(sock), on_ready=lambda: asked.messages.info(said))
