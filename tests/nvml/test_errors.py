"""Every NVML code that docs/spec/telemetry.md#sampling-and-fault-isolation names, in every call of
the driver's: is one card unhealthy, or all?
"""

from __future__ import annotations

import pytest
from tests.nvml.conftest import Seconds
from tests.nvml.stub import MIB, StubState, uuid

from fairlead.edge.nvml.driver import REOPEN_SECONDS, NvmlDriver
from fairlead.errors import OutsideError

UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, MISMATCH = 1, 9, 12, 18
NOT_SUPPORTED, NOT_FOUND, FUNCTION_NOT_FOUND, NO_DATA, NOT_READY = 3, 6, 13, 21, 27
LOST, RESET_REQUIRED = 15, 16
NO_PERMISSION, IRQ_ISSUE, UNKNOWN, UNNAMED = 4, 11, 999, 1234

GONE = [
    pytest.param(UNINITIALIZED, "Uninitialized", id="uninitialized"),
    pytest.param(DRIVER_NOT_LOADED, "Driver Not Loaded", id="driver not loaded"),
    pytest.param(LIBRARY_NOT_FOUND, "NVML Shared Library Not Found", id="library not found"),
    pytest.param(MISMATCH, "RM has detected an NVML/RM version mismatch.", id="version mismatch"),
]
ILL = [
    pytest.param(LOST, "GPU is lost", id="lost"),
    pytest.param(RESET_REQUIRED, "GPU requires restart", id="reset required"),
    pytest.param(NO_PERMISSION, "Insufficient Permissions", id="no permission"),
    pytest.param(IRQ_ISSUE, "Interrupt Request Issue", id="interrupt"),
    pytest.param(UNKNOWN, "Unknown Error", id="unknown"),
    pytest.param(UNNAMED, "a new kind of trouble", id="a code that the bindings do not name"),
]


@pytest.mark.parametrize(
    "silent", [NOT_SUPPORTED, NOT_FOUND, FUNCTION_NOT_FOUND, NO_DATA, NOT_READY]
)
@pytest.mark.parametrize("call", ["nvmlDeviceGetMemoryInfo", "nvmlDeviceGetTemperature"])
def test_a_card_that_reports_nothing_is_not_unhealthy(
    driver: NvmlDriver, state: StubState, call: str, silent: int
) -> None:
    state.fail(call, silent, 0)
    assert driver.probe(uuid(0)).fault == ""


@pytest.mark.parametrize(("code", "words"), ILL)
@pytest.mark.parametrize("call", ["nvmlDeviceGetMemoryInfo", "nvmlDeviceGetTemperature"])
def test_a_probe_reports_the_drivers_reason_for_a_failure(
    driver: NvmlDriver, state: StubState, call: str, code: int, words: str
) -> None:
    state.fail(call, code, 1)
    assert (driver.probe(uuid(0)).fault, driver.probe(uuid(1)).fault) == ("", words)
    state.fail(call, None, 1)
    assert driver.probe(uuid(1)).fault == ""


@pytest.mark.parametrize(("code", "words"), ILL)
@pytest.mark.parametrize("call", ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID"])
def test_a_card_without_handle_or_uuid_is_left_out(
    driver: NvmlDriver,
    state: StubState,
    caplog: pytest.LogCaptureFixture,
    call: str,
    code: int,
    words: str,
) -> None:
    state.say({"0.compute": f"1:{MIB}", "1.compute": f"2:{MIB}"})
    assert len(driver.cards()) == 2
    state.fail(call, code, 0)
    assert [card.uuid for card in driver.cards()] == [uuid(1)]
    assert driver.probe(uuid(0)).fault == "the driver does not show this GPU"
    assert [process.pid for process in driver.processes()] == [2]
    assert [record.message for record in caplog.records] == [f"GPU 0 is left out: {words}"]
    state.fail(call, None, 0)
    assert [card.uuid for card in driver.cards()] == [uuid(0), uuid(1)]


@pytest.mark.parametrize(("code", "words"), GONE)
@pytest.mark.parametrize(
    "call",
    [
        "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetName",
        "nvmlDeviceGetMinorNumber",
        "nvmlDeviceGetMemoryInfo_v2",
    ],
)
def test_a_driver_that_is_gone_is_reported_and_looked_for_again(
    driver: NvmlDriver, state: StubState, call: str, code: int, words: str
) -> None:
    before = driver.cards()
    state.fail(call, code)
    with pytest.raises(OutsideError) as raised:
        driver.cards()
    assert raised.value.what == f"NVIDIA's driver does not answer: {words}"
    assert (raised.value.system, bool(raised.value.hint)) == ("nvml", True)
    state.fail(call, None)
    assert driver.cards() == before
    assert _still_open(state) == (1, 1)


@pytest.mark.parametrize("call", ["nvmlEventSetCreate", "nvmlDeviceRegisterEvents"])
@pytest.mark.parametrize(("code", "words"), GONE)
def test_a_driver_that_goes_while_events_are_asked_for_is_gone(
    driver: NvmlDriver, state: StubState, call: str, code: int, words: str
) -> None:
    state.fail(call, code)
    with pytest.raises(OutsideError) as raised:
        driver.cards()
    assert raised.value.what == f"NVIDIA's driver does not answer: {words}"
    assert _still_open(state) == (0, 0)


@pytest.mark.parametrize(("code", "words"), GONE)
def test_every_call_reports_a_driver_that_is_gone(
    driver: NvmlDriver, state: StubState, code: int, words: str
) -> None:
    calls = (driver.cards, driver.processes, driver.means, lambda: driver.probe(uuid(0)))
    for call in calls:
        driver.cards()
        state.fail("nvmlDeviceGetCount_v2", code)
        with pytest.raises(OutsideError) as raised:
            call()
        assert raised.value.what == f"NVIDIA's driver does not answer: {words}"
        assert _still_open(state) == (0, 0)
        state.fail("nvmlDeviceGetCount_v2", None)
    assert driver.xids() == []
    assert _still_open(state) == (1, 1)


@pytest.mark.parametrize(("code", "words"), [*GONE, *ILL])
def test_a_driver_that_does_not_begin_leaves_nothing_behind(
    driver: NvmlDriver, state: StubState, code: int, words: str
) -> None:
    state.fail("nvmlInitWithFlags", code)
    for call in (
        driver.cards,
        driver.xids,
        driver.processes,
        driver.means,
        lambda: driver.probe(uuid(0)),
    ):
        with pytest.raises(OutsideError) as raised:
            call()
        assert raised.value.what == f"NVIDIA's driver does not answer: {words}"
    assert state.calls() == []
    state.fail("nvmlInitWithFlags", None)
    assert len(driver.cards()) == 2


@pytest.mark.parametrize(("code", "words"), [ILL[2], ILL[4]])
def test_processes_of_one_card_that_are_not_known_cost_only_these(
    driver: NvmlDriver, state: StubState, caplog: pytest.LogCaptureFixture, code: int, words: str
) -> None:
    state.say({"0.compute": f"1:{MIB}", "1.compute": f"2:{MIB}"})
    state.fail("nvmlDeviceGetGraphicsRunningProcesses_v3", code, 0)
    assert [process.pid for process in driver.processes()] == [2]
    assert [record.message for record in caplog.records] == [
        f"processes of GPU {uuid(0)} are not known: {words}"
    ]
    state.fail("nvmlDeviceGetGraphicsRunningProcesses_v3", code, 1)
    with pytest.raises(OutsideError) as raised:
        driver.processes()
    assert raised.value.what == f"NVIDIA's driver does not answer: {words}"


@pytest.mark.parametrize("code", [LOST, RESET_REQUIRED])
def test_lost_cards_have_no_users(driver: NvmlDriver, state: StubState, code: int) -> None:
    state.fail("nvmlDeviceGetComputeRunningProcesses_v3", code)
    assert driver.processes() == []


def test_versions_that_the_driver_may_not_return_are_an_error(
    driver: NvmlDriver, state: StubState
) -> None:
    state.fail("nvmlSystemGetDriverVersion", UNKNOWN)
    with pytest.raises(OutsideError, match="Unknown Error"):
        driver.means()
    assert _still_open(state) == (1, 1)


@pytest.mark.parametrize(
    "call",
    ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetTemperature", "nvmlDeviceGetMemoryInfo_v2"],
)
def test_while_a_card_is_unhealthy_nvml_is_begun_anew_now_and_then(
    driver: NvmlDriver, state: StubState, clock: Seconds, call: str
) -> None:
    driver.cards()
    state.fail(call, LOST, 0)
    driver.cards()
    driver.probe(uuid(0))
    clock.now += REOPEN_SECONDS - 1
    driver.cards()
    assert state.calls().count("init") == 1
    clock.now += 1
    driver.cards()
    assert state.calls().count("init") == 2
    state.fail(call, None, 0)
    clock.now += REOPEN_SECONDS
    driver.cards()
    clock.now += 10 * REOPEN_SECONDS
    driver.cards()
    assert state.calls().count("init") == (3 if call != "nvmlDeviceGetTemperature" else 2)


def _still_open(state: StubState) -> tuple[int, int]:
    """How often NVML was begun and not ended, and the event sets that were not freed. None was
    freed while a call waited on it.
    """
    calls = state.calls()
    assert not any("waits" in call for call in calls)
    return calls.count("init") - calls.count("shutdown"), calls.count("set") - calls.count("free")
