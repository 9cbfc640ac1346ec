"""Prints what a doctor found: a table, then what mends each failure; or JSON. The exit status is 1
if a check fails.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from fairlead.cli.frame.context import Context
from fairlead.errors import UserError
from fairlead.model.installed.finding import Finding, State
from fairlead.wire.text.tabwriter import render_rows

_WORDS: Final = {State.FAIL: "BAD", State.UNKNOWN: "?"}
"""Words of the table for states; the others are as they are."""
_MENDED: Final = (State.FAIL, State.WARN)


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", "-o", metavar="FORMAT", default="", help="table (default) or json"
    )


def check_output(args: argparse.Namespace) -> None:
    """Raises UserError for a format that does not exist."""
    if args.output not in ("", "table", "json"):
        what = f"output format `{args.output}` is not known"
        raise UserError(what, "`-o table` (the default) or `-o json`")


def print_findings(
    found: Sequence[Finding], args: argparse.Namespace, context: Context, *, last: str = ""
) -> int:
    """`last`: a line after the table and its hints. Returns the exit status."""
    is_bad = any(each.state == State.FAIL for each in found)
    if args.output == "json":
        from fairlead.cli.frame.documents import render_json

        context.stdout.write(render_json(findings_document(found)) + "\n")
    else:
        context.stdout.write(_table(found))
        if last:
            context.stdout.write(f"\n{last}\n")
    return 1 if is_bad else 0


def _table(found: Sequence[Finding]) -> str:
    rows = [(_WORDS.get(each.state, each.state), each.check, each.sentence) for each in found]
    mends = dict.fromkeys(
        f"{each.check}: {each.mend}" for each in found if each.state in _MENDED and each.mend
    )
    text = render_rows([("STATE", "CHECK", "FOUND"), *rows])
    if mends:
        text += "\n" + "".join(render_rows([(each,)]) for each in mends)
    return text


def findings_document(found: Sequence[Finding]) -> dict[str, Any]:
    """What `-o json` prints, as a value: `ok`, and `items` with check, state, sentence, mend."""
    items = [
        {
            "check": each.check,
            "state": str(each.state),
            "sentence": each.sentence,
            "mend": each.mend,
        }
        for each in found
    ]
    return {"ok": all(each.state != State.FAIL for each in found), "items": items}
