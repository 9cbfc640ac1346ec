"""The GPU exporter: of this node, by NVML or with simulated cards that pods have for true; or of a world."""

from __future__ import annotations

import logging
import os
import time
from contextlib import AsyncExitStack

from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings, settings_from_flags, window_ms
from fairlead.apps.pod_map import PodMap
from fairlead.apps.server import bind_socket, parse_address
from fairlead.apps.service import run
from fairlead.edge.files.clock import WallClock
from fairlead.edge.files.own_files import absolute
from fairlead.edge.files.told_loads import load_folder, told_loads
from fairlead.edge.node.process_homes import NodeProcesses, sees_node
from fairlead.edge.nvml.devices import NvmlDevices
from fairlead.edge.nvml.kernel_log import KernelLog
from fairlead.edge.nvml.known_card import NvmlBeat
from fairlead.edge.nvml.readings import CardReader
from fairlead.ports import Devices
from fairlead.rules.devices.xid_reports import fresh_reports
from fairlead.run.invocation import Invocation, needing_simulation, url_of

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # read when it is imported; else it writes to stderr as it likes

from fairlead.edge.kubelet.pod_resources import PodResources
from fairlead.edge.node.agent_files import GrantsFile, KubeletLists


async def run_gpu_exporter(asked: Invocation) -> None:
    """Until SIGTERM."""
    args = asked.args
    if args.debug:
        logging.getLogger().setLevel(logging.DEBUG)
    chosen = settings_from_flags(
        collectors=args.collectors,
        interval_ms=args.collect_interval,
        compat=args.compat,
        hostname_label=args.hostname_label,
        has_hostname=not args.no_hostname,
        has_old_names=args.use_old_namespace,
        has_blanks_replaced=args.replace_blanks_in_model_name,
        has_pods=args.kubernetes,
        has_pod_uids=args.kubernetes_enable_pod_uid,
        is_strict_csv=args.strict_csv,
        node=args.node,
        devices=args.devices,
        backend=args.backend,
        stale_seconds=args.stale_after,
        xid_window_ms=window_ms(args.xid_count_window_size, "--xid-count-window-size"),
        clock_window_ms=window_ms(args.clock_events_count_window_size, "--clock-events-count-window-size"),
        repeats_card=args.mig_device_fields == "repeat",
    )
    address = parse_address(args.listen)
    if args.backend == "sim" and not args.sim_gpus:
        with needing_simulation("`fairlead gpu-exporter --backend sim`"):
            from fairlead.run.simulated_servers import run_simulated_exporter
        await run_simulated_exporter(asked, chosen, address)
        return
    await _run_node_exporter(asked, chosen, address, _devices(asked, chosen))


def _devices(asked: Invocation, chosen: GpuExporterSettings) -> Devices:
    args = asked.args
    if args.sim_gpus:
        with needing_simulation("`--sim-gpus`"):
            from fairlead_sim.gpus.node_cards import parse_models, simulated_node
        told = told_loads(load_folder(asked.env), asked.messages.warn)
        return simulated_node(chosen.node, parse_models(args.sim_gpus), time.time, chosen.interval_seconds, told)
    beat = NvmlBeat(chosen.interval_seconds, args.slow_interval, args.call_timeout)
    log = KernelLog() if args.kmsg == "on" else None
    return NvmlDevices(chosen.node, CardReader, beat, args.nvml_library, log, fresh_reports)


async def _run_node_exporter(asked: Invocation, chosen: GpuExporterSettings, address: tuple[str, int], devices: Devices) -> None:
    args = asked.args
    resources = PodResources(absolute(args.kubelet_dir) / "pod-resources" / "kubelet.sock")
    sock = bind_socket(*address)
    async with AsyncExitStack() as ending:
        ending.push_async_callback(resources.close)
        lists = KubeletLists(resources, absolute(args.kubelet_dir) / "device-plugins", needs_names=True)
        pods = PodMap(lists, GrantsFile(absolute(args.grants_file)), args.pod_map_ttl, homes=NodeProcesses() if sees_node() else None)
        exporter = GpuExporter(devices, WallClock(), chosen, pods=pods)
        said = f"GPU metrics of node {chosen.node} on {url_of(sock)}/metrics"
        await run(exporter.service(sock), on_ready=lambda: asked.messages.info(said))
