"""A running simulated world as the ports of servers, and the connection to its API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials, bearer
from fairlead.model.devices.device import DeviceSample
from fairlead.model.devices.gpu_load import SimulatedLoad
from fairlead_sim.api.credentials import ServerCredentials
from fairlead_sim.gpus.sampled import SampledDevices
from fairlead_sim.objects.resources import NODES
from fairlead_sim.time.clock import FASTEST
from fairlead_sim.world.driver import Driver
from fairlead_sim.world.past import NODES_KEPT, PastMoment, WorldPast
from fairlead_sim.world.world import World


class Simulation:
    """A running simulated world. Create it on a running event loop; `driver.run()` lets time pass.

    Implements the port `Clock` (with the `speed` that the console needs); `devices` returns
    `Devices`. `loads`: returns what load generators generate on its cards. `past`: what was kept of
    the world's history; None = nothing, because the world did not start from a scenario now.
    """

    def __init__(self, world: World, speed: float, past: WorldPast | None = None) -> None:
        self.world = world
        self.driver = Driver(self.world, speed)
        self._past = past
        self.loads: Callable[[], Sequence[SimulatedLoad]] = tuple

    @property
    def speed(self) -> float:
        """The highest speed of time, for judging the age of a value.

        A run to a later time is as fast as the machine.
        """
        return self.driver.pace.speed if self.driver.state().until is None else FASTEST

    @property
    def is_large(self) -> bool:
        """Whether the world is too large for a kept past and pages with all cards' values."""
        return len(self.world.cluster.list(NODES)) > NODES_KEPT

    def now(self) -> float:
        return self.driver.now()

    def past(self) -> Sequence[PastMoment]:
        """The moments that were kept of the time before this call, the oldest first; once."""
        if self._past is None:
            return ()
        past, self._past = self._past, None
        past.end()
        return past.moments()

    def devices(self, interval_seconds: float) -> SampledDevices:
        """The cards of all nodes, read in parts: 40,000 take a second."""
        return SampledDevices(
            self._cards, self.now, interval_seconds, self.world.devices.stuck_calls
        )

    def _cards(self) -> Iterator[Sequence[DeviceSample]]:
        self.driver.catch_up()
        self.world.devices.show_loads(self.loads())
        return self.world.devices.in_parts(is_brief=self.is_large)


def connection_to_laptop(server: str, credentials: ServerCredentials) -> Connection:
    """This process's connection to its own API server, like a client's with its kubeconfig."""
    issued = IssuedCredentials(authorization=bearer(credentials.token))
    return Connection(
        server=server,
        credentials=Credentials(lambda: issued, is_renewable=False),
        context="fairlead",
        origin="the laptop",
        ca_pem=credentials.authority,
    )
