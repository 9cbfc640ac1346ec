"""What the verbs `plan`, `deploy`, `upgrade` and `remove` share: flags, the wanted component with
its objects, the checks, and the plan with its difference.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fairlead.cli.components.asked import components_of, facts_of
from fairlead.cli.frame.context import ClusterComponents, Context
from fairlead.cli.frame.flags import wait_seconds
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.actions import Manifest
    from fairlead.model.installed.component_facts import PlanFacts, WantedComponent
    from fairlead.model.installed.finding import Finding
    from fairlead.model.operations.component import Component, ComponentRow
    from fairlead.model.operations.operation import HelmStep, OperationKind
    from fairlead.rules.components.component_plan import ComponentPlan

    Rows = Mapping[str, ComponentRow]


WAIT_SECONDS: Final = 600.0


class Checked(NamedTuple):
    """A wanted component with what was read and found about it."""

    wanted: WantedComponent
    facts: PlanFacts
    findings: Sequence[Finding]


def add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="COMPONENT", help="its name, as `fairlead component list` shows it"
    )


def add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chart",
        metavar="ADDRESS",
        default="",
        help="the Helm chart: a folder, an archive, oci://… or https://…",
    )
    parser.add_argument(
        "--version", metavar="VERSION", default="", help="of the chart (default: its newest)"
    )
    parser.add_argument(
        "--manifests",
        metavar="FILE",
        default="",
        help="the objects in YAML, for a component without a chart",
    )
    parser.add_argument(
        "--in",
        dest="place",
        metavar="NAMESPACE",
        default="",
        help="the component's namespace (default: its usual one)",
    )
    parser.add_argument(
        "--values", metavar="FILE", default="", help="values of the chart in YAML; no secrets"
    )
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


def checked(args: argparse.Namespace, context: Context, do: OperationKind, rows: Rows) -> Checked:
    """Reads what the plan needs, and makes all checks. Raises UserError for bad input."""
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.components.preflight import preflight

    cluster = components_of(context)
    component = asked_component(args.id)
    if do is OperationKind.REMOVE:
        wanted = _removed(args, cluster, component, rows)
    else:
        wanted = _wanted(args, context, cluster, component, do, rows)
    facts = cluster.plan_facts(wanted)
    return Checked(wanted, facts, preflight(wanted, facts, rows))


def planned_changes(found: Checked, operation: str) -> ComponentPlan:
    """`operation`: the id."""
    from fairlead.rules.components.component_plan import component_plan
    from fairlead.wire.components.inventory import render_component_inventory

    return component_plan(found.wanted, found.facts, operation, render_component_inventory)


def is_as_wanted(found: Checked) -> bool:
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
    yield f"{plan.same} objects do not change"


def _wanted(
    args: argparse.Namespace,
    context: Context,
    cluster: ClusterComponents,
    component: Component,
    do: OperationKind,
    rows: Rows,
) -> WantedComponent:
    from msgspec.structs import replace

    from fairlead.model.installed.component_facts import WantedComponent
    from fairlead.model.operations.component import Backend

    row = rows[component.id]
    stand_in = () if args.chart else cluster.stand_in(component.id)
    is_helm = component.backend is Backend.HELM and not stand_in
    if not stand_in:
        _refuse_flags(args, is_helm=is_helm)
    place = args.place or row.namespace or component.namespace
    source = args.chart if is_helm else args.manifests or stand_in
    wanted = WantedComponent(
        component=component,
        do=do,
        place=place,
        home=cluster.home(),
        version=args.version or ("" if is_helm else row.available),
        release=(row.release or component.id) if is_helm else "",
        chart=args.chart,
        values=_values(args, context, component) if is_helm else {},
        has_source=bool(source),
        seconds=seconds_of(args),
    )
    if not source:
        return wanted
    if stand_in:
        return _as_members(cluster, replace(wanted, objects=cluster.placed(stand_in, place)))
    return _with_objects(args, context, cluster, wanted)


def _with_objects(
    args: argparse.Namespace,
    context: Context,
    cluster: ClusterComponents,
    wanted: WantedComponent,
) -> WantedComponent:
    from msgspec.structs import replace

    from fairlead.rules.components.secrets import plain_secrets

    if wanted.chart:
        if plain_secrets(wanted.values):
            return wanted  # the check names them; the chart does not get them
        rendered = cluster.render(helm_step(wanted))
        return replace(wanted, objects=cluster.placed(rendered, wanted.place))
    given = cluster.placed(_manifests(args, context), wanted.place)
    return _as_members(cluster, replace(wanted, objects=given))


def _as_members(cluster: ClusterComponents, wanted: WantedComponent) -> WantedComponent:
    from msgspec.structs import replace

    from fairlead.model.actions import object_ref
    from fairlead.model.operations.apply_set import apply_set_id, is_member
    from fairlead.rules.components.component_plan import native_objects

    set_id = apply_set_id(wanted.component.id, wanted.home)
    spaces = [object_ref(each) for each in wanted.objects if each["kind"] == "Namespace"]
    existing = [
        ref.name
        for ref, found in zip(spaces, cluster.found(spaces), strict=True)
        if found is not None and not is_member(found, set_id)
    ]
    return replace(wanted, objects=tuple(native_objects(wanted, existing)))


def helm_step(wanted: WantedComponent) -> HelmStep:
    """The step that makes the wanted release."""
    from fairlead.model.operations.operation import HelmStep, OperationKind

    return HelmStep(
        "upgrade" if wanted.do is OperationKind.UPGRADE else "install",
        wanted.release,
        wanted.place,
        wanted.chart,
        wanted.version,
        wanted.values,
    )


def _removed(
    args: argparse.Namespace, cluster: ClusterComponents, component: Component, rows: Rows
) -> WantedComponent:
    from fairlead.model.installed.component_facts import WantedComponent
    from fairlead.model.operations.component import Backend
    from fairlead.model.operations.operation import OperationKind

    row = rows[component.id]
    is_helm = component.backend is Backend.HELM and row.managed_by != "native"
    return WantedComponent(
        component=component,
        do=OperationKind.REMOVE,
        place=row.namespace or component.namespace,
        home=cluster.home(),
        release=(row.release or component.id) if is_helm else "",
        deletes_definitions=args.delete_definitions,
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


def _values(args: argparse.Namespace, context: Context, component: Component) -> dict[str, Any]:
    """The values of file and flags, with those that are always so on top."""
    from fairlead.wire.installation.values import read_values, with_settings

    values: dict[str, Any] = {}
    if args.values:
        values = read_values(_read(context, args.values), args.values)
    return _merged(with_settings(values, args.settings), component.fixed)


def _merged(values: dict[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(values)
    for key, value in fixed.items():
        inner = found.get(key)
        if isinstance(value, dict):
            found[key] = _merged(inner if isinstance(inner, dict) else {}, value)
        else:
            found[key] = value
    return found


def _manifests(args: argparse.Namespace, context: Context) -> list[Manifest]:
    from fairlead.wire.components.manifests import parse_manifests

    return parse_manifests(_read(context, args.manifests), args.manifests)


def _read(context: Context, name: str) -> bytes:
    try:
        text = context.machine.read(name)
    except OSError as error:
        raise UserError(f"`{name}` cannot be read: {error.strerror}", "name a YAML file") from error
    return text if isinstance(text, bytes) else text.encode()
