"""`fairlead kubeconfig create ID` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.people.asked import find_user, people_of
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.people.rows import User

NAME = "kubeconfig create"
HELP = """Issue a token to a user and print a kubeconfig with it. The token is not kept anywhere:
it is printed once. `fairlead kubeconfig delete` revokes it; kube-apiserver may accept it for 10
seconds more."""
_LEAST_SECONDS: Final = 600
_DEFAULT: Final = "8h"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("user", metavar="ID", help="the user's id")
    add(
        "--lifetime",
        metavar="SPAN",
        default=_DEFAULT,
        help=f"how long the token works, e.g. 8h, 7d; 10m at least (default {_DEFAULT})",
    )
    add("--server", metavar="URL", default="", help="the API server as the user reaches it")
    add("--note", metavar="TEXT", default="", help="what it is for, for `kubeconfig list`")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.cli.frame.documents import render_yaml
    from fairlead.wire.kube.time import render_time
    from fairlead.wire.people.credentials import render_kubeconfig

    seconds = _seconds(args.lifetime)
    people = people_of(context)
    user = find_user(people.read(), args.user)
    if not user.status.service_account or user.is_disabled or user.is_ending:
        raise UserError(
            f"user {user.name} has no ServiceAccount that a token could be for",
            f"`fairlead user show {user.name}` prints why",
        )
    namespace = _namespace(user, context.options.namespace)
    server = people.address(args.server)
    credential, token = people.issue(user.name, seconds, args.note)
    context.stdout.write(render_yaml(render_kubeconfig(user.name, token, namespace, server)))
    context.messages.info(
        f"credential {credential.name} of {user.name} works until "
        f"{render_time(credential.expires_at)}, at {server.url}"
    )
    return 0


def _seconds(span: str) -> int:
    from fairlead.wire.text.time_span import parse_span

    try:
        seconds = int(parse_span(span))
    except ValueError as error:
        raise UserError(f"--lifetime: {error}", "for example --lifetime 8h") from error
    if seconds < _LEAST_SECONDS:
        raise UserError(f"--lifetime {span} is less than 10m", "give 10m or more")
    return seconds


def _namespace(user: User, asked: str) -> str:
    """The namespace of the context: one of the user's, any for an administrator."""
    mine = user.status.namespaces
    if asked and asked not in mine and not user.is_admin:
        raise UserError(
            f"user {user.name} has no rights in namespace `{asked}`",
            f"the user's namespaces: {', '.join(mine) or 'none'}",
        )
    return asked or (mine[0] if mine else "default")
