"""What a simulated world starts from: a scenario, or a saved snapshot.

The history of a scenario is simulated first.

The epoch of a scenario is chosen so that simulated now is the machine's now: ages in kubectl are
right at speed 1. The time of a world from a snapshot is the snapshot's: everything is as old as it
was then.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import msgspec

from fairlead.edge.files.snapshot_files import load_snapshot
from fairlead.errors import UserError
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.saved import SavedWorld, check_object
from fairlead_sim.scenario.file import parse_scenario, read_scenario
from fairlead_sim.scenario.scenario import Scenario
from fairlead_sim.world.imported import imported_world
from fairlead_sim.world.past import WorldPast
from fairlead_sim.world.world import World


class Begin(Protocol):
    """Creates a world for a seed; `past` keeps the end of the history that is simulated first."""

    def __call__(self, seed: int, past: WorldPast | None = None, /) -> World: ...


@dataclass(frozen=True, slots=True)
class InitialWorld:
    """What the world of a `flag` starts from.

    `origin` describes it for users (`scenario default`); equal digests mean equal worlds.

    `scenario` is the TOML text, "" if there is none. `world` creates it.
    """

    flag: str
    origin: str
    digest: str
    scenario: str
    world: Begin


def scenario_world(name: str) -> InitialWorld:
    """A scenario by name or path. Raises UserError if it cannot be read."""
    text, source = read_scenario(name)
    scenario = parse_scenario(text, source)

    def world(seed: int, past: WorldPast | None = None, /) -> World:
        with uncollected():
            made = sharing_world(scenario, seed, time.time() - scenario.history.seconds)
            if past is not None:
                past.begin(made, made.epoch + scenario.history.seconds - past.seconds)
            made.warm_up()
        to_the_present(made)
        return made

    return InitialWorld(
        "--scenario", f"scenario {name}", hashlib.sha256(text.encode()).hexdigest(), text, world
    )


def to_the_present(world: World) -> None:
    """Advance to the machine's now: creating the world took time, too."""
    world.run_until(max(world.clock.now(), time.time()))


def snapshot_world(name: str) -> InitialWorld:
    """A file that `fairlead snapshot save` wrote.

    Raises UserError if it cannot be read, or is too old to contain objects.
    """
    saved = load_snapshot(name)
    if saved.objects is None:
        what = (
            f"`{name}` has snapshot version {saved.version}: it can be shown, but no cluster can "
            "start from it"
        )
        raise UserError(what, "write a new one with `fairlead snapshot save FILE`")
    try:
        for obj in saved.objects:
            check_object(obj)
        imported = imported_world(saved.objects, saved.snapshot)
    except ValueError as error:
        raise UserError(
            f"snapshot `{name}` is damaged: {error}",
            "write a new one with `fairlead snapshot save FILE`",
        ) from error
    origin, digest = f"snapshot {name}", hashlib.sha256(msgspec.json.encode(saved)).hexdigest()
    return InitialWorld(
        "--from-snapshot",
        origin,
        digest,
        "",
        lambda seed, past=None: resumed_world("", origin, seed, imported),
    )


def resumed_world(scenario: str, origin: str, seed: int, saved: SavedWorld) -> World:
    """The saved world; `scenario` is its TOML text, "" for a world without one."""
    loaded = parse_scenario(scenario, origin) if scenario else Scenario(title=origin, node_pools=())
    with uncollected():
        return sharing_world(loaded, seed, saved.epoch, saved)


@contextmanager
def uncollected() -> Iterator[None]:
    """The garbage collector never examines objects made here; it takes a third of a large start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
