"""The API server's time: this machine's while it may be right, else the nearest possible."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from tests.edge.scripted import Reply, ScriptedServer
from tests.edge.twins import connection_to

from fairlead.edge.connection.server_clock import ServerClock
from fairlead.edge.kube.kube_api import KubeApi


class Machine:
    """A machine whose clock is `wrong_by` seconds ahead of the server's."""

    def __init__(self, wrong_by: float) -> None:
        self.true = 1_767_600_000.25
        self.wrong_by = wrong_by
        self.clock = ServerClock(lambda: self.true + self.wrong_by, lambda: self.true - 1e9)

    def answer(self, *, took: float = 0.01, server: float = 0.0) -> None:
        """`server`: how far the server's own clock is from the true time."""
        sent_at = self.true - 1e9
        self.true += took
        self.clock.observe(formatdate(int(self.true + server), usegmt=True), sent_at)

    @property
    def error(self) -> float:
        return self.clock.now() - self.true


@pytest.mark.parametrize("wrong_by", [3600.0, -3600.0, 86400.0, 2.5])
def test_a_clock_that_is_wrong_is_corrected_by_one_answer_and_exactly_by_several(
    wrong_by: float,
) -> None:
    machine = Machine(wrong_by)
    assert machine.error == pytest.approx(wrong_by)
    machine.answer()
    assert abs(machine.error) <= 1.01
    for _ in range(20):
        machine.true += 1.07
        machine.answer()
    assert abs(machine.error) < 0.2


def test_a_clock_that_may_be_right_is_not_touched() -> None:
    machine = Machine(0.0)
    for _ in range(50):
        machine.true += 1.13
        machine.answer()
        assert machine.error == pytest.approx(0.0, abs=1e-6)


def test_a_clock_that_is_set_while_the_process_runs_does_not_matter() -> None:
    machine = Machine(0.0)
    machine.answer()
    for machine.wrong_by in (3600.0, -3600.0):
        assert abs(machine.error) <= 1.01


def test_a_slow_answer_takes_nothing_back() -> None:
    machine = Machine(3600.0)
    machine.answer()
    known = machine.error
    machine.true += 5
    machine.answer(took=30.0)
    assert abs(machine.error) <= max(abs(known), 1.01)


def test_the_clock_follows_a_server_that_is_set() -> None:
    machine = Machine(0.0)
    machine.answer()
    machine.true += 5
    machine.answer(server=600.0)
    assert machine.error == pytest.approx(600.0, abs=1.01)


@pytest.mark.parametrize("date", [None, "", "soon", "Thu, 99 Jan 2026 00:00:00 GMT"])
def test_an_answer_without_a_date_changes_nothing(date: str | None) -> None:
    machine = Machine(3600.0)
    machine.clock.observe(date, 0.0)
    assert machine.error == pytest.approx(3600.0)


async def test_every_answer_of_the_api_server_is_observed() -> None:
    reply = Reply({"major": "1"}, headers={"Date": "Thu, 01 Jan 2026 00:00:00 GMT"})
    with ScriptedServer({"/version": [reply]}) as server:
        async with KubeApi(connection_to(server.url)) as api:
            await api.version()
            assert api.clock.now() == pytest.approx(1_767_225_600, abs=2)
