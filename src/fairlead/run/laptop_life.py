"""The world that a laptop serves: a new one at every start, or one kept in a state directory."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.types import ASGIApp

from fairlead.cli.frame.messages import Messages
from fairlead.console.charts.history import SLOTS, TICK_SECONDS
from fairlead.errors import UserError
from fairlead.run.hooks.world_people import define_people, make_up_people
from fairlead.run.initial_worlds import InitialWorld, scenario_world, snapshot_world
from fairlead.run.kept_world import DEFAULT_SCENARIO, KeptWorld, open_world
from fairlead.run.simulation import Simulation
from fairlead_sim.api.credentials import ServerCredentials, make_credentials
from fairlead_sim.api.saved import saved_first
from fairlead_sim.world.past import WorldPast
from fairlead_sim.world.world import World


class LaptopWorld(Struct, frozen=True):
    """A world to serve, the credentials of its server, and how it is kept.

    `origin` describes for users what it started from.
    """

    simulation: Simulation
    credentials: ServerCredentials
    origin: str
    kept: KeptWorld | None = None

    def served(self, app: ASGIApp) -> ASGIApp:
        """The app; if the world is kept, its answers wait for the disk."""
        return saved_first(app, self.kept.save) if self.kept else app

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        return [self.kept.run()] if self.kept else []

    def end(self) -> None:
        if self.kept:
            self.kept.close()


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, Ctrl-C ends the program at once; the event loop would wait for the end of the work,
    which takes many seconds for a large world.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def begin_life(
    args: argparse.Namespace, asked: InitialWorld | None, messages: Messages
) -> LaptopWorld:
    """The world that the flags of `up` ask for; `asked` is its `requested_world`.

    Raises UserError if it cannot be created.
    """
    past = WorldPast(SLOTS * TICK_SECONDS, TICK_SECONDS)
    if args.state_dir:
        kept = open_world(Path(args.state_dir).expanduser(), asked, args.seed, past)
        if kept.is_restored:
            messages.info(f"the world of {kept.origin} in `{args.state_dir}` goes on")
        _let_people_in(kept.world, are_made_up=not kept.is_restored and not args.from_snapshot)
        return LaptopWorld(
            Simulation(kept.world, args.speed, past),
            kept.credentials,
            kept.origin,
            kept,
        )
    beginning = asked or scenario_world(DEFAULT_SCENARIO)
    world = beginning.world(args.seed or 0, past)
    _let_people_in(world, are_made_up=not args.from_snapshot)
    simulation = Simulation(world, args.speed, past)
    return LaptopWorld(simulation, make_credentials(), beginning.origin)


def _let_people_in(world: World, *, are_made_up: bool) -> None:
    """`are_made_up`: the world has just begun from a scenario, so its users are to be made, too."""
    define_people(world.cluster)
    if are_made_up:
        make_up_people(world)


def requested_world(args: argparse.Namespace) -> InitialWorld | None:
    """The beginning that the user named; None = none. Raises UserError if it cannot be read."""
    if args.from_snapshot and args.scenario:
        raise UserError(
            (
                f"a world begins with scenario `{args.scenario}` or with snapshot "
                f"`{args.from_snapshot}`, not with both"
            ),
            "leave out --scenario or --from-snapshot",
        )
    if args.from_snapshot:
        return snapshot_world(args.from_snapshot)
    return scenario_world(args.scenario) if args.scenario else None
