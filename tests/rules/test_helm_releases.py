"""What a step does about a release of Helm, whatever a killed process left
(docs/spec/operations.md#steps).
"""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.model.operations.operation import HelmRelease, HelmStep
from fairlead.rules.operations.releases import release_turn


def step(verb: Any, **more: Any) -> HelmStep:
    return HelmStep(verb, "fluid", "fluid-system", "chart", "1.0.8", **more)


def release(status: str = "deployed", revision: int = 1, **more: Any) -> HelmRelease:
    return HelmRelease(
        "fluid",
        "fluid-system",
        status,
        revision,
        **{"operation": "me", "is_own": True, "deployed": 0, **more},
    )


OTHERS: dict[str, Any] = {"operation": "", "is_own": False}
EARLIER: dict[str, Any] = {"operation": "before"}


@pytest.mark.parametrize(
    ("wanted", "found", "do", "revision"),
    [
        (step("install"), None, "run", 0),
        (step("install"), release(deployed=1), "done", 0),
        (step("install"), release("pending-install"), "uninstall", 0),
        (step("install"), release("failed"), "uninstall", 0),
        (step("install"), release(**EARLIER, deployed=1), "refuse", 0),
        (step("install"), release(**OTHERS, deployed=1), "refuse", 0),
        (step("install"), release("pending-install", **OTHERS), "refuse", 0),
        (step("upgrade"), None, "refuse", 0),
        (step("upgrade"), release(**EARLIER, deployed=1), "run", 0),
        (step("upgrade"), release(revision=2, deployed=2), "done", 0),
        (step("upgrade"), release("pending-upgrade", 2, deployed=1), "rollback", 1),
        (step("upgrade"), release("pending-rollback", 3, deployed=1), "rollback", 1),
        (step("upgrade"), release("failed", 2, deployed=1), "run", 0),
        (step("upgrade"), release(**OTHERS, deployed=1), "refuse", 0),
        (step("rollback", revision=1), release("failed", 2, deployed=1), "run", 0),
        (
            step("rollback", revision=1),
            release(revision=3, deployed=3, rolled_back_to=1, operation="before"),
            "done",
            0,
        ),
        (
            step("rollback", revision=1),
            release(revision=3, deployed=3, rolled_back_to=2, operation="before"),
            "run",
            0,
        ),
        (step("uninstall"), None, "done", 0),
        (step("uninstall"), release(deployed=1), "run", 0),
        (step("uninstall"), release("uninstalling", deployed=1), "run", 0),
        (step("uninstall"), release("pending-upgrade", 2, deployed=1), "run", 0),
        (step("uninstall"), release(**OTHERS, deployed=1), "refuse", 0),
    ],
)
def test_each_state_has_one_next_thing_to_do(
    wanted: HelmStep, found: HelmRelease | None, do: str, revision: int
) -> None:
    turn = release_turn(wanted, found, "me")
    assert (turn.do, turn.revision) == (do, revision)
    assert bool(turn.message) is (do == "refuse")


@pytest.mark.parametrize(
    ("found", "do"),
    [
        (None, "done"),
        (release(deployed=1), "run"),
        (release("pending-install"), "run"),
        (release(**EARLIER, deployed=1), "done"),
        (release(**OTHERS, deployed=1), "done"),
    ],
)
def test_an_undo_removes_only_what_this_operation_made(found: HelmRelease | None, do: str) -> None:
    assert release_turn(step("uninstall"), found, "me", is_undo=True).do == do


def test_a_foreign_release_is_explained() -> None:
    found = release("pending-upgrade", **OTHERS, chart="fluid", chart_version="0.9.0")
    message = release_turn(step("upgrade"), found, "me").message
    assert "`fluid-system/fluid` (chart fluid 0.9.0) is of another program" in message
    assert "helm -n fluid-system rollback fluid" in message
