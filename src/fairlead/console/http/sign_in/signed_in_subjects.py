"""The subject of each request (`subjects.Subjects`): from the sign-in of its cookie, or its token.

A sign-in is a row of the store, and a cookie with its id. The row has the identity alone: role and
namespaces come from the users and groups of the cluster at each request. Rows are kept here for a
second, so that a page of many requests asks the store once; signing out at this console counts at
once, at another one after that second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from msgspec import structs
from starlette.requests import Request

from fairlead.console.http.answers import Refused
from fairlead.console.http.kept_answers import KeptAnswers
from fairlead.console.http.sign_in.kept import KEPT_SECONDS, Kept
from fairlead.console.http.sign_in.tools import (
    COOKIE,
    SignInTools,
    TryCount,
    signed_out,
)
from fairlead.console.http.subjects import refused
from fairlead.errors import OutsideError, StoreDown
from fairlead.model.access import Identity
from fairlead.model.changes import Changes
from fairlead.model.people.permission import Denied
from fairlead.model.people.subject import SignInWay, Subject
from fairlead.model.people.token_bounds import bound_object
from fairlead.model.records.audit import KEPT_MS
from fairlead.model.records.sign_ins import SignIn
from fairlead.model.refusal import Refusal
from fairlead.rules.people.identities import (
    Roster,
    check_account,
    first_administrator,
    made_later,
    no_user,
    subject_of_user,
    user_of_account,
    user_of_external,
    user_of_identity,
)
from fairlead.rules.people.sign_in import (
    IDLE_MS,
    TOKEN_MAX,
    SignedId,
    hash_of,
    is_over,
    read_cookie,
)

TOUCH_MS: Final = 60_000
EXPIRE_SECONDS: Final = 60.0
END_AGAIN_SECONDS: Final = 1.0
"""The pause between two tries to end the sign-ins of a user."""
CLOCKS_MS: Final = 60_000
"""By how much the clocks of API server and console may differ."""
AWAY_SECONDS: Final = 300.0
"""How long rows count that were read before the store went away, so that live pages go on."""
BOUND_PATIENCE: Final = 1.0
"""How long a request waits for whether its token was revoked. It then goes on, and asks again."""
BOUND_MOST: Final = 10_000
_RETRY: Final = {"Retry-After": "1"}
_log = logging.getLogger(__name__)


class SignedInSubjects:
    """One console. `now`: epoch seconds of this machine, which browsers' cookies live by."""

    def __init__(self, tools: SignInTools) -> None:
        self._tools = tools
        self.roster = Roster()
        self.tries = TryCount(tools.monotonic)
        self._rows = Kept[SignIn](tools.monotonic)
        self._owners = Kept[Identity](tools.monotonic)
        self._makers = Kept[bool](tools.monotonic)
        self._bound = KeptAnswers[str, bool](
            KEPT_SECONDS, BOUND_PATIENCE, most=BOUND_MOST, clock=tools.monotonic
        )
        self._own: Identity | None = None
        self._ended: asyncio.Queue[str] = asyncio.Queue()

    async def of(self, request: Request) -> Subject:
        """The subject of a request, and in `request.state.csrf` what its writes send back (None: it
        has a token of its own). Raises Refused: 401 `signed-out`, 403 `no-user`, 503 `not-ready`.
        """
        token = _bearer(request)
        if token is not None:
            subject = await self._of_token(request, token)
            request.state.csrf = None
            return subject
        signed = self.signed(request)
        row = await self.row(hash_of(signed.id)) if signed is not None else None
        if row is None:
            raise signed_out()
        if await self._is_token_gone(row):
            await self.end(row.hash)
            raise signed_out("the token with which you signed in was revoked")
        found = await self.subject(row)
        if isinstance(found, Denied):
            raise refused(found)
        request.state.csrf = row.csrf
        return found

    async def acting(self, request: Request) -> SignIn | None:
        signed = self.signed(request)
        if signed is None or not self._tools.is_simulated:
            return None
        row = await self.row(hash_of(signed.id))
        return row if row is not None and row.way is SignInWay.CODE else None

    async def row(self, hash: str) -> SignIn | None:
        try:
            return await self._stored_row(hash)
        except StoreDown:
            kept = self._rows.get(hash, AWAY_SECONDS)
            if kept is None or is_over(kept, self.now()):
                raise
            return kept

    async def _stored_row(self, hash: str) -> SignIn | None:
        row, mark = self._rows.get(hash), self._rows.mark
        if row is None:
            row = await self._tools.store.sign_in(hash)
            if row is None:
                self._rows.forget(hash)
                return None
            self._rows.keep(hash, row, mark)
        now = self.now()
        if is_over(row, now):
            await self.end(hash)
            return None
        if now - row.seen_at >= TOUCH_MS:
            await self._tools.store.touch_sign_in(hash, now)
            self._rows.keep(hash, structs.replace(row, seen_at=now), mark)
        return row

    async def _is_token_gone(self, row: SignIn) -> bool:
        """Whether the object to which the token is bound was deleted. While the API server does
        not answer, what was last known counts.
        """
        bound = bound_object(row.bound_to)
        if bound is None:
            return False
        try:
            found = await self._bound.of(row.bound_to, lambda: self._tools.api.is_there(bound))
        except OutsideError:
            return False
        return found is False

    async def end(self, hash: str) -> None:
        self._rows.forget(hash)
        await self._tools.store.end_sign_in(hash)
        self._rows.forget(hash)  # another request may have read the row meanwhile

    async def subject(self, row: SignIn) -> Subject | Denied:
        """The subject of a sign-in, now. Not a user of the same id who was made after it began."""
        self.require_ready()
        found = await self._of_row(row)
        user = self.roster.users.get(found.user) if isinstance(found, Subject) else None
        if user is not None and user.created_at * 1000 > row.began_at + CLOCKS_MS:
            return made_later(user)
        return found

    async def _of_token(self, request: Request, token: str) -> Subject:
        """The subject of a request with a token of its own, as programs send it."""
        if not token or len(token) > TOKEN_MAX:
            raise signed_out("the header `Authorization` has no token that could be one")
        self.require_ready()
        found = self._owners.get(hash_of(token.encode()))
        if found is None:
            peer = self._tools.proxies.peer(request)
            self.tries.check(peer)
            owner = await self.owner(token)
            if isinstance(owner, Refusal):
                self.tries.failed(peer)
                raise signed_out(owner.reason, "use a new token of this cluster")
            found = owner
            self._owners.keep(hash_of(token.encode()), found)
        user = user_of_account(found.name, self.roster.users)
        refusal = check_account(user) if user is not None else None
        subject = refusal or await self._of_identity(found, SignInWay.BEARER)
        if isinstance(subject, Denied):
            raise refused(subject)
        return subject

    async def owner(self, token: str) -> Identity | Refusal:
        is_text = token.isascii() and token.isprintable() and token and " " not in token
        if not is_text:
            return Refusal("this is not a token: it is empty, or has spaces or other characters")
        return await self._tools.api.owner_of(token)

    async def _of_row(self, row: SignIn) -> Subject | Denied:
        way = row.way
        if row.way is SignInWay.OIDC:
            uid = row.identity.removeprefix(f"{self._tools.issuer}#")
            if uid == row.identity:
                return no_user(row.identity)  # of a provider that is not the console's any more
            found = user_of_external(uid, self.roster.users)
            if isinstance(found, Denied):
                return found
            return subject_of_user(found, self.roster.groups, way)
        if row.way is SignInWay.CODE and row.user and self._tools.is_simulated:
            looked_as = self.roster.users.get(row.user)
            if looked_as is None:
                return no_user(row.user)
            return subject_of_user(looked_as, self.roster.groups, way)
        return await self._of_identity(Identity(row.identity, groups=row.groups), way)

    async def _of_identity(self, identity: Identity, way: SignInWay) -> Subject | Denied:
        users = self.roster.users
        is_code = way is SignInWay.CODE  # of this server's own user, whatever Users name it
        user = (user_of_account if is_code else user_of_identity)(identity.name, users)
        if isinstance(user, Denied):
            return user
        if user is not None:
            return subject_of_user(user, self.roster.groups, way)
        may_make = self._makers.get(identity.name)
        if may_make is None:
            may_make = await self._tools.api.may_make_users(identity)
            self._makers.keep(identity.name, may_make)
        if not may_make:
            return no_user(identity.name)
        own = await self.own_identity() if is_code else None
        is_own = own is not None and own.name == identity.name
        return first_administrator(identity, way, is_own=is_own)

    async def own_identity(self) -> Identity:
        if self._own is None:
            self._own = await self._tools.api.own_identity()
        return self._own

    def signed(self, request: Request) -> SignedId | None:
        return read_cookie(request.cookies.get(COOKIE, ""), self._tools.keys)

    def require_ready(self) -> None:
        """Raises Refused (503) while the users have never been read."""
        refused = self.unready()
        if refused is not None:
            raise refused

    def unready(self) -> Refused | None:
        """Refused (503) while the users have never been read: no subject is known."""
        if self.roster.is_complete:
            return None
        return Refused(
            503,
            "the users of the cluster are not read yet",
            "try again; the page Health shows whether the API server answers",
            _RETRY,
        )

    def now(self) -> int:
        return round(self._tools.now() * 1000)

    def loops(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """What runs beside the server."""
        return self._follow, self._end_disabled, self._expire

    async def _follow(self) -> None:
        await self._tools.api.follow(self._observe)

    def _observe(self, changes: Changes[Any]) -> None:
        before = self.roster.users
        self.roster.observe(changes)
        after = self.roster.users
        if before and not after and changes.is_list:
            # An API server that starts may not serve users yet: they are refused, and not ended.
            return
        for name in before.keys() | after.keys():
            was, now = before.get(name), after.get(name)
            is_out = now is None or now.is_disabled or now.is_ending
            was_out = was is not None and (was.is_disabled or was.is_ending)
            is_another = was is not None and now is not None and was.uid != now.uid
            if (is_out and not was_out) or is_another:
                self._ended.put_nowait(name)

    async def _end_disabled(self) -> None:
        """End the sign-ins of users who are disabled or gone: enabling does not bring them back,
        also after a time in which the store was away.
        """
        while True:
            name = await self._ended.get()
            is_logged = False
            while (error := await self._end_all_of(name)) is not None:
                if not is_logged:
                    _log.warning("sign-ins of `%s` are not ended yet: %s", name, error.log_line)
                is_logged = True
                await asyncio.sleep(END_AGAIN_SECONDS)

    async def _end_all_of(self, name: str) -> OutsideError | None:
        try:
            await self._tools.store.end_sign_ins(user=name)
        except OutsideError as error:
            return error
        self._rows.clear()
        return None

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EXPIRE_SECONDS)
            now = self.now()
            try:
                await self._tools.store.expire_sign_ins(now, now - IDLE_MS)
                if self._tools.records is not None:
                    await self._tools.records.forget_audit(now - KEPT_MS)
            except OutsideError as error:
                _log.warning("old sign-ins are not removed: %s", error.log_line)


def _bearer(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
