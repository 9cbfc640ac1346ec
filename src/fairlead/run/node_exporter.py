"""The GPU exporter of this node, by NVML or with simulated cards of real pods; or of a world."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import time
from contextlib import AsyncExitStack, suppress
from socket import gethostname, socket
from typing import TYPE_CHECKING, Final

from fairlead.apps.configuration.card_jobs import CardJobs
from fairlead.apps.configuration.counters_file import (
    CountersFile,
    CountersInForce,
    FixedCounters,
    usual_file,
)
from fairlead.apps.configuration.counters_map import KEY, CountersMap
from fairlead.apps.configuration.regular_file import read_regular_file
from fairlead.apps.configuration.web_guard import WebGuard
from fairlead.apps.gpu_exporter import (
    COMPATIBILITIES,
    GpuExporter,
    GpuExporterSettings,
    hostname_labels,
    printed_devices,
    sampling_seconds,
)
from fairlead.apps.metrics_page import parse_compat
from fairlead.apps.owner_names import OwnerNames, label_patterns
from fairlead.apps.pod_map import PodMap
from fairlead.apps.server import bind_socket, parse_address, systemd_socket
from fairlead.apps.service import run
from fairlead.edge.files.clock import WallClock
from fairlead.edge.files.own_files import absolute
from fairlead.edge.files.simulated_loads import load_folder, simulated_loads
from fairlead.edge.node.process_homes import NodeProcesses, sees_node
from fairlead.edge.nvml.devices import NvmlDevices
from fairlead.edge.nvml.kernel_log import KernelLog
from fairlead.edge.nvml.known_card import NvmlBeat
from fairlead.edge.nvml.readings import CardReader
from fairlead.errors import UserError
from fairlead.model.refusal import Refusal
from fairlead.ports import Devices
from fairlead.rules.devices.xid_reports import joined_reports
from fairlead.rules.metrics.dcgm import DcgmLabels
from fairlead.run.invocation import Invocation, needing_simulation, url_of
from fairlead.run.log_lines import log_as_json
from fairlead.wire.files.exporter_config import ExporterConfig, parse_exporter_config

# gRPC reads it when it is imported; otherwise it writes to stderr
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

from fairlead.edge.kubelet.pod_resources import PodResources
from fairlead.edge.node.agent_files import GrantsFile, KubeletLists
from fairlead.edge.node.guard_files import NodeGuardFiles

if TYPE_CHECKING:
    from fairlead.edge.kube.kube_api import KubeApi
    from fairlead.edge.node.claimable_cards import NodeSlices

NO_CONFIG_MAP: Final = "none"
"""dcgm-exporter's default of `--configmap-data`."""
FIRST_ANSWER_SECONDS: Final = 5.0
"""How long the start waits for a ConfigMap: the page must not wait if no API server answers."""
CONFIG_BYTES_MAX: Final = 1 << 20


async def run_gpu_exporter(asked: Invocation) -> None:
    """Run until SIGTERM."""
    args = asked.args
    if args.debug:
        logging.getLogger().setLevel(logging.DEBUG)
    if args.log_format == "json":
        log_as_json()
    config = read_config_file(asked)
    chosen = settings_of(args)
    async with AsyncExitStack() as ending:
        counters = await _counters(asked, config, chosen, ending)
        names = await _names(asked, chosen, ending)
        guard = WebGuard(absolute(args.web_config_file)) if args.web_config_file else None
        sock = (
            systemd_socket(asked.env)
            if args.web_systemd_socket
            else bind_socket(*parse_address(args.listen))
        )
        if args.backend == "sim" and not args.sim_gpus:
            with needing_simulation("`fairlead gpu-exporter --backend sim`"):
                from fairlead.run.simulated_servers import run_simulated_exporter
            await run_simulated_exporter(asked, chosen, sock, guard, counters, names)
            return
        await _run_node_exporter(asked, chosen, sock, guard, counters, names)


def settings_of(args: argparse.Namespace) -> GpuExporterSettings:
    """Settings from the flags. Raises UserError for values that this exporter cannot have."""
    return GpuExporterSettings(
        collectors=args.collectors or usual_file(),
        is_strict_csv=args.strict_csv,
        interval_seconds=sampling_seconds(args.collect_interval),
        labels=DcgmLabels(
            hostnames=() if args.no_hostname else hostname_labels(args.hostname_label),
            has_old_names=args.use_old_namespace,
            has_blanks_replaced=args.replace_blanks_in_model_name,
            has_pods=args.kubernetes,
            has_pod_uids=args.kubernetes_enable_pod_uid,
            repeats_card=args.mig_device_fields == "repeat",
            has_virtual_gpus=args.kubernetes_virtual_gpus,
            has_claims=args.kubernetes_enable_dra,
        ),
        compat=parse_compat(args.compat, COMPATIBILITIES),
        node=args.node or gethostname(),
        devices=printed_devices(args.devices),
        read_seconds=args.web_read_timeout,
        write_seconds=args.web_write_timeout,
        backend=args.backend,
        stale_seconds=args.stale_after,
        xid_window_ms=args.xid_count_window_size,
        clock_window_ms=args.clock_events_count_window_size,
        needs_gpus=args.health_require_gpus,
        has_containers=args.process_metrics != "off",
        has_processes=args.process_metrics == "process",
    )


def read_config_file(asked: Invocation) -> ExporterConfig:
    """Read `--config-file` and apply its values without a flag or variable.

    Raises UserError.
    """
    args = asked.args
    if not args.config_file:
        return ExporterConfig()
    path, hint = (
        absolute(args.config_file),
        "name a file as dcgm-exporter has it with `--config-file`",
    )
    config = parse_exporter_config(read_regular_file(path, CONFIG_BYTES_MAX, "configuration", hint))
    if isinstance(config, Refusal):
        raise UserError(f"configuration `{path}`: {config.reason}", hint)
    if config.groups:
        names = ", ".join(f"`{name}`" for name in config.groups)
        asked.messages.warn(
            f"{names} of `{path}`: no effect: fields are sampled in the groups fast, slow and "
            "static"
        )
    if config.interval_ms is not None and "collect_interval" not in args.given_flags:
        args.collect_interval = config.interval_ms
    if not (config.file or config.rows):
        return config
    overriding = {"collectors"} & args.given_flags
    if args.configmap_data != NO_CONFIG_MAP:
        overriding |= {"configmap_data"} & args.given_flags
    if overriding:
        asked.messages.warn(
            f"the counters of `{path}` have no effect: "
            f"`--{sorted(overriding)[0].replace('_', '-')}` is given, too"
        )
        return ExporterConfig()
    args.collectors = config.file
    return config


async def _counters(
    asked: Invocation, config: ExporterConfig, chosen: GpuExporterSettings, ending: AsyncExitStack
) -> CountersInForce:
    """Counters of a ConfigMap, of the configuration file, or of a CSV file. Raises UserError."""
    args, is_strict = asked.args, chosen.is_strict_csv
    if config.rows:
        return FixedCounters(
            config.rows, f"configuration `{args.config_file}`", is_strict=is_strict
        )
    file = CountersFile(chosen.collectors, is_strict=is_strict)
    if args.configmap_data == NO_CONFIG_MAP:
        return file
    namespace, _, name = args.configmap_data.partition(":")
    if not namespace or not name or ":" in name:
        raise UserError(
            f"`--configmap-data {args.configmap_data}` names no ConfigMap",
            "write `NAMESPACE:NAME`, or `none`",
        )
    api = await _api(asked, ending)
    if api is None:
        asked.messages.warn(
            f"`--configmap-data {args.configmap_data}`: no kubeconfig and no service account: the "
            "counters file counts"
        )
        return file
    from fairlead.edge.queries.config_map import ConfigMapText

    found = CountersMap(ConfigMapText(api, namespace, name, KEY), args.configmap_data, file)
    with suppress(TimeoutError):
        async with asyncio.timeout(FIRST_ANSWER_SECONDS):
            await found.look()
    if is_strict:
        found.read_strictly()
    return found


async def _names(
    asked: Invocation, chosen: GpuExporterSettings, ending: AsyncExitStack
) -> OwnerNames:
    """Labels and UIDs of the node's pods from the API server, if requested, and HPC jobs."""
    args = asked.args
    jobs = CardJobs(absolute(args.hpc_job_mapping_dir)).jobs if args.hpc_job_mapping_dir else None
    allowed = (
        label_patterns(args.kubernetes_pod_label_allowlist_regex)
        if args.kubernetes_enable_pod_labels
        else None
    )
    if not args.kubernetes or not (
        args.kubernetes_enable_pod_labels or args.kubernetes_enable_pod_uid
    ):
        return OwnerNames(jobs=jobs)
    api = await _api(asked, ending)
    if api is None:
        asked.messages.warn(
            "labels and UIDs of pods: no API server is known, because there is no kubeconfig and "
            "no service account"
        )
        return OwnerNames(jobs=jobs)
    from fairlead.edge.node.pod_identities import NodePods

    return OwnerNames(NodePods(api, chosen.node), allowed, jobs)


async def _claimable(
    asked: Invocation, chosen: GpuExporterSettings, ending: AsyncExitStack
) -> NodeSlices | None:
    """The cards that resource claims can name, from the API server, if requested."""
    if not (asked.args.kubernetes and asked.args.kubernetes_enable_dra):
        return None
    api = await _api(asked, ending)
    if api is None:
        asked.messages.warn(
            "cards of resource claims: no API server is known, because there is no kubeconfig and "
            "no service account"
        )
        return None
    from fairlead.edge.node.claimable_cards import NodeSlices

    return NodeSlices(api, chosen.node)


async def _api(asked: Invocation, ending: AsyncExitStack) -> KubeApi | None:
    """A connection to the API server, None = none is configured.

    It is opened only if needed: most exporters save the 15 MiB of memory that the client takes.
    """
    from fairlead.edge.connection.kubeconfig import find_connection
    from fairlead.edge.kube.kube_api import NODE_WATCH_SECONDS, KubeApi

    connection = find_connection(
        asked.options.kubeconfig or None, asked.options.context or None, env=asked.env
    )
    if connection is None:
        return None
    return await ending.enter_async_context(KubeApi(connection, watch_seconds=NODE_WATCH_SECONDS))


def _devices(asked: Invocation, chosen: GpuExporterSettings) -> Devices:
    args = asked.args
    if args.sim_gpus:
        with needing_simulation("`--sim-gpus`"):
            from fairlead_sim.gpus.node_cards import parse_models, simulated_node
        loads = simulated_loads(load_folder(asked.env), asked.messages.warn)
        return simulated_node(
            chosen.node, parse_models(args.sim_gpus), time.time, chosen.interval_seconds, loads
        )
    beat = NvmlBeat(chosen.interval_seconds, args.slow_interval, args.call_timeout)
    log = KernelLog() if args.kmsg == "on" else None
    return NvmlDevices(chosen.node, CardReader, beat, args.nvml_library, log, joined_reports)


async def _run_node_exporter(
    asked: Invocation,
    chosen: GpuExporterSettings,
    sock: socket,
    guard: WebGuard | None,
    counters: CountersInForce,
    names: OwnerNames,
) -> None:
    args = asked.args
    devices = _devices(asked, chosen)
    own_socket = args.pod_resources_kubelet_socket
    resources = PodResources(
        absolute(own_socket)
        if own_socket
        else absolute(args.kubelet_dir) / "pod-resources" / "kubelet.sock"
    )
    async with AsyncExitStack() as ending:
        ending.push_async_callback(resources.close)
        lists = KubeletLists(
            resources, absolute(args.kubelet_dir) / "device-plugins", needs_names=True
        )
        pods = PodMap(
            lists,
            GrantsFile(absolute(args.grants_file)),
            args.pod_map_ttl,
            homes=NodeProcesses() if sees_node() else None,
            ask_seconds=args.pod_map_interval,
            more_resources=args.nvidia_resource_names,
            claimable=await _claimable(asked, chosen, ending),
            is_wanted=args.kubernetes,
            identities=names.identities,
            guard=NodeGuardFiles(absolute(args.grants_file).parent, absolute(args.run_dir)),
        )
        exporter = GpuExporter(
            devices, WallClock(), chosen, pods=pods, counters=counters, names=names
        )
        ready_line = (
            f"GPU metrics of node {chosen.node} on "
            f"{url_of(sock, 'https' if guard and guard.tls else 'http')}/metrics"
        )
        await run(exporter.service(sock, guard), on_ready=lambda: asked.messages.info(ready_line))
