"""`fairlead component plan` (docs/spec/components.md#plan)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from fairlead.cli.components.installation_part import plan_part
from fairlead.cli.components.several import ChosenComponents, add_ids, add_sources, args_of
from fairlead.cli.components.wanted import (
    asked_component,
    change_lines,
    checked,
    planned_changes,
    rows_of,
)
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.findings import add_output, check_output, print_findings
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.console.pages.data.operation_ids import new_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.console.http.writing.wanted_component import CheckedComponent
    from fairlead.model.installed.finding import Finding
    from fairlead.model.operations.component import ComponentRow
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.components.component_plan import ComponentPlan

NAME = "component plan"
HELP = """Print what deploying, upgrading or removing a component would do, and write nothing: all
checks with what mends each, then each object that would be created, changed (each field with its
old and new value) or deleted, then the steps. The exit status is 1 if a check fails."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_ids(parser)
    add_sources(parser)
    parser.add_argument(
        "--remove", action=BooleanFlag, help="the removal, and not the deployment or the upgrade"
    )
    parser.add_argument(
        "--delete-definitions",
        action=BooleanFlag,
        help="with --remove: delete its definitions (CRDs), and so all objects of their kinds",
    )
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args)
    if len(args.id) > 1:
        return _plan_several(args, context)
    (args,) = args_of(args, args.id)
    component = asked_component(args.id)
    rows = rows_of(context)
    do = _do(args, rows[component.id])
    if component.part:
        found, difference = plan_part(args, context, component, do, rows)
        status = print_findings(found, args, context)
        if args.output != "json":
            context.stdout.write(f"\n{difference}")
        return status
    ready = checked(args, context, do, rows)
    plan = planned_changes(ready, new_id())
    if args.output == "json":
        from fairlead.cli.frame.documents import render_json

        context.stdout.write(render_json(plan_document(ready, plan)) + "\n")
        return 0 if plan_document(ready, plan)["ok"] else 1
    status = print_findings(ready.findings, args, context)
    steps = [f"[{number}] {each.title}" for number, each in enumerate(plan.steps, 1)]
    lines = ["", *change_lines(plan), "", *steps]
    from fairlead.wire.text.terminal_text import first_line

    context.stdout.write("".join(f"{first_line(each)}\n" for each in lines))
    return status


def _plan_several(args: argparse.Namespace, context: Context) -> int:
    """One deployment of all. Raises UserError for a removal."""
    from fairlead.errors import UserError
    from fairlead.rules.components.preflight import failing
    from fairlead.wire.text.terminal_text import first_line

    if args.remove:
        raise UserError("several components cannot be removed together", "name one component")
    every = ChosenComponents(args, context)
    findings, found = every.checked(rows_of(context))
    plans = {each.wanted.component.id: planned_changes(each, new_id()) for each in found}
    status = 1 if any(map(failing, findings.values())) else 0
    if args.output == "json":
        from fairlead.cli.frame.documents import render_json

        of = {
            each.wanted.component.id: plan_document(each, plans[each.wanted.component.id])
            for each in found
        }
        items = [{"component": id, **of.get(id, _checks_document(findings[id]))} for id in findings]
        context.stdout.write(render_json({"ok": status == 0, "items": items}) + "\n")
        return status
    for id, some in findings.items():
        context.stdout.write(f"{id}\n")
        print_findings(some, args, context)
        lines = [*change_lines(plans[id])] if id in plans else ["written by the installer"]
        context.stdout.write("".join(f"{first_line(each)}\n" for each in ("", *lines, "")))
    return status


def _checks_document(found: Sequence[Finding]) -> dict[str, Any]:
    from fairlead.cli.frame.findings import findings_document

    checks = findings_document(found)
    return {"ok": checks["ok"], "do": "deploy", "checks": checks["items"]}


def _do(args: argparse.Namespace, row: ComponentRow) -> OperationKind:
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.components.state import is_installed

    if args.remove:
        return OperationKind.REMOVE
    return OperationKind.UPGRADE if is_installed(row) else OperationKind.DEPLOY


def plan_document(found: CheckedComponent, plan: ComponentPlan) -> dict[str, Any]:
    """A plan as JSON: checks, changes with their fields, titles of steps."""
    from fairlead.cli.frame.findings import findings_document

    changes = [
        {
            "do": each.do,
            "kind": each.target.kind,
            "namespace": each.target.namespace,
            "name": each.target.name,
            "fields": [
                {"path": field.path, "old": field.old, "new": field.new} for field in each.fields
            ],
        }
        for each in plan.changes
    ]
    checks = findings_document(found.findings)
    return {
        "ok": checks["ok"],
        "do": found.wanted.do.value,
        "checks": checks["items"],
        "changes": changes,
        "same": plan.same,
        "steps": [each.title for each in plan.steps],
    }
