"""What a simulated world begins with: a scenario, whose history it lives through first, or a saved snapshot.

The epoch of a scenario is chosen so that simulated now is wall now: ages in kubectl are right at speed 1. In
a world from a snapshot it is the time of the snapshot: everything is as old as it was then.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from fairlead.edge.files.snapshot_files import load_snapshot
from fairlead.errors import UserError
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.saved import SavedWorld, check_object
from fairlead_sim.scenario.file import parse_scenario, read_scenario
from fairlead_sim.scenario.scenario import Scenario
from fairlead_sim.world.imported import imported_world
from fairlead_sim.world.world import World


@dataclass(frozen=True, slots=True)
class Beginning:
    """What somebody asked a world to begin with, by `flag`. `origin` says it for a person (`scenario
    default`); equal digests mean equal beginnings.

    `scenario` is the TOML text, "" where there is none. `world` makes it, for a seed.
    """

    flag: str
    origin: str
    digest: str
    scenario: str
    world: Callable[[int], World]


def scenario_beginning(name: str) -> Beginning:
    """A scenario by name or path. Raises UserError when it cannot be read."""
    text, source = read_scenario(name)
    scenario = parse_scenario(text, source)

    def world(seed: int) -> World:
        with uncollected():
            made = sharing_world(scenario, seed, time.time() - scenario.history.seconds)
            made.warm_up()
        to_the_present(made)
        return made

    return Beginning("--scenario", f"scenario {name}", hashlib.sha256(text.encode()).hexdigest(), text, world)


def to_the_present(world: World) -> None:
    """Live up to wall now: making the world took time, too."""
    world.run_until(max(world.clock.now(), time.time()))


def snapshot_beginning(name: str) -> Beginning:
    """A file that `fairlead snapshot save` wrote.

    Raises UserError when it cannot be read, or is too old to have objects.
    """
    saved = load_snapshot(name)
    if saved.objects is None:
        told = f"`{name}` has snapshot version {saved.version}: it can be shown, but no cluster can go on from it"
        raise UserError(told, "write a new one with `fairlead snapshot save FILE`")
    try:
        for obj in saved.objects:
            check_object(obj)
        imported = imported_world(saved.objects, saved.snapshot)
    except ValueError as error:
        raise UserError(f"snapshot `{name}` is damaged: {error}", "write a new one with `fairlead snapshot save FILE`") from error
    origin, digest = f"snapshot {name}", hashlib.sha256(msgspec.json.encode(saved)).hexdigest()
    return Beginning("--from-snapshot", origin, digest, "", lambda seed: resumed_world("", origin, seed, imported))


def resumed_world(scenario: str, origin: str, seed: int, saved: SavedWorld) -> World:
    """The world that was saved; `scenario` is its TOML text, "" for a world without one."""
    loaded = parse_scenario(scenario, origin) if scenario else Scenario(title=origin, node_pools=())
    with uncollected():
        return sharing_world(loaded, seed, saved.epoch, saved)


@contextmanager
def uncollected() -> Iterator[None]:
    """What is made here stays: the collector never looks at it (a third of a large world's start)."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
