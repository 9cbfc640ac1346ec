"""XIDs as the driver's thread receives them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.nvml.conftest import Seconds
from tests.nvml.stub import StubState, uuid
from tests.waiting import wait_until

from fairlead.edge.nvml import xid_events
from fairlead.edge.nvml.cards import shown_card
from fairlead.edge.nvml.driver import NvmlDriver
from fairlead.edge.nvml.library import close_library, open_library
from fairlead.errors import OutsideError
from fairlead.model.devices.driver import DriverXid

NOT_SUPPORTED, FUNCTION_NOT_FOUND, UNINITIALIZED, LOST, UNKNOWN = 3, 13, 1, 15, 999


def test_xids_come_once_in_order_each_with_its_card(driver: NvmlDriver, state: StubState) -> None:
    assert driver.xids() == []
    for xid, card in ((31, 0), (79, 1), (48, 0)):
        state.report_xid(xid, card)
    assert _received(driver, 3) == [
        DriverXid(31, uuid(0)),
        DriverXid(79, uuid(1)),
        DriverXid(48, uuid(0)),
    ]
    assert driver.xids() == []


def test_an_event_without_a_card_is_of_none(driver: NvmlDriver, state: StubState) -> None:
    driver.cards()
    state.report_xid(62)
    assert _received(driver, 1) == [DriverXid(62, None)]


def test_asking_does_not_wait(driver: NvmlDriver) -> None:
    driver.cards()
    took = []
    for _ in range(5):  # a busy machine has quick moments, too
        began = time.monotonic()
        assert driver.xids() == []
        took.append(time.monotonic() - began)
    assert min(took) < 0.1, took


def test_a_card_that_fell_off_the_bus_is_still_named(driver: NvmlDriver, state: StubState) -> None:
    driver.cards()
    state.fail("nvmlDeviceGetUUID", LOST, 1)
    state.report_xid(79, 1)
    assert _received(driver, 1) == [DriverXid(79, uuid(1))]


def test_a_card_too_old_for_events_is_left_in_peace(
    driver: NvmlDriver, state: StubState, caplog: pytest.LogCaptureFixture
) -> None:
    state.fail("nvmlDeviceRegisterEvents", NOT_SUPPORTED, 0)
    driver.cards()
    driver.cards()
    state.report_xid(48, 0)
    state.report_xid(79, 1)
    assert _received(driver, 1) == [DriverXid(79, uuid(1))]
    assert state.calls().count("set") == 1
    assert caplog.records == []


def test_only_cards_too_old_for_events(driver: NvmlDriver, state: StubState) -> None:
    state.fail("nvmlDeviceRegisterEvents", NOT_SUPPORTED)
    assert (len(driver.cards()), driver.xids(), driver.probe(uuid(0)).fault) == (2, [], "")


@pytest.mark.parametrize("code", [NOT_SUPPORTED, FUNCTION_NOT_FOUND, UNKNOWN])
def test_a_driver_without_events_has_cards_all_the_same(
    driver: NvmlDriver, state: StubState, code: int
) -> None:
    state.fail("nvmlEventSetCreate", code)
    assert (len(driver.cards()), driver.xids(), driver.probe(uuid(0)).fault) == (2, [], "")
    state.fail("nvmlEventSetCreate", None)
    state.say({"count": 1})
    driver.cards()
    state.report_xid(79, 0)
    assert _received(driver, 1) == [DriverXid(79, uuid(0))]


def test_a_card_that_cannot_be_registered_is_tried_again(
    driver: NvmlDriver, state: StubState, caplog: pytest.LogCaptureFixture
) -> None:
    state.fail("nvmlDeviceRegisterEvents", UNKNOWN, 0)
    driver.cards()
    driver.cards()
    tried = state.calls().count("set")
    driver.processes()
    driver.means()
    assert [record.message for record in caplog.records] == [
        f"XIDs of GPU {uuid(0)} are not received: Unknown Error"
    ]
    assert state.calls().count("set") == tried, "not at every call"
    state.fail("nvmlDeviceRegisterEvents", None, 0)
    driver.cards()
    state.report_xid(48, 0)
    assert _received(driver, 1) == [DriverXid(48, uuid(0))]


def test_a_card_that_comes_back_is_noticed(driver: NvmlDriver, state: StubState) -> None:
    state.fail("nvmlDeviceGetHandleByIndex_v2", LOST, 1)
    driver.cards()
    state.fail("nvmlDeviceGetHandleByIndex_v2", None, 1)
    driver.cards()
    state.report_xid(79, 1)
    assert _received(driver, 1) == [DriverXid(79, uuid(1))]


@pytest.mark.parametrize("code", [LOST, UNKNOWN])
def test_waiting_that_fails_is_begun_anew(driver: NvmlDriver, state: StubState, code: int) -> None:
    driver.cards()
    state.fail("nvmlEventSetWait_v2", code)
    wait_until(
        "a new event set",
        lambda: driver.xids() == [] and state.calls().count("set") > 2,
        10.0,
        0.02,
    )
    state.fail("nvmlEventSetWait_v2", None)
    seen: list[DriverXid] = []

    def is_received() -> bool:
        state.report_xid(48, 0)
        seen.extend(driver.xids())
        return bool(seen)

    wait_until("an XID", is_received, 10.0, 0.05)
    assert set(seen) == {DriverXid(48, uuid(0))}
    assert state.calls().count("init") == 1


def test_what_was_received_is_reported_before_the_driver_is_gone(
    driver: NvmlDriver, state: StubState
) -> None:
    driver.cards()
    state.report_xid(79, 0)
    wait_until("the XID", lambda: "heard" in state.calls(), 10.0, 0.02)
    state.fail("nvmlEventSetWait_v2", UNINITIALIZED)
    state.fail("nvmlInitWithFlags", UNINITIALIZED)
    wait_until("the thread ends", lambda: "xid-events" not in _threads(), 10.0, 0.02)
    assert driver.xids() == [DriverXid(79, uuid(0))]

    wait_until("the driver is gone", lambda: _is_refused(driver.xids), 10.0, 0.05)
    state.fail("nvmlEventSetWait_v2", None)
    state.fail("nvmlInitWithFlags", None)
    assert driver.xids() == []
    state.report_xid(48, 1)
    assert _received(driver, 1) == [DriverXid(48, uuid(1))]


def test_a_call_that_does_not_come_back_is_reported_until_it_does(
    driver: NvmlDriver, state: StubState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xid_events, "END_SECONDS", 0.05)
    driver.cards()
    state.say({"hang": 1, "longest-wait": 1000})
    wait_until("it hangs", lambda: _is_refused(driver.close), 10.0, 0.02)
    assert _is_refused(driver.cards)
    state.say({"hang": None, "longest-wait": None})
    wait_until("it is back", lambda: not _is_refused(driver.cards), 10.0, 0.02)
    state.report_xid(79, 0)
    assert _received(driver, 1) == [DriverXid(79, uuid(0))]
    assert not any("waits" in call for call in state.calls())


def test_closing_ends_thread_set_and_library(driver: NvmlDriver, state: StubState) -> None:
    driver.cards()
    assert "xid-events" in _threads()
    driver.close()
    assert "xid-events" not in _threads()
    assert state.calls() == ["init", "set", "register", "register", "free", "shutdown"]
    driver.close()


def test_a_hundred_lives_leave_no_thread_and_no_file(driver: NvmlDriver, state: StubState) -> None:
    driver.cards()
    driver.close()
    before = _files(), _maps()
    state.fail("nvmlEventSetWait_v2", LOST)
    for _ in range(100):
        driver.cards()
        driver.close()
    assert (_files(), _maps()) == before
    assert state.calls().count("init") == state.calls().count("shutdown") == 101


def _is_refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except OutsideError:
        return True
    return False


def _maps() -> int:
    return sum(
        "libnvidia-ml" in line
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    )


def _files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def _received(driver: NvmlDriver, count: int) -> list[DriverXid]:
    seen: list[DriverXid] = []

    def is_all() -> bool:
        seen.extend(driver.xids())
        return len(seen) >= count

    wait_until(lambda: f"{count} XIDs, only {seen}", is_all, 10.0, 0.02)
    return seen


def test_a_change_of_instances_is_reported_once_for_each_card(
    state: StubState, library: Path
) -> None:
    state.say({"0.event-types": 0x10A, "1.event-types": 0x108})
    open_library(str(library))
    events = xid_events.XidEvents()
    try:
        events.watch([shown_card(0), shown_card(1)])
        state.report_change(1)
        state.report_xid(48, 0)
        state.report_change(1)
        state.report_change(0)
        wait_until("all are received", lambda: state.calls().count("heard") == 4, 10.0, 0.02)
        divided: list[str | None] = []
        wait_until(
            "they are reported",
            lambda: divided.extend(events.drain_divided()) or set(divided) == {uuid(0), uuid(1)},
            10.0,
            0.02,
        )
        assert events.drain() == [DriverXid(48, uuid(0))]
        assert events.drain_divided() == []
    finally:
        events.end()
        close_library()


def test_a_card_without_events_is_not_registered(
    driver: NvmlDriver, state: StubState, caplog: pytest.LogCaptureFixture
) -> None:
    state.say({"0.event-types": 0, "1.event-types": 0x4})
    driver.cards()
    assert "register" not in state.calls()
    assert caplog.records == []


def test_an_xid_has_the_time_of_its_event_and_not_of_the_query(
    state: StubState, library: Path, clock: Seconds
) -> None:
    """Otherwise the kernel's record of it, which has its own time, would count as another XID."""
    open_library(str(library))
    events = xid_events.XidEvents(clock)
    try:
        events.watch([shown_card(0)])
        clock.now = 5.0
        state.report_xid(79, 0)
        state.report_xid(94, 0, gpu_instance=3)
        wait_until("both are received", lambda: state.calls().count("heard") == 2, 10.0, 0.02)
        clock.now = 60.0
        found: list[xid_events.TimedXid] = []
        wait_until(
            "they are reported",
            lambda: found.extend(events.drain_timed()) or len(found) == 2,
            10.0,
            0.02,
        )
        assert [(each.xid, each.gpu_instance) for each in found] == [(79, None), (94, 3)]
        assert found[0].at == 5.0
    finally:
        events.end()
        close_library()


def test_a_card_is_registered_for_what_it_has_of_what_is_wanted(
    state: StubState, library: Path
) -> None:
    """docs/spec/telemetry.md#xid-errors; the stub refuses a type that the card does not support."""
    state.say({"0.event-types": 0x10F, "1.event-types": 0xA})
    open_library(str(library))
    events = xid_events.XidEvents()
    try:
        events.watch([shown_card(0), shown_card(1)])
        assert (state.calls().count("register"), events.deaf) == (2, {})
        assert xid_events.WANTED == 0x8 | 0x2 | 0x100
    finally:
        events.end()
        close_library()


def test_a_driver_that_does_not_state_which_events_it_has_reports_xids(
    driver: NvmlDriver, state: StubState
) -> None:
    state.fail("nvmlDeviceGetSupportedEventTypes", FUNCTION_NOT_FOUND)
    driver.cards()
    state.report_xid(79, 0)
    assert _received(driver, 1) == [DriverXid(79, uuid(0))]
