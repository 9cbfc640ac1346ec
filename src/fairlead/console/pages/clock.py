"""The time of the cluster, and a person's orders to it. Only a simulated world's time can be moved.

An advance is answered when it has begun, not when it has arrived; `until` is null again once it is
over.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from fairlead.console.pages.envelope import Json, Timestamp, exact_timestamp, wire_key
from fairlead.errors import UserError
from fairlead.ports import Ports, Timekeeper, WorldWrite
from fairlead.wire.kube.time import parse_time

HAPPENED_MAX = 200


class ClockFace(Json, frozen=True):
    """The cluster's time. Ages count from here, because simulated time runs at its own `speed`.

    `speed` in seconds per second, unless it `is_paused` or goes from `since` to `until` as fast as
    it can.
    """

    now: Timestamp
    speed: float
    is_paused: bool
    since: Timestamp | None
    until: Timestamp | None


class ClockWrite(Json, frozen=True):
    """One write that a step came to. `verb` is `added`, `modified` or `deleted`."""

    verb: str
    kind: str
    namespace: str
    name: str


class ClockMoved(Json, frozen=True):
    """The clock after an order, and for a step what happened
    (the first 200 writes of `happened_count`).
    """

    clock: ClockFace
    happened: list[ClockWrite]
    happened_count: int


class ClockOrder(Json, frozen=True, forbid_unknown_fields=True):
    """`advance` takes `seconds`, `until` an RFC 3339 `until`,
    `speed` a `speed`; the others take nothing.
    """

    action: Literal["pause", "resume", "step", "advance", "until", "speed"]
    seconds: float | None = None
    until: str | None = None
    speed: float | None = None


ORDER_FIELDS = {"advance": "seconds", "until": "until", "speed": "speed"}


def clock_face(world: Ports, speed: float) -> ClockFace:
    """The time now. `speed`: what a clock without a timekeeper runs at."""
    if world.timekeeper is None:
        return ClockFace(exact_timestamp(world.clock.now()), speed, False, None, None)
    state = world.timekeeper.state()
    return ClockFace(
        exact_timestamp(state.now),
        state.speed,
        state.is_paused,
        _stamp(state.since),
        _stamp(state.until),
    )


def parse_order(body: bytes) -> ClockOrder:
    """Raises UserError for anything that is not a complete order."""
    try:
        order = msgspec.json.decode(body or b"null", type=ClockOrder)
    except msgspec.DecodeError as error:
        raise UserError(
            f"this is not an order for the clock: {error}",
            'send JSON such as {"action": "advance", "seconds": 600}',
        ) from error
    needed = ORDER_FIELDS.get(order.action)
    given = [key for key in ORDER_FIELDS.values() if getattr(order, key) is not None]
    if given != ([needed] if needed else []):
        keys = ", ".join(f"`{wire_key(key)}`" for key in given) or "nothing"
        raise UserError(
            f"`{order.action}` takes {f'`{needed}`' if needed else 'nothing'}, not {keys}",
            "send what belongs to the action only",
        )
    return order


def carry_out(order: ClockOrder, keeper: Timekeeper) -> list[WorldWrite]:
    """Hand the order to the timekeeper; the writes that a step came to, empty for every other
    order.

    Raises UserError for what cannot be.
    """
    if order.action == "step":
        return keeper.step()
    if order.action == "pause":
        keeper.pause()
    elif order.action == "resume":
        keeper.resume()
    elif order.action == "advance":
        keeper.run_until(keeper.state().now + _length(order.seconds))
    elif order.action == "until":
        keeper.run_until(_instant(order.until or ""))
    elif order.speed is not None:
        keeper.set_speed(order.speed)
    return []


def clock_moved(world: Ports, happened: list[WorldWrite]) -> ClockMoved:
    shown = [
        ClockWrite(each.verb, each.kind, each.namespace, each.name)
        for each in happened[:HAPPENED_MAX]
    ]
    return ClockMoved(clock_face(world, 1.0), shown, len(happened))


def _length(seconds: float | None) -> float:
    if seconds is None or not seconds > 0 or not math.isfinite(seconds):
        raise UserError(f"`{seconds}` is no time to go ahead", "give seconds above 0")
    return seconds


def _instant(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError as error:
        raise UserError(
            f"`{text[:100]}` is no time", "write it as `2026-01-05T09:30:00Z`"
        ) from error


def _stamp(at: float | None) -> str | None:
    return None if at is None else exact_timestamp(at)
