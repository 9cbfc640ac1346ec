"""Finds the serving jobs that a command means, and warns of what could not be seen.

The verbs of `serve` share it.

A name may have several versions and types; a verb that needs one job prints them instead of
choosing.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import ClusterServings, Context
from fairlead.cli.frame.object_names import (
    NO_API_SERVER_HINT,
    check_name,
    in_namespace,
    is_open,
    not_yours,
)
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.model.jobs.serving import FoundServings, Serving

WHERE_ELSE: Final = "`arena serve list -A` shows every namespace"
_WORKLOADS: Final = "deployments.apps"


def add_type(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--type",
        "-T",
        metavar="TYPE",
        default="",
        help="only jobs of this type, e.g. custom, tf, triton, kserve",
    )


def add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", "-v", metavar="VERSION", default="", help="only this version")


def servings_of_world(context: Context) -> ClusterServings:
    found = context.world.servings()
    if found is None:
        raise UserError(
            "serving jobs are Deployments and Services, and there is no API server to ask for them",
            NO_API_SERVER_HINT,
        )
    return found


def read_servings(
    args: argparse.Namespace, context: Context, namespace: str, name: str = ""
) -> FoundServings:
    """Those of the type and version that are asked for.

    Warns of what was left out; raises when nothing could be read.
    """
    from msgspec.structs import replace

    type_ = type_of(args.type)
    version = getattr(args, "version", "")
    found = servings_of_world(context).read_servings(
        namespace, check_word("name", name), check_word("version", version)
    )
    _check_sources(found, namespace, type_, context)
    typed = tuple(each for each in found.servings if type_ in ("", each.type))
    mine = tuple(
        each for each in typed if is_open(each.workload.labels, found.isolated.get(each.namespace))
    )
    if name and typed and not mine:
        raise not_yours(namespace)
    return replace(found, servings=mine)


def type_of(word: str) -> str:
    """The label's value that `-T word` means; "" without a word."""
    from fairlead.kinds.serving.kinds import TYPES, serving_type

    type_ = serving_type(word) if word else ""
    if type_ is None:
        types = ",".join(f"{each.word}({each.title})" for each in TYPES.values())
        raise UserError(
            f"Unknown serving job type,arena only supports: [{types}]",
            "without `-T` jobs of all types are searched",
        )
    return type_


def check_word(what: str, text: str) -> str:
    """Names and versions come into a selector, where a comma would mean something."""
    import re

    if text and not re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", text):
        raise UserError(f"invalid {what} `{text}`", "at most 63 letters, digits, `-`, `_` and `.`")
    return text


def find_serving(args: argparse.Namespace, context: Context, name: str) -> FoundServings:
    """The one serving job of this name. Raises UserError when there is none, or several."""
    check_name(name)
    found = read_servings(args, context, context.world.namespace(), name)
    if not found.servings:
        raise UserError(
            (
                f"Not found serving job {name}, please check it with "
                f"`arena serve list | grep {name}`"
            ),
            WHERE_ELSE,
        )
    one_serving(found)
    return found


def one_serving(found: FoundServings) -> Serving:
    """Raises UserError when there are several."""
    if len(found.servings) > 1:
        raise UserError(_several(found.servings))
    return found.servings[0]


def _several(servings: tuple[Serving, ...]) -> str:
    from fairlead.wire.text.tabwriter import render_rows

    rows = [
        ("NAME", "TYPE", "VERSION"),
        *((each.name, each.type, each.version) for each in servings),
    ]
    return (
        f"there are {len(servings)} serving jobs of this name:\n\n{render_rows(rows)}\nplease use "
        "'--type' or '--version' to filter."
    )


def _check_sources(found: FoundServings, namespace: str, type_: str, context: Context) -> None:
    workloads = found.sources[_WORKLOADS]
    if workloads.is_forbidden:
        raise UserError(
            f"the user has no privileges to list the serving jobs in {in_namespace(namespace)}",
            workloads.message,
        )
    if not workloads.is_ok:
        raise OutsideError(
            "kubernetes", f"no serving job can be listed: {workloads.message}", workloads.hint
        )
    from fairlead.kinds.serving.kinds import TYPES

    for name, source in found.sources.items():
        if source.is_missing and not (type_ and TYPES[type_].is_operated):
            context.messages.debug(f"{name} is not served by this cluster")
        elif source.is_missing:
            context.messages.warn(f"{name} is not served by this cluster")
        elif not source.is_ok:
            context.messages.warn(f"skipped {name}: {source.message}")
