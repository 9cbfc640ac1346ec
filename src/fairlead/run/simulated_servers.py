"""The servers of the simulated cluster: the laptop (`up`), the API server, the devices' GPU exporter."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Final

from fairlead import settings
from fairlead.apps import gpu_exporter
from fairlead.apps.server import bind_socket, parse_address, require_loopback
from fairlead.apps.service import ServedApp, run
from fairlead.cli.frame.standard_streams import Stdout
from fairlead.edge.files.own_files import absolute
from fairlead.run.beginnings import scenario_beginning
from fairlead.run.invocation import Invocation, Process, url_of
from fairlead.run.laptop import run_laptop
from fairlead.run.laptop_kubeconfig import SharedKubeconfig, end_kubeconfig
from fairlead.run.node_exporter import run_node_exporter
from fairlead.run.quota_demo import play, render_demo
from fairlead.run.simulation import Simulation
from fairlead_sim.api.credentials import kubeconfig_entries, make_credentials
from fairlead_sim.api.server import ApiServer


async def _run_up(asked: Invocation) -> None:
    await run_laptop(asked.args, asked.env, asked.messages, Stdout(sys.stdout))


async def _run_gpu_exporter(asked: Invocation) -> None:
    args = asked.args
    if args.debug:
        logging.getLogger().setLevel(logging.DEBUG)
    address = parse_address(args.listen)
    chosen = gpu_exporter.settings_from_flags(
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
    )
    if args.sim_gpus:
        await run_node_exporter(asked, chosen, address)
        return
    sock = bind_socket(*address)
    simulation = Simulation(scenario_beginning(args.scenario).world(args.seed), args.speed)
    exporter = gpu_exporter.GpuExporter(simulation.devices(chosen.interval_seconds), simulation, chosen)
    said = f"GPU metrics of scenario {args.scenario} on {url_of(sock)}/metrics"
    await run(exporter.service(sock), loops=(simulation.driver.run(),), on_ready=lambda: asked.messages.info(said))


async def _run_api_server(asked: Invocation) -> None:
    args = asked.args
    host, port = parse_address(args.listen)
    require_loopback(host, args.insecure_listen, "--insecure-listen")
    beginning = scenario_beginning(args.scenario)
    kubeconfig = SharedKubeconfig(absolute(args.kubeconfig or "fairlead.kubeconfig"))
    kubeconfig.check()
    sock = bind_socket(host, port)
    simulation = Simulation(beginning.world(args.seed), args.speed)
    credentials = make_credentials()
    simulation.world.accounts.publish(credentials.authority.decode())
    kubeconfig.write(kubeconfig_entries(url_of(sock, "https"), credentials))
    context = "" if kubeconfig.opens_the_laptop else f" --context {settings.LAPTOP_CONTEXT}"
    command = f"kubectl --kubeconfig {kubeconfig.path}{context} get pods -A"
    app = ApiServer(
        simulation.world.cluster,
        simulation.world.clock,
        [credentials.token],
        logs=simulation.world.logs,
        catch_up=simulation.driver.catch_up,
    )
    try:
        await run(
            ServedApp(app=app, sock=sock, tls=credentials.ssl, stopping=app.stop, loops=(simulation.driver.run,)),
            on_ready=lambda: asked.messages.info(f"simulated cluster on {url_of(sock, 'https')}: {command}"),
        )
    finally:
        end_kubeconfig(kubeconfig, asked.messages)


async def _run_quota_demo(asked: Invocation) -> None:
    Stdout(sys.stdout).write(render_demo(list(play(asked.args.reclaim_scope))))


PROCESSES: Final[Mapping[str, Process]] = {
    "up": _run_up,
    "gpu-exporter": _run_gpu_exporter,
    "api-server": _run_api_server,
    "quota-demo": _run_quota_demo,
}
