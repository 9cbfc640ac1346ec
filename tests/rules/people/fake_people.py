"""A cluster in memory for the people decider: an API server with late watches, and a driver that
may crash. A seeded random generator decides what each step does.

What users should have in the end is computed here anew, from the specification alone.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from fairlead.model.access import Binding
from fairlead.model.actions import Outcome, Result
from fairlead.model.changes import KIND_NAMESPACES, KIND_QUOTA_TREES, changed, listed
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
    USER_FINALIZER,
    User,
    UserBinding,
    UserGroup,
    UserRole,
    UserServiceAccount,
    UserWork,
)
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.rules.people.decider import PeopleDecider

PLACE = "kube-ai"
PODS = "pods"
KINDS = (
    KIND_USERS,
    KIND_GROUPS,
    KIND_QUOTA_TREES,
    KIND_NAMESPACES,
    KIND_SERVICE_ACCOUNTS,
    KIND_ROLE_BINDINGS,
    KIND_CLUSTER_ROLE_BINDINGS,
    PODS,
)
START = 1_000_000.0


def user(name: str, *groups: str, roles: Iterable[UserRole] = (UserRole.RESEARCHER,)) -> User:
    return User(name, PLACE, user_name=name.title(), roles=tuple(roles), groups=groups)


def admin(name: str, *groups: str) -> User:
    return user(name, *groups, roles=(UserRole.ADMIN,))


def group(name: str, leaf: str, **more: Any) -> UserGroup:
    return UserGroup(name, PLACE, group_name=name, leaf=leaf, **more)


def tree(**leaves: Iterable[str]) -> QuotaTree:
    """Leaves `root.<name>` with their namespaces."""
    children = tuple(
        QuotaNode(f"root.{name}", f"root.{name}", "root", namespaces=tuple(spaces))
        for name, spaces in leaves.items()
    )
    return QuotaTree(
        "elasticquotatree", "kube-system", QuotaNode("root", "root", children=children), uid="tree"
    )


class FakePeople:
    """Objects by kind, namespace and name, with uids and versions. `failing`: the part of calls
    without an answer; half of them were carried out.
    """

    def __init__(self, seed: int = 0, failing: float = 0.0) -> None:
        self.rng = random.Random(seed)
        self.failing = failing
        self.now = START
        self.objects: dict[str, dict[tuple[str, str], Any]] = {kind: {} for kind in KINDS}
        self.watchers: list[deque[tuple[str, str, Any]]] = []
        self.sent: list[PeopleAction] = []
        self._numbers = itertools.count(1)

    # --- what clients write -----------------------------------------------------------------------

    def put(self, kind: str, row: Any) -> Any:
        """Create or replace an object; a changed one keeps its uid."""
        key = (getattr(row, "namespace", ""), row.name)
        before = self.objects[kind].get(key)
        number = next(self._numbers)
        fields: dict[str, Any] = {"uid": before.uid if before else f"uid-{number}"}
        if hasattr(row, "version"):
            fields["version"] = str(number)
        if hasattr(row, "created_at") and not before:
            fields["created_at"] = self.now + number
        row = replace(row, **fields)
        self.objects[kind][key] = row
        self._notify(kind, row.uid, row)
        return row

    def remove(self, kind: str, namespace: str, name: str) -> None:
        row = self.objects[kind].pop((namespace, name), None)
        if row is not None:
            self._notify(kind, row.uid, None)

    def write(self, *rows: Any) -> None:
        for row in rows:
            self.put(_kind(row), row)

    def spaces(self, *names: str) -> None:
        for name in names:
            self.put(KIND_NAMESPACES, Namespace(name, name))

    def end_user(self, name: str, **more: Any) -> None:
        """What `kubectl delete user` does."""
        row = self.objects[KIND_USERS][PLACE, name]
        if not row.finalizers:
            self.remove(KIND_USERS, PLACE, name)
            return
        self.put(KIND_USERS, replace(row, is_ending=True, **more))

    def user(self, name: str) -> User:
        found: User = self.objects[KIND_USERS][PLACE, name]
        return found

    def group(self, name: str) -> UserGroup:
        found: UserGroup = self.objects[KIND_GROUPS][PLACE, name]
        return found

    def bindings(self) -> dict[tuple[str, str], UserBinding]:
        return {**self.objects[KIND_ROLE_BINDINGS], **self.objects[KIND_CLUSTER_ROLE_BINDINGS]}

    # --- what the controller writes ---------------------------------------------------------------

    def apply(self, action: PeopleAction) -> Outcome:
        self.sent.append(action)
        if self.rng.random() < self.failing:
            if self.rng.random() < 0.5:
                self._carry_out(action)
            return Outcome(Result.UNKNOWN, "no answer")
        return self._carry_out(action)

    def _carry_out(self, action: PeopleAction) -> Outcome:
        kind, subject = _subject_kind(action), action.subject
        there = self.objects[kind].get((subject.namespace, subject.name))
        match action:
            case CreateServiceAccount() | CreateBinding():
                if there is not None:
                    return Outcome(Result.THERE)
                self.put(kind, subject)
                return Outcome()
            case DeleteServiceAccount() | DeleteBinding():
                if there is None or there.uid != subject.uid:
                    return Outcome(Result.GONE)
                self.remove(kind, subject.namespace, subject.name)
                return Outcome()
            case _:
                pass
        if there is None:
            return Outcome(Result.GONE)
        if there.version != subject.version:
            return Outcome(Result.REFUSED, "the object has been modified")
        match action:
            case AdoptBinding():
                self.put(kind, replace(there, user=action.user))
            case HoldUser():
                others = tuple(each for each in there.finalizers if each != USER_FINALIZER)
                if not action.is_held and there.is_ending and not others:
                    self.remove(kind, subject.namespace, subject.name)
                else:
                    held = (USER_FINALIZER,) if action.is_held else ()
                    self.put(kind, replace(there, finalizers=(*others, *held)))
            case MoveGroup():
                assert there.status.renamed_to == action.leaf, "the schema refuses it"
                self.put(kind, replace(there, leaf=action.leaf, generation=there.generation + 1))
            case WriteUserStatus() | WriteGroupStatus():
                self.put(kind, replace(there, status=action.status))
        return Outcome()

    def _notify(self, kind: str, uid: str, row: Any) -> None:
        for each in self.watchers:
            each.append((kind, uid, row))


class Driver:
    """Drives a decider over the cluster in memory. Watches deliver when `step` chooses."""

    def __init__(self, cluster: FakePeople) -> None:
        self._cluster = cluster
        self._waiting: deque[tuple[str, str, Any]] = deque()
        self._calls: deque[PeopleAction] = deque()
        cluster.watchers.append(self._waiting)
        self.decider = PeopleDecider((PODS,))
        self.relist()

    def relist(self) -> None:
        self._waiting.clear()
        self.decider.rebuild()
        for kind in KINDS:
            rows = {each.uid: each for each in self._cluster.objects[kind].values()}
            self.decider.observe(listed(kind, rows))

    def crash(self) -> None:
        """Lose all state; calls that were not sent are lost, too."""
        self._calls.clear()
        self.decider = PeopleDecider((PODS,))
        self.relist()

    def step(self) -> None:
        """One thing at random: a watch event, a look, a call."""
        cluster = self._cluster
        cluster.now += cluster.rng.choice((0.01, 0.05, 0.5))
        choice = cluster.rng.randrange(3)
        if choice == 0 and self._waiting:
            self._deliver()
        elif choice == 1 and self._calls:
            self._send()
        else:
            self._calls.extend(self.decider.look(cluster.now))

    def settle(self, most: int = 400) -> None:
        """Until nothing more is to be done."""
        for _ in range(most):
            while self._waiting:
                self._deliver()
            self._calls.extend(self.decider.look(self._cluster.now))
            while self._calls:
                self._send()
            if not self._waiting and self._is_at_rest():
                return
            self._cluster.now += 1.0
        raise AssertionError(f"it does not come to rest: {self._cluster.sent[-5:]}")

    def _is_at_rest(self) -> bool:
        due = self.decider.next_at
        if due == 0.0:
            self._calls.extend(self.decider.look(self._cluster.now))
            due = self.decider.next_at
        return due is None and not self._calls

    def _deliver(self) -> None:
        self.decider.observe(changed(*self._waiting.popleft()))

    def _send(self) -> None:
        action = self._calls.popleft()
        outcome = self._cluster.apply(action)
        self._calls.extend(self.decider.done(action, outcome, self._cluster.now))


def _kind(row: Any) -> str:
    if isinstance(row, UserBinding):
        return KIND_ROLE_BINDINGS if row.namespace else KIND_CLUSTER_ROLE_BINDINGS
    return {
        User: KIND_USERS,
        UserGroup: KIND_GROUPS,
        QuotaTree: KIND_QUOTA_TREES,
        UserServiceAccount: KIND_SERVICE_ACCOUNTS,
        UserWork: PODS,
    }[type(row)]


def _subject_kind(action: PeopleAction) -> str:
    return _kind(action.subject)


# --- what should exist in the end -----------------------------------------------------------------


def expected(cluster: FakePeople) -> set[tuple[str, str, str]]:
    """(binding's namespace, name, role) for every user, by docs/spec/people.md alone. It holds for
    worlds without malformed objects in which no leaf is renamed.
    """
    found: set[tuple[str, str, str]] = set()
    (quota,) = cluster.objects[KIND_QUOTA_TREES].values()
    leaf_spaces = {leaf.name: leaf.namespaces for leaf in quota.root.leaves()}
    for each in cluster.objects[KIND_USERS].values():
        if each.is_disabled or each.is_ending:
            continue
        roles = ["fairlead-researcher-cluster"]
        if UserRole.ADMIN in each.roles:
            roles.append("fairlead-admin")
            found.add((PLACE, f"{each.name}:{PLACE}:fairlead-credentials", "fairlead-credentials"))
        for name in each.groups:
            team = cluster.objects[KIND_GROUPS].get((PLACE, name))
            if team is None or owner(cluster, team.leaf) != name:
                continue
            roles += team.default_cluster_roles
            for space in leaf_spaces.get(team.leaf, ()):
                if ("", space) not in cluster.objects[KIND_NAMESPACES] or space == "kube-system":
                    continue
                for role in ("fairlead-researcher", *team.default_roles):
                    found.add((space, f"{each.name}:{space}:{role}", role))
        found |= {("", f"{each.name}:clusterRole:{role}", role) for role in roles}
    return found


def owner(cluster: FakePeople, leaf: str) -> str:
    """The group that has the leaf: the one whose status names it, else the oldest."""
    named = [each for each in cluster.objects[KIND_GROUPS].values() if each.leaf == leaf]
    named.sort(key=lambda each: (each.status.leaf != leaf, each.created_at))
    return named[0].name if named else ""


def shown(cluster: FakePeople) -> set[tuple[str, str, str]]:
    """The labelled bindings of the cluster, each checked for its subject."""
    found = set()
    for (namespace, name), held in cluster.bindings().items():
        if not held.user:
            continue
        binding: Binding = held.binding
        assert binding.role_kind == "ClusterRole"
        assert [(each.kind, each.name, each.namespace) for each in binding.subjects] == [
            ("ServiceAccount", held.user, PLACE)
        ], name
        found.add((namespace, name, binding.role_name))
    return found
