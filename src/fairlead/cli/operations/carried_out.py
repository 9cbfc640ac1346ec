"""Operations in verbs: started or taken over in this process, with a line for each step."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import ClusterOperations, Context
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.operations.operation import Operation, OperationKind, OperationStep

    StepsAndUndo = tuple[Sequence[OperationStep], Sequence[OperationStep]]
    Plan = Callable[[str], StepsAndUndo]


def operations_of(context: Context, *, makes_namespace: bool = False) -> ClusterOperations:
    """Raises UserError without an API server."""
    found = context.world.operations(makes_namespace=makes_namespace)
    if found is None:
        raise UserError("there is no API server to ask for operations", NO_API_SERVER_HINT)
    return found


def unfinished_of(operations: ClusterOperations, subject: str) -> Operation | None:
    """The operation of a subject that runs, or that its process left. None, too, for a user who may
    not read the records.
    """
    from fairlead.errors import Forbidden
    from fairlead.model.operations.operation import OperationState

    try:
        found = operations.list()
    except Forbidden:
        return None
    return next(
        (
            each
            for each in found
            if each.subject == subject and each.state is OperationState.RUNNING
        ),
        None,
    )


def take_over(
    operations: ClusterOperations,
    subject: str,
    kind: OperationKind,
    context: Context,
    *,
    leaves_waits: bool = False,
) -> bool:
    """Whether an unfinished operation of this kind existed, which has now been carried out, with
    `leaves_waits` to the first step that waits.

    Raises UserError if one of another kind is unfinished, or another process is at work on it.
    """
    found = unfinished_of(operations, subject)
    if found is None:
        return False
    if found.kind is not kind:
        raise UserError(
            f"`{subject}` has the unfinished operation `{found.id}` ({found.kind.value})",
            f"`fairlead operation resume {found.id}` finishes it, `fairlead operation cancel "
            f"{found.id}` ends it",
        )
    context.messages.info(f"goes on with the unfinished operation `{found.id}`")
    done = operations.resume(found.id, StepLines(context), leaves_waits=leaves_waits)
    show_end(done, context)
    return True


def carry_out(
    operations: ClusterOperations,
    kind: OperationKind,
    subject: str,
    plan: Plan,
    context: Context,
    *,
    leaves_waits: bool = False,
) -> None:
    """Plan and carry out an operation, with `leaves_waits` to the first step that waits. `plan`:
    makes the steps and the undo of an operation's id.

    Raises UserError if it fails or is cancelled.
    """
    from fairlead.console.pages.data.operation_ids import new_id
    from fairlead.rules.operations.progress import planned

    id = new_id()
    steps, undo = plan(id)
    operation = planned(id, kind, subject, steps, undo=undo, now=operations.now())
    try:
        done = operations.start(operation, StepLines(context), leaves_waits=leaves_waits)
    except KeyboardInterrupt:
        if unfinished_of(operations, subject) is not None:  # it is recorded
            context.messages.warn(f"`fairlead operation resume {id}` goes on with it")
        raise
    show_end(done, context)


def show_end(operation: Operation, context: Context) -> None:
    """Raises UserError unless it succeeded, or was left at a step that waits."""
    from fairlead.model.operations.operation import OperationState

    if operation.state is OperationState.SUCCEEDED:
        return
    if operation.state is OperationState.RUNNING:
        _show_rest(operation, context)
        return
    if operation.state is OperationState.CANCELLED:
        why = f": {operation.message}" if operation.message else ""
        raise UserError(f"operation `{operation.id}` was cancelled{why}")
    hint = (
        f"`fairlead operation show {operation.id}` shows its steps, `fairlead operation resume "
        f"{operation.id}` tries again"
        if operation.version
        else "the operation is not recorded: run the command again"
    )
    raise UserError(f"{operation.subject}: {operation.message}", hint)


def _show_rest(operation: Operation, context: Context) -> None:
    """What an operation that was left has still to do, and who does it."""
    from fairlead.rules.operations.progress import next_turn, step_of

    turn = next_turn(operation)
    step = "" if turn is None else step_of(operation, turn).title
    if operation.version:
        who = f"the console or `fairlead operation resume {operation.id}` goes on"
    else:
        who = "it is not recorded: then run the command again"
    context.messages.info(f"more is to be done when {step}; {who}")


def without_waits(steps: Sequence[OperationStep]) -> list[OperationStep]:
    """Without the steps that only wait, for a command that shall not."""
    from fairlead.model.operations.operation import GoneStep, ReadyStep

    return [each for each in steps if not isinstance(each.work, ReadyStep | GoneStep)]


class StepLines:
    """Prints a line when a step begins, and when what it waits for changes."""

    def __init__(self, context: Context, *, has_subject: bool = False) -> None:
        """`has_subject`: each line begins with what the operation is about."""
        self._context = context
        self._has_subject = has_subject
        self._printed: set[str] = set()

    def __call__(self, operation: Operation) -> None:
        prefix = f"{operation.subject.partition('/')[2]}: " if self._has_subject else ""
        for line in (f"{prefix}{each}" for each in step_lines(operation)):
            if line not in self._printed:
                self._printed.add(line)
                self._context.stdout.write(f"{line}\n")
        self._context.stdout.flush()


def step_lines(operation: Operation) -> list[str]:
    """The lines of the steps that have begun, in order."""
    from fairlead.model.operations.operation import StepState
    from fairlead.wire.text.terminal_text import first_line

    lines = []
    groups = (
        (operation.steps, operation.progress, ""),
        (operation.undo, operation.undo_progress, "undo "),
    )
    for steps, progress, word in groups:
        for number, (step, each) in enumerate(zip(steps, progress, strict=True), 1):
            if each.state in (StepState.WAITING, StepState.SKIPPED):
                continue
            lines.append(first_line(f"[{word}{number}/{len(steps)}] {step.title}"))
            if each.state is StepState.RUNNING and each.message:
                where = f"{each.object}: " if each.object else ""
                event = f" ({each.event})" if each.event else ""
                lines.append(first_line(f"waiting: {where}{each.message}{event}"))
    return lines


def add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the operation")


def found_operation(operations: ClusterOperations, id: str) -> Operation:
    """Raises UserError if there is none."""
    found = operations.get(id)
    if found is None:
        raise UserError(
            f"there is no operation `{id}`", "`fairlead operation list` shows what is recorded"
        )
    return found
