"""The pieces that several servers are built from: a simulated world, a followed cluster, GPU readings, a log on stderr.

What a newcomer gets wrong: nothing is decided here. Worlds are built and handed to apps as ports (`fairlead.ports`).
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from fairlead.apps.api_credentials import Credentials as ServerCredentials
from fairlead.edge.clock import WallClock
from fairlead.edge.connection import Connection
from fairlead.edge.credentials import Credentials, Issued, bearer
from fairlead.edge.exporter_pages import ExporterPages
from fairlead.edge.kube_api import KubeApi
from fairlead.edge.prometheus import Prometheus
from fairlead.edge.prometheus_address import prometheus_connection
from fairlead.edge.prometheus_readings import PrometheusReadings
from fairlead.edge.world import KubeCluster
from fairlead.errors import UserError
from fairlead.model.device import DeviceSample
from fairlead.model.gpu import GpuReading
from fairlead.model.snapshot import GPU_TELEMETRY, ClusterSnapshot, Source
from fairlead.ports import Clock, GpuReadings
from fairlead.ports import World as Ports
from fairlead.sim.clock import FASTEST
from fairlead.sim.driver import Driver
from fairlead.sim.resources import NODES
from fairlead.sim.snapshot import take_snapshot
from fairlead.sim.world import World
from fairlead.wire.terminal_text import escape_terminal

NODES_LIVED_TWICE: Final = 200
"""As many nodes as the console's built-in series keep (decision 9)."""
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


class Simulation:
    """A simulated world that lives at a pace. Make it on a running event loop; `driver.run()` lets it go on.

    Fills the ports `Clock` (with the `speed` that the console asks for) and `Devices`. `has_past`: whether its history can be lived again.
    """

    def __init__(self, world: World, speed: float, *, has_past: bool = True) -> None:
        self.world = world
        self.driver = Driver(self.world, speed)
        self._has_past = has_past

    @property
    def speed(self) -> float:
        """How fast time may go by at most, for who judges the age of a value: a run to a later time is as fast as the machine."""
        return self.driver.pace.speed if self.driver.state().until is None else FASTEST

    @property
    def is_large(self) -> bool:
        """Whether it is too large for what only comforts: a past, and a page with everything that every card has to say."""
        return len(self.world.cluster.list(NODES)) > NODES_LIVED_TWICE

    def now(self) -> float:
        return self.driver.now()

    def past(self, seconds: float, step: float) -> Iterator[ClusterSnapshot]:
        """The last `seconds` before the first look, seen every `step`: equal seeds live equal lives, so a second world shows it.

        Nothing of a large world: living twice would cost its start more than the charts are worth. Nothing either of one that did not begin
        with a scenario now: what people did in its earlier life does not follow from a seed.
        """
        if not self._has_past or self.is_large:
            return
        again = self.world.again()
        end = self.now()
        moment = max(self.world.epoch, end - seconds)
        while moment < end:
            again.run_until(moment)
            yield take_snapshot(again)
            moment += step

    def sample(self) -> Sequence[DeviceSample]:
        self.driver.catch_up()
        return self.world.devices.sample(is_brief=self.is_large)


def connection_to_laptop(server: str, credentials: ServerCredentials) -> Connection:
    """How this process speaks to its own API server: as any client would, with the authority and the token of its kubeconfig."""
    issued = Issued(authorization=bearer(credentials.token))
    return Connection(
        server=server,
        credentials=Credentials(lambda: issued, is_renewable=False),
        context="fairlead",
        origin="the laptop",
        ca_pem=credentials.authority,
    )


class NoReadings:
    """`ports.GpuReadings` when nobody was asked for GPU values (`--gpu-source none`)."""

    async def run(self) -> None:
        return

    def latest(self) -> tuple[GpuReading, ...]:
        return ()

    def source(self) -> Source:
        return Source(GPU_TELEMETRY, "off", "GPU values are not read", "start it with --gpu-source exporters or prometheus")


@asynccontextmanager
async def followed_world(
    connection: Connection, args: argparse.Namespace, env: Mapping[str, str], *, with_events: bool
) -> AsyncIterator[Ports]:
    """A real cluster, kept current while the loops of its parts run. Clients are closed when the block ends.

    `with_events`: whether anybody reads them; on a large cluster they are many.
    """
    clock = WallClock()
    async with AsyncExitStack() as clients:
        api = await clients.enter_async_context(KubeApi(connection))
        prometheus = named_prometheus(args, env)
        if prometheus is not None:
            await clients.enter_async_context(prometheus)
        gpus = gpu_readings(args, prometheus, clock)
        yield Ports(
            cluster=KubeCluster(api, clock, with_events=with_events), gpus=gpus, clock=clock, series=prometheus, name=connection.server
        )


def named_prometheus(args: argparse.Namespace, env: Mapping[str, str]) -> Prometheus | None:
    """The Prometheus of `--prometheus` or `PROMETHEUS_ADDRESS`; None when nobody named one."""
    address = args.prometheus or env.get("PROMETHEUS_ADDRESS", "")
    if not address:
        return None
    token = "" if args.prometheus_token_file else env.get("PROMETHEUS_TOKEN", "")
    return Prometheus(prometheus_connection(address, token=token, token_file=args.prometheus_token_file, ca_file=args.prometheus_ca_file))


def gpu_readings(args: argparse.Namespace, prometheus: Prometheus | None, clock: Clock) -> GpuReadings:
    """What `--gpu-source` asks for. Raises UserError for a source that lacks its address."""
    if args.gpu_source == "none":
        return NoReadings()
    if args.gpu_source == "prometheus":
        if prometheus is None:
            raise UserError("`--gpu-source prometheus` needs a Prometheus, and none is named", "add --prometheus URL")
        return PrometheusReadings(prometheus, clock)
    return ExporterPages(args.gpu_exporter, clock)


class LogLine(logging.Formatter):
    """What the cluster said may be part of it, and a person's terminal shows it."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_terminal(super().format(record))


def log_to_stderr(level: str) -> None:
    """Servers log lines with the local time, as a person reads them in a terminal or in `kubectl logs`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLine("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
    logging.basicConfig(handlers=[handler], level=_LEVELS[level])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it greets and takes leave once per port
