"""`fairlead up`: a simulated cluster served as a Kubernetes API, and everything of Fairlead reading it over loopback like any cluster.

What a newcomer gets wrong: the exporters and the console here are the very ones that run against a real cluster. They know the
simulated one only through HTTP; nothing takes a short cut because it lives in the same process. What charts show of the hour before
the start is the one thing no server could have seen: there the history itself is lived through again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, structs, to_builtins

from fairlead import settings
from fairlead.apps import cluster_exporter, gpu_exporter
from fairlead.apps.console_server import ConsoleServer, ConsoleSettings
from fairlead.apps.gpu_exporter import GpuExporterSettings
from fairlead.apps.laptop import run_all
from fairlead.apps.server import bind_socket, serve
from fairlead.cli.frame.context import Output
from fairlead.cli.frame.messages import Messages
from fairlead.console.charts.history import SLOTS, TICK_SECONDS
from fairlead.edge.connection.connection import LaptopPages
from fairlead.edge.files import laptop_state
from fairlead.edge.files.own_files import FileKind, OwnFile, absolute, json_with, remove_folder, render_json, replace_whole
from fairlead.edge.kube.cluster import KubeCluster
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.prometheus.exporter_pages import ExporterPages
from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.ports import Ports
from fairlead.run.laptop_kubeconfig import OWN_KUBECONFIG, SharedKubeconfig, end_kubeconfig
from fairlead.run.laptop_life import asked_beginning, begin_life, interruptible
from fairlead.run.simulation import connection_to_laptop
from fairlead.wire.metrics.gpu_readings import NATIVE_METRICS
from fairlead.wire.text.tabwriter import render_rows
from fairlead_sim.api.credentials import Credentials, kubeconfig_entries, render_kubeconfig
from fairlead_sim.api.server import ApiServer

HOST: Final = settings.LOOPBACK
LARGE_INTERVAL_SECONDS: Final = 30.0
"""How often the cards of a large world are read: a second or two of work each time."""


STATE_FILE: Final = FileKind("state file", laptop_state.FILE, json_with("pid", "kubeconfig", "console"))
READY_FILE: Final = FileKind("ready file", "ready.json", json_with("kubeconfig", "console", "cluster_exporter", "gpu_exporter"))


class Sockets(Struct, frozen=True):
    """The laptop's four listening sockets, bound before anything else exists."""

    console: socket.socket
    gpu_exporter: socket.socket
    cluster_exporter: socket.socket
    api: socket.socket


async def run_laptop(args: argparse.Namespace, env: Mapping[str, str], messages: Messages, stdout: Output) -> None:
    """Until SIGTERM or Ctrl-C. Raises UserError for what a person asked for and cannot have: a port, a scenario, a file."""
    with interruptible():
        asked = asked_beginning(args)
        if args.use_context and not args.kubeconfig:
            raise UserError("--use-context says nothing without --kubeconfig", "name the file whose current context it shall be")
        files = LaptopFiles(args, env, messages)
        files.check()
        sockets, moved = bind_sockets(args)
        life = begin_life(args, asked, messages)
    simulation, credentials = life.simulation, life.credentials
    simulation.world.accounts.publish(credentials.authority.decode())
    api_url = url(sockets.api, "https")
    pages = LaptopPages(console=url(sockets.console), gpu_exporter=url(sockets.gpu_exporter) + "/metrics")
    try:
        files.write_kubeconfig(api_url, credentials, pages)
        async with KubeApi(connection_to_laptop(api_url, credentials)) as api:
            cluster = KubeCluster(api, simulation)
            exported = exporter_settings(sockets.gpu_exporter, is_large=simulation.is_large)
            page = url(sockets.gpu_exporter) + "/metrics"
            readings = ExporterPages(
                [page], simulation, interval_seconds=exported.interval_seconds, stale_after_seconds=2 * exported.stale_after_seconds
            )
            world = Ports(cluster, readings, simulation, is_simulated=True, name=life.origin, timekeeper=simulation.driver)
            past = simulation.past(SLOTS * TICK_SECONDS, TICK_SECONDS)
            console = ConsoleServer(world, ConsoleSettings(port=port_of(sockets.console)), past)
            api_server = ApiServer(
                simulation.world.cluster,
                simulation.world.clock,
                [credentials.token],
                signing_key=credentials.signing_key,
                logs=simulation.world.logs,
                catch_up=simulation.driver.catch_up,
            )
            told = cluster_exporter.ClusterExporterSettings(port=port_of(sockets.cluster_exporter))
            served = life.served(api_server)
            await run_all(
                [
                    lambda ready: serve(served, sock=sockets.api, ssl=credentials.ssl, ready=ready, stopping=api_server.stop),
                    lambda ready: gpu_exporter.run(simulation, simulation, exported, sock=sockets.gpu_exporter, ready=ready),
                    lambda ready: cluster_exporter.run(cluster, readings, simulation, told, sock=sockets.cluster_exporter, ready=ready),
                    lambda ready: console.run(sockets.console, ready),
                ],
                [simulation.driver.run(), cluster.run(), read_cards(readings, cluster, is_large=simulation.is_large), *life.loops()],
                probed=[sockets.gpu_exporter, sockets.cluster_exporter, sockets.console],
                on_ready=lambda: announce(sockets, files, moved, messages, stdout),
            )
    finally:
        files.remove()
        life.end()


def exporter_settings(sock: socket.socket, *, is_large: bool) -> GpuExporterSettings:
    """Of a large world only what the console reads, and less often: forty thousand cards have 800 MB to say each time."""
    chosen = gpu_exporter.settings_from_flags(address=(HOST, port_of(sock)))
    if not is_large:
        return chosen
    return structs.replace(chosen, compat=(), only=frozenset(NATIVE_METRICS), interval_seconds=LARGE_INTERVAL_SECONDS)


async def read_cards(readings: ExporterPages, cluster: KubeCluster, *, is_large: bool) -> None:
    """Follow the cards: those of a large world once its objects have been read, which is what everybody waits for."""
    while is_large and not cluster.is_ready:
        await cluster.wait_changed(cluster.version, 1.0)
    await readings.run()


def bind_sockets(args: argparse.Namespace) -> tuple[Sockets, list[str]]:
    """All four, and what is to be said of them: a default port that is taken gives way to a free one.

    Raises UserError when a port that was asked for cannot be had.
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
            bound[name] = bind_socket(HOST, asked) if asked is not None else _bind_default(name, default, moved)
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
        moved.append(f"port {port} is taken: the {name.replace('_', ' ')} listens on {port_of(sock)}")
        return sock


class LaptopFiles:
    """What a laptop leaves on disk while it runs. Only what the person named must be writable; for the rest a warning does.

    Its own kubeconfig is in the state directory; the one that the person named may be others', too.
    """

    def __init__(self, args: argparse.Namespace, env: Mapping[str, str], messages: Messages) -> None:
        default = laptop_state.laptop_home(env).absolute()
        laptop_state.forget_killed(default)
        home = _own_home(absolute(args.state_dir) if args.state_dir else default, messages)
        self._own = OwnFile(home / laptop_state.KUBECONFIG, OWN_KUBECONFIG)
        self._state = OwnFile(home / laptop_state.FILE, STATE_FILE, 0o644)
        is_elsewhere = default not in (home, *home.parents)
        self._sign = OwnFile(laptop_state.own_folder(default) / laptop_state.FILE, STATE_FILE, 0o644) if is_elsewhere else None
        """Of a laptop that keeps its files elsewhere: it runs, as commands find that were told no directory."""
        self._ready = OwnFile(absolute(args.ready_file), READY_FILE, 0o644) if args.ready_file else None
        self._named = SharedKubeconfig(absolute(args.kubeconfig), is_made_current=args.use_context) if args.kubeconfig else None
        self._is_own_named = self._named is not None and os.path.realpath(self._named.path) == os.path.realpath(self._own.path)
        self._env = env
        self._messages = messages
        self._temporary: Path | None = None
        self._is_own_written = False
        self.kubeconfig: Path | None = None
        """The one to tell a person or a program: it opens the laptop for who names no context."""

    @property
    def shared(self) -> Path | None:
        """The kubeconfig that has the laptop's context beside another current one."""
        return self._named.path if self._named is not None and not self._named.opens_the_laptop else None

    def check(self) -> None:
        """Raises UserError for a file that the person named and that is not ours to write."""
        if self._ready is not None:
            self._ready.check()
        if self._named is not None:
            self._named.check(laptop_state.running_laptops(self._env))

    def write_kubeconfig(self, server: str, credentials: Credentials, pages: LaptopPages) -> None:
        """In the state directory, else among the temporary files: kubectl should work on a machine with a full disk, too."""
        entries = kubeconfig_entries(server, credentials, {settings.LAPTOP_EXTENSION: pages})
        is_opened_by_named = False
        if self._named is not None:
            self._named.write(to_builtins(entries))
            is_opened_by_named = self._named.opens_the_laptop
        if not self._is_own_named:
            self._write_own(render_kubeconfig(entries), is_needed=not is_opened_by_named)
        if self._named is not None and is_opened_by_named:
            self.kubeconfig = self._named.path

    def _write_own(self, text: bytes, *, is_needed: bool) -> None:
        try:
            self._own.write(text, with_folder=True)
            self.kubeconfig, self._is_own_written = self._own.path, True
        except FairleadError as error:
            if is_needed:
                self.kubeconfig = self._write_temporary(text)
                instead = f"the kubeconfig is `{self.kubeconfig}`" if self.kubeconfig else "there is no kubeconfig, so no kubectl"
                self._messages.warn(f"{error.what}; {instead}")

    def _write_temporary(self, text: bytes) -> Path | None:
        try:
            self._temporary = Path(tempfile.mkdtemp(prefix="fairlead-"))
            path = self._temporary / laptop_state.KUBECONFIG
            replace_whole(path, text)
        except OSError:
            return None
        return path

    def write_ready(self, addresses: Mapping[str, object]) -> None:
        """The state file for `arena` and the ready file for whoever asked for one."""
        try:
            if self.kubeconfig is not None:
                own = self._own.path if self._is_own_written else self.kubeconfig
                told = {"pid": os.getpid(), **addresses, "kubeconfig": str(own)}
                self._state.write(render_json(told), with_folder=True)
                self._write_sign(render_json(told))
        except FairleadError as error:
            self._messages.warn(f"commands will not find this laptop: {error.what}; give them --kubeconfig {self.kubeconfig}")
        if self._ready is not None:
            try:
                self._ready.write(render_json(addresses), with_folder=True)
            except OutsideError as error:  # whoever asked for it waits for it
                raise UserError(error.what, error.hint) from error

    def _write_sign(self, told: bytes) -> None:
        """Where commands look that were told no directory. Who named one can do without."""
        if self._sign is not None:
            with contextlib.suppress(FairleadError):
                self._sign.write(told, with_folder=True)

    def remove(self) -> None:
        """At the end: what opens nothing is only in the way, but a whole kubeconfig that the person named is theirs."""
        for file in (self._state, self._sign, self._ready, None if self._is_own_named else self._own):
            if file is not None:
                file.remove()
        if self._temporary is not None:
            (self._temporary / laptop_state.KUBECONFIG).unlink(missing_ok=True)
        if self._named is not None:
            end_kubeconfig(self._named, self._messages)
        own_home = self._state.path.parent if self._state.path.parent.name == str(os.getpid()) else None
        for folder in (own_home, self._sign.path.parent if self._sign is not None else None, self._temporary):
            if folder is not None:
                remove_folder(folder)


def _own_home(home: Path, messages: Messages) -> Path:
    """The state directory, or a folder in it when another laptop lives there: two must not write over each other's kubeconfig."""
    other = laptop_state.laptop_in(home)
    if other is None:
        return home
    own = laptop_state.own_folder(home)
    messages.info(f"another laptop (process {other.pid}) keeps its files in `{home}`, this one in `{own}`; commands find the other")
    return own


def announce(sockets: Sockets, files: LaptopFiles, moved: Sequence[str], messages: Messages, stdout: Output) -> None:
    """All is up: tell programs in files, and the person on stdout, who learns of ports only what still matters now."""
    files.write_ready(
        {
            "console": url(sockets.console) + "/",
            "kubeconfig": str(files.kubeconfig) if files.kubeconfig else None,
            "cluster_exporter": url(sockets.cluster_exporter) + "/metrics",
            "gpu_exporter": url(sockets.gpu_exporter) + "/metrics",
        }
    )
    for line in moved:
        messages.info(line)
    lines = [
        ("console:", url(sockets.console) + "/"),
        ("kubeconfig:", str(files.kubeconfig) if files.kubeconfig else "none"),
        *([("context:", f"{settings.LAPTOP_CONTEXT} in {files.shared}")] if files.shared else []),
        ("cluster exporter:", url(sockets.cluster_exporter) + "/metrics"),
        ("GPU exporter:", url(sockets.gpu_exporter) + "/metrics"),
    ]
    stdout.write(render_rows(lines) + "press Ctrl-C to end\n")
    stdout.flush()


def url(sock: socket.socket, scheme: str = "http") -> str:
    return f"{scheme}://{HOST}:{port_of(sock)}"


def port_of(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])
