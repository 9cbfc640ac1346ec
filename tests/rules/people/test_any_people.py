"""From any half-made state, with late watches, calls that fail, crashes, two controllers at once
and other clients that write meanwhile, the cluster ends in the same state: what the specification
derives from users, groups, tree and namespaces.
"""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from tests.rules.people.fake_people import (
    PLACE,
    Driver,
    FakePeople,
    admin,
    expected,
    group,
    shown,
    tree,
    user,
)
from tests.turns import in_turn

from fairlead.model.access import Binding, BindingSubject
from fairlead.model.people.rows import (
    KIND_CLUSTER_ROLE_BINDINGS,
    KIND_ROLE_BINDINGS,
    KIND_SERVICE_ACCOUNTS,
    KIND_USERS,
    USER_FINALIZER,
    UserBinding,
    UserServiceAccount,
    UserWork,
)

SPACES = tuple(f"namespace{number}" for number in range(1, 7))
LEAVES = ("a", "b", "c")
NAMES = ("ann", "bob", "eve", "joe")
ROLES = ("fairlead-researcher", "fairlead-admin", "view", "fairlead-researcher-cluster")
SEEDS = in_turn(range(60), 3)


def world(seed: int, failing: float) -> FakePeople:
    """Users, groups and a tree, and objects as an interrupted or foreign writer left them."""
    made = FakePeople(seed, failing)
    rng = made.rng
    made.spaces(*rng.sample(SPACES, 4), PLACE)
    made.write(random_tree(rng))
    for leaf in LEAVES[: rng.randint(1, 3)]:
        made.write(group(f"team-{leaf}", f"root.{leaf}"))
    if rng.random() < 0.3:
        made.write(group("team-late", "root.a"))
    for name in NAMES[: rng.randint(2, 4)]:
        change(made, rng, name)
    for _ in range(rng.randint(0, 8)):
        litter(made, rng)
    return made


def random_tree(rng: random.Random) -> object:
    spaces = list(SPACES)
    rng.shuffle(spaces)
    return tree(**{leaf: [spaces.pop() for _ in range(rng.randint(0, 2))] for leaf in LEAVES})


def change(made: FakePeople, rng: random.Random, name: str) -> None:
    """Another client creates, edits, disables, deletes or works as a user."""
    there = made.objects[KIND_USERS].get((PLACE, name))
    if there is None:
        teams = rng.sample(("team-a", "team-b", "team-c", "team-none"), rng.randint(0, 3))
        made.write((admin if rng.random() < 0.3 else user)(name, *teams))
        return
    match rng.randrange(4):
        case 0:
            made.write(replace(there, is_disabled=not there.is_disabled))
        case 1:
            made.write(replace(there, groups=tuple(rng.sample(("team-a", "team-b"), 1))))
        case 2:
            made.end_user(name)
        case _:
            made.write(UserWork("pod", SPACES[0], f"{name}-pod", name, is_finished=True))


def litter(made: FakePeople, rng: random.Random) -> None:
    """An object that carries a user's label, right or wrong; or one lost."""
    name, space, role = rng.choice(NAMES), rng.choice(("", *SPACES)), rng.choice(ROLES)
    match rng.randrange(4):
        case 0:
            made.write(UserServiceAccount(name, PLACE, user=name))
        case 1 | 2:
            subject = BindingSubject("ServiceAccount", rng.choice(NAMES), PLACE)
            called = f"{name}:{space or 'clusterRole'}:{role}"
            binding = Binding(called, space, "ClusterRole", rng.choice(ROLES), (subject,))
            made.write(UserBinding(binding, user=rng.choice(NAMES)))
        case _:
            kind = rng.choice(
                (KIND_ROLE_BINDINGS, KIND_CLUSTER_ROLE_BINDINGS, KIND_SERVICE_ACCOUNTS)
            )
            mine = [key for key, row in made.objects[kind].items() if row.user]
            if mine:
                made.remove(kind, *rng.choice(sorted(mine)))


def check_end(made: FakePeople) -> None:
    assert shown(made) == expected(made)
    living = {
        each.name
        for each in made.objects[KIND_USERS].values()
        if not each.is_disabled and not each.is_ending
    }
    accounts = {name for (_, name), row in made.objects[KIND_SERVICE_ACCOUNTS].items() if row.user}
    assert accounts == living
    for each in made.objects[KIND_USERS].values():
        assert not each.is_ending, "an ended user's finalizer is removed"
        assert USER_FINALIZER in each.finalizers
        assert each.status.ready.is_true is not each.is_disabled
        written = {(bound.namespace, bound.name, bound.role) for bound in each.status.bindings}
        assert written == {row for row in shown(made) if row[1].startswith(f"{each.name}:")}


@pytest.mark.parametrize("seed", SEEDS)
def test_any_half_made_state_ends_as_specified(seed: int) -> None:
    made = world(seed, failing=0.0)
    Driver(made).settle()
    check_end(made)


@pytest.mark.parametrize("seed", SEEDS)
def test_failing_calls_crashes_and_other_writers_change_nothing_of_the_end(seed: int) -> None:
    made = world(seed, failing=0.1)
    rng = made.rng
    driver = Driver(made)
    for _ in range(300):
        driver.step()
        if rng.random() < 0.05:
            driver.crash()
        if rng.random() < 0.05:
            driver.relist()
        if rng.random() < 0.05:
            change(made, rng, rng.choice(NAMES))
        if rng.random() < 0.05:
            litter(made, rng)
        if rng.random() < 0.03:
            made.write(random_tree(rng))
    driver.settle()
    check_end(made)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_controllers_at_once_end_as_one(seed: int) -> None:
    """The Lease allows one; a process whose clock stood still may nevertheless send a call."""
    made = world(seed, failing=0.05)
    first, second = Driver(made), Driver(made)
    for _ in range(300):
        made.rng.choice((first, second)).step()
        if made.rng.random() < 0.03:
            change(made, made.rng, made.rng.choice(NAMES))
    for _ in range(3):
        first.settle()
        second.settle()
    check_end(made)


@pytest.mark.parametrize("seed", range(20))
def test_a_disabled_user_loses_the_service_account_last(seed: int) -> None:
    made = world(seed, failing=0.1)
    driver = Driver(made)
    driver.settle()
    for each in list(made.objects[KIND_USERS].values()):
        made.write(replace(each, is_disabled=True))
    while shown(made):
        driver.step()
        users = {name for (_, name), row in made.objects[KIND_SERVICE_ACCOUNTS].items() if row.user}
        assert {name.partition(":")[0] for _, name, _ in shown(made)} <= users
    driver.settle()
    check_end(made)
