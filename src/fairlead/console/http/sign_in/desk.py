"""How users sign in and out, and look as another user.

No token, code or cookie stands in a log or a message.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec import structs
from starlette.requests import Request

from fairlead.console.http.answers import Refused
from fairlead.console.http.proxies import Peer
from fairlead.console.http.sign_in.signed_in_subjects import SignedInSubjects
from fairlead.console.http.sign_in.tools import (
    BEGIN_AGAIN,
    COOKIE,
    STATE_COOKIE,
    Actor,
    Cookie,
    SignInTools,
    signed_out,
)
from fairlead.console.http.subjects import refused
from fairlead.console.http.writes import check_json, check_origin, check_token
from fairlead.console.http.writing.frame import WriteTools
from fairlead.errors import OutsideError
from fairlead.model.access import Identity
from fairlead.model.people.external import OidcRequest
from fairlead.model.people.permission import Denied
from fairlead.model.people.rows import User, UserGroup, UserRole
from fairlead.model.people.subject import SignInWay, Subject
from fairlead.model.people.token_bounds import NO_BOUNDS, TokenBounds
from fairlead.model.records.audit import AuditResult, AuditRow
from fairlead.model.records.rows import StoreFacts
from fairlead.model.records.sign_ins import SignIn
from fairlead.model.refusal import Refusal
from fairlead.ports import (
    AuditTrail,
    CredentialRecords,
    OidcProvider,
    OperationHistory,
    TreeVersions,
    UsageLedger,
)
from fairlead.rules.people.identities import (
    Roster,
    check_account,
    user_of_account,
)
from fairlead.rules.people.sign_in import (
    ID_BYTES,
    LONGEST_MS,
    TOKEN_MAX,
    SignedId,
    csrf_of,
    derived,
    hash_of,
    new_state,
    read_cookie,
    signed_cookie,
    state_ends_at,
    state_text,
)
from fairlead.wire.people.token_claims import token_bounds

BEGIN: Final = "session.begin"
END: Final = "session.end"
"""Actions in the audit."""
_log = logging.getLogger(__name__)


class SignInDesk:
    """One console."""

    def __init__(self, tools: SignInTools) -> None:
        self._tools = tools
        self._signed_in = SignedInSubjects(tools)

    @property
    def roster(self) -> Roster:
        """The users and groups of the cluster."""
        return self._signed_in.roster

    @property
    def people(self) -> tuple[Mapping[str, User], Mapping[str, UserGroup]]:
        """Users and groups as they are now; other objects after a change."""
        return self.roster.users, self.roster.groups

    async def of(self, request: Request) -> Subject:
        """The subject of a request (`SignedInSubjects.of`)."""
        return await self._signed_in.of(request)

    def unready(self) -> Refused | None:
        """Why no request can have a subject yet (`SignedInSubjects.unready`)."""
        return self._signed_in.unready()

    def loops(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """What runs beside the server."""
        return self._signed_in.loops()

    @property
    def ways(self) -> list[str]:
        """The ways to sign in that this console offers."""
        code = [str(SignInWay.CODE)] if self._tools.code is not None else []
        oidc = [str(SignInWay.OIDC)] if self._tools.provider is not None else []
        return [*code, *oidc, str(SignInWay.TOKEN)]

    @property
    def versions(self) -> TreeVersions | None:
        return self._tools.versions

    @property
    def external_url(self) -> str:
        """Where others find the console, with its base path; "" = unknown."""
        return self._tools.external_url

    @property
    def ledger(self) -> UsageLedger | None:
        """The usage ledger of the store."""
        return self._tools.ledger

    @property
    def operation_history(self) -> OperationHistory | None:
        return self._tools.history

    @property
    def store_facts(self) -> Callable[[], Awaitable[StoreFacts]] | None:
        return self._tools.store_facts

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
            cookie_path=self._tools.base_path,
            spent=self._tools.store,
            source_ip=lambda request: self._tools.proxies.peer(request).address,
            now=self._signed_in.now,
        )

    def is_tls(self, request: Request) -> bool:
        """Whether the browser came by TLS, so that its cookies may be sent by nothing else."""
        return self._tools.proxies.peer(request).is_tls

    async def users_to_act_as(self, request: Request) -> list[User]:
        """The users that this sign-in may look as: with the code of a simulated cluster all users,
        else none.
        """
        row = await self._signed_in.acting(request)
        return sorted(self.roster.users.values(), key=lambda each: each.name) if row else []

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
        self._signed_in.require_ready()
        self._signed_in.tries.begin(peer)
        bounds = NO_BOUNDS
        async with self._audited(request, way):
            if way == SignInWay.CODE:
                identity = await self._by_code(secret)
            else:
                identity = await self._by_token(secret)
                bounds = token_bounds(secret)
            row, cookie = self._made(
                peer, SignInWay(way), identity.name, groups=identity.groups, bounds=bounds
            )
            await self._begun(request, row)
        self._signed_in.tries.succeeded(peer)
        return cookie

    async def begin_at_provider(self, request: Request) -> tuple[str, Cookie]:
        """The provider's address for this browser, and a cookie that knows it when it comes back.

        Raises Refused: 404 without a provider, 429 after too many tries.
        """
        provider, peer = self._provider(), self._tools.proxies.peer(request)
        self._signed_in.require_ready()
        state = new_state(secrets.token_bytes(ID_BYTES), self._signed_in.now())
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
        self._signed_in.tries.begin(peer)
        signed = read_cookie(request.cookies.get(STATE_COOKIE, ""), self._tools.keys)
        if signed is None or not secrets.compare_digest(
            state_text(signed.id).encode(), state.encode()
        ):
            raise Refused(400, "this answer of the provider is not for this browser", BEGIN_AGAIN)
        ends_at = state_ends_at(signed.id)
        if self._signed_in.now() >= ends_at:
            raise Refused(400, "signing in at the provider took too long", BEGIN_AGAIN)
        if not await self._tools.store.spend(hash_of(signed.id), ends_at):
            raise Refused(400, "this answer of the provider was used already", BEGIN_AGAIN)
        async with self._audited(request, SignInWay.OIDC):
            if error or not code:
                raise signed_out(f"the provider does not sign you in: {error[:200] or 'no code'}")
            self._signed_in.require_ready()
            identity = await provider.identity_of(code, self._asked(request, signed))
            if isinstance(identity, Refusal):
                raise signed_out(identity.reason)
            row, cookie = self._made(peer, SignInWay.OIDC, identity.text)
            await self._begun(request, row)
        self._signed_in.tries.succeeded(peer)
        return cookie

    async def act_as(self, request: Request, user: str) -> Cookie:
        """Look as a user of a simulated cluster, or ("") as oneself again.

        Raises Refused: 403 for every other cluster and way to sign in, 404 without such a user.
        """
        row = await self._signed_in.acting(request)
        if row is None:
            raise Refused(
                403,
                "only a client with the code of a simulated cluster may look as a user",
                "sign in with a token of the user",
            )
        if user and user not in self.roster.users:
            raise Refused(404, f"there is no user `{user[:100]}`", "look at the list of users")
        peer = self._tools.proxies.peer(request)
        made, cookie = self._made(
            peer, SignInWay.CODE, row.identity, user=user, groups=row.groups, ends_at=row.ends_at
        )
        await self._begun(request, made)
        return cookie

    @asynccontextmanager
    async def renewed(self, request: Request, user: str) -> AsyncIterator[Sequence[Cookie]]:
        """A new sign-in of this browser's identity, for the block that makes its user: one that is
        older than its user does not count. The block is given the browser's new cookie, none for a
        request with a token of its own.

        The new sign-in is stored first, so that no user is made without it. The old one ends with
        the block. Raises StoreDown.
        """
        signed = self._signed_in.signed(request) if request.state.csrf is not None else None
        row = await self._signed_in.row(hash_of(signed.id)) if signed is not None else None
        if row is None:
            yield ()
            return
        peer = self._tools.proxies.peer(request)
        new, cookie = self._made(peer, row.way, row.identity, user=user, ends_at=row.ends_at)
        made = structs.replace(new, groups=row.groups, bound_to=row.bound_to)
        await self._note(request, BEGIN, row.way, Actor(row.identity, str(UserRole.ADMIN)))
        await self._tools.store.add_sign_in(made)
        is_done = False
        try:
            yield (cookie,)
            is_done = True
        finally:
            await self._ended(row if is_done else made)

    async def _ended(self, row: SignIn) -> None:
        """End one of two sign-ins; the write that made the second does not depend on that."""
        try:
            await self._signed_in.end(row.hash)
        except OutsideError as error:
            _log.warning("a sign-in that was replaced is not ended: %s", error.log_line)

    async def end(self, request: Request) -> Cookie:
        """Sign out at every replica. Raises Refused, 403 `csrf`, for a write of another page."""
        signed = self._signed_in.signed(request)
        row = await self._signed_in.row(hash_of(signed.id)) if signed is not None else None
        if row is not None:
            check_token(request, row.csrf)
            check_origin(request)
            await self._note(request, END, row.way, Actor(row.user or row.identity))
            await self._signed_in.end(row.hash)
        return self._gone(request, COOKIE)

    def ended_state(self, request: Request) -> Cookie:
        """Removes the cookie of a sign-in at the provider."""
        return self._gone(request, STATE_COOKIE)

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
                "after a code that was used or is too old, the terminal in which the console runs "
                "shows an address with a new one",
            )
        return await self._signed_in.own_identity()

    async def _by_token(self, secret: str) -> Identity:
        found = await self._signed_in.owner(secret)
        if isinstance(found, Refusal):
            raise signed_out(found.reason, "use a new token of this cluster")
        user = user_of_account(found.name, self.roster.users)
        refusal = check_account(user) if user is not None else None
        if refusal is not None:
            raise refused(refusal)
        return found

    def _made(
        self,
        peer: Peer,
        way: SignInWay,
        identity: str,
        *,
        user: str = "",
        groups: tuple[str, ...] = (),
        ends_at: int = 0,
        bounds: TokenBounds = NO_BOUNDS,
    ) -> tuple[SignIn, Cookie]:
        """A row with a new id, and its cookie. `bounds`: of the token, with which it ends."""
        id, now = secrets.token_bytes(ID_BYTES), self._signed_in.now()
        ends_at = ends_at or now + LONGEST_MS
        if bounds.expires_at is not None:
            left = bounds.expires_at - (self._tools.cluster_now or self._tools.now)()
            ends_at = min(ends_at, now + max(0, round(left * 1000)))
        row = SignIn(
            hash=hash_of(id),
            identity=identity,
            user=user,
            way=way,
            began_at=now,
            seen_at=now,
            ends_at=ends_at,
            csrf=csrf_of(id),
            groups=groups,
            source_ip=peer.address,
            bound_to=bounds.bound.text if bounds.bound is not None else "",
        )
        value = signed_cookie(id, self._tools.keys[0])
        return row, Cookie(COOKIE, value, (row.ends_at - now) // 1000, peer.is_tls)

    async def _begun(self, request: Request, row: SignIn) -> None:
        """Store the sign-in, if its user may sign in. What this browser had before ends: no other
        client knows the id that it has now.
        """
        subject = await self._signed_in.subject(row)
        if isinstance(subject, Denied):
            raise refused(subject)
        row = structs.replace(row, user=row.user or subject.user)
        who = Actor(row.user or row.identity, str(subject.role))
        await self._note(request, BEGIN, row.way, who)
        await self._tools.store.add_sign_in(row)
        before = self._signed_in.signed(request)
        if before is not None:
            await self._signed_in.end(hash_of(before.id))

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
            self._signed_in.tries.succeeded(self._tools.proxies.peer(request))
            raise

    async def _note(
        self, request: Request, action: str, way: str, who: Actor, code: str = ""
    ) -> None:
        """A row of the audit. Raises StoreDown: without a row nothing is done."""
        if self._tools.records is None:
            return
        row = AuditRow(
            at=self._signed_in.now(),
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
