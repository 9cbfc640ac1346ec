"""Deploying, upgrading and removing a component: checks, then an operation, or the installer."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.components.installation_part import write_part
from fairlead.cli.components.refused import refuse_failing
from fairlead.cli.components.wanted import (
    asked_component,
    checked,
    is_as_wanted,
    planned_changes,
    rows_of,
)
from fairlead.cli.frame.context import Context
from fairlead.cli.operations.carried_out import (
    carry_out,
    operations_of,
    take_over,
    without_waits,
)

if TYPE_CHECKING:
    from fairlead.cli.operations.carried_out import StepsAndUndo
    from fairlead.model.operations.operation import OperationKind


def change_component(args: argparse.Namespace, context: Context, do: OperationKind) -> int:
    """Raises UserError with all failing checks, or if the operation fails."""
    from fairlead.console.http.writing.wanted_component import check_fits
    from fairlead.model.installed.finding import State
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.components.state import SUBJECT

    component = asked_component(args.id)
    subject = f"{SUBJECT}{component.id}"
    is_upgrade = do is OperationKind.UPGRADE
    # An upgrade that changes nothing needs no operation, and no client for one.
    if not component.part and not is_upgrade and _goes_on(context, subject, do):
        return 0
    rows = rows_of(context, with_running=False)  # none of this component runs
    check_fits(rows[component.id], do)
    if component.part:
        return write_part(args, context, component, do, rows)
    found = checked(args, context, do, rows)
    if is_as_wanted(found):
        context.stdout.write(f"component {component.id}: nothing changes\n")
        return 0
    if is_upgrade and _goes_on(context, subject, do):
        return 0
    refuse_failing(component.id, found.findings)
    for each in found.findings:
        if each.state is not State.OK:
            context.messages.warn(f"{each.check}: {each.sentence}")

    def plan(id: str) -> StepsAndUndo:
        made = planned_changes(found, id)
        return without_waits(made.steps) if args.wait <= 0 else made.steps, made.undo

    operations = operations_of(context, makes_namespace=True)
    carry_out(operations, do, subject, plan, context)
    context.stdout.write(f"component {component.id}: done\n")
    return 0


def _goes_on(context: Context, subject: str, do: OperationKind) -> bool:
    """Whether an unfinished operation existed, which has now been carried out."""
    if not take_over(operations_of(context, makes_namespace=True), subject, do, context):
        return False
    context.stdout.write(f"{subject.replace('/', ' ')}: done\n")
    return True
