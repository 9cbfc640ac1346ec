"""Components that are parts of Fairlead's installation: values `parts` of `fairlead install` and
`fairlead upgrade`, written by the same code.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.cli.components.asked import components_of
from fairlead.cli.frame.context import Context
from fairlead.cli.installation import chosen as shared
from fairlead.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.model.installation import Installation
    from fairlead.model.installed.finding import Finding
    from fairlead.model.operations.component import Component, ComponentRow
    from fairlead.model.operations.operation import OperationKind
    from fairlead.ports import InstallationTarget

    Rows = Mapping[str, ComponentRow]


def plan_part(
    args: argparse.Namespace, context: Context, component: Component, do: OperationKind, rows: Rows
) -> tuple[list[Finding], str]:
    """The checks and the difference. Raises UserError for what the installer refuses."""
    from fairlead import __version__
    from fairlead.apps.installation.installer import Wanted
    from fairlead.rules.installation.doctor import examine

    cluster = shared.target(context)
    wanted = _chosen([args], context, cluster, [component], do)
    facts = context.world.installation_facts(lambda _before: wanted)
    found = [*_checks(component, do, rows, context), *(examine(facts) if facts else ())]
    plan = shared.installer(context, cluster).plan(Wanted(__version__, wanted))
    return found, shared.difference(cluster, plan)


def write_part(
    args: argparse.Namespace, context: Context, component: Component, do: OperationKind, rows: Rows
) -> int:
    """What `fairlead upgrade` does with the part on or off, or `fairlead install` without an
    installation.
    """
    from fairlead.cli.components.refused import refuse_failing

    refuse_failing(component.id, _checks(component, do, rows, context))
    return _write([args], context, [component], do)


def write_parts(
    each_args: Sequence[argparse.Namespace], context: Context, components: Sequence[Component]
) -> None:
    """Deploys several parts by one run of the installer. Their checks have been made."""
    from fairlead.model.operations.operation import OperationKind

    _write(each_args, context, components, OperationKind.DEPLOY)


def part_checks(
    components: Sequence[Component], rows: Rows
) -> tuple[dict[str, Sequence[Finding]], Rows]:
    """The checks of deploying these parts together, in their order, by id; and the rows when they
    are there.
    """
    from fairlead.model.installed.component_facts import WantedComponent
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.components.several import with_deployed

    found: dict[str, Sequence[Finding]] = {}
    for each in components:
        found[each.id] = _checks(each, OperationKind.DEPLOY, rows)
        wanted = WantedComponent(component=each, do=OperationKind.DEPLOY, place="", home="")
        rows = with_deployed(rows, wanted)
    return found, rows


def _write(
    each_args: Sequence[argparse.Namespace],
    context: Context,
    components: Sequence[Component],
    do: OperationKind,
) -> int:
    cluster = shared.target(context)
    wanted = _chosen(each_args, context, cluster, components, do)
    installing = argparse.Namespace(
        force_conflicts=False, dry_run=False, output="diff", wait=each_args[0].wait
    )
    return shared.write(installing, context, cluster, wanted, by=f"fairlead component {do.value}")


def _checks(
    component: Component, do: OperationKind, rows: Rows, context: Context | None = None
) -> Sequence[Finding]:
    """`context`: asked for pods before a removal."""
    from fairlead.model.installed.component_facts import WantedComponent
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.components.preflight import SHARING, part_preflight

    wanted = WantedComponent(component=component, do=do, place="", home="")
    asks = context is not None and do is OperationKind.REMOVE and component.id in SHARING
    pods = components_of(context).sharing_pods() if context is not None and asks else ()
    return part_preflight(wanted, rows, pods)


def _chosen(
    each_args: Sequence[argparse.Namespace],
    context: Context,
    cluster: InstallationTarget,
    components: Sequence[Component],
    do: OperationKind,
) -> Installation:
    """The values of the installation with these parts on or off; without an installation, these
    parts alone.
    """
    from fairlead.model.installation import Parts
    from fairlead.model.operations.operation import OperationKind
    from fairlead.wire.installation.values import part_key

    for args, component in zip(each_args, components, strict=True):
        _refuse_flags(args, component)
    before = shared.installer(context, cluster).inventory()
    if before is None:
        _refuse_helm(cluster, components[0])
        if do is not OperationKind.DEPLOY:
            raise UserError("there is no installation", "`fairlead install` makes one")
    names = Parts.__struct_fields__
    settings = [] if before else [f"{part_key(each)}=false" for each in names]
    word = "false" if do is OperationKind.REMOVE else "true"
    settings += [f"{part_key(each.part)}={word}" for each in components]
    files = [getattr(each, "values", "") for each in each_args]
    given = argparse.Namespace(
        values=next(filter(None, files), ""),
        settings=[*settings, *(one for each in each_args for one in getattr(each, "settings", ()))],
    )
    found = shared.chosen(given, context, before.values if before else "")
    if not any(getattr(found.parts, each) for each in names):
        raise UserError(
            f"`{components[0].id}` is the last part of the installation",
            "`fairlead uninstall` removes the installation",
        )
    return found


def _refuse_helm(cluster: InstallationTarget, component: Component) -> None:
    """Raises UserError if Helm has installed Fairlead."""
    from fairlead.model.installation import SYSTEM_NAMESPACE
    from fairlead.settings import HELM_CHART

    releases = cluster.helm_releases(SYSTEM_NAMESPACE, HELM_CHART)
    if releases:
        what = f"`{component.id}` is a part of the Helm release `{releases[0]}`"
        raise UserError(what, f"`helm upgrade {releases[0]}` with the value `parts` changes it")


def _refuse_flags(args: argparse.Namespace, component: Component) -> None:
    given = {
        "--chart": getattr(args, "chart", ""),
        "--version": getattr(args, "version", ""),
        "--manifests": getattr(args, "manifests", ""),
        "--in": getattr(args, "place", ""),
        "--delete-definitions": getattr(args, "delete_definitions", False),
    }
    wrong = [flag for flag, value in given.items() if value]
    if wrong:
        what = f"`{component.id}` is a part of Fairlead's installation, which has no {wrong[0]}"
        raise UserError(what, "`--set KEY=VALUE` gives values of the installation")
