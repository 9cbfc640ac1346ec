"""The admission webhook's answers about users and groups. Nothing is decided here:
`rules/people/refusals` decides, for commands, too.

The API server is asked for users, groups or the tree only if the answer depends on them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.errors import FairleadError, UserError
from fairlead.model.people.record import PeopleRecord
from fairlead.model.refusal import Refusal
from fairlead.ports import AdmissionApi
from fairlead.rules.people.refusals import refuse_group_write, refuse_user_write
from fairlead.wire.kube.admission_review import Review, render_allowed, render_refused
from fairlead.wire.names import USER_GROUPS, USERS
from fairlead.wire.people.people_objects import WirePerson, parse_group, parse_user

_people: Final = msgspec.json.Decoder(WirePerson | None)


class PeopleQuestions:
    """Without an `api` every question is refused."""

    def __init__(self, api: AdmissionApi | None = None) -> None:
        self._api = api

    async def answer(self, review: Review) -> bytes:
        """Whether the user or group may be written or deleted."""
        try:
            if review.resource == USERS:
                refusal = await self._user(review)
            elif review.resource == USER_GROUPS:
                refusal = await self._group(review)
            else:
                return render_allowed(review)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return render_refused(review, f"the object cannot be read: {error}", 400, "BadRequest")
        except FairleadError as error:
            return render_refused(
                review, f"the write cannot be judged: {error.what}", 503, "ServiceUnavailable"
            )
        return render_allowed(review) if refusal is None else render_refused(review, refusal.reason)

    async def _user(self, review: Review) -> Refusal | None:
        before, after = (_of(each, parse_user) for each in (review.replaced, review.written))
        api = self._reached()
        users = await api.list_users() if before is not None and before.is_admin else ()
        groups = await api.list_groups() if after is not None and after.groups else ()
        record = _record(users, groups, review.user)
        return refuse_user_write(before, after, record)

    async def _group(self, review: Review) -> Refusal | None:
        before, after = (_of(each, parse_group) for each in (review.replaced, review.written))
        api = self._reached()
        users = await api.list_users() if after is None else ()
        groups = await api.list_groups() if after is not None else ()
        tree = await api.get_tree() if before is None else None
        record = msgspec.structs.replace(_record(users, groups, review.user), tree=tree)
        return refuse_group_write(before, after, record)

    def _reached(self) -> AdmissionApi:
        if self._api is None:
            raise UserError("the webhook has no cluster", "start it with a kubeconfig or in a pod")
        return self._api


def _of(raw: msgspec.Raw, parse: Any) -> Any:
    """The row of an object; None for `null`."""
    found = _people.decode(raw)
    return None if found is None else parse(found)


def _record(users: Any, groups: Any, me: str) -> PeopleRecord:
    return PeopleRecord(
        {each.name: each for each in users}, {each.name: each for each in groups}, me=me
    )
