"""Plans of writes of users and groups (docs/spec/people.md#refusals has what is refused)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from msgspec import structs
from starlette.requests import Request

from fairlead.console.http.answers import Refused
from fairlead.console.http.sign_in.tools import Cookie
from fairlead.console.http.subjects import subject_of
from fairlead.console.http.writing.frame import Blocked, PlannedWrite, Written, not_there
from fairlead.console.http.writing.people_rows import (
    group_row,
    group_version,
    user_row,
    user_version,
)
from fairlead.console.pages.envelope import FieldFault, wire_key
from fairlead.console.pages.writing.people import (
    ExternalPerson,
    GroupChange,
    GroupOrder,
    OwnUserOrder,
    UserChange,
    UserOrder,
)
from fairlead.console.pages.writing.preview import Deleted, Effect
from fairlead.model.people.record import PeopleRecord
from fairlead.model.people.rows import ExternalUser, User, UserGroup, UserRole
from fairlead.model.people.subject import SignInWay
from fairlead.model.records.audit import AuditTarget
from fairlead.model.refusal import Refusal
from fairlead.ports import People
from fairlead.rules.people.effects import binding_changes
from fairlead.rules.people.identities import KUBERNETES_TYPE, is_own_account
from fairlead.rules.people.ids import group_id, user_id
from fairlead.rules.people.refusals import (
    group_change_refusal,
    group_deletion_refusal,
    group_refusal,
    user_deletion_refusal,
    user_refusal,
)
from fairlead.settings import USERS_NAMESPACE

_OWN: Final = (USERS_NAMESPACE,)
_NO_SUCH_USER: Final = "look at the list of users"
_NO_SUCH_GROUP: Final = "look at the list of groups"
_USER_NAME_MAX: Final = 253
_KEYS: Final = {"roles": "role", "is_disabled": "disabled"}
"""Keys of a body that are not the names of the object's fields."""

Renewed = Callable[[Request, str], AbstractAsyncContextManager[Sequence[Cookie]]]
"""`SignInDesk.renewed`."""


class PeoplePlans:
    """The writes of one console. `namespaces`: those that exist now, None = not known."""

    def __init__(self, people: People | None, namespaces: Callable[[], Collection[str] | None]):
        self._people = people
        self._namespaces = namespaces

    @property
    def people(self) -> People:
        """Raises Refused, 404, where the cluster has none."""
        if self._people is None:
            raise Refused(404, "this cluster has no users", "ask a console of a running cluster")
        return self._people

    async def record(self, request: Request) -> PeopleRecord:
        """What the API server has now, as the subject of the request sees it."""
        record = await self.people.read()
        return structs.replace(record, me=subject_of(request).account)

    # --- users ------------------------------------------------------------------------------------

    async def create_user(self, request: Request, order: UserOrder) -> PlannedWrite:
        record = await self.record(request)
        made = user_id(order.user_name)
        user = User(
            made if isinstance(made, str) else "",
            USERS_NAMESPACE,
            user_name=order.user_name,
            roles=(UserRole(order.role),),
            groups=tuple(dict.fromkeys(order.groups)),
            external=_external(order.external),
        )
        target = AuditTarget("User", USERS_NAMESPACE, user.name or order.user_name[:253])
        faults = _user_faults(user, record)
        if isinstance(made, Refusal):
            faults.insert(0, FieldFault("userName", "name", made.reason))
        blocked = None
        taken = user_id(order.user_name, record.users)
        if isinstance(made, str) and isinstance(taken, Refusal):
            fault = FieldFault("userName", "exists", taken.reason)
            blocked = Blocked(taken.reason, "choose another name", (fault,), "exists")

        async def act() -> Written:
            await self.people.create_user(user)
            return Written(await self._user_now(user.name), 201)

        after = structs.replace(record, users={**record.users, user.name: user})
        return PlannedWrite(
            target=target,
            act=act,
            summary=f"role: {order.role}; groups: {', '.join(user.groups) or 'none'}",
            faults=faults,
            blocked=blocked,
            effects=self._effects(
                Effect("create", "User", USERS_NAMESPACE, user.name), record, after
            ),
        )

    async def create_own_user(
        self, request: Request, order: OwnUserOrder, renewed: Renewed
    ) -> PlannedWrite:
        """The user of an administrator who has none, linked to the identity of the sign-in."""
        subject = subject_of(request)
        if not subject.user and subject.way not in (SignInWay.TOKEN, SignInWay.BEARER):
            raise Refused(
                403,
                "a user can be made of an account that signed in with a Kubernetes token",
                "make a user on the page Users, and sign in as that user",
            )
        link = ExternalPerson(KUBERNETES_TYPE, subject.account, subject.name)
        planned = await self.create_user(request, UserOrder(order.user_name, "admin", [], link))
        blocked = None
        if subject.user:
            blocked = Blocked(f"you are the user {subject.user} already", "", (), "exists")
        elif is_own_account(subject.account):
            blocked = Blocked(
                f"only a user of its name has the account {subject.account}",
                f"make the user {subject.account.rpartition(':')[2]} on the page Users",
            )

        async def act() -> Written:
            async with renewed(request, planned.target.name) as cookies:
                written = await planned.act()
            return structs.replace(written, cookies=cookies)

        return structs.replace(planned, act=act, blocked=blocked or planned.blocked)

    async def change_user(self, request: Request, order: UserChange) -> PlannedWrite:
        record = await self.record(request)
        before = _user(request, record)
        after = structs.replace(
            before,
            user_name=order.user_name,
            roles=(UserRole(order.role),) if order.role != _role(before) else before.roles,
            groups=tuple(dict.fromkeys(order.groups)),
            is_disabled=order.disabled,
            external=_external(order.external),
        )
        faults = _user_faults(after, record)
        refusal = None if faults else user_refusal(after, record)

        async def act() -> Written:
            if after != before:
                await self.people.change_user(before, after)
            return Written(await self._user_now(before.name))

        changed = structs.replace(record, users={**record.users, before.name: after})
        return PlannedWrite(
            target=AuditTarget("User", USERS_NAMESPACE, before.name),
            act=act,
            summary=_changed(before, after),
            faults=faults,
            blocked=self._blocked_by_work(refusal, before, after, record),
            version=user_version(before),
            current=user_row(before),
            effects=self._effects(
                Effect("update", "User", USERS_NAMESPACE, before.name) if after != before else None,
                record,
                changed,
            ),
        )

    async def delete_user(self, request: Request, order: Any) -> PlannedWrite:
        record = await self.record(request)
        user = _user(request, record)
        is_forced = request.query_params.get("force", "false") == "true"
        refusal = user_deletion_refusal(user, record, is_forced=is_forced)
        if refusal is not None and user.name == subject_of(request).user:
            refusal = Refusal("you cannot delete yourself")

        async def act() -> Written:
            await self.people.delete_user(user, is_forced=is_forced)
            return Written(Deleted(user.name, is_ending=True))

        users = {name: each for name, each in record.users.items() if name != user.name}
        return PlannedWrite(
            target=AuditTarget("User", USERS_NAMESPACE, user.name),
            act=act,
            summary="force" if is_forced else "",
            blocked=self._blocked_by_work(refusal, user, None, record),
            version=user_version(user),
            current=user_row(user),
            effects=[
                *self._effects(
                    Effect("delete", "User", USERS_NAMESPACE, user.name),
                    record,
                    structs.replace(record, users=users),
                ),
                Effect("delete", "ServiceAccount", USERS_NAMESPACE, user.name),
            ],
        )

    # --- groups -----------------------------------------------------------------------------------

    async def create_group(self, request: Request, order: GroupOrder) -> PlannedWrite:
        record = await self.record(request)
        made = group_id(order.group_name)
        name = made if isinstance(made, str) else ""
        group = UserGroup(name, USERS_NAMESPACE, group_name=order.group_name, leaf=order.leaf)
        faults, blocked = list[FieldFault](), None
        if isinstance(made, Refusal):
            faults.append(FieldFault("groupName", "name", made.reason))
        else:
            taken = group_id(order.group_name, record.groups) if name else made
            refusal = taken if isinstance(taken, Refusal) else group_change_refusal(group, record)
            if refusal is not None:
                fault = FieldFault("groupName", "exists", refusal.reason)
                blocked = Blocked(refusal.reason, "choose another name", (fault,), "exists")
        refusal = group_refusal(group, record)
        if refusal is not None:
            is_taken = any(each.leaf == order.leaf for each in record.groups.values())
            fault = FieldFault("leaf", "leaf-taken" if is_taken else "leaf", refusal.reason)
            if is_taken:
                blocked = blocked or Blocked(refusal.reason, "choose another leaf", (fault,))
            else:
                faults.append(fault)
        members, more = _members(order.users, record, "users")
        faults += more
        joined = [_joined(each, name) for each in members]

        async def act() -> Written:
            await self.people.create_group(group)
            await self._change_users(members, joined)
            return Written(await self._group_now(name), 201)

        after = _with_users(structs.replace(record, groups={**record.groups, name: group}), joined)
        return PlannedWrite(
            target=AuditTarget("UserGroup", USERS_NAMESPACE, name or order.group_name[:253]),
            act=act,
            summary=f"leaf: {order.leaf}; users: {', '.join(order.users) or 'none'}",
            faults=faults,
            blocked=blocked,
            effects=self._effects(
                Effect("create", "UserGroup", USERS_NAMESPACE, name), record, after, joined
            ),
        )

    async def change_group(self, request: Request, order: GroupChange) -> PlannedWrite:
        record = await self.record(request)
        before = _group(request, record)
        after = structs.replace(before, group_name=order.group_name, **_given(order))
        wanted = _user_names(before, record) if order.users is None else order.users
        members, faults = _members(wanted, record, "users")
        refusal = group_change_refusal(after, record)
        if refusal is not None:
            faults.append(FieldFault("groupName", "name", refusal.reason))
        changes = [
            (user, changed)
            for user in record.users.values()
            for changed in (
                _joined(user, before.name)
                if user in members
                else structs.replace(
                    user, groups=tuple(each for each in user.groups if each != before.name)
                ),
            )
            if changed != user
        ]
        blocked = list[FieldFault]()
        for user, changed in changes:
            found = user_refusal(changed, record)
            if found is not None:
                blocked.append(FieldFault(f"users.{user.name}", "blocked", found.reason))

        async def act() -> Written:
            if after != before:
                await self.people.change_group(before, after)
            await self._change_users(*_columns(changes))
            return Written(await self._group_now(before.name))

        joined = [changed for _, changed in changes]
        changed_record = _with_users(
            structs.replace(record, groups={**record.groups, before.name: after}), joined
        )
        return PlannedWrite(
            target=AuditTarget("UserGroup", USERS_NAMESPACE, before.name),
            act=act,
            summary="; ".join(
                each
                for each in (
                    _changed(before, after),
                    f"users: {', '.join(each.name for each in joined)}" if joined else "",
                )
                if each
            ),
            faults=faults,
            blocked=Blocked(blocked[0].error, "remove what blocks it", tuple(blocked))
            if blocked
            else None,
            version=group_version(before, _user_names(before, record)),
            current=group_row(before, record.users.values()),
            effects=self._effects(
                Effect("update", "UserGroup", USERS_NAMESPACE, before.name)
                if after != before
                else None,
                record,
                changed_record,
                joined,
            ),
        )

    async def delete_group(self, request: Request, order: Any) -> PlannedWrite:
        record = await self.record(request)
        group = _group(request, record)
        refusal = group_deletion_refusal(group, record)
        names = _user_names(group, record)
        fields = tuple(
            FieldFault(f"users.{name}", "listed", f"{name} lists the group") for name in names
        )

        async def act() -> Written:
            await self.people.delete_group(group)
            return Written(Deleted(group.name))

        return PlannedWrite(
            target=AuditTarget("UserGroup", USERS_NAMESPACE, group.name),
            act=act,
            blocked=Blocked(refusal.reason, "take the users out of the group first", fields)
            if refusal is not None
            else None,
            version=group_version(group, names),
            current=group_row(group, record.users.values()),
            effects=[Effect("delete", "UserGroup", USERS_NAMESPACE, group.name)],
        )

    # --- parts ------------------------------------------------------------------------------------

    async def _change_users(self, before: list[User], after: list[User]) -> None:
        for was, now in zip(before, after, strict=True):
            if was != now:
                await self.people.change_user(was, now)

    async def _user_now(self, name: str) -> Any:
        record = await self.people.read()
        return user_row(record.users[name]) if name in record.users else Deleted(name)

    async def _group_now(self, name: str) -> Any:
        record = await self.people.read()
        group = record.groups.get(name)
        return Deleted(name) if group is None else group_row(group, record.users.values())

    def _effects(
        self,
        first: Effect | None,
        before: PeopleRecord,
        after: PeopleRecord,
        users: Collection[User] = (),
    ) -> list[Effect]:
        """The object itself, users that are changed with it, and bindings that follow."""
        changes = binding_changes(before, after, self._namespaces(), _OWN)
        return [
            *([first] if first is not None else []),
            *(Effect("update", "User", USERS_NAMESPACE, each.name) for each in users),
            *(
                Effect(
                    "create" if each.is_made else "delete",
                    "RoleBinding" if each.namespace else "ClusterRoleBinding",
                    each.namespace,
                    each.name,
                )
                for each in changes
            ),
        ]

    def _blocked_by_work(
        self, refusal: Refusal | None, user: User, after: User | None, record: PeopleRecord
    ) -> Blocked | None:
        """`after`: None = the user is deleted. Unfinished work of the user is listed."""
        if refusal is None:
            return None
        work = [
            FieldFault(
                f"{each.namespace}/{each.kind}/{each.name}",
                "unfinished",
                f"{each.kind} {each.namespace}/{each.name} is not finished",
            )
            for each in record.unfinished(user.name)
        ]
        is_work = "unfinished" in refusal.reason
        if not is_work:
            return Blocked(refusal.reason)
        hint = "end the work first" if after is not None else "end the work, or delete by force"
        return Blocked(refusal.reason, hint, tuple(work[:100]))


def _user(request: Request, record: PeopleRecord) -> User:
    name = request.path_params["id"]
    if name not in record.users:
        raise not_there("user", name, _NO_SUCH_USER)
    return record.users[name]


def _group(request: Request, record: PeopleRecord) -> UserGroup:
    name = request.path_params["name"]
    if name not in record.groups:
        raise not_there("group", name, _NO_SUCH_GROUP)
    return record.groups[name]


def _role(user: User) -> str:
    return str(UserRole.ADMIN if user.is_admin else UserRole.RESEARCHER)


def _user_faults(user: User, record: PeopleRecord) -> list[FieldFault]:
    """What is wrong with the user itself; what may not be done now is no fault of the body."""
    faults = list[FieldFault]()
    if len(user.user_name) > _USER_NAME_MAX:
        what = f"the user name has {len(user.user_name)} characters; {_USER_NAME_MAX} at most"
        faults.append(FieldFault("userName", "name", what))
    before = record.users.get(user.name)
    kept = before.groups if before is not None else ()
    for number, each in enumerate(user.groups):
        if each not in record.groups and each not in kept:
            what = f"there is no group `{each[:253]}`"
            faults.append(FieldFault(f"groups[{number}]", "no-group", what))
    if not user.is_admin and not user.groups:
        what = "a researcher needs a group, which brings a namespace"
        faults.append(FieldFault("groups", "required", what))
    external = user.external
    if external != ExternalUser() and not (external.auth_type and external.uid):
        faults.append(FieldFault("external", "required", "an external user needs authType and uid"))
    others = [
        each.name
        for each in record.users.values()
        if external.uid
        and each.name != user.name
        and (each.external.auth_type, each.external.uid) == (external.auth_type, external.uid)
    ]
    if others:
        what = f"the user {others[0]} has this external uid already"
        faults.append(FieldFault("external.uid", "taken", what))
    return faults


def _external(given: ExternalPerson | None) -> ExternalUser:
    if given is None:
        return ExternalUser()
    return ExternalUser(given.auth_type, given.uid, given.name)


def _members(
    names: Collection[str], record: PeopleRecord, field: str
) -> tuple[list[User], list[FieldFault]]:
    faults = [
        FieldFault(f"{field}[{number}]", "no-user", f"there is no user `{name[:253]}`")
        for number, name in enumerate(names)
        if name not in record.users
    ]
    return [record.users[name] for name in dict.fromkeys(names) if name in record.users], faults


def _user_names(group: UserGroup, record: PeopleRecord) -> list[str]:
    return sorted(each.name for each in record.users.values() if group.name in each.groups)


def _joined(user: User, group: str) -> User:
    return structs.replace(user, groups=tuple(dict.fromkeys((*user.groups, group))))


def _with_users(record: PeopleRecord, users: Collection[User]) -> PeopleRecord:
    return structs.replace(record, users={**record.users, **{each.name: each for each in users}})


def _columns(changes: Collection[tuple[User, User]]) -> tuple[list[User], list[User]]:
    return [was for was, _ in changes], [now for _, now in changes]


def _given(order: GroupChange) -> dict[str, Any]:
    """Fields of the group that the order names."""
    found: Mapping[str, Any] = {
        "default_roles": order.default_roles,
        "default_cluster_roles": order.default_cluster_roles,
        "user_caps": order.user_caps,
    }
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in found.items()
        if value is not None
    }


def _changed(before: User | UserGroup, after: User | UserGroup) -> str:
    """Names of the fields that change, as bodies have them."""
    names = [
        _KEYS.get(each, wire_key(each))
        for each in before.__struct_fields__
        if getattr(before, each) != getattr(after, each)
    ]
    return f"changed: {', '.join(names)}" if names else "unchanged"
