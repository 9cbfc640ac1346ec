"""`kubectl inspect cgpu`, also `fairlead inspect gpu`, shows which pods hold shared GPUs.

It prints a table, blocks or a document.

It reads only nodes and pods, so it works while the scheduler extender is down.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.inspection import InspectedNode

NAME = "inspect gpu"
HELP = (
    "Show how the memory of shared GPUs is divided: a line per node, or with -d a line per "
    "pod. With `kubectl-inspect-cgpu` on PATH it is `kubectl inspect cgpu`."
)
_OUTPUTS: Final = ("", "wide", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "nodes",
        nargs="*",
        metavar="NODE",
        help="only these nodes (all that share GPUs when none is named)",
    )
    parser.add_argument(
        "--details",
        "-d",
        action=BooleanFlag,
        help="the pods on each node, and what they have of each GPU",
    )
    parser.add_argument(
        "--output",
        "-o",
        metavar="FORMAT",
        default="",
        help="wide (isolation, mode, unhealthy GPUs too) or json",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.output not in _OUTPUTS:
        raise UserError(
            f"output format `{args.output}` is not known",
            "`-o wide` or `-o json`; without `-o` it is a table",
        )
    context.stdout.write(_rendered(args, _inspected(args, context)))
    return 0


def _inspected(args: argparse.Namespace, context: Context) -> list[InspectedNode]:
    """Used memory is read only for the document, which shows it.

    Draining cards cause warnings on stderr.
    """
    from fairlead.rules.sharing.inspect import draining_cards, inspect_shares, unknown_node
    from fairlead.rules.sharing.ledger import ledger_of
    from fairlead.wire.gpus.draining import render_draining

    names = tuple(dict.fromkeys(args.nodes))
    snapshot = context.world.reader().read_nodes(
        names, with_readings=args.output == "json", with_withheld=True
    )
    ledger = ledger_of(snapshot)
    if error := unknown_node(ledger, names):
        raise UserError(error, "without a name every node that shares GPUs is shown")
    # beside the table, whose lines are those of docs/spec/gpu-sharing.md#inspect
    for cards in draining_cards(ledger, names, snapshot.pods):
        context.messages.warn(f"node {cards.node}: {render_draining(cards)}")
    return inspect_shares(ledger, names, snapshot.gpus)


def _rendered(args: argparse.Namespace, nodes: list[InspectedNode]) -> str:
    if args.output == "json":
        import json

        from fairlead.wire.sharing.inspect import render_inspection

        return json.dumps(render_inspection(nodes), indent=4, ensure_ascii=False) + "\n"
    from fairlead.cli.nodes.inspect_tables import details, summary

    return (details if args.details else summary)(nodes, is_wide=args.output == "wide")
