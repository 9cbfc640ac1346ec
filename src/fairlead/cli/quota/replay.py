"""`fairlead quota plan --replay`: the pods of the past with another tree, or with other nodes
(docs/spec/usage.md#replay).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.usage.sources import add_source
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.console.pages.usage.replay import QuotaReplay, ReplayFigures, ReplayLeaf

_STEP: Final = 10
"""Percent between two lines of progress."""
_OTHERS: Final = ("add", "remove", "until_settled")
CAUSES: Final = {
    "gap": "no recorder ran",
    "evicted": "the pod was evicted or created again in one of the two",
    "scheduler": "the pod waited for a node after its admission",
    "consequence": "an earlier admission differs",
    "unknown": "no cause is known",
}


def add_replay(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--replay",
        metavar="PERIOD",
        default="",
        help="play the pods of the past, such as 30d or 24h, with the tree of --tree",
    )
    add(
        "--nodes",
        metavar="MODEL=+N",
        action="append",
        default=[],
        help="with --replay: N more or fewer (-N) nodes with GPUs of a model; repeatable",
    )
    add_source(parser, "with --replay: ")


def check_replay(args: argparse.Namespace) -> None:
    """Raises UserError for flags that do not go together."""
    if not args.replay:
        for name in ("nodes", "store", "console"):
            if getattr(args, name):
                raise UserError(
                    f"--{name} is given without --replay", "add --replay with a period, such as 30d"
                )
        return
    for name in _OTHERS:
        if getattr(args, name):
            raise UserError(
                f"--replay and --{name.replace('_', '-')} are given",
                "a replay plays the pods of the past alone: give one of them",
            )
    if not args.tree and not args.nodes:
        raise UserError(
            "--replay is given without a change", "give another tree (--tree), nodes, or both"
        )


def run_replay(args: argparse.Namespace, context: Context) -> int:
    from fairlead.cli.quota.tree_file import parse_tree, read_tree_object
    from fairlead.cli.usage.sources import ReplayQuestion, usage_source
    from fairlead.rules.usage.replay.changes import parse_model_change

    for text in args.nodes:
        parse_model_change(text)
    tree = None
    if args.tree:
        found_object = read_tree_object(args.tree, context.machine)
        tree = found_object, parse_tree(found_object, args.tree)
    progress = _Progress(context).show
    found = usage_source(args, context).replay(
        ReplayQuestion(args.replay, tree, args.nodes, progress)
    )
    if args.output:
        import msgspec

        from fairlead.cli.frame.documents import render_document

        document: Any = msgspec.to_builtins(found)
        context.stdout.write(render_document(args.output, document).rstrip("\n") + "\n")
    else:
        context.stdout.write(replay_text(found))
    return 0


class _Progress:
    def __init__(self, context: Context) -> None:
        self._messages = context.messages
        self._shown: tuple[str, int] = "", -1

    def show(self, what: str, part: float) -> None:
        step = what, int(part * 100) // _STEP * _STEP
        if step != self._shown:
            self._shown = step
            self._messages.info(f"{what}: {step[1]} %")


def replay_text(found: QuotaReplay) -> str:
    """Three tables: by leaf, what is free, and how far the replay is from the past."""
    from fairlead.wire.text.tabwriter import render_rows

    period = found.period
    rows: list[tuple[str, ...]] = [
        (
            *("LEAF", "WHAT", "PODS", "WAITED(h)", "MEAN", "P95", "WAIT AT END", "EVICTIONS"),
            *("GPU(h)", "IDLE(h)", "LOST(h)", f"IDLE COST{_unit(found.currency)}"),
        )
    ]
    for leaf in (*found.leaves, found.totals):
        rows += _leaf_rows(leaf)
    free = [("FREE GPUS", "GPU(h)", f"COST{_unit(found.currency)}")]
    for name, each in (
        ("happened", found.free_happened),
        ("in force", found.free_in_force),
        ("asked", found.free_asked),
    ):
        free.append((name, f"{each.gpu_hours:.1f}", each.cost or "-"))
    nodes = f" Nodes: {', '.join(found.nodes)}." if found.nodes else ""
    head = f"From {period.start} to {period.until}.{nodes} Nothing was written.\n"
    gaps = "".join(f"Nothing is known from {each.start} to {each.end}.\n" for each in period.gaps)
    return "\n".join((head + gaps, render_rows(rows), render_rows(free), _fidelity(found)))


def _leaf_rows(leaf: ReplayLeaf) -> Iterable[tuple[str, ...]]:
    figures = (("happened", leaf.happened), ("in force", leaf.in_force), ("asked", leaf.asked))
    for what, each in figures:
        if each is not None:
            yield leaf.leaf or "(all)", what, *_cells(each)


def _cells(each: ReplayFigures) -> tuple[str, ...]:
    return (
        str(each.pods),
        f"{each.waited_hours:.1f}",
        _seconds(each.waited_mean_seconds),
        _seconds(each.waited_p95_seconds),
        str(each.waiting),
        str(each.evictions),
        f"{each.gpu_hours:.1f}",
        f"{each.idle_gpu_hours:.1f}",
        f"{each.lost_gpu_hours:.1f}",
        each.idle_cost or "-",
    )


def _seconds(seconds: float) -> str:
    from fairlead.cli.frame.text import short_duration

    return short_duration(seconds)


def _unit(currency: str) -> str:
    return f"({currency})" if currency else ""


def _fidelity(found: QuotaReplay) -> str:
    near = found.fidelity
    lines = [
        f"With the tree that was in force, the replay admits {near.replayed} pods; {near.happened} "
        f"were admitted. Of {near.both} in both, {near.within_tolerance} differ by at most "
        f"{near.tolerance_seconds:g} s; the median is {near.median_seconds:g} s, and "
        f"{near.out_of_order} are out of order.\n"
    ]
    if near.worst_pod:
        lines.append(f"Most differs {near.worst_pod}: by {_seconds(near.worst_seconds)}.\n")
    for each in near.differences:
        cause = CAUSES.get(each.cause, each.cause)
        lines.append(f"  {each.pods} differ: {cause} (such as {each.example}).\n")
    return "".join(lines)
