"""Operations of a console on a real control plane."""

from __future__ import annotations

from typing import Any

from tests.kube.console_line import Administrator
from tests.kube.servers import Server
from tests.waiting import wait_until


def ready_component(own: Administrator, server: Server, id: str) -> None:
    """Lists are at most a few seconds older than operations."""
    path = f"/components/{id}"
    wait_until(
        f"{id} is ready",
        lambda: own.send(server, "GET", path)[1]["row"]["state"] == "Ready",
    )


def finished(own: Administrator, server: Server, id: str) -> None:
    wait_until("the operation has ended", lambda: own.state(server, id) != "Running")
    _, found = own.send(server, "GET", f"/operations/{id}")
    assert found["row"]["state"] == "Succeeded", found["row"]["message"]


def carried_out(own: Administrator, server: Server, order: dict[str, str]) -> Any:
    """The plan, after its operation has succeeded."""
    status, plan = own.send(server, "POST", "/plans", order)
    assert status == 201, plan
    status, begun = own.send(server, "POST", "/operations", {"planId": plan["planId"]})
    assert status == 202, begun
    finished(own, server, plan["planId"])
    return plan
