"""Decides for the people controller: which calls are sent now (`rules/control/decider`).

`steps` computes, from what lists and watches show, all calls that are due. This module sends each
once, keeps it until its effect is seen, repeats it if its outcome is unknown, and leaves an object
alone for a while after a refusal. Statuses are written last, and only of a user or a group about
which no call is under way, so that a single write shows the result.

All state may be lost: what users should have follows from the API server's objects alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from fairlead.model.actions import Outcome, Result
from fairlead.model.changes import Changes
from fairlead.model.people.actions import (
    AdoptBinding,
    CreateBinding,
    CreateServiceAccount,
    DeleteBinding,
    DeleteServiceAccount,
    HoldUser,
    MoveGroup,
    PeopleAction,
    WriteGroupStatus,
    WriteUserStatus,
)
from fairlead.model.people.rows import (
    KIND_CLUSTER_ROLE_BINDINGS,
    KIND_GROUPS,
    KIND_ROLE_BINDINGS,
    KIND_SERVICE_ACCOUNTS,
    KIND_USERS,
)
from fairlead.rules.control.pending import Pauses, PendingCall, PendingCalls
from fairlead.rules.people.feed import PeopleFeed
from fairlead.rules.people.sight import PeopleSight, people_sight
from fairlead.rules.people.statuses import group_status, user_status, users_of_groups
from fairlead.rules.people.steps import next_steps

_STATUS: Final = "status of "


class PeopleCall(PendingCall, kw_only=True):
    """A call. `about`: the user or group that it is for, with its kind."""

    action: PeopleAction
    about: str


class PeopleDecider:
    """`work_kinds`: the kinds of pods and jobs that are followed. `own`: Fairlead's namespaces."""

    def __init__(self, work_kinds: Collection[str] = (), own: Collection[str] = ()) -> None:
        self._feed = PeopleFeed(work_kinds, self._shown)
        self._own = own
        self._calls: PendingCalls[PeopleCall] = PendingCalls()
        self._pauses = Pauses()
        self._refusals: dict[str, tuple[str, str]] = {}
        self._listings = 0
        self._has_changed = False
        self._now = float("-inf")

    @property
    def is_rebuilt(self) -> bool:
        return self._feed.is_complete

    @property
    def next_at(self) -> float | None:
        if not self.is_rebuilt:
            return None
        if self._has_changed:
            return 0.0
        later = (each for each in self._pauses.times() if each > self._now)
        return min((*self._calls.times(), *later), default=None)

    def rebuild(self) -> None:
        self._feed.rebuild()
        self._listings += 1
        self._calls.cut_off(self._now)

    def observe(self, changes: Changes[Any]) -> None:
        self._feed.observe(changes)
        self._has_changed = True

    def look(self, now: float) -> Iterator[PeopleAction]:
        if now < self._now:
            self._calls.step_back(now)
            self._pauses.step_back()
        self._now = now
        self._has_changed = False
        sight = people_sight(self._feed, self._own)
        self._calls.forget(now, self._listings, lambda _, call: _is_shown(sight, call.action))
        self._pauses.forget(now)
        for call in self._calls.repeats(now):
            yield call.action
        steps = list(next_steps(sight))
        for action in steps:
            yield from self._begun(action, now)
        yield from self._statuses(sight, self._standing_refusals(steps), now)

    def done(self, action: PeopleAction, outcome: Outcome, now: float) -> Iterable[PeopleAction]:
        key = _key(action)
        call = self._calls.get(key)
        if call is None:
            return ()
        if self._calls.ended(key, outcome, now, self._listings):
            self._pauses.pause(key, now)
            self._refusals[key] = call.about, outcome.reason
        elif outcome.result is not Result.UNKNOWN:
            self._pauses.end(key)
            self._refusals.pop(key, None)
        self._has_changed = True
        return ()

    def _begun(self, action: PeopleAction, now: float) -> Iterator[PeopleAction]:
        """The action, unless it is under way or its object is left alone."""
        key = _key(action)
        if key not in self._calls and not self._pauses.is_paused(key, now):
            self._calls[key] = PeopleCall(now, action=action, about=_about(action))
            yield action

    def _statuses(
        self, sight: PeopleSight, refusals: Mapping[str, str], now: float
    ) -> Iterator[PeopleAction]:
        busy = {call.about for call in self._calls.values()}
        for name, user in sight.users.items():
            about = f"{KIND_USERS}/{name}"
            if about in busy or (user.is_ending and not user.is_held):
                continue
            status = user_status(sight, user, refusals.get(about, ""), now)
            if status != user.status:
                yield from self._begun(WriteUserStatus(user, status), now)
        users = users_of_groups(sight)
        for name, group in sight.groups.items():
            about = f"{KIND_GROUPS}/{name}"
            if about in busy:
                continue
            refusal = refusals.get(about, "")
            written = group_status(group, sight.leaves[name], users[name], refusal, now)
            if written != group.status:
                yield from self._begun(WriteGroupStatus(group, written), now)

    def _standing_refusals(self, steps: Iterable[PeopleAction]) -> dict[str, str]:
        """By user or group, the refusal of a call that is still due. A refused status is none."""
        if not self._refusals:
            return {}
        due = {_key(each) for each in steps}
        for key in [each for each in self._refusals if each not in due]:
            del self._refusals[key]
        return dict(self._refusals.values())

    def _shown(self, kind: str, namespace: str, name: str) -> None:
        """A watch has shown the object: calls about it have had their effect, or must be made
        again.
        """
        key = f"{kind}/{namespace}/{name}"
        self._calls.shown(key)
        self._calls.shown(_STATUS + key)


def _key(action: PeopleAction) -> str:
    subject = action.subject
    match action:
        case CreateBinding() | AdoptBinding() | DeleteBinding():
            kind = KIND_ROLE_BINDINGS if subject.namespace else KIND_CLUSTER_ROLE_BINDINGS
        case CreateServiceAccount() | DeleteServiceAccount():
            kind = KIND_SERVICE_ACCOUNTS
        case HoldUser() | WriteUserStatus():
            kind = KIND_USERS
        case MoveGroup() | WriteGroupStatus():
            kind = KIND_GROUPS
    prefix = _STATUS if isinstance(action, WriteUserStatus | WriteGroupStatus) else ""
    return f"{prefix}{kind}/{subject.namespace}/{subject.name}"


def _about(action: PeopleAction) -> str:
    match action:
        case HoldUser() | WriteUserStatus():
            return f"{KIND_USERS}/{action.subject.name}"
        case MoveGroup() | WriteGroupStatus():
            return f"{KIND_GROUPS}/{action.subject.name}"
        case AdoptBinding():
            return f"{KIND_USERS}/{action.user}"
        case _:
            return f"{KIND_USERS}/{action.subject.user}"


def _is_shown(sight: PeopleSight, action: PeopleAction) -> bool:
    """Whether the cluster shows the effect of the call, or an object that it can no longer be
    about.
    """
    match action:
        case CreateServiceAccount():
            return action.subject.name in sight.service_accounts
        case DeleteServiceAccount():
            there = sight.service_accounts.get(action.subject.name)
            return there is None or there.uid != action.subject.uid or there.is_ending
        case CreateBinding():
            return (action.subject.namespace, action.subject.name) in sight.bindings
        case DeleteBinding() | AdoptBinding():
            binding = sight.bindings.get((action.subject.namespace, action.subject.name))
            return binding is None or _is_other(binding, action.subject)
        case HoldUser() | WriteUserStatus():
            user = sight.users.get(action.subject.name)
            return user is None or _is_other(user, action.subject)
        case MoveGroup() | WriteGroupStatus():
            group = sight.groups.get(action.subject.name)
            return group is None or _is_other(group, action.subject)


def _is_other(there: Any, subject: Any) -> bool:
    """Whether the object is a later one, or has changed."""
    return bool(there.uid != subject.uid or there.version != subject.version)
