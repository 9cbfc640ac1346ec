"""Before a cache gets more workers, or fewer (docs/spec/datasets.md#workers)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from fairlead.model.installed.finding import Finding, State
from fairlead.model.jobs.datasets import Claim, DataMount, DataRuntime, DataSet
from fairlead.model.node import Condition, Node
from fairlead.rules.data.scale import check_scale

DATA_SET = DataSet("n", "d", (DataMount("pvc://raw/a"),), phase="Bound")
ALLUXIO = DataRuntime("AlluxioRuntime", "n", "d", 2, 2, replicas=2)
SHARED = Claim("n", "raw", ("ReadWriteMany",), phase="Bound")
OF_ONE_NODE = replace(SHARED, access_modes=("ReadWriteOnce",))
NODES = [Node(f"node-{number}", conditions=(Condition("Ready", "True"),)) for number in range(3)]


def bad(
    workers: int,
    data_set: DataSet = DATA_SET,
    runtimes: Sequence[DataRuntime] = (ALLUXIO,),
    claims: Sequence[Claim] = (SHARED,),
    nodes: Sequence[Node] | None = NODES,
) -> list[Finding]:
    found = check_scale(data_set, runtimes, claims, nodes, workers)
    return [each for each in found if each.state is not State.OK]


CASES: list[tuple[str, list[Finding], str, State]] = [
    ("more", bad(3), "", State.FAIL),
    ("the same", bad(2), "", State.FAIL),
    (
        "fewer",
        bad(1),
        "idle: files that only the removed workers have are read from the source again",
        State.WARN,
    ),
    (
        "fewer while it is preheated",
        bad(1, replace(DATA_SET, operations=("DataLoad l",))),
        "idle: `DataLoad l` runs on `d`, and would lose workers",
        State.FAIL,
    ),
    (
        "more while it is preheated",
        bad(3, replace(DATA_SET, operations=("DataLoad l",))),
        "",
        State.FAIL,
    ),
    (
        "more than nodes",
        bad(4),
        "nodes: 3 of 4 nodes can run a worker: Ready, schedulable, Linux and without taints",
        State.FAIL,
    ),
    ("fewer than before, with no node", bad(2, nodes=[]), "", State.FAIL),
    (
        "nodes that may not be read",
        bad(4, nodes=None),
        "nodes: nodes may not be read",
        State.UNKNOWN,
    ),
    (
        "a claim of one node",
        bad(2, claims=(OF_ONE_NODE,)),
        "access-mode: one node at a time may mount `raw` (ReadWriteOnce), so its cache has one "
        "worker",
        State.FAIL,
    ),
    (
        "a claim of one node, and one worker",
        bad(1, runtimes=(replace(ALLUXIO, replicas=1),), claims=(OF_ONE_NODE,)),
        "",
        State.FAIL,
    ),
    ("another claim of one node", bad(2, claims=(replace(OF_ONE_NODE, name="x"),)), "", State.FAIL),
    ("no runtime", bad(2, runtimes=()), "runtime: no runtime has the name `d`", State.FAIL),
    (
        "two runtimes",
        bad(2, runtimes=(ALLUXIO, replace(ALLUXIO, kind="JindoRuntime"))),
        "runtime: 2 runtimes have the name `d`",
        State.FAIL,
    ),
    (
        "a runtime without workers",
        bad(2, runtimes=(replace(ALLUXIO, kind="ThinRuntime"),)),
        "runtime: a ThinRuntime has no workers to scale",
        State.FAIL,
    ),
    (
        "being deleted",
        bad(3, replace(DATA_SET, is_ending=True)),
        "runtime: `d` is being deleted",
        State.FAIL,
    ),
]


@pytest.mark.parametrize(
    ("findings", "sentence", "state"),
    [each[1:] for each in CASES],
    ids=[each[0] for each in CASES],
)
def test_a_number_of_workers_that_cannot_be_has_its_reason(
    findings: list[Finding], sentence: str, state: State
) -> None:
    assert "; ".join(f"{each.check}: {each.sentence}" for each in findings) == sentence
    assert all(each.state is state for each in findings)
    assert all(each.mend for each in findings if each.state is State.FAIL)
