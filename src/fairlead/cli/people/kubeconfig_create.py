"""`fairlead kubeconfig create ID` (docs/spec/people.md#commands)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context, NewFile
from fairlead.cli.people.asked import add_output, find_user, is_document, people_of, print_document
from fairlead.cli.people.login import token_file
from fairlead.errors import FairleadError, UserError

if TYPE_CHECKING:
    from fairlead.model.people.rows import User

NAME = "kubeconfig create"
HELP = """Issue a token to a user and print a kubeconfig with it. The token is not kept anywhere:
it is printed once. `fairlead kubeconfig delete` revokes it; kube-apiserver may accept it for 10
seconds more. With --exec the kubeconfig has no token: `fairlead login` renews the one in FILE while
the user works, until it is revoked or is not used for its lifetime."""
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
    add(
        "--exec",
        dest="token_file",
        metavar="FILE",
        default="",
        help="keep the token in FILE, readable by you alone, and print a kubeconfig that renews it",
    )
    add(
        "--exec-path",
        metavar="PATH",
        default="",
        help="where the user keeps FILE, if not here, e.g. ~/.kube/fairlead-token.json",
    )
    add("--note", metavar="TEXT", default="", help="what it is for, for `kubeconfig list`")
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.model.people.record import KeptToken
    from fairlead.wire.kube.time import render_time
    from fairlead.wire.people.credentials import render_kubeconfig, renewing_user
    from fairlead.wire.people.kept_token import render_kept_token

    is_document(args)
    seconds = _seconds(args)
    file = _token_file(args, context)
    people = people_of(context)
    user = find_user(people.read(), args.user)
    _check_user(user)
    namespace = _namespace(user, context.options.namespace)
    server = people.address(args.server)
    credential, token = people.issue(user.name, seconds, args.note, is_renewed=file is not None)
    entry: dict[str, object] = {"token": token}
    if file is not None:
        kept = KeptToken(
            user.name, credential.name, credential.uid, seconds, token, credential.expires_at
        )
        try:
            file.write(render_kept_token(kept))
        except FairleadError:
            people.revoke(credential)
            raise
        entry = renewing_user(args.exec_path or context.machine.absolute(args.token_file))
    args.output = args.output or "yaml"
    print_document(args, context, render_kubeconfig(user.name, entry, namespace, server))
    until = f"works until {render_time(credential.expires_at)}"
    if file is not None:
        until += f", and {args.lifetime} longer with each renewal"
    context.messages.info(f"credential {credential.name} of {user.name} {until}, at {server.url}")
    return 0


def _check_user(user: User) -> None:
    """Raises UserError if a token of the user would not work."""
    if user.is_ending:
        raise UserError(
            f"user {user.name} is being deleted, and gets no more tokens",
            f"`fairlead user show {user.name}` prints what the deletion waits for",
        )
    if user.is_disabled:
        raise UserError(
            f"user {user.name} is disabled, so no token of the user works",
            f"`fairlead user update {user.name} --enable` gives the rights back",
        )
    if not user.status.service_account:
        raise UserError(
            f"user {user.name} has no ServiceAccount yet that a token could be for",
            f"`fairlead user show {user.name}` prints why; the people controller makes it",
        )


def _token_file(args: argparse.Namespace, context: Context) -> NewFile | None:
    """The file of `--exec`, checked before anything is issued."""
    if not args.token_file:
        if args.exec_path:
            raise UserError("--exec-path without --exec", "name the token's file with --exec FILE")
        return None
    file = token_file(context.machine, args.token_file)
    file.check()
    return file


def _seconds(args: argparse.Namespace) -> int:
    from fairlead.model.people.renewal import RENEWED_SECONDS_MAX
    from fairlead.wire.text.time_span import parse_span

    span = args.lifetime

    try:
        seconds = int(parse_span(span))
    except ValueError as error:
        raise UserError(f"--lifetime: {error}", "for example --lifetime 8h") from error
    if seconds < _LEAST_SECONDS:
        raise UserError(f"--lifetime {span} is less than 10m", "give 10m or more")
    if args.token_file and seconds > RENEWED_SECONDS_MAX:
        raise UserError(
            f"--lifetime {span} is more than 7d, and a token of --exec is renewed while it is used",
            "give 7d or less",
        )
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
