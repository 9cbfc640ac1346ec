"""Names of objects and namespaces that a person types, and whose the objects are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.cli.frame.context import Context

NO_API_SERVER_HINT: Final = (
    "`fairlead up` starts a simulated cluster on this machine, --kubeconfig FILE names another"
)
_NOT_YOURS: Final = "you have no privileges to operate the job,because the owner of job is not you"
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def check_namespace(name: str) -> None:
    """Raises UserError for what can be no namespace, before it comes near a request."""
    if not _DNS_LABEL.fullmatch(name):
        raise UserError(
            f"invalid namespace `{name}`",
            "a namespace has lower case letters, digits and `-`, at most 63 characters",
        )


def check_name(name: str) -> None:
    """Raises UserError for what can be no object's name, before it comes near a request (an empty
    one would mean all jobs).
    """
    if not _DNS_NAME.fullmatch(name):
        raise UserError(
            f"invalid name `{name}`",
            "a name has lower case letters, digits, `-` and `.`, at most 253 characters",
        )


def in_namespace(namespace: str) -> str:
    return f"namespace {namespace}" if namespace else "all namespaces"


def warn_if_absent(context: Context, namespace: str) -> None:
    """Warns after an empty listing: an absent namespace looks like an empty one."""
    if namespace and context.world.jobs().is_absent(namespace):
        context.messages.warn(absence_of(namespace))


def absence_of(namespace: str) -> str:
    return f"namespace {namespace} does not exist"


def is_open(labels: Mapping[str, str], our_id: str | None) -> bool:
    """Whether the user may see a job with these labels; `our_id` None: all users see all jobs."""
    from fairlead.wire.names import LABEL_SUBMITTER

    return our_id is None or labels.get(LABEL_SUBMITTER) == our_id


def not_yours(namespace: str) -> UserError:
    return UserError(
        _NOT_YOURS,
        f"namespace {namespace} shows users only their own jobs; `arena whoami` prints your name",
    )
