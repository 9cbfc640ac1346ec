"""Who is signed in (`subjects.Subjects`), and how users sign in and out.

A sign-in is a row of the store, and a cookie with its id. The row has the identity alone: role and
namespaces come from the users and groups of the cluster at each request. Rows are kept here for a
second, so that a page of many requests asks the store once; signing out at this console counts at
once, at another one after that second.

No token, code or cookie stands in a log or a message.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, structs
from starlette.requests import Request

from fairlead.console.http.answers import Refused
from fairlead.console.http.audit_notes import audited
from fairlead.console.http.issuing import issue_recorded
from fairlead.console.http.proxies import Peer, Proxies
from fairlead.console.http.subjects import refused
from fairlead.console.http.writes import check_json, check_origin, check_token
from fairlead.console.http.writing.frame import WriteTools
from fairlead.errors import OutsideError, StoreDown
from fairlead.model.access import Identity
from fairlead.model.changes import Changes
from fairlead.model.people.external import OidcRequest
from fairlead.model.people.permission import Denied
from fairlead.model.people.record import Credential, ServerAddress
from fairlead.model.people.rows import User
from fairlead.model.people.subject import SignInWay, Subject
from fairlead.model.records.audit import KEPT_MS, AuditResult, AuditRow, AuditTarget
from fairlead.model.records.sign_ins import SignIn
from fairlead.model.refusal import Refusal
from fairlead.ports import (
    AuditTrail,
    CredentialIssuer,
    CredentialRecords,
    IssuedRecords,
    OidcProvider,
    SignInApi,
    SignIns,
    TreeVersions,
)
from fairlead.rules.people.identities import (
    Roster,
    check_account,
    first_administrator,
    no_user,
    subject_of_user,
    user_of_account,
    user_of_external,
)
from fairlead.rules.people.sign_in import (
    CODE_SECONDS,
    ID_BYTES,
    IDLE_MS,
    LONGEST_MS,
    TOKEN_MAX,
    TRIES_MAX,
    SignedId,
    Tries,
    csrf_of,
    derived,
    hash_of,
    is_over,
    new_state,
    read_cookie,
    signed_cookie,
    state_ends_at,
    state_text,
)
from fairlead.settings import USERS_NAMESPACE

COOKIE: Final = "fairlead-sign-in"
STATE_COOKIE: Final = "fairlead-oidc"
BEGIN: Final = "session.begin"
END: Final = "session.end"
ISSUE: Final = "credential.create"
"""Actions in the audit."""
KEPT_SECONDS: Final = 1.0
"""How long a row of the store, the owner of a token, and a right to make users are remembered."""
TOUCH_MS: Final = 60_000
EXPIRE_SECONDS: Final = 60.0
CLOCKS_MS: Final = 60_000
"""By how much the clocks of API server and console may differ."""
AWAY_SECONDS: Final = 300.0
"""How long rows count that were read before the store went away, so that live pages go on."""
_KEPT_MAX: Final = 10_000
_RETRY: Final = {"Retry-After": "1"}
_BEGIN_AGAIN: Final = "sign in again"
_log = logging.getLogger(__name__)
Value = TypeVar("Value")


class Cookie(Struct, frozen=True):
    """A cookie to set. `value`: "" removes it."""

    name: str
    value: str
    seconds: int
    is_secure: bool


class Actor(Struct, frozen=True):
    """The actor of a row of the audit; "" = not known."""

    name: str = ""
    role: str = ""


class OneTimeCode:
    """A code that signs in once. `seconds`: how long it works. `monotonic`: a clock that nothing
    sets.
    """

    def __init__(
        self, seconds: float = CODE_SECONDS, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.text = secrets.token_urlsafe(24)
        self._is_used = False
        self._monotonic = monotonic
        self._ends_at = monotonic() + seconds

    def spend(self, given: str) -> bool:
        """Whether it is the code, for the first time, in time."""
        is_right = secrets.compare_digest(given.encode(), self.text.encode())
        if not is_right or self._is_used or self._monotonic() >= self._ends_at:
            return False
        self._is_used = True
        return True


class SignInTools(Struct, frozen=True, kw_only=True):
    """What signing in takes. `keys`: that sign cookies, the first one new ones. `code`: for a
    console that only this machine can reach. `external_url`: where browsers find the console, ""
    = by the host that they name. `records`: None = nothing is
    noted. `credentials`: None = the console issues none. `versions`: of the
    quota tree, None = they are not kept.
    """

    api: SignInApi
    store: SignIns
    records: IssuedRecords | None = None
    credentials: CredentialIssuer | None = None
    versions: TreeVersions | None = None
    keys: tuple[bytes, ...]
    code: OneTimeCode | None = None
    provider: OidcProvider | None = None
    issuer: str = ""
    proxies: Proxies = Proxies()
    external_url: str = ""
    is_simulated: bool = False
    base_path: str = "/"
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


class SignInDesk:
    """One console. `now`: epoch seconds of this machine, which browsers' cookies live by."""

    def __init__(self, tools: SignInTools) -> None:
        self._tools = tools
        self._roster = Roster()
        self._tries = Tries()
        self._rows = _Kept[SignIn](tools.monotonic)
        self._owners = _Kept[Identity](tools.monotonic)
        self._makers = _Kept[bool](tools.monotonic)
        self._own: Identity | None = None
        self._ended: asyncio.Queue[str] = asyncio.Queue()

    @property
    def ways(self) -> list[str]:
        """The ways to sign in that this console offers."""
        code = [str(SignInWay.CODE)] if self._tools.code is not None else []
        oidc = [str(SignInWay.OIDC)] if self._tools.provider is not None else []
        return [*code, *oidc, str(SignInWay.TOKEN)]

    @property
    def roster(self) -> Roster:
        """The users and groups of the cluster."""
        return self._roster

    @property
    def versions(self) -> TreeVersions | None:
        return self._tools.versions

    @property
    def audit(self) -> AuditTrail | None:
        return self._tools.records

    @property
    def credential_records(self) -> CredentialRecords | None:
        return self._tools.records

    def write_tools(self) -> WriteTools | None:
        """What writes take; None without a store for their audit."""
        audit = self._tools.records
        if audit is None:
            return None
        return WriteTools(
            audit=audit,
            spent=self._tools.store,
            source_ip=lambda request: self._tools.proxies.peer(request).address,
            now=self._now,
        )

    def is_tls(self, request: Request) -> bool:
        """Whether the browser came by TLS, so that its cookies may be sent by nothing else."""
        return self._tools.proxies.peer(request).is_tls

    def loops(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """What runs beside the server."""
        return self._follow, self._end_disabled, self._expire

    # --- each request -----------------------------------------------------------------------------

    async def of(self, request: Request) -> Subject:
        """The subject of a request, and in `request.state.csrf` what its writes send back (None: it
        has a token of its own). Raises Refused: 401 `signed-out`, 403 `no-user`, 503 `not-ready`.
        """
        token = _bearer(request)
        if token is not None:
            subject = await self._of_token(request, token)
            request.state.csrf = None
            return subject
        signed = self._signed(request)
        row = await self._row(hash_of(signed.id)) if signed is not None else None
        if row is None:
            raise signed_out()
        found = await self._subject(row)
        if isinstance(found, Denied):
            raise refused(found)
        request.state.csrf = row.csrf
        return found

    async def users_to_act_as(self, request: Request) -> list[User]:
        """The users that this sign-in may look as: with the code of a simulated cluster all users,
        else none.
        """
        row = await self._acting(request)
        return sorted(self._roster.users.values(), key=lambda each: each.name) if row else []

    # --- signing in -------------------------------------------------------------------------------

    async def begin(self, request: Request, way: str, secret: str) -> Cookie:
        """A new sign-in with a token or a code; an old one of this browser ends.

        Raises Refused: 401 `signed-out` for a secret that is not accepted, 403 `no-user` or `csrf`,
        400 for a text that can be no token, 429 after too many tries.
        """
        check_origin(request)
        check_json(request)
        peer = self._tools.proxies.peer(request)
        if len(secret) > TOKEN_MAX:
            raise Refused(
                400,
                f"the token has {len(secret)} characters",
                f"a token has at most {TOKEN_MAX}; paste the token alone",
            )
        self._require_ready()
        self._count_try(peer)
        async with self._audited(request, way):
            if way == SignInWay.CODE:
                identity = await self._by_code(secret)
            else:
                identity = await self._by_token(secret)
            row, cookie = self._made(peer, SignInWay(way), identity.name, groups=identity.groups)
            await self._begun(request, row)
        self._tries.succeeded(peer.address)
        return cookie

    async def begin_at_provider(self, request: Request) -> tuple[str, Cookie]:
        """The provider's address for this browser, and a cookie that knows it when it comes back.

        Raises Refused: 404 without a provider, 429 after too many tries.
        """
        provider, peer = self._provider(), self._tools.proxies.peer(request)
        self._require_ready()
        state = new_state(secrets.token_bytes(ID_BYTES), self._now())
        key = self._tools.keys[0]
        address = await provider.sign_in_address(self._asked(request, SignedId(state, key)))
        return address, Cookie(STATE_COOKIE, signed_cookie(state, key), 600, peer.is_tls)

    async def finish_at_provider(
        self, request: Request, code: str, state: str, error: str
    ) -> Cookie:
        """A new sign-in when the browser comes back from the provider.

        Raises Refused: 400 for a state that is not of this browser, is too old, or was used; 401
        for a token that is not accepted; 403 `no-user`.
        """
        provider, peer = self._provider(), self._tools.proxies.peer(request)
        self._count_try(peer)
        signed = read_cookie(request.cookies.get(STATE_COOKIE, ""), self._tools.keys)
        if signed is None or not secrets.compare_digest(
            state_text(signed.id).encode(), state.encode()
        ):
            raise Refused(400, "this answer of the provider is not for this browser", _BEGIN_AGAIN)
        ends_at = state_ends_at(signed.id)
        if self._now() >= ends_at:
            raise Refused(400, "signing in at the provider took too long", _BEGIN_AGAIN)
        if not await self._tools.store.spend(hash_of(signed.id), ends_at):
            raise Refused(400, "this answer of the provider was used already", _BEGIN_AGAIN)
        async with self._audited(request, SignInWay.OIDC):
            if error or not code:
                raise signed_out(f"the provider does not sign you in: {error[:200] or 'no code'}")
            self._require_ready()
            identity = await provider.identity_of(code, self._asked(request, signed))
            if isinstance(identity, Refusal):
                raise signed_out(identity.reason)
            row, cookie = self._made(peer, SignInWay.OIDC, identity.text)
            await self._begun(request, row)
        self._tries.succeeded(peer.address)
        return cookie

    async def act_as(self, request: Request, user: str) -> Cookie:
        """Look as a user of a simulated cluster, or ("") as oneself again.

        Raises Refused: 403 for every other cluster and way to sign in, 404 without such a user.
        """
        row = await self._acting(request)
        if row is None:
            raise Refused(
                403,
                "only a client with the code of a simulated cluster may look as a user",
                "sign in with a token of the user",
            )
        if user and user not in self._roster.users:
            raise Refused(404, f"there is no user `{user[:100]}`", "look at the list of users")
        peer = self._tools.proxies.peer(request)
        made, cookie = self._made(
            peer, SignInWay.CODE, row.identity, user=user, groups=row.groups, ends_at=row.ends_at
        )
        await self._begun(request, made)
        return cookie

    async def issue(
        self, request: Request, subject: Subject, seconds: int, note: str
    ) -> tuple[Credential, str, ServerAddress]:
        """A credential of the user of this request, its token, and where it works.

        Raises Refused: 404 without a User, or where the console issues none, 403 `no-user` while
        the user has no ServiceAccount.
        """
        credentials, user = self._tools.credentials, self._roster.users.get(subject.user)
        if credentials is None or user is None:
            raise Refused(
                404,
                f"there is no credential for `{subject.name}`"[:300],
                "only a user has one; an administrator makes users",
            )
        denied = check_account(user)
        if denied is not None:
            raise refused(denied)
        row = AuditRow(
            at=self._now(),
            actor=user.name,
            action=ISSUE,
            result=AuditResult.BEGUN,
            role=str(subject.role),
            source_ip=self._tools.proxies.peer(request).address,
            target=AuditTarget("User", USERS_NAMESPACE, user.name),
            request_id=request.state.request_id,
            summary=f"lifetime {seconds} s",
        )
        records = self._tools.records
        async with audited(records, row, self._now):
            address = await credentials.address()
            made, token = await issue_recorded(
                credentials, records, user.name, seconds, note, user.name
            )
        return made, token, address

    async def end(self, request: Request) -> Cookie:
        """Sign out at every replica. Raises Refused, 403 `csrf`, for a write of another page."""
        signed = self._signed(request)
        row = await self._row(hash_of(signed.id)) if signed is not None else None
        if row is not None:
            check_token(request, row.csrf)
            check_origin(request)
            await self._note(request, END, row.way, Actor(row.user or row.identity))
            await self._end(row.hash)
        return self._gone(request, COOKIE)

    def ended_state(self, request: Request) -> Cookie:
        """Removes the cookie of a sign-in at the provider."""
        return self._gone(request, STATE_COOKIE)

    # --- parts ------------------------------------------------------------------------------------

    async def _by_code(self, secret: str) -> Identity:
        code = self._tools.code
        if code is None:
            raise Refused(
                400,
                "this console has no one-time code",
                f"ways to sign in: {', '.join(self.ways)}",
            )
        if not code.spend(secret):
            raise signed_out(
                "this code is wrong, was used, or is too old",
                "start the console again, which prints a new one, or sign in with a token",
            )
        return await self._own_identity()

    async def _by_token(self, secret: str) -> Identity:
        found = await self._owner(secret)
        if isinstance(found, Refusal):
            raise signed_out(found.reason, "use a new token of this cluster")
        user = user_of_account(found.name, self._roster.users)
        refusal = check_account(user) if user is not None else None
        if refusal is not None:
            raise refused(refusal)
        return found

    async def _of_token(self, request: Request, token: str) -> Subject:
        """The subject of a request with a token of its own, as programs send it."""
        if not token or len(token) > TOKEN_MAX:
            raise signed_out("the header `Authorization` has no token that could be one")
        self._require_ready()
        found = self._owners.get(hash_of(token.encode()))
        if found is None:
            peer = self._tools.proxies.peer(request)
            self._check_tries(peer)
            owner = await self._owner(token)
            if isinstance(owner, Refusal):
                self._tries.failed(peer.address, self._tools.monotonic())
                raise signed_out(owner.reason, "use a new token of this cluster")
            found = owner
            self._owners.keep(hash_of(token.encode()), found)
        user = user_of_account(found.name, self._roster.users)
        refusal = check_account(user) if user is not None else None
        subject = refusal or await self._of_identity(found, SignInWay.BEARER)
        if isinstance(subject, Denied):
            raise refused(subject)
        return subject

    async def _owner(self, token: str) -> Identity | Refusal:
        is_text = token.isascii() and token.isprintable() and token and " " not in token
        if not is_text:
            return Refusal("this is not a token: it is empty, or has spaces or other characters")
        return await self._tools.api.owner_of(token)

    async def _subject(self, row: SignIn) -> Subject | Denied:
        """The subject of a sign-in, now. Not a user of the same id who was made after it began."""
        self._require_ready()
        found = await self._of_row(row)
        user = self._roster.users.get(found.user) if isinstance(found, Subject) else None
        if user is not None and user.created_at * 1000 > row.began_at + CLOCKS_MS:
            return no_user(row.identity)
        return found

    async def _of_row(self, row: SignIn) -> Subject | Denied:
        way = row.way
        if row.way is SignInWay.OIDC:
            uid = row.identity.removeprefix(f"{self._tools.issuer}#")
            if uid == row.identity:
                return no_user(row.identity)  # of a provider that is not the console's any more
            found = user_of_external(uid, self._roster.users)
            if isinstance(found, Denied):
                return found
            return subject_of_user(found, self._roster.groups, way)
        if row.way is SignInWay.CODE and row.user and self._tools.is_simulated:
            looked_as = self._roster.users.get(row.user)
            if looked_as is None:
                return no_user(row.user)
            return subject_of_user(looked_as, self._roster.groups, way)
        return await self._of_identity(Identity(row.identity, groups=row.groups), way)

    async def _of_identity(self, identity: Identity, way: SignInWay) -> Subject | Denied:
        user = user_of_account(identity.name, self._roster.users)
        if user is not None:
            return subject_of_user(user, self._roster.groups, way)
        may_make = self._makers.get(identity.name)
        if may_make is None:
            may_make = await self._tools.api.may_make_users(identity)
            self._makers.keep(identity.name, may_make)
        if not may_make:
            return no_user(identity.name)
        own = await self._own_identity() if way is SignInWay.CODE else None
        is_own = own is not None and own.name == identity.name
        return first_administrator(identity, way, is_own=is_own)

    async def _own_identity(self) -> Identity:
        if self._own is None:
            self._own = await self._tools.api.own_identity()
        return self._own

    def _made(
        self,
        peer: Peer,
        way: SignInWay,
        identity: str,
        *,
        user: str = "",
        groups: tuple[str, ...] = (),
        ends_at: int = 0,
    ) -> tuple[SignIn, Cookie]:
        """A row with a new id, and its cookie."""
        id, now = secrets.token_bytes(ID_BYTES), self._now()
        row = SignIn(
            hash=hash_of(id),
            identity=identity,
            user=user,
            way=way,
            began_at=now,
            seen_at=now,
            ends_at=ends_at or now + LONGEST_MS,
            csrf=csrf_of(id),
            groups=groups,
            source_ip=peer.address,
        )
        value = signed_cookie(id, self._tools.keys[0])
        return row, Cookie(COOKIE, value, (row.ends_at - now) // 1000, peer.is_tls)

    async def _begun(self, request: Request, row: SignIn) -> None:
        """Store the sign-in, if its user may sign in. What this browser had before ends: no other
        client knows the id that it has now.
        """
        subject = await self._subject(row)
        if isinstance(subject, Denied):
            raise refused(subject)
        row = structs.replace(row, user=row.user or subject.user)
        who = Actor(row.user or row.identity, str(subject.role))
        await self._note(request, BEGIN, row.way, who)
        await self._tools.store.add_sign_in(row)
        before = self._signed(request)
        if before is not None:
            await self._end(hash_of(before.id))

    @asynccontextmanager
    async def _audited(self, request: Request, way: str) -> AsyncIterator[None]:
        """Notes a sign-in that is refused. One that succeeds is noted before it is stored."""
        try:
            yield
        except Refused as error:
            if error.status in (401, 403):
                await self._note(request, BEGIN, way, Actor(), error.code)
            raise
        except OutsideError:  # no failure of the client: a store that comes back finds it free
            self._tries.succeeded(self._tools.proxies.peer(request).address)
            raise

    async def _note(
        self, request: Request, action: str, way: str, who: Actor, code: str = ""
    ) -> None:
        """A row of the audit. Raises StoreDown: without a row nothing is done."""
        if self._tools.records is None:
            return
        row = AuditRow(
            at=self._now(),
            actor=who.name,
            action=action,
            result=AuditResult.REFUSED if code else AuditResult.OK,
            role=who.role,
            source_ip=self._tools.proxies.peer(request).address,
            request_id=request.state.request_id,
            code=code,
            summary=f"way: {way}",
        )
        await self._tools.records.append_audit(row)

    async def _acting(self, request: Request) -> SignIn | None:
        signed = self._signed(request)
        if signed is None or not self._tools.is_simulated:
            return None
        row = await self._row(hash_of(signed.id))
        return row if row is not None and row.way is SignInWay.CODE else None

    async def _row(self, hash: str) -> SignIn | None:
        try:
            return await self._stored_row(hash)
        except StoreDown:
            kept = self._rows.get(hash, AWAY_SECONDS)
            if kept is None or is_over(kept, self._now()):
                raise
            return kept

    async def _stored_row(self, hash: str) -> SignIn | None:
        row = self._rows.get(hash)
        if row is None:
            row = await self._tools.store.sign_in(hash)
            if row is None:
                self._rows.forget(hash)
                return None
            self._rows.keep(hash, row)
        now = self._now()
        if is_over(row, now):
            await self._end(hash)
            return None
        if now - row.seen_at >= TOUCH_MS:
            await self._tools.store.touch_sign_in(hash, now)
            self._rows.keep(hash, structs.replace(row, seen_at=now))
        return row

    async def _end(self, hash: str) -> None:
        self._rows.forget(hash)
        await self._tools.store.end_sign_in(hash)

    def _signed(self, request: Request) -> SignedId | None:
        return read_cookie(request.cookies.get(COOKIE, ""), self._tools.keys)

    def _gone(self, request: Request, name: str) -> Cookie:
        return Cookie(name, "", 0, self._tools.proxies.peer(request).is_tls)

    def _asked(self, request: Request, signed: SignedId) -> OidcRequest:
        state = state_text(signed.id)
        return OidcRequest(
            state=state,
            nonce=derived(signed.key, "nonce", state),
            verifier=derived(signed.key, "verifier", state),
            callback=self._callback(request),
        )

    def _callback(self, request: Request) -> str:
        """Where the provider sends the browser back. The guard has looked at the host."""
        external = self._tools.external_url
        if not external:
            scheme = "https" if self._tools.proxies.peer(request).is_tls else "http"
            external = f"{scheme}://{request.headers.get('host', '')}{self._tools.base_path}"
        return f"{external.rstrip('/')}/api/v1/signin/oidc/callback"

    def _provider(self) -> OidcProvider:
        if self._tools.provider is None:
            raise Refused(
                404,
                "this console has no OpenID Connect provider",
                f"ways to sign in: {', '.join(self.ways)}",
            )
        return self._tools.provider

    def _count_try(self, peer: Peer) -> None:
        """Counts as a failure until it has succeeded: a client may send many at once."""
        self._check_tries(peer)
        self._tries.failed(peer.address, self._tools.monotonic())

    def _check_tries(self, peer: Peer) -> None:
        wait = self._tries.wait(peer.address, self._tools.monotonic())
        if wait:
            raise Refused(
                429,
                f"signing in failed {TRIES_MAX} times within a minute from `{peer.address}`",
                f"try again in {wait:.0f} s",
                {"Retry-After": str(round(wait))},
            )

    def _require_ready(self) -> None:
        if not self._roster.is_complete:
            raise Refused(
                503,
                "the users of the cluster are not read yet",
                "try again; the page Health shows whether the API server answers",
                _RETRY,
            )

    def _now(self) -> int:
        return round(self._tools.now() * 1000)

    # --- loops ------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        await self._tools.api.follow(self._observe)

    def _observe(self, changes: Changes[Any]) -> None:
        before = self._roster.users
        self._roster.observe(changes)
        after = self._roster.users
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
        """End the sign-ins of users who are disabled or gone: enabling does not bring them back."""
        while True:
            name = await self._ended.get()
            try:
                await self._tools.store.end_sign_ins(user=name)
                self._rows.clear()
            except OutsideError as error:
                _log.warning("sign-ins of `%s` are not ended: %s", name, error.log_line)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EXPIRE_SECONDS)
            now = self._now()
            try:
                await self._tools.store.expire_sign_ins(now, now - IDLE_MS)
                if self._tools.records is not None:
                    await self._tools.records.forget_audit(now - KEPT_MS)
            except OutsideError as error:
                _log.warning("old sign-ins are not removed: %s", error.log_line)


def signed_out(what: str = "you are not signed in", hint: str = _BEGIN_AGAIN) -> Refused:
    """401: the page leads to signing in."""
    return Refused(401, what, hint)


def _bearer(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


class _Kept(Generic[Value]):
    """Values by key, each for `KEPT_SECONDS`."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._values: OrderedDict[str, tuple[float, Value]] = OrderedDict()

    def get(self, key: str, more_seconds: float = 0.0) -> Value | None:
        found = self._values.get(key)
        if found is None or self._monotonic() >= found[0] + more_seconds:
            return None
        return found[1]

    def keep(self, key: str, value: Value) -> None:
        self._values[key] = (self._monotonic() + KEPT_SECONDS, value)
        self._values.move_to_end(key)
        while len(self._values) > _KEPT_MAX:
            self._values.popitem(last=False)

    def forget(self, key: str) -> None:
        self._values.pop(key, None)

    def clear(self) -> None:
        self._values.clear()
