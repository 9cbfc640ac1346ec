"""Saves worlds and restores them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import PODS
from fairlead_sim.objects.saved import HeldCard, SavedWorld
from fairlead_sim.world.world import World

HOURS_OFF = 12 * 3600.0
VERSION = 1_000_000


def saved_of(
    world: World, hours_off: float = HOURS_OFF, standstills: tuple[tuple[float, float], ...] = ()
) -> SavedWorld:
    """The contents of the file of a world that is stopped now: values that went through JSON."""
    objects = [obj for ref in world.cluster.kinds() for obj in world.cluster.list(ref)]
    stopped = world.clock.now()
    return SavedWorld(
        objects=json.loads(json.dumps(objects)),
        stopped_at=stopped,
        now=stopped + hours_off,
        epoch=world.epoch + hours_off,
        resource_version=VERSION,
        names_counter=world.cluster.names.counter + (1 << 32),
        held={
            obj["metadata"]["uid"]: msgspec.json.decode(
                msgspec.json.encode(world.devices.held_by(obj["metadata"]["uid"])),
                type=list[HeldCard],
            )
            for obj in world.cluster.list(PODS)
        },
        submitted={stream.key: stream.number for stream in world.arrivals},
        standstills=standstills,
    )


def woken(world: World, **more: Any) -> World:
    saved = saved_of(world, **more)
    return sharing_world(world.scenario, world.seed, saved.epoch, saved)
