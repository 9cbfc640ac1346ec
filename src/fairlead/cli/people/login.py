"""`fairlead login FILE`: the credential plugin of kubectl (docs/spec/people.md#renewal)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context, Machine, NewFile
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.model.people.record import KeptToken

NAME = "login"
HELP = """Print the token in FILE for kubectl, and renew it when half of its lifetime is over.
kubectl runs this command: a kubeconfig of `fairlead kubeconfig create --exec` names it."""
_NEW: Final = "ask an administrator for a new file (`fairlead kubeconfig create ID --exec FILE`)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where your token is kept")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.cli.frame.documents import render_json
    from fairlead.wire.people.credentials import render_exec_credential

    token = _read(args.file, context.machine)
    now = context.now()
    if token.expires_at - now < token.seconds / 2:
        token = _renewed(args.file, token, context, now)
    context.stdout.write(f"{render_json(render_exec_credential(token))}\n")
    return 0


def token_file(machine: Machine, name: str) -> NewFile:
    """The file that keeps a token."""
    from fairlead.wire.people.kept_token import is_kept_token

    return machine.new_file(name, "the token's file", "token.json", is_kept_token)


def _read(name: str, machine: Machine) -> KeptToken:
    from fairlead.wire.people.kept_token import parse_kept_token

    try:
        return parse_kept_token(machine.read(name))
    except OSError as error:
        raise UserError(
            f"the token's file `{name}` cannot be read: {(error.strerror or str(error)).lower()}",
            "put the file there that you got with the kubeconfig",
        ) from error
    except ValueError as error:
        raise UserError(f"the token's file `{name}` cannot be used: {error}", _NEW) from error


def _renewed(name: str, token: KeptToken, context: Context, now: float) -> KeptToken:
    """A new token, kept in the file; the present one if there is none and it still works."""
    from fairlead.wire.people.kept_token import parse_exec_info, render_kept_token

    try:
        cluster = parse_exec_info(context.env.get("KUBERNETES_EXEC_INFO", ""))
    except ValueError as error:
        raise UserError(
            f"it is not known which API server renews the token: {error}",
            "kubectl runs this command; name it in a kubeconfig, do not type it",
        ) from error
    try:
        new = context.world.renew(cluster, token)
    except OutsideError as error:
        if token.expires_at <= now:
            raise UserError(
                f"the token in `{name}` has expired and is not renewed: {error.what}", _NEW
            ) from error
        context.messages.warn(f"the token in `{name}` is not renewed: {error.what}")
        return token
    token_file(context.machine, name).write(render_kept_token(new))
    return new
