"""Bodies of kept states: nothing that boards are made from is lost; equal rows give equal bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import fields, replace

from fairlead.errors import OutsideError
from fairlead.model.node import Condition
from fairlead.model.pod import Container, ContainerStatus, Pod
from fairlead.model.quota.tree import AdmittedUse, QuotaNode, QuotaTree
from fairlead.model.sharing import Withheld
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.usage.ledger import KeptState, StateKind
from fairlead.rules.usage.past import kept_cards
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.usage.states import ROW_TYPES, StateRows, parse_state, state_body
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.snapshot import take_snapshot


@pytest.fixture(scope="module")
def taken() -> ClusterSnapshot:
    world = sharing_world(load_scenario("default"), 7, 1_750_000_000.0)
    world.warm_up()
    return take_snapshot(world)


def _rows(snapshot: ClusterSnapshot) -> Iterator[tuple[StateKind, Any]]:
    yield from ((StateKind.NODE, node) for node in snapshot.nodes)
    yield from ((StateKind.POD, pod) for pod in snapshot.pods)
    yield from ((StateKind.JOB, job) for job in snapshot.jobs)
    yield from ((StateKind.CARDS, row) for row in kept_cards(snapshot.gpus).values())
    yield from ((StateKind.WORKLOAD, row) for row in snapshot.workloads)
    yield from ((StateKind.BUDGET, row) for row in snapshot.budgets)
    yield from ((StateKind.NAMESPACE, row) for row in snapshot.namespaces)
    if snapshot.quota_tree is not None:
        yield StateKind.TREE, replace(snapshot.quota_tree, status={}, user_use=())


def test_every_row_of_a_cluster_comes_back(taken: ClusterSnapshot) -> None:
    kinds = set()
    for kind, row in _rows(taken):
        kinds.add(kind)
        body = state_body(row)
        assert parse_state(kind, body) == row
        assert state_body(parse_state(kind, body)) == body
    assert kinds >= {StateKind.NODE, StateKind.POD, StateKind.JOB, StateKind.TREE, StateKind.CARDS}


def test_each_kind_has_a_row_type() -> None:
    assert set(ROW_TYPES) == set(StateKind)


@pytest.mark.parametrize("kind", StateKind)
def test_each_field_of_a_row_comes_back(kind: StateKind) -> None:
    """One field at a time has a value that is not its default."""
    row_type = ROW_TYPES[kind]
    required = {
        each.name: "x" if each.type is str or "str" in str(each.type) else frozenset({3})
        for each in fields(row_type)
        if each.required
    }
    plain = row_type(**required)
    for field in fields(row_type):
        for other in ("text", 7, 7.5, True, {"key": "text"}, {"key": 5}, ["text"]):
            body = msgspec.json.encode({**required, field.name: other})
            try:
                changed = msgspec.json.decode(body, type=row_type)
            except msgspec.ValidationError:
                continue
            if changed == plain or (row_type is QuotaTree and field.name in ("status", "user_use")):
                continue
            assert parse_state(kind, state_body(changed)) == changed, field.name
            assert state_body(changed) != state_body(plain), field.name


def test_the_order_of_labels_and_of_defaults_changes_nothing() -> None:
    one = Pod("ml", "a", labels={"x": "1", "y": "2"}, statuses=(ContainerStatus("c"),))
    other = Pod("ml", "a", labels={"y": "2", "x": "1"}, statuses=(ContainerStatus("c", False),))
    assert state_body(one) == state_body(other)


def test_a_body_has_no_defaults_at_any_depth() -> None:
    pod = Pod(
        "ml",
        "a",
        containers=(Container("c", requests={"nvidia.com/gpu": 8}),),
        conditions=(Condition("PodScheduled", "True", at=5.0),),
    )
    assert msgspec.json.decode(state_body(pod)) == {
        "namespace": "ml",
        "name": "a",
        "containers": [{"name": "c", "requests": {"nvidia.com/gpu": 8}}],
        "conditions": [{"type": "PodScheduled", "status": "True", "at": 5.0}],
    }


def test_the_status_of_the_tree_makes_no_other_body() -> None:
    """The quota controller writes it with each admission."""
    tree = QuotaTree("tree", "kube-system", QuotaNode("root", "root"))
    used = replace(
        tree, status={"observedGeneration": 4}, user_use=(AdmittedUse("a", "bob", {"cpu": 1}),)
    )
    assert state_body(used) == state_body(tree)
    assert state_body(replace(tree, generation=2)) != state_body(tree)


def test_withheld_indexes_have_one_order() -> None:
    rows = [Withheld("n", frozenset(order)) for order in ((9, 1, 300), (300, 9, 1))]
    assert len({state_body(row) for row in rows}) == 1
    assert parse_state(StateKind.WITHHELD, state_body(rows[0])) == rows[0]


def test_fields_of_a_newer_version_are_ignored() -> None:
    body = b'{"namespace":"ml","name":"a","later":{"x":[1]},"phase":"Hibernating"}'
    assert parse_state(StateKind.POD, body).phase == "Unknown"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"name":"a"}', b'{"namespace":1,"name":"a"}'])
def test_a_damaged_body_is_named(body: bytes) -> None:
    with pytest.raises(OutsideError) as caught:
        parse_state(StateKind.POD, body)
    assert caught.value.what.startswith("a kept state of kind `pod` cannot be read: ")


def test_a_state_that_the_moment_before_had_is_the_same_row() -> None:
    first, changed = Pod("ml", "bert-0", uid="u1"), Pod("ml", "bert-0", uid="u1", node="n1")
    rows, other = StateRows(), Pod("ml", "bert-1", uid="u2")
    ((one, _),) = rows.of([_state(first), _state(other)]).values()
    ((same, new),) = rows.of([_state(first), _state(changed)]).values()
    assert (one, same is one, new) == (first, True, changed)
    ((again,),) = rows.of([_state(other)]).values()
    assert again == other
    ((late,),) = rows.of([_state(first)]).values()
    assert (late, late is one) == (first, False), "rows of earlier moments are not kept"


def _state(pod: Pod) -> KeptState:
    return KeptState(StateKind.POD, pod.uid, 1, pod.namespace, pod.name, state_body(pod))
