"""Before a claim is accelerated, and before an acceleration ends: each check of the specification
(docs/spec/datasets.md#acceleration), in the state that it names.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.model.installed.finding import State
from fairlead.model.jobs.acceleration import Acceleration, AccelerationFacts, DataUser
from fairlead.model.jobs.datasets import Claim, ControllerState, DataMount, DataRuntime, DataSet
from fairlead.model.node import Condition, Node, Taint
from fairlead.rules.data.acceleration import (
    blockers,
    check_acceleration,
    chosen_acceleration,
    default_name,
    eligible_nodes,
)
from fairlead.wire.data.fluid import render_acceleration

GIB = 1 << 30
READY = (Condition("Ready", "True"),)


def node(name: str, **more: Any) -> Node:
    return Node(name, conditions=READY, allocatable={"memory": 64 * GIB}, **more)


CLAIM = Claim("n", "raw", ("ReadWriteMany",), phase="Bound", volume="pv-1", size=10 * GIB)
NODES = tuple(node(f"node-{number}") for number in range(3))
ALLUXIO, DATA_SETS = "alluxioruntime-controller", "dataset-controller"
CONTROLLERS = (ControllerState(DATA_SETS, 1, 1), ControllerState(ALLUXIO, 0, 0))
"""As Fluid is before its first data set."""
DOWN = (ControllerState(DATA_SETS, 1, 0), ControllerState(ALLUXIO, 0, 0))
GOOD = AccelerationFacts(
    CLAIM,
    claims=(CLAIM,),
    nodes=NODES,
    has_kinds=True,
    controllers=CONTROLLERS,
    csi_nodes=frozenset(each.name for each in NODES),
    has_volume=False,
    has_release=False,
)
ASKED = Acceleration("n", "raw", "raw-acc")
BEGUN = DataSet("n", "raw-acc", (DataMount("pvc://raw"),), accelerates="raw")


def chosen(facts: AccelerationFacts, **more: Any) -> Acceleration:
    asked = replace(ASKED, **more)
    return chosen_acceleration(
        facts, asked, has_workers="workers" in more, has_quota="quota" in more
    )


def states(facts: AccelerationFacts, **more: Any) -> dict[str, State]:
    """Of all checks that are not ok."""
    found = check_acceleration(facts, chosen(facts, **more))
    return {each.check: each.state for each in found if each.state != State.OK}


def with_claim(**more: Any) -> AccelerationFacts:
    claim = replace(CLAIM, **more)
    return replace(GOOD, claim=claim, claims=(claim,))


def test_all_checks_are_reported_once_and_good_ones_too() -> None:
    found = [each.check for each in check_acceleration(GOOD, chosen(GOOD))]
    assert found == [
        *("fluid-crds", "runtime-controller", "csi"),
        *("claim-bound", "access-mode", "volume-mode", "claim-not-fluid", "not-accelerated"),
        *("name-free", "nodes", "room", "namespace-quota"),
    ]
    assert states(GOOD) == {}


FAULTS: list[tuple[str, AccelerationFacts, State]] = [
    ("fluid-crds", replace(GOOD, has_kinds=False), State.FAIL),
    ("runtime-controller", replace(GOOD, controllers=CONTROLLERS[:1]), State.FAIL),
    ("runtime-controller", replace(GOOD, controllers=None), State.UNKNOWN),
    ("runtime-controller", replace(GOOD, controllers=DOWN), State.WARN),
    ("csi", replace(GOOD, csi_nodes=frozenset()), State.FAIL),
    ("csi", replace(GOOD, csi_nodes=frozenset({"node-1"})), State.WARN),
    ("csi", replace(GOOD, csi_nodes=None), State.UNKNOWN),
    ("claim-bound", replace(GOOD, claim=None), State.FAIL),
    ("claim-bound", with_claim(phase="Pending"), State.FAIL),
    ("claim-bound", with_claim(is_ending=True), State.FAIL),
    ("access-mode", with_claim(access_modes=("ReadWriteOncePod",)), State.FAIL),
    ("access-mode", with_claim(access_modes=()), State.FAIL),
    ("access-mode", with_claim(access_modes=("ReadWriteOnce",)), State.WARN),
    ("volume-mode", with_claim(volume_mode="Block"), State.FAIL),
    ("claim-name", with_claim(name="raw.v2"), State.FAIL),
    ("claim-name", with_claim(name="r" * 64), State.FAIL),
    ("claim-not-fluid", with_claim(is_fluids=True), State.FAIL),
    (
        "not-accelerated",
        replace(GOOD, data_sets=(DataSet("n", "x", (DataMount("pvc://raw/a"),)),)),
        State.FAIL,
    ),
    ("name-free", replace(GOOD, data_sets=(DataSet("n", "raw-acc"),)), State.FAIL),
    (
        "name-free",
        replace(GOOD, runtimes=(DataRuntime("JindoRuntime", "n", "raw-acc"),)),
        State.FAIL,
    ),
    ("name-free", replace(GOOD, claims=(CLAIM, Claim("n", "raw-acc"))), State.FAIL),
    ("name-free", replace(GOOD, has_volume=True), State.FAIL),
    ("name-free", replace(GOOD, has_release=True), State.FAIL),
    ("name-free", replace(GOOD, has_release=None), State.UNKNOWN),
    ("nodes", replace(GOOD, nodes=None), State.UNKNOWN),
    ("namespace-quota", replace(GOOD, is_governed=True), State.WARN),
]


@pytest.mark.parametrize(("check", "facts", "state"), FAULTS)
def test_a_fault_changes_its_own_check_and_no_other(
    check: str, facts: AccelerationFacts, state: State
) -> None:
    assert states(facts) == {check: state}


@pytest.mark.parametrize("name", ["1a", "a_b", "A", "a" * 46, "-a", "a-", "a.b", "a\n"])
def test_a_name_that_fluid_cannot_use_is_refused(name: str) -> None:
    assert states(GOOD, name=name)["name"] == State.FAIL


@pytest.mark.parametrize("claim", ["raw", "2026.images", "a" * 253, "x.y-z", "a-" * 30 + "b"])
def test_every_claim_has_a_legal_default_name(claim: str) -> None:
    assert "name" not in states(GOOD, name=default_name(claim))


@pytest.mark.parametrize(
    "other",
    [
        Node("n", conditions=(Condition("Ready", "False"),)),
        node("n", unschedulable=True),
        node("n", taints=(Taint("a", effect="NoSchedule"),)),
        node("n", taints=(Taint("a", effect="NoExecute"),)),
        node("n", labels={"kubernetes.io/os": "windows"}),
    ],
)
def test_a_node_that_takes_no_worker_is_not_counted(other: Node) -> None:
    assert eligible_nodes((other,)) == []
    facts = replace(GOOD, nodes=(other,))
    assert states(facts)["nodes"] == State.FAIL
    assert eligible_nodes((node("n", taints=(Taint("a", effect="PreferNoSchedule"),)),))


def test_workers_and_quota_have_defaults_of_the_cluster_and_the_claim() -> None:
    default = chosen(GOOD)
    assert (default.workers, default.quota) == (3, -(-10 * GIB // 3))
    many = replace(GOOD, nodes=tuple(node(f"n{number}") for number in range(9)))
    assert chosen(many).workers == 4
    assert chosen(with_claim(size=9999 * GIB)).quota == 64 * GIB
    assert chosen(GOOD, medium="SSD").quota == 150 * GIB
    asked = chosen(GOOD, workers=2, quota=GIB)
    assert (asked.workers, asked.quota) == (2, GIB)
    assert states(GOOD, workers=4)["nodes"] == State.FAIL
    assert states(GOOD, quota=65 * GIB)["room"] == State.FAIL
    assert "room" not in states(GOOD, quota=65 * GIB, medium="SSD")


def test_nodes_of_exclusive_data_sets_of_the_namespace_take_no_worker() -> None:
    """Fluid 1.0.8: their workers and others' keep apart, and who comes later waits for ever."""
    facts = replace(GOOD, exclusive=frozenset({"node-0"}))
    assert (chosen(facts).workers, chosen(GOOD).workers) == (2, 3)
    assert states(facts) == {}
    assert states(facts, workers=3) == {"nodes": State.FAIL, "room": State.FAIL}
    found = check_acceleration(facts, chosen(facts, workers=3))
    (sentence,) = (each.sentence for each in found if each.check == "nodes")
    ending = "; a data set with placement Exclusive shares no node: `node-0`"
    assert sentence.endswith(ending)


def test_a_claim_of_one_node_is_cached_by_one_worker_where_it_is_mounted() -> None:
    facts = replace(with_claim(access_modes=("ReadWriteOnce",)), users=frozenset({"node-2"}))
    found = chosen(facts)
    assert (found.workers, found.node) == (1, "node-2")
    data_set, runtime = render_acceleration(found)
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}
    assert data_set["spec"]["nodeAffinity"] == {
        "required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    }
    assert runtime["spec"]["master"] == {"nodeSelector": {"kubernetes.io/hostname": "node-2"}}
    assert chosen(replace(facts, users=frozenset())).node == "node-0"


def test_the_objects_are_those_of_the_specification() -> None:
    found = chosen(GOOD, folder="a/b", workers=2, quota=20 * GIB)
    data_set, runtime = render_acceleration(found)
    mount = {"mountPoint": "pvc://raw/a/b", "name": "raw", "path": "/", "readOnly": True}
    assert data_set["spec"] == {"mounts": [mount], "placement": "Shared"}
    level = {"mediumtype": "MEM", "path": "/dev/shm", "quota": "20Gi", "high": "0.95", "low": "0.7"}
    assert runtime["spec"] == {
        "replicas": 2,
        "data": {"replicas": 1},
        "tieredstore": {"levels": [level]},
    }
    assert data_set["metadata"] == runtime["metadata"]
    assert data_set["metadata"]["annotations"] == {"fairlead.io/accelerates": "raw"}


def test_what_an_interrupted_run_left_is_not_in_the_way_of_the_next() -> None:
    assert states(replace(GOOD, data_sets=(BEGUN,))) == {}
    foreign = replace(BEGUN, accelerates="")
    both = {"name-free": State.FAIL, "not-accelerated": State.FAIL}
    assert states(replace(GOOD, data_sets=(foreign,))) == both
    ending = replace(BEGUN, is_ending=True)
    assert states(replace(GOOD, data_sets=(ending,))) == both
    complete = replace(
        GOOD, data_sets=(BEGUN,), runtimes=(DataRuntime("AlluxioRuntime", "n", "raw-acc"),)
    )
    assert states(complete) == both


def test_a_data_set_in_use_does_not_end() -> None:
    users = [DataUser("n", "p", "raw-acc", "x"), DataUser("n", "q", "raw")]
    assert blockers(BEGUN, []) == [] == blockers(BEGUN, users[1:])
    assert blockers(BEGUN, users) == ["pods mount it: `n/p`"]
    busy = replace(BEGUN, references=("other/d",), operations=("DataLoad warm",))
    assert blockers(busy, []) == [
        "data sets refer to it: `other/d`",
        "an operation runs: `DataLoad warm`",
    ]
