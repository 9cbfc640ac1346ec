"""Why a data set does not begin or end (docs/spec/datasets.md#reasons)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.model.jobs.acceleration import DataUser
from fairlead.model.jobs.data_details import DataReasons
from fairlead.model.jobs.datasets import (
    Claim,
    ControllerState,
    DataRuntime,
    DataSet,
    FoundData,
    RuntimePart,
)
from fairlead.rules.data.listing import DataRow, data_rows

NOW = 1_000_000.0
ALLUXIO = DataRuntime("AlluxioRuntime", "n", "d", 2, 2)
RUNNING = DataReasons(
    (
        ControllerState("dataset-controller", 1, 1),
        ControllerState("alluxioruntime-controller", 1, 1),
    ),
    (),
)


def row_of(
    data_set: DataSet,
    *runtimes: DataRuntime,
    known: DataReasons = RUNNING,
    claims: tuple[Claim, ...] = (),
) -> DataRow:
    found = FoundData(claims, (data_set,), runtimes, NOW, has_fluid=True)
    return next(each for each in data_rows(found, known) if each.is_data_set)


def waiting(seconds: float, **more: Any) -> DataSet:
    return DataSet("n", "d", phase="NotBound", created_at=NOW - seconds, **more)


def ending(seconds: float, **more: Any) -> DataSet:
    more = {"finalizers": ("fluid-dataset-controller-finalizer",), **more}
    return DataSet("n", "d", phase="Bound", is_ending=True, ending_since=NOW - seconds, **more)


HELD = "finalizers that only Fluid may remove: `fluid-dataset-controller-finalizer`"
CASES: list[tuple[str, DataRow, str, bool]] = [
    ("young", row_of(waiting(299), ALLUXIO), "", False),
    (
        "not bound, without a reason",
        row_of(waiting(300), ALLUXIO),
        "not Bound for 5 min: Fluid reports no reason",
        True,
    ),
    (
        "without a runtime",
        row_of(waiting(7200)),
        "not Bound for 2 h: no runtime has its name",
        True,
    ),
    (
        "two runtimes",
        row_of(waiting(3600), ALLUXIO, DataRuntime("ThinRuntime", "n", "d")),
        "not Bound for 1 h: 2 runtimes have its name: AlluxioRuntime, ThinRuntime; "
        "there is no Deployment `thinruntime-controller` in `fluid-system`",
        True,
    ),
    (
        "a part that waits",
        row_of(
            waiting(600),
            DataRuntime(
                "AlluxioRuntime",
                "n",
                "d",
                parts=(
                    RuntimePart("master", "Ready", "ready"),
                    RuntimePart("worker", "NotReady", "no node has room"),
                ),
            ),
        ),
        "not Bound for 10 min: worker NotReady: no node has room",
        True,
    ),
    (
        "Fluid's message",
        row_of(waiting(600, message="mount failed"), ALLUXIO),
        "not Bound for 10 min: mount failed",
        True,
    ),
    (
        "a controller without replicas",
        row_of(
            waiting(600),
            ALLUXIO,
            known=DataReasons(
                (
                    ControllerState("dataset-controller", 1, 1),
                    ControllerState("alluxioruntime-controller", 0, 0),
                )
            ),
        ),
        "not Bound for 10 min: `alluxioruntime-controller` in `fluid-system` is not ready (0 of 0)",
        True,
    ),
    (
        "controllers that may not be read",
        row_of(waiting(600), ALLUXIO, known=DataReasons()),
        "not Bound for 10 min: Fluid reports no reason",
        True,
    ),
    ("ends since a moment", row_of(ending(10), ALLUXIO), "it is being deleted", False),
    (
        "ends for days",
        row_of(ending(3 * 86400), ALLUXIO),
        f"Terminating for 3 d: {HELD}",
        True,
    ),
    (
        "ends while a pod mounts it",
        row_of(
            ending(300),
            known=DataReasons(
                (ControllerState("dataset-controller", 1, 1),),
                (DataUser("n", "reader", "d"), DataUser("other", "x", "d")),
            ),
        ),
        f"Terminating for 5 min: pods mount it: `n/reader`; {HELD}",
        True,
    ),
    (
        "ends without a controller",
        row_of(ending(300), known=DataReasons(())),
        "Terminating for 5 min: there is no Deployment `dataset-controller` in `fluid-system`; "
        + HELD,
        True,
    ),
    (
        "ends with a foreign claim of its name",
        row_of(ending(300), claims=(Claim("n", "d"),)),
        f"Terminating for 5 min: {HELD}; the claim `d` is not Fluid's",
        True,
    ),
    (
        "bound with a foreign claim",
        row_of(DataSet("n", "d", phase="Bound"), ALLUXIO, claims=(Claim("n", "d"),)),
        "Bound, but its claim is not Fluid's",
        True,
    ),
    (
        "bound with Fluid's claim",
        row_of(
            DataSet("n", "d", phase="Bound"), ALLUXIO, claims=(Claim("n", "d", is_fluids=True),)
        ),
        "",
        False,
    ),
    (
        "a foreign claim elsewhere",
        row_of(DataSet("n", "d", phase="Bound"), ALLUXIO, claims=(Claim("m", "d"),)),
        "",
        False,
    ),
    (
        "bound with two runtimes",
        row_of(DataSet("n", "d", phase="Bound"), ALLUXIO, DataRuntime("JindoRuntime", "n", "d")),
        "2 runtimes have its name: AlluxioRuntime, JindoRuntime",
        True,
    ),
    (
        "without a known age",
        row_of(DataSet("n", "d", phase="NotBound"), ALLUXIO),
        "",
        False,
    ),
]


@pytest.mark.parametrize(
    ("row", "message", "is_faulty"), [each[1:] for each in CASES], ids=[each[0] for each in CASES]
)
def test_a_data_set_that_is_stuck_has_its_reasons(
    row: DataRow, message: str, is_faulty: bool
) -> None:
    assert (row.message, row.is_faulty) == (message, is_faulty)


def test_bound_with_a_foreign_claim_is_not_ready() -> None:
    row = row_of(DataSet("n", "d", phase="Bound"), ALLUXIO, claims=(Claim("n", "d"),))
    assert (row.status, row.phase) == ("NotReady", "Bound")
