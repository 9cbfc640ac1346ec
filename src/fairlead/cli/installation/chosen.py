"""What `install` and `upgrade` share: flags, values of file and flags, and the run itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from fairlead import __version__
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag, wait_seconds
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.apps.installation.installer import InstallationPlan, Installer
    from fairlead.model.installation import Installation
    from fairlead.ports import InstallationTarget, WorkLease
    from fairlead.wire.installation.inventory import Inventory
    from fairlead.wire.installation.values import Values

WAIT_SECONDS: Final = 300.0
NO_CLUSTER: Final = "name one with --kubeconfig or --context"


def add_values(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--values", metavar="FILE", default="", help="values of the installation in YAML"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one value, e.g. parts.quota=false; repeatable, and stronger than the file",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_values(parser)
    parser.add_argument(
        "--dry-run", action=BooleanFlag, help="print what would change, and write nothing"
    )
    parser.add_argument(
        "--output",
        "-o",
        choices=["diff", "yaml"],
        default="diff",
        help="with --dry-run: the difference, or all objects (yaml needs no cluster)",
    )
    parser.add_argument(
        "--force-conflicts",
        action=BooleanFlag,
        help="take over fields that another program has written",
    )
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=wait_seconds,
        default=WAIT_SECONDS,
        help="how long to wait until all is ready; 0: do not wait (default 300)",
    )


def target(context: Context) -> InstallationTarget:
    """Raises UserError without a cluster that keeps changes."""
    found = context.world.installation_target()
    if found is None:
        raise UserError("there is no cluster to install into", NO_CLUSTER)
    return found


def installer(
    context: Context, cluster: InstallationTarget, lease: WorkLease | None = None
) -> Installer:
    """`lease`: for one that writes."""
    from fairlead.apps.installation.installer import Installer

    return Installer(cluster, progress(context), context.now, context.sleep, lease)


def progress(context: Context) -> Callable[[str], None]:
    """Prints each line at once, also into a file or a pipe."""

    def report(line: str) -> None:
        context.stdout.write(line + "\n")
        context.stdout.flush()

    return report


@contextmanager
def resumable(context: Context) -> Iterator[None]:
    """A run that Ctrl-C ends, with a sentence about how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        context.messages.error("interrupted", "the same command goes on where this run ended")
        raise


def is_print_only(args: argparse.Namespace) -> bool:
    """Whether the objects are printed without a cluster. Raises UserError for `-o yaml` alone."""
    if args.output == "yaml" and not args.dry_run:
        raise UserError("-o yaml prints objects and installs nothing", "add --dry-run")
    return bool(args.dry_run and args.output == "yaml")


def chosen(args: argparse.Namespace, context: Context, before: str = "") -> Installation:
    """The values `before` (YAML), with the file's in their place if one is named, and the
    settings on top.
    """
    from fairlead.wire.installation.values import parse_values, read_values, with_settings

    values: Values = read_values(before, "the inventory")
    if args.values:
        try:
            values = read_values(context.machine.read(args.values), args.values)
        except OSError as error:
            what = f"values `{args.values}` cannot be read: {error.strerror}"
            raise UserError(what, "name a YAML file; without --values the defaults hold") from error
    return parse_values(with_settings(values, args.settings))


def write(
    args: argparse.Namespace,
    context: Context,
    cluster: InstallationTarget,
    installation: Installation,
    *,
    by: str,
    may_go_back: bool = False,
) -> int:
    """Plans, prints or writes, and waits. `by`: the command."""
    from fairlead.apps.installation.installer import Wanted
    from fairlead.model.actions import object_ref

    lease = context.world.installation_lease(by, installation.namespace)
    loop = installer(context, cluster, lease)
    wanted = Wanted(__version__, installation)
    plan = loop.plan(wanted, is_forced=args.force_conflicts, may_go_back=may_go_back)
    if args.dry_run:
        context.stdout.write(difference(cluster, plan))
        return 0
    with resumable(context):
        loop.carry_out(plan, is_forced=args.force_conflicts, wait_seconds=args.wait)
        if args.wait > 0:
            loop.wait_ready([object_ref(each) for each in plan.objects], args.wait)
    context.stdout.write(f"fairlead {__version__}: {len(plan.objects)} objects\n")
    return 0


def print_objects(context: Context, installation: Installation) -> int:
    from fairlead.rules.installation.order import in_order
    from fairlead.wire.files.manifest_yaml import render_manifests
    from fairlead.wire.installation.components import installed_objects

    objects = in_order(installed_objects(installation))
    context.stdout.write(render_manifests(objects, has_blocks=True))
    return 0


def difference(cluster: InstallationTarget, plan: InstallationPlan) -> str:
    """What a plan would change: `create`, `change` with a diff, `remove`; the last line counts."""
    from fairlead.model.actions import object_ref

    lines: list[str] = []
    same = 0
    for manifest, result in zip(plan.objects, plan.results, strict=True):
        ref = object_ref(manifest)
        found = None if result is None else cluster.get(ref)
        if found is None:
            lines.append(f"create {ref.title}")
        elif changed := _changed_lines(found, result):
            lines += [f"change {ref.title}", *changed]
        else:
            same += 1
    lines += [f"remove {each.title}" for each in plan.removed]
    return "".join(f"{each}\n" for each in (*lines, same_line(same)))


def same_line(count: int) -> str:
    """
    >>> same_line(1), same_line(2)
    ('1 object does not change', '2 objects do not change')
    """
    return f"{count} {'object does' if count == 1 else 'objects do'} not change"


def refuse_other(before: Inventory | None, wanted: Installation) -> None:
    """Raises UserError if an installation, or an interrupted run, differs from what `install`
    should write.
    """
    from fairlead.wire.installation.inventory import COMPLETE
    from fairlead.wire.installation.values import render_values

    if before is None or before.namespace != wanted.namespace:
        return  # the plan refuses another namespace
    values = render_values(wanted)
    if before.state != COMPLETE:
        if before.values != values:
            what = f"a run of version `{before.version}` with other values has not come to its end"
            hint = "`fairlead upgrade` finishes it, with its values or with those that you name"
            raise UserError(what, hint)
    elif (before.version, before.values) != (__version__, values):
        what = f"version `{before.version}` is installed, with other values or of another version"
        raise UserError(what, "`fairlead upgrade` changes it; --dry-run prints the difference")


def _changed_lines(found: Any, result: Any) -> list[str]:
    from difflib import unified_diff

    from fairlead.rules.installation.comparable import comparable
    from fairlead.wire.files.manifest_yaml import render_manifests

    old, new = (
        render_manifests([comparable(each)], has_blocks=True).splitlines()
        for each in (found, result)
    )
    return [f"  {line}" for line in unified_diff(old, new, lineterm="", n=2)][2:]
