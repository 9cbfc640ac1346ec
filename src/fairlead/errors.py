"""The exceptions of Fairlead, each with a sentence that a person can act on.

There are four forms, by who can fix the problem (ARCHITECTURE.md): an expected "no" is a
`model.Refusal` value and no exception; a user's mistake is `UserError`; a failure outside of
Fairlead is `OutsideError`; anything else is a bug.
"""

from __future__ import annotations

INTERRUPTED = 130
"""Exit status after Ctrl-C, as a shell reports a program that the signal ended."""


class FairleadError(Exception):
    """A failure with a sentence for a person.

    `what` has actual values in backticks; `hint` is an imperative and may be empty.
    """

    exit_code = 3

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}\nhint: {self.hint}" if self.hint else self.what

    @property
    def log_line(self) -> str:
        """Both in one line, as a log wants it.

        >>> FairleadError("no answer", "check the address").log_line
        'no answer; hint: check the address'
        """
        return f"{self.what}; hint: {self.hint}" if self.hint else self.what


class UserError(FairleadError):
    """The user can fix it: a bad flag, file or name. Exit status 1, HTTP 4xx."""

    exit_code = 1


class NoHelm(UserError):
    """There is no program `helm` here."""


class OutsideError(FairleadError):
    """A failure outside of Fairlead: an API server, Prometheus, a disk.

    Exit status 2, HTTP 502; loops back off and continue. `system` names it for logs, metrics and
    warnings (`kubernetes`, `prometheus`, `exporter`, `disk`).
    """

    exit_code = 2

    def __init__(self, system: str, what: str, hint: str = "") -> None:
        super().__init__(what, hint)
        self.system = system


class Forbidden(OutsideError):
    """The API server has identified the client and forbids it.

    `what` contains its message (verb, resource, user).
    """


class NotFound(OutsideError):
    """The object, or the whole resource (no such CRD), does not exist on the API server."""


class ChangedMeanwhile(OutsideError):
    """Another client created or changed the object since it was read. Nothing was written."""


class AlreadyExists(ChangedMeanwhile):
    """An object of this name exists already, so none was created."""


class InvalidObject(OutsideError):
    """The API server refuses the values of an object.

    `causes`: each field's path with what is wrong with it; () = the server names none.
    """

    def __init__(
        self, system: str, what: str, hint: str = "", causes: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(system, what, hint)
        self.causes = causes


class RejectedObject(OutsideError):
    """The API server rejects an object as it is written.

    It serves another version, has other fields, or does not serve them to this client.
    """


class StoreDown(OutsideError):
    """The store of the console cannot be read or written now: HTTP 503.

    What was asked is not done, or it is not known whether it is. `what` contains no password.
    """

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__("store", what, hint)


class LedgerTaken(OutsideError):
    """Another usage recorder has claimed the ledger: the older one stops. Nothing was written."""

    def __init__(self, epoch: int, newest: int) -> None:
        super().__init__(
            "store",
            f"the usage ledger was claimed by another recorder: claim {newest} follows {epoch}",
            "run one usage recorder for each store",
        )
