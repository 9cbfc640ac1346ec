"""`fairlead up`: a simulated cluster served as a Kubernetes API, with Fairlead's servers on it.

The exporters and the console are the same as for a real cluster. They reach the simulated one only
through HTTP over loopback; nothing uses a shortcut because it runs in the same process. Charts also
show the hour before the start, which no server observed: it is kept while the history is simulated.
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from fairlead import settings
from fairlead.apps.cluster_exporter import ClusterExporter, ClusterExporterSettings
from fairlead.apps.configuration.counters_file import usual_file
from fairlead.apps.console_server import ConsoleServer, ConsoleSettings
from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.apps.server import bind_socket
from fairlead.apps.service import ServedApp, run
from fairlead.cli.frame.context import Output
from fairlead.cli.frame.messages import Messages
from fairlead.console.http.sign_in.desk import SignInDesk
from fairlead.console.http.sign_in.tools import OneTimeCode, SignInTools
from fairlead.edge.components.component_facts import ComponentQuery
from fairlead.edge.connection.connection import LaptopPages
from fairlead.edge.files.own_files import absolute, make_private
from fairlead.edge.files.simulated_loads import load_folder, simulated_loads
from fairlead.edge.helm.helm_program import HelmProgram
from fairlead.edge.kube.cluster import KubeCluster
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.operations.objects import KubeOperationCluster
from fairlead.edge.people.people_writer import KubePeople
from fairlead.edge.people.sign_in_api import KubeSignInApi
from fairlead.edge.prometheus.exporter_pages import ExporterPages
from fairlead.edge.queries.cluster_writes import KubeClusterWrites
from fairlead.edge.queries.dependency_facts import DependencyQuery
from fairlead.edge.queries.job_files import KubeJobFiles
from fairlead.edge.queries.page_reads import KubeDataQuestions, KubeServings
from fairlead.edge.store.look import StoreLooks
from fairlead.errors import UserError
from fairlead.ports import Ports
from fairlead.rules.metrics.over_grant import over_grant_families
from fairlead.rules.people.sign_in import KEY_BYTES
from fairlead.run.hooks.world_people import give_rights
from fairlead.run.hooks.world_usage import WorldUsage, record_world
from fairlead.run.invocation import new_code_line, url_of
from fairlead.run.laptop_files import LaptopFiles
from fairlead.run.laptop_life import begin_life, interruptible, requested_world
from fairlead.run.simulation import Simulation, connection_to_laptop
from fairlead.run.wiring import installation_plans, operation_records, submit_forms
from fairlead.wire.metrics.gpu_readings import NATIVE_METRICS
from fairlead.wire.text.tabwriter import render_rows
from fairlead_sim.api.server import ApiServer

if TYPE_CHECKING:
    from fairlead.edge.store.sql_store import SqlStore

HOST: Final = settings.LOOPBACK
STORE_FILE: Final = "store.sqlite"
SIGN_IN_HINT: Final = "start it with `fairlead up`, without --sign-in=false"
LARGE_INTERVAL_SECONDS: Final = 30.0
"""`LARGE_INTERVAL_SECONDS`: interval between readings of a large world's cards.

Each takes a second or two.
"""


class Sockets(Struct, frozen=True):
    """The laptop's four listening sockets, bound before anything else exists."""

    console: socket.socket
    gpu_exporter: socket.socket
    cluster_exporter: socket.socket
    api: socket.socket


async def run_laptop(
    args: argparse.Namespace, env: Mapping[str, str], messages: Messages, stdout: Output
) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises UserError for a port, a scenario or a file that cannot be used.
    """
    with interruptible():
        asked = requested_world(args)
        if args.use_context and not args.kubeconfig:
            raise UserError(
                "--use-context has no effect without --kubeconfig",
                "name the file whose current context it shall be",
            )
        files = LaptopFiles(args, env, messages)
        files.check()
        sockets, moved = bind_sockets(args)
        life = begin_life(args, asked, messages)
    simulation, credentials = life.simulation, life.credentials
    simulation.loads = simulated_loads(load_folder(env), messages.warn)
    simulation.world.accounts.publish(credentials.authority.decode())
    api_url = url_of(sockets.api, "https")
    pages = LaptopPages(
        console=url_of(sockets.console), gpu_exporter=url_of(sockets.gpu_exporter) + "/metrics"
    )
    try:
        files.write_kubeconfig(api_url, credentials, pages)
        async with (
            KubeApi(connection_to_laptop(api_url, credentials)) as api,
            laptop_store(args) as store,
            recorded_world(simulation, store) as usage,
        ):
            cluster = KubeCluster(api, simulation)
            exported = exporter_settings(is_large=simulation.is_large)
            page = url_of(sockets.gpu_exporter) + "/metrics"
            readings = ExporterPages(
                [page],
                simulation,
                interval_seconds=exported.interval_seconds,
                stale_after_seconds=2 * exported.stale_after_seconds,
            )
            writer = KubePeople(api.connection, simulation.now)
            asking = KubeBlocking(api.connection)
            world = Ports(
                cluster,
                readings,
                simulation,
                is_simulated=True,
                name=life.origin,
                timekeeper=simulation.driver if usage is None else usage.time(simulation.driver),
                job_files=KubeJobFiles(api),
                servings=KubeServings(api),
                data=KubeDataQuestions(api.connection, simulation.now),
                dependencies=DependencyQuery(api),
                sign_in=KubeSignInApi(api),
                writes=KubeClusterWrites(api),
                people=writer,
                operations=operation_records(api, is_laptop=True),
                operated=KubeOperationCluster(api),
                helm=HelmProgram(api.connection, env),
                components=lambda: ComponentQuery(asking, env),
                stores=StoreLooks(),
                installation=installation_plans(asking),
            )
            code = laptop_code(url_of(sockets.console), messages) if args.sign_in else None
            api_server = ApiServer(
                simulation.world.cluster,
                simulation.world.clock,
                [credentials.token],
                signing_key=credentials.signing_key,
                logs=simulation.world.logs,
                programs=simulation.world.programs,
                catch_up=simulation.driver.catch_up,
            )
            api_app = life.served(api_server)
            people = give_rights(api, cluster)
            reading = read_cards(readings, cluster, is_large=simulation.is_large)
            await run(
                ServedApp(
                    app=api_app,
                    sock=sockets.api,
                    tls=credentials.ssl,
                    stopping=api_server.stop,
                    web_sockets=True,
                ),
                GpuExporter(
                    simulation.devices(exported.interval_seconds),
                    simulation,
                    exported,
                    agents=over_grant_families,
                ).service(sockets.gpu_exporter),
                ClusterExporter(cluster, readings, simulation, ClusterExporterSettings()).service(
                    sockets.cluster_exporter
                ),
                ConsoleServer(
                    world,
                    ConsoleSettings(sign_in_hint=SIGN_IN_HINT),
                    simulation.past,
                    desk=laptop_desk(world, code, store),
                    forms=submit_forms(),
                    ledger=store.ledger,
                ).service(sockets.console),
                loops=(
                    simulation.driver.run(),
                    cluster.run(),
                    people,
                    reading,
                    *(() if usage is None else (usage.queue.run(),)),
                    *life.loops(),
                ),
                on_ready=lambda: announce(sockets, files, moved, messages, stdout, code),
                ends_on_hangup=True,
            )
    finally:
        files.remove()
        life.end()
    messages.info("stopped")


@asynccontextmanager
async def recorded_world(
    simulation: Simulation, store: SqlStore
) -> AsyncIterator[WorldUsage | None]:
    """Usage is recorded in the laptop's store, from the start to the end; None for a large world.

    The recorder reads each card every 30 simulated seconds, also while time runs fast, and 40,000
    cards take a second or two: pages would wait for them in the process that also serves them.
    """
    if simulation.is_large:
        store.ledger.is_off = True
        yield None
        return
    usage = await record_world(simulation.world, store.ledger, "laptop")
    try:
        yield usage
    finally:
        await usage.end()


@asynccontextmanager
async def laptop_store(args: argparse.Namespace) -> AsyncIterator[SqlStore]:
    """What the console keeps: beside the world with `--state-dir`, else until the laptop ends."""
    from fairlead.edge.store.address import store_address
    from fairlead.edge.store.opened import open_store  # SQL is for this alone

    with contextlib.ExitStack() as folders:
        folder = absolute(args.state_dir or folders.enter_context(_temporary_folder()))
        make_private(folder)
        path = folder / STORE_FILE
        store = await open_store(store_address(f"sqlite:///{path}"))
        try:
            yield store
        finally:
            await store.close()


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fairlead-")


def laptop_code(page: str, messages: Messages) -> OneTimeCode:
    """The code that the start prints; it prints another after a browser came with an old one."""
    code = OneTimeCode()
    code.announce = lambda text: messages.info(new_code_line(f"{page}/", text))
    return code


def laptop_desk(world: Ports, code: OneTimeCode | None, store: SqlStore) -> SignInDesk | None:
    """Signing in at the laptop: with its code as the administrator, who may look as any user."""
    if code is None or world.sign_in is None:
        return None
    return SignInDesk(
        SignInTools(
            api=world.sign_in,
            store=store,
            records=store,
            versions=store,
            history=store,
            store_facts=store.facts,
            ledger=store.ledger,
            cluster_now=world.clock.now,
            keys=(secrets.token_bytes(KEY_BYTES),),
            code=code,
            is_simulated=True,
        )
    )


def exporter_settings(*, is_large: bool) -> GpuExporterSettings:
    """For a large world only what the console reads, and less often.

    40,000 cards make 800 MB of pages each time.
    """
    chosen = GpuExporterSettings(collectors=usual_file(), node=socket.gethostname())
    if not is_large:
        return chosen
    return structs.replace(
        chosen, compat=(), only=frozenset(NATIVE_METRICS), interval_seconds=LARGE_INTERVAL_SECONDS
    )


async def read_cards(readings: ExporterPages, cluster: KubeCluster, *, is_large: bool) -> None:
    """Follow the cards; those of a large world after its objects, for which all servers wait."""
    while is_large and not cluster.is_ready:
        await cluster.wait_changed(cluster.version, 1.0)
    await readings.run()


def bind_sockets(args: argparse.Namespace) -> tuple[Sockets, list[str]]:
    """All four sockets, and messages about them: a default port in use is replaced by a free one.

    Raises UserError if a port from a flag cannot be used.
    """
    wanted = {
        "console": (args.port, settings.CONSOLE_PORT),
        "gpu_exporter": (args.gpu_exporter_port, settings.GPU_EXPORTER_PORT),
        "cluster_exporter": (args.cluster_exporter_port, settings.CLUSTER_EXPORTER_PORT),
        "api": (args.api_port, settings.API_SERVER_PORT),
    }
    bound: dict[str, socket.socket] = {}
    moved: list[str] = []
    try:
        for name, (asked, default) in wanted.items():
            bound[name] = (
                bind_socket(HOST, asked)
                if asked is not None
                else _bind_default(name, default, moved)
            )
    except UserError:
        for sock in bound.values():
            sock.close()
        raise
    return Sockets(**bound), moved


def _bind_default(name: str, port: int, moved: list[str]) -> socket.socket:
    try:
        return bind_socket(HOST, port)
    except UserError:
        sock = bind_socket(HOST, 0)
        moved.append(
            f"port {port} is taken: the {name.replace('_', ' ')} listens on {port_of(sock)}"
        )
        return sock


def announce(
    sockets: Sockets,
    files: LaptopFiles,
    moved: Sequence[str],
    messages: Messages,
    stdout: Output,
    code: OneTimeCode | None = None,
) -> None:
    """Once all is ready: write the files for programs, and the addresses for the user to stdout."""
    page = url_of(sockets.console) + "/"
    files.write_ready(
        {
            "console": page,
            "kubeconfig": str(files.kubeconfig) if files.kubeconfig else None,
            "cluster_exporter": url_of(sockets.cluster_exporter) + "/metrics",
            "gpu_exporter": url_of(sockets.gpu_exporter) + "/metrics",
        }
    )
    for line in moved:
        messages.info(line)
    lines = [
        ("console:", page if code is None else f"{page}#code={code.text}"),
        ("kubeconfig:", str(files.kubeconfig) if files.kubeconfig else "none"),
        *([("context:", f"{settings.LAPTOP_CONTEXT} in {files.shared}")] if files.shared else []),
        ("cluster exporter:", url_of(sockets.cluster_exporter) + "/metrics"),
        ("GPU exporter:", url_of(sockets.gpu_exporter) + "/metrics"),
    ]
    stdout.write(render_rows(lines) + "press Ctrl-C to end\n")
    stdout.flush()


def port_of(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])
