"""From argv to an exit status: one function for `fairlead`, `arena` and plug-ins.

Every error ends here.

Nothing but the parser may be imported before the verb is known (`arena version` is measured in
milliseconds). The world of a verb is chosen in `fairlead.run.worlds`, and only when the verb asks
for it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.messages import LEVELS, Messages
from fairlead.cli.frame.parser import (
    HelpRequested,
    VerbModule,
    global_options,
    make_parser,
    overview,
    split_moment,
    split_verb,
)
from fairlead.cli.frame.standard_streams import Stdout, fill_standard_streams
from fairlead.cli.frame.verbs import PAST_VERBS
from fairlead.errors import INTERRUPTED, FairleadError, UserError


def main(program: str, argv: Sequence[str]) -> int:
    """Run one command line and return the exit status.

    1: the user can fix it, 2: outside of Fairlead, 3: a bug, 130: Ctrl-C.
    """
    fill_standard_streams()
    messages, stdout = Messages(program, sys.stderr), Stdout(sys.stdout)
    try:
        status = _run_verb(program, argv, messages, stdout)
        stdout.flush()
        return status
    except FairleadError as error:
        messages.error(error.what, error.hint)
        return 1 if program == "arena" or program.startswith("kubectl") else error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # the reader has gone: `arena top node | head -1`
    except Exception as error:  # noqa: BLE001 - the one place where a bug ends, as a report
        return _report_bug(program, argv, messages, error)


def _run_verb(program: str, argv: Sequence[str], messages: Messages, stdout: Stdout) -> int:
    try:
        return _run_found_verb(program, argv, messages, stdout)
    except HelpRequested as wanted:
        stdout.write(wanted.text)
        return 0


def _run_found_verb(program: str, argv: Sequence[str], messages: Messages, stdout: Stdout) -> int:
    moment, argv = split_moment(argv, program)
    verb, rest = split_verb(argv, program)
    if verb is None:
        raise HelpRequested(
            overview(
                program, [word for word in argv if not word.startswith("-") and word != "help"]
            )
        )
    if moment and verb.name not in PAST_VERBS:
        raise UserError(
            f"`{verb.name}` cannot be shown of the past",
            f"`fairlead at MOMENT` takes {', '.join(PAST_VERBS)}",
        )
    with _without_typing_extensions():
        module = cast("VerbModule", importlib.import_module(f"fairlead.cli.{verb.module}"))
    args = make_parser(module, program, _source_flags if moment else None).parse(rest)
    options = global_options(args)
    messages.level = options.loglevel if options.loglevel in LEVELS else "info"

    if getattr(module, "READS_A_CLUSTER", True):
        with _without_typing_extensions():
            import msgspec  # noqa: F401
    from fairlead.run.machine import OwnMachine
    from fairlead.run.worlds import ChosenWorld

    machine = OwnMachine(os.environ)
    world = ChosenWorld(
        options,
        os.environ,
        messages,
        is_writing=verb.is_writing and not getattr(args, "dry_run", False),
    )
    context = Context(
        program, options, messages, world, stdout, os.environ, time.time, time.sleep, machine
    )
    if moment:
        context = _of_the_past(args, context, moment)
    return module.run(args, context)


def _source_flags(parser: argparse.ArgumentParser) -> None:
    from fairlead.cli.usage.sources import add_source

    add_source(parser)


def _of_the_past(args: argparse.Namespace, context: Context, moment: str) -> Context:
    """The same command in the cluster as it was."""
    from fairlead.cli.usage.at import read_moment
    from fairlead.run.worlds import ChosenWorld

    snapshot = read_moment(args, context, moment)
    namespace = context.options.namespace or context.world.namespace()
    options = context.options._replace(snapshot=f"of {moment}", namespace=namespace)
    world = ChosenWorld(options, context.env, context.messages, past=snapshot)
    return context._replace(options=options, world=world)


@contextmanager
def _without_typing_extensions() -> Iterator[None]:
    """Hides `typing_extensions`: msgspec would import it instead of what Python 3.11 has itself.

    Its import takes the same time as msgspec's, because it imports `inspect`. Later imports of it
    work.
    """
    unwanted = "typing_extensions"
    if unwanted in sys.modules or "msgspec" in sys.modules:
        yield
        return
    sys.modules[unwanted] = None  # type: ignore[assignment]  # how Python spells "there is none"
    try:
        yield
    finally:
        del sys.modules[unwanted]


def _report_bug(program: str, argv: Sequence[str], messages: Messages, error: Exception) -> int:
    from fairlead.run.bug_report import write_bug_report

    path = write_bug_report(program, argv, error, os.environ)
    where = (
        f"attach `{path}` to an issue"
        if path
        else "run it again with a writable XDG_STATE_HOME to get a report file"
    )
    messages.error(f"this is a bug in {program}: {type(error).__name__}: {error}", f"{where}")
    return 3
