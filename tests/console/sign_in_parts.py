"""A desk whose API server, provider, store and clocks a test controls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import structs
from tests.waiting import HANG_SECONDS

from fairlead.console.http.sign_in.desk import SignInDesk
from fairlead.console.http.sign_in.tools import SignInTools
from fairlead.edge.people.sign_ins_in_memory import SignInsInMemory
from fairlead.errors import StoreDown
from fairlead.model.access import Identity
from fairlead.model.changes import Changes, Observe, changed, listed
from fairlead.model.people.external import ExternalIdentity, OidcRequest
from fairlead.model.people.rows import (
    KIND_GROUPS,
    KIND_USERS,
    ExternalUser,
    GroupStatus,
    User,
    UserGroup,
    UserRole,
    UserStatus,
)
from fairlead.model.people.token_bounds import BoundObject
from fairlead.model.records.audit import AuditRow
from fairlead.model.records.rows import CredentialRecord
from fairlead.model.records.sign_ins import SignIn
from fairlead.model.refusal import Refusal

PLACE = "kube-ai"
KEY = b"k" * 32
ISSUER = "https://sso.example"


def person(name: str, *groups: str, role: UserRole = UserRole.RESEARCHER, **more: Any) -> User:
    """A user that the people controller has bound."""
    spaces = tuple(f"{each}-ns" for each in groups)
    return User(
        name,
        PLACE,
        uid=f"uid-{name}",
        user_name=name.title(),
        roles=(role,),
        groups=groups,
        status=UserStatus(name, spaces),
        **more,
    )


def group(name: str) -> UserGroup:
    leaf = f"root.{name}"
    return UserGroup(
        name,
        PLACE,
        uid=f"uid-{name}",
        group_name=name,
        leaf=leaf,
        status=GroupStatus(leaf, (f"{name}-ns",)),
    )


def account(name: str, place: str = PLACE) -> Identity:
    """A ServiceAccount, as a TokenReview names it."""
    user = f"system:serviceaccount:{place}:{name}"
    return Identity(user, f"uid-{name}", ("system:serviceaccounts", "system:authenticated"))


BOB = person("bob", "a", external=ExternalUser("oidc", "1234", "Bob"))
ANNA = person("anna", role=UserRole.ADMIN)
GROUPS = (group("a"), group("b"))


class FakeSignInApi:
    """`owners`: identities, or refusals, by token. `makers`: names that may update users."""

    def __init__(
        self, users: tuple[User, ...] = (BOB, ANNA), groups: tuple[UserGroup, ...] = GROUPS
    ) -> None:
        self.owners: dict[str, Identity | Refusal] = {
            "token-of-bob": account("bob"),
            "token-of-anna": account("anna"),
        }
        self.own = Identity("operator", groups=("system:masters",))
        self.makers = {"operator"}
        self.users, self.groups = users, groups
        self.lists_users = True
        self.reviews = 0
        self.looks: list[str] = []
        self.gone: set[str] = set()
        self.failure: Exception | None = None
        self._changes: asyncio.Queue[Changes[Any]] = asyncio.Queue()

    def change(self, user: User) -> None:
        self._changes.put_nowait(changed(KIND_USERS, user.uid, user))

    def remove(self, user: User) -> None:
        self._changes.put_nowait(changed(KIND_USERS, user.uid, None))

    def list_users(self, *users: User) -> None:
        self._changes.put_nowait(listed(KIND_USERS, {each.uid: each for each in users}))

    async def keys(self, namespace: str, name: str) -> tuple[bytes, ...]:
        raise AssertionError("these parts have a key of their own")

    async def follow(self, observe: Observe) -> None:
        observe(listed(KIND_GROUPS, {each.uid: each for each in self.groups}))
        if self.lists_users:
            observe(listed(KIND_USERS, {each.uid: each for each in self.users}))
        while True:
            observe(await self._changes.get())
            self._changes.task_done()

    async def settle(self) -> None:
        """Until the console has seen every change."""
        await asyncio.wait_for(self._changes.join(), HANG_SECONDS)
        await asyncio.sleep(0)

    async def owner_of(self, token: str) -> Identity | Refusal:
        self.reviews += 1
        await asyncio.sleep(0)
        return self.owners.get(token, Refusal("the API server does not accept this token"))

    async def is_there(self, bound: BoundObject) -> bool:
        self.looks.append(bound.text)
        if self.failure is not None:
            raise self.failure
        return bound.text not in self.gone

    async def own_identity(self) -> Identity:
        return self.own

    async def may_make_users(self, identity: Identity) -> bool:
        return identity.name in self.makers


class FakeProvider:
    """`users`: identities, or refusals, by code; each code works once, as at a real provider."""

    def __init__(self, users: Mapping[str, ExternalIdentity | Refusal] | None = None) -> None:
        self.users = dict(users or {"good": ExternalIdentity(ISSUER, "1234", "Bob")})
        self.asked: list[OidcRequest] = []
        self.failure: Exception | None = None

    async def sign_in_address(self, asked: OidcRequest) -> str:
        self._fail()
        self.asked.append(asked)
        return f"{ISSUER}/authorize?state={asked.state}"

    async def identity_of(self, code: str, asked: OidcRequest) -> ExternalIdentity | Refusal:
        self._fail()
        self.asked.append(asked)
        return self.users.pop(code, Refusal("the provider does not accept the code"))

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


class FakeRecords:
    """What the store was given. `down_after`: rows of the audit after which it is away."""

    def __init__(self, down_after: int = 1000) -> None:
        self.audit: list[AuditRow] = []
        self.credentials: list[CredentialRecord] = []
        self._down_after = down_after

    async def append_audit(self, row: AuditRow) -> int:
        if len(self.audit) >= self._down_after:
            raise StoreDown("the disk is full")
        self.audit.append(row)
        return len(self.audit)

    async def add_credential(self, credential: CredentialRecord) -> None:
        self.credentials.append(credential)


class BreakableStore(SignInsInMemory):
    """`is_down`: it does not answer. `held`: reads have their row, and return it when it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down = False
        self.held: asyncio.Event | None = None
        self.reads_held = 0

    async def sign_in(self, hash: str) -> SignIn | None:
        self._check()
        row = await super().sign_in(hash)
        if self.held is not None:
            self.reads_held += 1
            await self.held.wait()
        return row

    async def end_sign_ins(self, *, user: str = "", identity: str = "") -> int:
        self._check()
        return await super().end_sign_ins(user=user, identity=identity)

    async def add_sign_in(self, sign_in: SignIn) -> None:
        self._check()
        await super().add_sign_in(sign_in)

    async def touch_sign_in(self, hash: str, seen_at: int) -> None:
        self._check()
        await super().touch_sign_in(hash, seen_at)

    def _check(self) -> None:
        if self.is_down:
            raise StoreDown("the database does not answer")


class HandClock:
    """Seconds that only a test moves."""

    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


class Parts:
    """The pieces of one desk; `more` are other tools."""

    def __init__(self, api: FakeSignInApi | None = None, **more: Any) -> None:
        self.api = api or FakeSignInApi()
        self.store = BreakableStore()
        self.clock = HandClock()
        self._more = more

    def desk(self, **more: Any) -> SignInDesk:
        tools = SignInTools(
            api=self.api,
            store=self.store,
            keys=(KEY,),
            issuer=ISSUER,
            now=self.clock,
            monotonic=self.clock,
        )
        return SignInDesk(structs.replace(tools, **{**self._more, **more}))
