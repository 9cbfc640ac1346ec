"""The servers of the simulated cluster: the laptop (`up`), the API server, its GPU exporter."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from socket import socket
from typing import Final

from msgspec import structs

from fairlead import settings
from fairlead.apps.configuration.counters_file import CountersInForce
from fairlead.apps.configuration.web_guard import WebGuard
from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.apps.owner_names import OwnerNames
from fairlead.apps.server import parse_address, require_loopback
from fairlead.apps.service import ServedApp, run
from fairlead.cli.frame.standard_streams import Stdout
from fairlead.edge.files.own_files import absolute
from fairlead.edge.files.simulated_loads import load_folder, simulated_loads
from fairlead.errors import UserError
from fairlead.rules.metrics.over_grant import over_grant_families
from fairlead.run.initial_worlds import scenario_world
from fairlead.run.invocation import Invocation, Process, free_or_named, url_of
from fairlead.run.laptop import run_laptop
from fairlead.run.laptop_kubeconfig import SharedKubeconfig, end_kubeconfig
from fairlead.run.quota_demo import play, render_demo
from fairlead.run.simulation import Simulation
from fairlead_sim.api.credentials import kubeconfig_entries, make_credentials
from fairlead_sim.api.server import ApiServer
from fairlead_sim.world.world import World


async def _run_up(asked: Invocation) -> None:
    await run_laptop(asked.args, asked.env, asked.messages, Stdout(sys.stdout))


async def run_simulated_exporter(
    asked: Invocation,
    chosen: GpuExporterSettings,
    sock: socket,
    guard: WebGuard | None,
    counters: CountersInForce,
    names: OwnerNames,
) -> None:
    """Export the cards of one node of a scenario; with `--all-nodes` those of all nodes."""
    args = asked.args
    world = scenario_world(args.scenario).world(args.seed)
    if not args.all_nodes:
        chosen = structs.replace(
            chosen, node=_node_of(world, args.node, args.scenario), is_alone=True
        )
    simulation = Simulation(world, args.speed)
    simulation.loads = simulated_loads(load_folder(asked.env), asked.messages.warn)
    exporter = GpuExporter(
        simulation.devices(chosen.interval_seconds),
        simulation,
        chosen,
        counters=counters,
        names=names,
        agents=over_grant_families,
    )
    cards = (
        f"all nodes of scenario {args.scenario}"
        if args.all_nodes
        else f"node {chosen.node} of scenario {args.scenario}"
    )
    listening = (
        f"GPU metrics of {cards}, simulated, on "
        f"{url_of(sock, 'https' if guard and guard.tls else 'http')}/metrics"
    )
    await run(
        exporter.service(sock, guard),
        loops=(simulation.driver.run(),),
        on_ready=lambda: asked.messages.info(listening),
    )


def _node_of(world: World, node: str, scenario: str) -> str:
    """The node from the flag, else the first with cards. Raises UserError."""
    nodes = sorted({sample.node for sample in world.devices.sample(is_brief=True)})
    if not nodes:
        raise UserError(
            f"no node of scenario {scenario} has GPUs", "name another with `--scenario`"
        )
    return node if node in nodes else nodes[0]


async def _run_api_server(asked: Invocation) -> None:
    args = asked.args
    host, _ = parse_address(args.listen)
    require_loopback(host, args.insecure_listen, "--insecure-listen")
    beginning = scenario_world(args.scenario)
    kubeconfig = SharedKubeconfig(absolute(args.kubeconfig or "fairlead.kubeconfig"))
    kubeconfig.check()
    sock = free_or_named(asked)
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
        programs=simulation.world.programs,
        catch_up=simulation.driver.catch_up,
    )
    try:
        await run(
            ServedApp(
                app=app,
                sock=sock,
                tls=credentials.ssl,
                stopping=app.stop,
                web_sockets=True,
                loops=(simulation.driver.run,),
            ),
            on_ready=lambda: asked.messages.info(
                f"simulated cluster on {url_of(sock, 'https')}: {command}"
            ),
        )
    finally:
        end_kubeconfig(kubeconfig, asked.messages)


async def _run_quota_demo(asked: Invocation) -> None:
    Stdout(sys.stdout).write(render_demo(list(play(asked.args.reclaim_scope))))


PROCESSES: Final[Mapping[str, Process]] = {
    "up": _run_up,
    "api-server": _run_api_server,
    "quota-demo": _run_quota_demo,
}
