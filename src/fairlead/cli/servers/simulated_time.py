"""`fairlead time`: shows, stops, steps and advances the clock of a laptop."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context, TimeOfLaptop
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.servers.flags import path_name
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.console.pages.clock import ClockFace, ClockMoved, ClockOrder

NAME = "time"
READS_A_CLUSTER = False
HELP = """Show and change the time of a laptop (`fairlead up`): the laptop that KUBECONFIG names,
else the one that runs on this machine. ACTION is one of

    show           print the simulated time and its speed (default)
    pause          stop the time: the API serves reads and writes, watches stay open, nothing else
                   changes; ends a run
    resume         continue
    step           pause, advance to the next write, and print it
    advance SPAN   advance by 90s, 20m, 1h30m or 2d, as fast as this machine can,
                   then continue as before
    until TIME     advance to a time such as 2026-01-05T09:30:00Z (no zone: UTC)
    speed X        simulated seconds per second, 0.01 to 100000

`advance` and `until` wait for the end of the run and show its progress;
Ctrl-C pauses the time there."""

TAKES: Final = {
    "advance": "a span of time, such as `10m`",
    "until": "a time, such as `2026-01-05T09:30:00Z`",
    "speed": "a number, such as `60`",
}
ACTIONS: Final = ("show", "pause", "resume", "step", *TAKES)
POLL_SECONDS: Final = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", metavar="ACTION", nargs="?", default="show", help="what to do; see above"
    )
    parser.add_argument(
        "value", metavar="VALUE", nargs="?", default="", help="for advance, until and speed"
    )
    parser.add_argument(
        "--output",
        "-o",
        metavar="FORMAT",
        choices=("text", "json"),
        default="text",
        help="text or json (default text)",
    )
    parser.add_argument(
        "--no-wait", action=BooleanFlag, help="start a run and do not wait for its end"
    )
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        type=path_name,
        help="state directory of the laptop, if it was started with one",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    order = read_order(args.action, args.value)
    clock = context.world.laptop_clock(args.state_dir or "")
    if order is None:
        context.stdout.write(_face_text(clock.read(), args.output))
        return 0
    moved = clock.order(order)
    if moved.clock.until is not None and order.action in ("advance", "until") and not args.no_wait:
        moved = _wait(clock, moved, context)
    context.stdout.write(_moved_text(moved, args.output, is_step=order.action == "step"))
    return 0


def read_order(action: str, value: str) -> ClockOrder | None:
    """The order, None for `show`. Raises UserError for words that are not an order."""
    from fairlead.console.pages.clock import ClockOrder

    if action not in ACTIONS:
        raise UserError(f"`{action}` is not an action", f"actions: {', '.join(ACTIONS)}")
    if bool(value) != (action in TAKES):
        hint = "`fairlead time --help` shows what each action takes"
        raise UserError(
            (
                f"`{action}` takes {TAKES.get(action, 'nothing')}, not "
                f"{f'`{value}`' if value else 'nothing'}"
            ),
            hint,
        )
    if action == "show":
        return None
    if action == "advance":
        return ClockOrder("advance", seconds=_seconds(value))
    if action == "until":
        return ClockOrder("until", until=value)
    return ClockOrder("speed", speed=_number(value)) if action == "speed" else ClockOrder(action)  # type: ignore[arg-type]


def _seconds(text: str) -> float:
    from fairlead.wire.text.time_span import parse_span

    try:
        return parse_span(text)
    except ValueError as error:
        raise UserError(
            str(error), "days, hours, minutes, seconds: `2d`, `1h30m`, `90s`"
        ) from error


def _number(text: str) -> float:
    """A speed as JSON can carry it: `nan` and `inf` cannot."""
    import math

    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(
            f"`{text}` is not a speed", "give simulated seconds per second, such as `60`"
        )
    return value


def _wait(clock: TimeOfLaptop, moved: ClockMoved, context: Context) -> ClockMoved:
    """Waits until the run is over, or another client ended it. Ctrl-C pauses the time."""
    from fairlead.console.pages.clock import ClockMoved, ClockOrder

    face, is_seen = moved.clock, sys.stderr.isatty()
    try:
        while face.until is not None:
            if is_seen:
                sys.stderr.write(f"\r{face.now}  {100 * _progress(face):3.0f} %")
                sys.stderr.flush()
            context.sleep(POLL_SECONDS)
            face = clock.read()
    except KeyboardInterrupt:
        stood = clock.order(ClockOrder("pause")).clock
        context.messages.info(f"paused at {stood.now}; `fairlead time resume` goes on")
        raise
    finally:
        if is_seen:
            sys.stderr.write("\r\033[K")
    return ClockMoved(face, moved.happened, moved.happened_count)


def _progress(face: ClockFace) -> float:
    """How much of the run is done, 0 to 1."""
    since, now, until = (
        datetime.fromisoformat(text or face.now).timestamp()
        for text in (face.since, face.now, face.until)
    )
    return min(1.0, max(0.0, (now - since) / (until - since))) if until > since else 0.0


def _face_text(face: ClockFace, form: str) -> str:
    if form == "json":
        return _json(face)
    from fairlead.wire.text.tabwriter import render_rows

    pace = "paused" if face.is_paused else "running"
    rows = [("time:", _plain(face.now)), ("pace:", f"{pace}, x{face.speed:g}")]
    if face.until is not None:
        rows.append(("run:", f"{100 * _progress(face):.0f} % of the way to {_plain(face.until)}"))
    return render_rows(rows)


def _moved_text(moved: ClockMoved, form: str, *, is_step: bool) -> str:
    if form == "json":
        return _json(moved if is_step else moved.clock)
    lines = [
        f"{each.verb:<9} {each.kind} {'/'.join(filter(None, (each.namespace, each.name)))}\n"
        for each in moved.happened
    ]
    hidden = moved.happened_count - len(moved.happened)
    lines += [f"… and {hidden} more\n"] if hidden else []
    lines += ["nothing was written yet; step again\n"] if is_step and not moved.happened else []
    return "".join(lines) + _face_text(moved.clock, form)


def _plain(stamp: str) -> str:
    return datetime.fromisoformat(stamp).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _json(value: object) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
