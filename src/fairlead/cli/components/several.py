"""Several components by one command: one preflight over all, then operations that follow each
other (docs/spec/components.md#several-at-once).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.components.installation_part import part_checks, write_parts
from fairlead.cli.components.refused import refuse_all
from fairlead.cli.components.wanted import (
    SOURCES,
    asked_component,
    checked_all,
    planned_changes,
    rows_of,
)
from fairlead.cli.frame.context import Context
from fairlead.cli.operations.carried_out import (
    StepLines,
    operations_of,
    show_end,
    take_over,
    without_waits,
)
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.console.http.writing.wanted_component import CheckedComponent
    from fairlead.model.installed.finding import Finding
    from fairlead.model.operations.component import Component, ComponentRow
    from fairlead.model.operations.operation import Operation

    Rows = Mapping[str, ComponentRow]

_FLAGS: Final = {name: flag for name, flag, _, _ in SOURCES}
_OF_EACH: Final = "; with several components COMPONENT=%s, repeatable"


def add_ids(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id",
        metavar="COMPONENT",
        nargs="+",
        help="their names, as `fairlead component list` shows them",
    )


def args_of(args: argparse.Namespace, ids: Sequence[str]) -> list[argparse.Namespace]:
    """The arguments of each component: with several, each flag names the component that it is for.

    Raises UserError for a flag of none of them.
    """
    if len(ids) == 1:
        own = {name: (getattr(args, name) or [""])[-1] for name in _FLAGS}
        return [argparse.Namespace(**{**vars(args), **own, "id": ids[0]})]
    given: dict[str, dict[str, Any]] = {id: {} for id in ids}
    for name, flag in _FLAGS.items():
        for text in getattr(args, name):
            id, value = _named(flag, text, ids)
            given[id][name] = value
    for text in args.settings:
        id, value = _named("--set", text, ids)
        given[id].setdefault("settings", []).append(value)
    plain = {**dict.fromkeys(_FLAGS, ""), "settings": []}
    return [argparse.Namespace(**{**vars(args), **plain, **given[id], "id": id}) for id in ids]


def _named(flag: str, text: str, ids: Sequence[str]) -> tuple[str, str]:
    id, sign, value = text.partition("=")
    if not sign or id not in ids:
        raise UserError(
            f"`{flag} {text}` names none of {', '.join(ids)}",
            f"with several components write {flag} COMPONENT=VALUE",
        )
    return id, value


def add_sources(parser: argparse.ArgumentParser) -> None:
    """As `add_source`, for one component or several."""
    for name, flag, meta, text in SOURCES:
        parser.add_argument(
            flag,
            dest=name,
            metavar=meta,
            action="append",
            default=[],
            help=text + _OF_EACH % meta,
        )
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one value, stronger than the file; repeatable; with several components "
        "COMPONENT=KEY=VALUE",
    )


class ChosenComponents:
    """Several components that are to be deployed, in their order. Raises UserError for an unknown
    one, and for a flag that belongs to none of them.
    """

    def __init__(self, args: argparse.Namespace, context: Context) -> None:
        from fairlead.rules.components.several import in_order_of_needs

        self._args, self._context = args, context
        self.components = in_order_of_needs([asked_component(id) for id in args.id])
        self._own = {each.id: each for each in args_of(args, args.id)}

    def without_deployed(self, rows: Rows) -> None:
        """Leaves out what is there. Raises UserError if nothing is left."""
        from fairlead.rules.components.state import is_installed

        self.components = [each for each in self.components if not is_installed(rows[each.id])]

    @property
    def parts(self) -> list[Component]:
        """Of Fairlead's installation: one run of the installer writes all of them."""
        return [each for each in self.components if each.part]

    @property
    def others(self) -> list[Component]:
        return [each for each in self.components if not each.part]

    def args_of(self, components: Sequence[Component]) -> list[argparse.Namespace]:
        return [self._own[each.id] for each in components]

    def checked(self, rows: Rows) -> tuple[dict[str, Sequence[Finding]], list[CheckedComponent]]:
        """The checks of all, by id, and the components that are no parts."""
        from fairlead.console.http.writing.wanted_component import check_fits
        from fairlead.model.operations.operation import OperationKind

        for each in self.components:
            check_fits(rows[each.id], OperationKind.DEPLOY)
        findings, rows = part_checks(self.parts, rows)
        found = checked_all(self.args_of(self.others), self._context, rows)
        return {**findings, **{each.wanted.component.id: each.findings for each in found}}, found


def deploy_several(args: argparse.Namespace, context: Context) -> int:
    """Raises UserError with all failing checks, or if an operation fails."""
    from fairlead.model.installed.finding import State

    every = ChosenComponents(args, context)
    has_gone_on = _goes_on(every.others, context)
    rows = rows_of(context, with_running=False)
    if has_gone_on:
        every.without_deployed(rows)
    findings, found = every.checked(rows)
    refuse_all(findings)
    for id, some in findings.items():
        for each in some:
            if each.state is not State.OK:
                context.messages.warn(f"{id}: {each.check}: {each.sentence}")
    if every.parts:
        write_parts(every.args_of(every.parts), context, every.parts)
    if found:
        _carry_out(found, args, context)
    for component in every.components:
        context.stdout.write(f"component {component.id}: done\n")
    return 0


def _goes_on(components: Sequence[Component], context: Context) -> bool:
    """Whether unfinished operations of these existed, which have now been carried out."""
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.components.state import SUBJECT

    found = False
    for each in components:
        operations = operations_of(context, makes_namespace=True)
        if take_over(operations, f"{SUBJECT}{each.id}", OperationKind.DEPLOY, context):
            found = True
    return found


def _carry_out(
    found: Sequence[CheckedComponent], args: argparse.Namespace, context: Context
) -> None:
    """One operation for each component. Raises UserError for the first one that fails."""
    from fairlead.console.http.writing.wanted_component import chained
    from fairlead.console.pages.data.operation_ids import new_id
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.components.state import SUBJECT
    from fairlead.rules.operations.progress import planned

    operations = operations_of(context, makes_namespace=True)
    plans: list[Operation] = []
    for each in found:
        id = new_id()
        made = planned_changes(each, id)
        steps = without_waits(made.steps) if args.wait <= 0 else made.steps
        subject = f"{SUBJECT}{each.wanted.component.id}"
        steps = chained(steps, plans[-1] if plans else None)
        plans.append(
            planned(id, OperationKind.DEPLOY, subject, steps, undo=made.undo, now=operations.now())
        )
    try:
        ends = operations.start_all(plans, StepLines(context, has_subject=True))
    except KeyboardInterrupt:
        context.messages.warn(f"`fairlead operation resume {plans[-1].id}` goes on with them")
        raise
    for end in ends:
        show_end(end, context)
