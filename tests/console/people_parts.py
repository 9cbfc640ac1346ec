"""Users and groups in memory (`ports.People`), with what an API server would refuse."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import structs
from tests.console.clusters import EPOCH

from fairlead.errors import ChangedMeanwhile, Forbidden
from fairlead.model.people.record import Credential, PeopleRecord, ServerAddress
from fairlead.model.people.rows import (
    GroupStatus,
    Ready,
    User,
    UserGroup,
    UserRole,
    UserStatus,
    UserWork,
)
from fairlead.model.quota.tree import QuotaNode, QuotaTree

PLACE = "kube-ai"


def leaf(name: str, *namespaces: str) -> QuotaNode:
    return QuotaNode(name, f"uid-{name}", namespaces=namespaces)


TREE = QuotaTree(
    "elasticquotatree",
    "kube-system",
    root=QuotaNode(
        "root",
        "uid-root",
        children=(leaf("root.a", "a-ns"), leaf("root.b", "b-ns"), leaf("root.c", "c-ns")),
    ),
)


class MemoryPeople:
    """`calls`: the writes that came. `failure`: what every write raises."""

    def __init__(
        self,
        users: Collection[User],
        groups: Collection[UserGroup],
        work: tuple[UserWork, ...] = (),
    ) -> None:
        self.users = {each.name: each for each in users}
        self.groups = {each.name: each for each in groups}
        self.work = work
        self.calls: list[str] = []
        self.secrets: dict[str, Credential] = {}
        self.failure: Exception | None = None

    async def read(self) -> PeopleRecord:
        return PeopleRecord(dict(self.users), dict(self.groups), TREE, self.work, "console")

    def _write(self, call: str) -> None:
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure

    async def create_user(self, user: User) -> None:
        self._write(f"create user {user.name}")
        self.users[user.name] = structs.replace(user, uid=f"uid-{user.name}", generation=1)

    async def change_user(self, before: User, after: User) -> None:
        self._write(f"change user {after.name}")
        if self.users[before.name] != before:
            raise ChangedMeanwhile("kubernetes", "the object has been modified")
        self.users[after.name] = structs.replace(after, generation=before.generation + 1)

    async def delete_user(self, user: User, *, is_forced: bool) -> None:
        self._write(f"delete user {user.name}{' by force' if is_forced else ''}")
        del self.users[user.name]

    async def create_group(self, group: UserGroup) -> None:
        self._write(f"create group {group.name}")
        self.groups[group.name] = structs.replace(group, uid=f"uid-{group.name}", generation=1)

    async def change_group(self, before: UserGroup, after: UserGroup) -> None:
        self._write(f"change group {after.name}")
        self.groups[after.name] = structs.replace(after, generation=before.generation + 1)

    async def delete_group(self, group: UserGroup) -> None:
        self._write(f"delete group {group.name}")
        del self.groups[group.name]

    async def issue(
        self, user: str, seconds: int, note: str, issued_by: str
    ) -> tuple[Credential, str]:
        self._write(f"issue {user} {seconds}")
        name = f"{user}-{len(self.secrets)}"
        made = Credential(name, user, EPOCH, EPOCH + seconds, issued_by, note)
        self.secrets[name] = made
        return made, f"token-of-{name}"

    async def credentials(self, user: str = "") -> list[Credential]:
        return [each for each in self.secrets.values() if not user or each.user == user]

    async def revoke(self, credential: Credential) -> None:
        self._write(f"revoke {credential.name}")
        self.secrets.pop(credential.name, None)

    async def revoke_all(self, user: str) -> int:
        self._write(f"revoke all {user}")
        gone = [each.name for each in self.secrets.values() if each.user == user]
        for name in gone:
            del self.secrets[name]
        return len(gone)

    async def address(self) -> ServerAddress:
        return ServerAddress("https://api.example:6443", b"PEM")


class FollowedPeople(MemoryPeople):
    """The console receives new users by `change`; `now`: when they are made, in seconds. The people
    controller binds them at once, unless it `is_away`.
    """

    is_away = False

    def __init__(
        self,
        users: Collection[User],
        groups: Collection[UserGroup],
        change: Callable[[User], None],
        now: Callable[[], float],
    ) -> None:
        super().__init__(users, groups)
        self._change, self._now = change, now

    async def create_user(self, user: User) -> None:
        await super().create_user(user)
        self.users[user.name] = structs.replace(self.users[user.name], created_at=self._now())
        self._change(self.users[user.name])
        if not self.is_away:
            self.bind(user.name)

    def bind(self, name: str) -> None:
        status = UserStatus(name, ready=Ready(is_true=True, reason="Bound"))
        self.users[name] = structs.replace(self.users[name], status=status)
        self._change(self.users[name])


def member(name: str, *groups: str, role: UserRole = UserRole.RESEARCHER) -> User:
    """A user that the people controller has bound."""
    spaces = tuple(f"{each}-ns" for each in groups)
    ready = Ready(is_true=True, reason="Bound")
    return User(
        name,
        PLACE,
        uid=f"uid-{name}",
        user_name=name.title(),
        roles=(role,),
        groups=groups,
        generation=1,
        status=UserStatus(name, spaces, ready=ready),
    )


def team(name: str) -> UserGroup:
    status = GroupStatus(f"root.{name}", (f"{name}-ns",))
    return UserGroup(
        name,
        PLACE,
        uid=f"uid-{name}",
        group_name=name,
        leaf=f"root.{name}",
        generation=1,
        status=status,
    )


FORBIDDEN = Forbidden("kubernetes", "users.fairlead.io is forbidden: the webhook refuses it")
