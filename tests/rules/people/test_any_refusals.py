"""Any sequence of writes that the refusals let pass keeps what they promise, by the command and by
a client that only the webhook judges.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.rules.people.fake_people import tree

from fairlead.model.people.record import PeopleRecord
from fairlead.model.people.rows import User, UserGroup, UserRole
from fairlead.rules.people.refusals import refuse_group_write, refuse_user_write

TREE = tree(a=["namespace1"], b=["namespace2"], c=[])
LEAVES = ("root.a", "root.b", "root.c")
USERS, GROUPS = ("ann", "bob", "eve"), ("team", "other", "third")
ROLES = ((UserRole.ADMIN,), (UserRole.RESEARCHER,), (UserRole.ADMIN, UserRole.RESEARCHER))

users = st.builds(
    User,
    st.sampled_from(USERS),
    namespace=st.just("kube-ai"),
    roles=st.sampled_from(ROLES),
    groups=st.lists(st.sampled_from((*GROUPS, "absent")), max_size=2, unique=True).map(tuple),
    is_deletable=st.booleans(),
    is_disabled=st.booleans(),
)
groups = st.builds(
    UserGroup,
    st.sampled_from(GROUPS),
    namespace=st.just("kube-ai"),
    group_name=st.sampled_from((*GROUPS, "Team", "new", "a_b", "", "-")),
    leaf=st.sampled_from((*LEAVES, "root", "root.zzz")),
)


def some_write(rng: random.Random) -> Any:
    """Mostly one that may pass, so that sequences get somewhere."""
    choice = rng.randrange(8)
    if choice == 0:
        return "user", rng.choice(USERS)
    if choice == 1:
        return "group", rng.choice(GROUPS)
    if choice < 5:
        name = rng.choice(GROUPS)
        title = name if rng.random() < 0.6 else rng.choice((*GROUPS, "Team", "new", "a_b", ""))
        leaf = rng.choice((*LEAVES, *LEAVES, "root", "root.zzz"))
        return UserGroup(name, "kube-ai", group_name=title, leaf=leaf)
    listed = rng.sample((*GROUPS, *GROUPS, "absent"), rng.randrange(3))
    return User(
        rng.choice(USERS),
        "kube-ai",
        roles=rng.choice(ROLES),
        groups=tuple(dict.fromkeys(listed)),
        is_deletable=rng.random() < 0.8,
        is_disabled=rng.random() < 0.2,
    )


MASTER = "kubernetes-admin"
BY_ANN = "system:serviceaccount:kube-ai:ann"


def written(record: PeopleRecord, write: Any) -> PeopleRecord:
    """The cluster after the write, or as it was if the write is refused."""
    if isinstance(write, tuple):
        kind, name = write
        if kind == "user":
            gone = record.users.get(name)
            if gone is None or refuse_user_write(gone, None, record) is not None:
                return record
            return replace(record, users={k: v for k, v in record.users.items() if k != name})
        old = record.groups.get(name)
        if old is None or refuse_group_write(old, None, record) is not None:
            return record
        return replace(record, groups={k: v for k, v in record.groups.items() if k != name})
    if isinstance(write, User):
        if refuse_user_write(record.users.get(write.name), write, record) is not None:
            return record
        return replace(record, users={**record.users, write.name: write})
    if refuse_group_write(record.groups.get(write.name), write, record) is not None:
        return record
    return replace(record, groups={**record.groups, write.name: write})


def admins(record: PeopleRecord) -> set[str]:
    return {
        each.name
        for each in record.users.values()
        if UserRole.ADMIN in each.roles and not each.is_disabled
    }


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_what_is_promised_holds_after_every_write(first: int) -> None:
    for seed in range(first, first + 250):
        rng = random.Random(seed)
        keeps_its_promises(rng, rng.choice((MASTER, BY_ANN)))


def keeps_its_promises(rng: random.Random, me: str) -> None:
    record = PeopleRecord(tree=TREE, me=me)
    for _ in range(30):
        write = some_write(rng)
        before, record = record, written(record, write)
        leaves = [each.leaf for each in record.groups.values()]
        assert len(set(leaves)) == len(leaves)
        assert set(leaves) <= {*LEAVES}
        for name, each in record.groups.items():
            assert name not in before.groups or before.groups[name].leaf == each.leaf
        titles = [each.group_name.lower() for each in record.groups.values()]
        assert len(set(titles)) == len(titles)
        assert all(titles)
        assert not admins(before) or admins(record), "the last administrator stays"
        for each in record.users.values():
            assert set(each.groups) <= record.groups.keys()
            assert each.groups or UserRole.ADMIN in each.roles
        for name, user in before.users.items():
            if name not in record.users:
                assert user.is_deletable
                assert (me, name) != (BY_ANN, "ann")


@given(users, groups)
def test_an_object_that_is_there_is_written_again_as_it_is(user: User, group: UserGroup) -> None:
    """kubectl applies the same manifest twice."""
    record = PeopleRecord(tree=TREE)
    for write in (group, user):
        record = written(record, write)
    for write in (*record.groups.values(), *record.users.values()):
        assert written(record, write) == record


@given(users)
def test_an_object_that_is_forced_may_always_be_deleted(user: User) -> None:
    forced = replace(user, is_forced=True, is_deletable=False)
    record = PeopleRecord({user.name: forced}, me=BY_ANN)
    assert refuse_user_write(forced, None, record) is None
    assert refuse_user_write(replace(forced, is_forced=False), None, record) is not None
