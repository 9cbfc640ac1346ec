"""A model check of the quota decider: every interleaving of two leaves, a pod that borrows, waiting
pods, and a replacement of the controller.

The first pod borrows all of the root, which the other leaf is guaranteed. At any time one of these
events may come next: the watch delivers an event, the decider looks, a call arrives at the API
server, its answer comes back, a stopping pod is gone, a new controller replaces the old one and
lists everything. Each state, which includes everything the decider knows, is visited once.

A run takes the first of WORLDS; `QUOTA_INTERLEAVINGS=all` takes all (two minutes).
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections import defaultdict, deque

import pytest
from msgspec import Struct
from msgspec.structs import replace
from tests.rules.quota.small import tree

from fairlead.model.actions import AdmitPod, EvictPod, Outcome, QuotaAction, Result, SetPodCondition
from fairlead.model.changes import (
    KIND_BUDGETS,
    KIND_NAMESPACES,
    KIND_NODES,
    KIND_PODS,
    KIND_QUOTA_TREES,
    changed,
    listed,
)
from fairlead.model.keys import QUOTA_GATE
from fairlead.model.node import Condition, Node
from fairlead.model.people.rows import KIND_GROUPS
from fairlead.model.pod import Container, Owner, Pod, PodPhase
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.tree import QuotaTree
from fairlead.rules.control.pending import Pauses
from fairlead.rules.quota.feed import QuotaFeed
from fairlead.rules.quota.machine import QuotaMachine

NOW = 1_000_000.0
WORLDS = ("a+ a b", "a+ b b", "a+ b")
"""The pods of each world, by their leaf; a pod with a `+` runs from the beginning."""
ROOT = tree("root[1]{a[0] b[1]}")
NODE = Node(
    "node-1", "node", allocatable={"gpu": 9, "pods": 99}, conditions=(Condition("Ready", "True"),)
)
SPACES = {
    name: Namespace(name, name, {"fairlead.io/quota": "enforced"}, {"fairlead.io/leaf": name})
    for name in ("a", "b")
}


class Flying(Struct):
    """A call: sent, or carried out with its answer on the way back."""

    action: QuotaAction
    outcome: Outcome | None = None


class World(Struct):
    pods: dict[str, Pod]
    reported: list[tuple[str, Pod | None]]
    calls: list[Flying]
    machine: QuotaMachine
    is_news: bool = True
    crashes: int = 0
    evictions: int = 0


def pod(namespace: str, name: str, *, runs: bool) -> Pod:
    gates = () if runs else (QUOTA_GATE,)
    where = "node-1" if runs else ""
    phase = PodPhase.RUNNING if runs else PodPhase.PENDING
    owners = (Owner("ReplicaSet", f"rs-{namespace}", f"rs-{namespace}", True),)
    asks = (Container("main", requests={"gpu": 1}),)
    return Pod(
        namespace,
        name,
        f"{namespace}-{name}",
        owners=owners,
        gates=gates,
        containers=asks,
        node=where,
        phase=phase,
        created_at=NOW,
    )


def leader(pods: dict[str, Pod]) -> QuotaMachine:
    machine = QuotaMachine()
    feed = machine.feed
    feed.rebuild()
    feed.observe(listed(KIND_NODES, {"node": NODE}))
    feed.observe(
        listed(
            KIND_QUOTA_TREES, {"tree": QuotaTree("elasticquotatree", "kube-system", ROOT, "tree")}
        )
    )
    feed.observe(listed(KIND_NAMESPACES, dict(SPACES)))
    feed.observe(listed(KIND_BUDGETS, {}))
    feed.observe(listed(KIND_GROUPS, {}))
    feed.observe(listed(KIND_PODS, dict(pods)))
    return machine


def beginning(words: str) -> World:
    made = [
        pod(word[0], str(number), runs=word.endswith("+"))
        for number, word in enumerate(words.split(), 1)
    ]
    pods = {each.uid: each for each in made}
    return World(pods, [], [], leader(pods))


def moves(world: World) -> list[tuple[str, int]]:
    found = [("deliver", 0)] if world.reported else []
    found += [("look", 0)] if world.is_news else []
    for place, call in enumerate(world.calls):
        found.append(("answer" if call.outcome is not None else "arrive", place))
    found += [
        ("gone", place)
        for place, uid in enumerate(sorted(world.pods))
        if world.pods[uid].deleted_at is not None
    ]
    # the Lease outlasts every call
    if not world.crashes and all(call.outcome is not None for call in world.calls):
        found.append(("crash", 0))
    return found


def move(world: World, word: str, place: int) -> None:
    match word:
        case "deliver":
            uid, row = world.reported.pop(0)
            world.machine.feed.observe(changed(KIND_PODS, uid, row))
            world.is_news = True
        case "look":
            world.is_news = False
            send(world, world.machine.look(NOW))
        case "arrive":
            world.calls[place].outcome = carry_out(world, world.calls[place].action)
        case "answer":
            call = world.calls.pop(place)
            world.is_news = True
            send(world, world.machine.done(call.action, call.outcome or Outcome(), NOW))
        case "gone":
            put(world, sorted(world.pods)[place], None)
        case "crash":
            world.crashes += 1
            world.reported.clear()
            world.calls.clear()
            world.machine, world.is_news = leader(world.pods), True


def send(world: World, actions: list[QuotaAction]) -> None:
    """Calls that only write messages are carried out at once, because nothing follows from them."""
    for action in actions:
        is_claim = (
            isinstance(action, SetPodCondition) and action.condition.reason == "WaitingForEvictions"
        )
        if isinstance(action, AdmitPod | EvictPod) or is_claim:
            world.calls.append(Flying(action))
        else:
            outcome = carry_out(world, action)
            send(world, world.machine.done(action, outcome, NOW))


def carry_out(world: World, action: QuotaAction) -> Outcome:
    if not isinstance(action, AdmitPod | EvictPod | SetPodCondition):
        return Outcome()
    there = world.pods.get(action.target.uid)
    if there is None:
        return Outcome(Result.GONE)
    match action:
        case AdmitPod():
            if not there.gates:
                return Outcome(Result.REFUSED, "the gate is absent")
            put(world, there.uid, replace(there, gates=(), node="node-1", phase=PodPhase.RUNNING))
        case EvictPod(is_trial=False):
            if there.deleted_at is None:
                world.evictions += 1
                put(world, there.uid, replace(there, deleted_at=NOW))
                again = pod(there.namespace, f"{there.name}+", runs=False)
                put(world, again.uid, again)
        case SetPodCondition():
            reported = replace(there, conditions=(action.condition,))
            if action.condition.reason == "WaitingForEvictions":
                put(world, there.uid, reported)
            else:
                world.pods[there.uid] = reported  # no event follows: the watch does not deliver it
    return Outcome()


def put(world: World, uid: str, row: Pod | None) -> None:
    if row is None:
        del world.pods[uid]
    else:
        world.pods[uid] = row
    world.reported.append((uid, row))


def charged(world: World) -> int:
    return sum(1 for each in world.pods.values() if not each.gates)


def canonical(value: object) -> object:
    """A form that is equal for states with the same future, however they came about."""
    if isinstance(value, Pod):
        return (
            value.uid,
            bool(value.gates),
            value.deleted_at,
            [each.reason for each in value.conditions],
        )
    if isinstance(value, dict):
        return sorted((str(key), canonical(each)) for key, each in value.items() if each)
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple | deque):
        return [canonical(each) for each in value]
    if isinstance(value, Pauses):
        return canonical(vars(value))
    if isinstance(value, QuotaFeed):
        return ""
    if isinstance(value, QuotaMachine):
        mine = vars(value)
        is_planned = mine["_planned_version"] == value.feed.version
        calls = [canonical(vars(mine[name])) for name in ("calls", "reports")]
        return [
            is_planned,
            mine["_is_stale"],
            canonical(value.feed.rows),
            calls,
            canonical(mine["_trials"]),
        ]
    if isinstance(value, World | Flying):
        return [canonical(getattr(value, name)) for name in value.__struct_fields__]
    if isinstance(value, SetPodCondition):
        return value.target.uid, value.condition.reason
    return (
        (type(value).__name__, value.target.uid)
        if isinstance(value, AdmitPod | EvictPod)
        else repr(value)
    )


def follow(first: World) -> tuple[int, list[World]]:
    """The number of states, and the final states, in which no event is possible any more.

    Each state must be able to reach a final state.
    """
    frontier = [(digest(first), pickle.dumps(first))]
    names = {frontier[0][0]}
    before: defaultdict[bytes, list[bytes]] = defaultdict(list)
    ends: dict[bytes, World] = {}
    while frontier:
        name, here = frontier.pop()
        world = pickle.loads(here)
        assert charged(world) <= 1, world.pods
        possible = moves(world)
        if not [word for word, _ in possible if word != "crash"]:
            ends[name] = world
        for word, place in possible:
            there = pickle.loads(here)
            move(there, word, place)
            other = digest(there)
            before[other].append(name)
            if other not in names:
                names.add(other)
                frontier.append((other, pickle.dumps(there)))
    reaching, queue = set(ends), list(ends)
    while queue:
        for each in before[queue.pop()]:
            if each not in reaching:
                reaching.add(each)
                queue.append(each)
    assert reaching == names, "there are states from which it never ends"
    return len(names), list(ends.values())


def digest(world: World) -> bytes:
    return hashlib.blake2b(repr(canonical(world)).encode(), digest_size=16).digest()


@pytest.mark.long
@pytest.mark.parametrize(
    "pods", WORLDS if os.environ.get("QUOTA_INTERLEAVINGS") == "all" else WORLDS[:1]
)
def test_never_above_max_always_an_end_and_the_fewest_evictions(pods: str) -> None:
    states, ends = follow(beginning(pods))
    assert states > 1000
    assert ends
    for world in ends:
        assert world.evictions == 1
        assert sorted(each.namespace for each in world.pods.values() if not each.gates) == ["b"]
