"""What the verbs `plan`, `deploy`, `upgrade` and `remove` share: flags, the wanted component with
its objects, the checks, and the plan with its difference.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.components.asked import components_of, facts_of
from fairlead.cli.frame.context import ClusterComponents, Context
from fairlead.cli.frame.flags import wait_seconds
from fairlead.cli.installation.chosen import same_line
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.console.http.writing.wanted_component import CheckedComponent, ComponentSource
    from fairlead.model.actions import Manifest
    from fairlead.model.operations.component import Component, ComponentRow
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.components.component_plan import ComponentPlan

    Rows = Mapping[str, ComponentRow]


WAIT_SECONDS: Final = 600.0
SOURCES: Final = (
    ("chart", "--chart", "ADDRESS", "the Helm chart: a folder, an archive, oci://… or https://…"),
    ("version", "--version", "VERSION", "of the chart (default: its newest)"),
    ("manifests", "--manifests", "FILE", "the objects in YAML, for a component without a chart"),
    ("place", "--in", "NAMESPACE", "the component's namespace (default: its usual one)"),
    ("values", "--values", "FILE", "values of the chart in YAML; no secrets"),
)
"""Flags with one value for a component: name among the arguments, flag, value, help."""


def add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="COMPONENT", help="its name, as `fairlead component list` shows it"
    )


def add_source(parser: argparse.ArgumentParser) -> None:
    for name, flag, meta, text in SOURCES:
        parser.add_argument(flag, dest=name, metavar=meta, default="", help=text)
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one value, stronger than the file; repeatable",
    )


def add_wait(parser: argparse.ArgumentParser, until: str) -> None:
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=wait_seconds,
        default=WAIT_SECONDS,
        help=f"how long to wait {until}; 0: do not wait (default 600)",
    )


def seconds_of(args: argparse.Namespace) -> float:
    """How long the steps wait; without a wait Helm still has its time."""
    given = getattr(args, "wait", WAIT_SECONDS)
    return float(given) if given > 0 else WAIT_SECONDS


def asked_component(id: str) -> Component:
    """Raises UserError for an unknown one, and for one that Fairlead does not deploy."""
    from fairlead.model.operations.component import Backend
    from fairlead.rules.components.catalogue import component_of

    found = component_of(id)
    if found.is_required:
        raise UserError(f"`{id}` is always there", "install another version of this program")
    if found.backend is Backend.OTHER:
        raise UserError(
            f"Fairlead shows `{id}` and does not deploy it", "use the program's own installation"
        )
    return found


def rows_of(context: Context, *, with_running: bool = True) -> dict[str, ComponentRow]:
    """How all components are, by id. `with_running`: with the operations that run."""
    from fairlead.rules.components.catalogue import CATALOGUE
    from fairlead.rules.components.state import component_rows

    facts = facts_of(context, CATALOGUE, with_running=with_running)
    return {each.id: each for each in component_rows(facts)}


def checked(
    args: argparse.Namespace, context: Context, do: OperationKind, rows: Rows
) -> CheckedComponent:
    """Reads what the plan needs, and makes all checks. Raises UserError for bad input."""
    from fairlead.console.http.writing.wanted_component import ComponentSource, checked_component
    from fairlead.model.operations.operation import OperationKind

    component = asked_component(args.id)
    cluster = components_of(context)
    if do is OperationKind.REMOVE:
        source = ComponentSource(
            deletes_definitions=args.delete_definitions, seconds=seconds_of(args)
        )
    else:
        source = _source(args, context, cluster, component)
    return checked_component(cluster, component, do, rows, source)


def checked_all(
    each_args: Sequence[argparse.Namespace], context: Context, rows: Rows
) -> list[CheckedComponent]:
    """As `checked`, for several deployments by one command, in their order."""
    from fairlead.console.http.writing.wanted_component import CheckedInTurn

    cluster = components_of(context)
    turn = CheckedInTurn(rows)
    for args in each_args:
        component = asked_component(args.id)
        turn.check(cluster, component, _source(args, context, cluster, component))
    return turn.found


def planned_changes(found: CheckedComponent, operation: str) -> ComponentPlan:
    """`operation`: the id."""
    from fairlead.rules.components.component_plan import component_plan
    from fairlead.wire.components.inventory import render_component_inventory

    return component_plan(found.wanted, found.facts, operation, render_component_inventory)


def is_as_wanted(found: CheckedComponent) -> bool:
    """Whether a native upgrade would change nothing: neither an object nor the version."""
    from fairlead.model.operations.operation import OperationKind

    before, wanted = found.facts.before, found.wanted
    if before is None or wanted.chart or wanted.do is not OperationKind.UPGRADE:
        return False
    is_same = (before.state, before.version) == ("complete", wanted.version)
    return is_same and not planned_changes(found, "").changes


def change_lines(plan: ComponentPlan) -> Iterator[str]:
    """`create`, `change` with each field, `delete`, `keep`; the last line counts the others."""
    for each in plan.changes:
        yield f"{each.do} {each.target.title}"
        for field in each.fields:
            yield f"  {field.path}: {field.old or '-'} → {field.new or '-'}"
    yield same_line(plan.same)


def _source(
    args: argparse.Namespace, context: Context, cluster: ClusterComponents, component: Component
) -> ComponentSource:
    """What the flags name. Raises UserError for flags of the other back end."""
    from fairlead.console.http.writing.wanted_component import ComponentSource
    from fairlead.model.operations.component import Backend

    has_stand_in = not args.chart and bool(cluster.stand_in(component.id))
    is_helm = component.backend is Backend.HELM and not has_stand_in
    if not has_stand_in:
        _refuse_flags(args, is_helm=is_helm)
    return ComponentSource(
        chart=args.chart,
        version=args.version,
        place=args.place,
        values=_values(args, context) if is_helm else {},
        manifests=tuple(_manifests(args, context)) if args.manifests else None,
        seconds=seconds_of(args),
    )


def _refuse_flags(args: argparse.Namespace, *, is_helm: bool) -> None:
    """Raises UserError for flags of the other back end."""
    if is_helm and args.manifests:
        raise UserError(f"`{args.id}` is deployed by Helm", "name its chart with --chart")
    given = {
        "--chart": args.chart,
        "--version": args.version,
        "--values": args.values,
        "--set": args.settings,
    }
    wrong = [flag for flag, value in given.items() if value]
    if not is_helm and wrong:
        hint = "name its objects with --manifests FILE"
        raise UserError(f"`{args.id}` has no Helm chart, and {wrong[0]} is given", hint)


def _values(args: argparse.Namespace, context: Context) -> dict[str, Any]:
    """The values of file and flags."""
    from fairlead.wire.installation.values import read_values, with_settings

    values: dict[str, Any] = {}
    if args.values:
        values = read_values(_read(context, args.values), args.values)
    return with_settings(values, args.settings)


def _manifests(args: argparse.Namespace, context: Context) -> list[Manifest]:
    from fairlead.wire.components.manifests import parse_manifests

    return parse_manifests(_read(context, args.manifests), args.manifests)


def _read(context: Context, name: str) -> bytes:
    try:
        text = context.machine.read(name)
    except OSError as error:
        raise UserError(f"`{name}` cannot be read: {error.strerror}", "name a YAML file") from error
    return text if isinstance(text, bytes) else text.encode()
