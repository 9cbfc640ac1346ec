"""One followed resource of the real cluster: its rows, its
reflector, and how well it can be read.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from fairlead.edge.kube.follow.followed_kind import FollowedKind
from fairlead.edge.kube.reflector import Mirror, Reflector
from fairlead.edge.kube.resource import Resource
from fairlead.errors import FairleadError, Forbidden, NotFound
from fairlead.model.source import Source, SourceState

Row = TypeVar("Row")


class Followed(Generic[Row]):
    """A subject with its mirror and, while the server serves it, its reflector."""

    def __init__(self, subject: FollowedKind[Row]) -> None:
        self.subject = subject
        self.mirror: Mirror[Row] = Mirror(subject.order)
        self.resource: Resource | None = subject.resource if subject.versions is None else None
        self.reflector: Reflector[Row] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the start need not wait any longer: read once, or known not to be readable."""
        reflector = self.reflector
        return reflector is not None and (
            reflector.is_synced or isinstance(reflector.last_error, Forbidden | NotFound)
        )

    def source(self, trouble: FairleadError | None) -> Source:
        """`trouble` is why discovery failed, for a resource that was never followed."""
        name, reflector = self.subject.name, self.reflector
        if reflector is None:
            return (
                Source(name, SourceState.FAILING, trouble.what, trouble.hint)
                if trouble
                else Source(name, SourceState.SYNCING)
            )
        error = reflector.last_error
        if error is not None:
            return Source(name, _state_of(error), error.what, error.hint, reflector.good_at)
        if not reflector.is_synced:
            return Source(name, SourceState.SYNCING)
        return Source(
            name,
            SourceState.OK,
            _left_out(reflector),
            "look into this server's log for all of them" if reflector.unreadable else "",
            reflector.good_at,
        )

    def missing_source(self) -> Source:
        label = self.subject.resource.label
        return Source(
            self.subject.name,
            SourceState.MISSING,
            f"this cluster does not serve `{label}`",
            f"install its CRD if `{label}` are wanted",
        )


def _state_of(error: FairleadError) -> SourceState:
    if isinstance(error, Forbidden):
        return SourceState.FORBIDDEN
    return SourceState.MISSING if isinstance(error, NotFound) else SourceState.FAILING


def _left_out(reflector: Reflector[Any]) -> str:
    if not reflector.unreadable:
        return ""
    first = next(iter(reflector.unreadable.values()))
    return f"{len(reflector.unreadable)} left out that cannot be read, such as {first}"
