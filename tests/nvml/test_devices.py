"""The exporter's devices on NVML: a thread per card, so that a card that hangs, is lost or fails
costs no other card a value.

The library is the stub. A script decides what a card returns, so that it can hang and fail at any
time.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest
from tests.apps.fakes import FixedClock
from tests.nvml.stub import StubState, uuid
from tests.waiting import HANG_SECONDS, until

from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.edge.nvml.cards import ShownCard
from fairlead.edge.nvml.devices import NvmlDevices
from fairlead.edge.nvml.kernel_log import KernelLog
from fairlead.edge.nvml.known_card import NvmlBeat
from fairlead.errors import OutsideError
from fairlead.model.devices.device import CollectorRun, DeviceSample, DeviceSnapshot
from fairlead.model.devices.readings import GpuProcess, GroupReading, InstanceReading
from fairlead.model.devices.xid import XidReport
from fairlead.rules.devices.xid_reports import joined_reports
from fairlead.rules.metrics.exporter import ExporterState, exporter_families
from fairlead.rules.metrics.gpu import gpu_families
from fairlead.wire.metrics.prom_text import parse_page

UTIL, REPLAYS, BRAND, XID = (
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_BRAND",
    "DCGM_FI_DEV_XID_ERRORS",
)
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
LOST, GONE, UNKNOWN = pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_DRIVER_NOT_LOADED, 999
BEAT = NvmlBeat(interval=0.05, slow_interval=60.0, call_timeout=0.1)


class Script:
    """What the cards return, by index; created again for each session of the driver."""

    def __init__(self) -> None:
        self.hanging: dict[int, threading.Event] = {}
        self.failing: dict[int, BaseException] = {}
        self.readings: dict[int, GroupReading] = {}
        self.asked: list[tuple[str, int]] = []

    def make(self, card: ShownCard) -> Asker:
        self.asked.append(("made", card.index))
        return Asker(self, card.index)

    def hang(self, index: int) -> threading.Event:
        return self.hanging.setdefault(index, threading.Event())


class Asker:
    wanted = frozenset[str]()

    def __init__(self, script: Script, index: int) -> None:
        self._script = script
        self._index = index

    def fast(self) -> GroupReading:
        self._script.asked.append(("fast", self._index))
        if (released := self._script.hanging.get(self._index)) is not None:
            released.wait(HANG_SECONDS)
        if (failure := self._script.failing.get(self._index)) is not None:
            raise failure
        return self._script.readings.get(self._index, GroupReading({UTIL: 10 + self._index}))

    def slow(self) -> GroupReading:
        self._script.asked.append(("slow", self._index))
        return GroupReading({REPLAYS: 3})

    def close(self) -> None:
        self._script.asked.append(("closed", self._index))

    def forget(self) -> None:
        self._script.asked.append(("forget", self._index))

    def static(self) -> GroupReading:
        self._script.asked.append(("static", self._index))
        return GroupReading({}, {BRAND: "NVIDIA", "DCGM_FI_DRIVER_VERSION": "615.1"})


class Exported:
    """The devices with eight cards, which run on this test's loop."""

    def __init__(
        self, library: Path, script: Script, log: KernelLog | None = None, beat: NvmlBeat = BEAT
    ) -> None:
        self.script = script
        self.wall = 1000.0
        self.devices = NvmlDevices(
            "n1", script.make, beat, str(library), log, joined_reports, wall=lambda: self.wall
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self.devices.run(lambda: None))

    async def stop(self) -> float:
        """Stop them; returns the seconds that it took."""
        assert self._task is not None
        began = time.monotonic()
        self._task.cancel()
        await asyncio.wait([self._task], timeout=HANG_SECONDS)
        return time.monotonic() - began

    @property
    def now(self) -> DeviceSnapshot:
        return self.devices.latest()

    def card(self, index: int) -> DeviceSample:
        (found,) = [card for card in self.now.devices if card.index == index]
        return found

    async def until(self, holds: Callable[[], bool]) -> None:
        async def does() -> bool:
            return holds()

        await until(does)

    async def turns(self, count: int = 3) -> None:
        """Let this number of whole turns pass."""
        wanted = self.now.number + count + 1
        await self.until(lambda: self.now.number >= wanted)


@pytest.fixture
def script() -> Iterator[Script]:
    made = Script()
    yield made
    for released in made.hanging.values():
        released.set()


@pytest.fixture
async def exported(library: Path, state: StubState, script: Script) -> Iterator[Exported]:
    state.show_cards(8)
    state.say({f"{card}.event-types": 0x108 for card in range(8)})
    made = Exported(library, script)
    await made.start()
    await made.until(
        lambda: len(made.now.devices) == 8 and all(card.up for card in made.now.devices)
    )
    yield made
    for released in script.hanging.values():
        released.set()
    await made.until(lambda: not threads("gpu-GPU") or made.now.stuck_calls == 0)
    await made.stop()


def runs(card: DeviceSample) -> dict[str, CollectorRun]:
    assert {run.gpu for run in card.collectors} == {str(card.index)}
    return {run.collector: run for run in card.collectors}


def threads(prefix: str) -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith(prefix)]


async def test_what_a_card_is_and_reports(exported: Exported) -> None:
    card = exported.card(3)
    assert runs(card).keys() == {"device", "fieldvalues", "gpm", "processes"}, (
        "from the start: an alert on it must be able to fire"
    )
    assert (card.node, card.index, card.minor, card.uuid, card.model) == (
        "n1",
        3,
        3,
        uuid(3),
        "Tesla T4",
    )
    assert (card.fields, card.texts[BRAND], card.driver_version, card.healthy) == (
        {XID: 0, UTIL: 13},
        "NVIDIA",
        "615.1",
        None,
    )
    assert {name: value for group in card.slower for name, value in group.fields.items()} == {
        REPLAYS: 3
    }
    assert (exported.now.is_driver_up, exported.now.stuck_calls) == (True, 0)


async def test_while_one_card_hangs_the_other_seven_are_new_every_turn(exported: Exported) -> None:
    released = exported.script.hang(2)
    await exported.until(lambda: exported.now.stuck_calls == 1)
    held = exported.card(2)
    assert (held.up, held.uuid, held.fields[UTIL]) == (False, uuid(2), 12)
    before = {card.index: card.sampled_at for card in exported.now.devices}
    asked = exported.script.asked.count(("fast", 2))
    await exported.turns(5)
    after = {card.index: card.sampled_at for card in exported.now.devices}
    assert [index for index in before if after[index] > before[index]] == [0, 1, 3, 4, 5, 6, 7]
    assert exported.script.asked.count(("fast", 2)) == asked, (
        "nothing more is asked of a card that hangs"
    )
    run = runs(exported.card(2))["device"]
    assert (run.is_good, run.errors) == (False, {"timeout": 1})
    assert len(threads("gpu-") + threads("xid-events")) <= 8 + 2
    del exported.script.hanging[2]
    released.set()
    await exported.until(lambda: exported.card(2).up and exported.now.stuck_calls == 0)
    assert runs(exported.card(2))["device"].is_good


async def test_it_ends_within_five_seconds_although_a_call_hangs(
    library: Path, state: StubState, script: Script
) -> None:
    state.show_cards(2)
    made = Exported(library, script)
    released = script.hang(0)
    await made.start()
    await made.until(lambda: made.now.stuck_calls == 1)
    try:
        assert await made.stop() < 5
    finally:
        released.set()
        await made.until(lambda: not threads("gpu-"))
        if pynvml.nvmlLib is not None:
            from fairlead.edge.nvml.library import close_library

            close_library()


async def test_a_lost_card_is_down_without_values_and_comes_back(exported: Exported) -> None:
    fields = {UTIL: 5, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x40}
    exported.script.readings[5] = GroupReading(fields, processes=(GpuProcess(7, "C", 1, 1.0),))
    await exported.until(lambda: exported.card(5).throttle_reasons == 0x40)
    exported.script.failing[5] = pynvml.NVMLError(LOST)
    await exported.until(lambda: not exported.card(5).up)
    assert (
        exported.card(5).fields == {}
        and exported.card(5).uuid == uuid(5)
        and exported.card(5).seen is None
    )
    assert (exported.card(5).throttle_reasons, exported.card(5).power_limit_watts) == (None, None)
    assert sum(card.up for card in exported.now.devices) == 7 and exported.now.is_driver_up
    run = runs(exported.card(5))["device"]
    assert not run.is_good and list(run.errors) == ["gpu_is_lost"]
    del exported.script.failing[5]
    await exported.until(lambda: exported.card(5).up and UTIL in exported.card(5).fields)


async def test_a_lost_card_that_answers_again_was_reset_and_a_busy_one_was_not(
    exported: Exported,
) -> None:
    assert exported.card(5).reset_at is None
    exported.script.failing[5] = pynvml.NVMLError(UNKNOWN)
    await exported.until(lambda: exported.card(5).collectors[0].errors != {})
    del exported.script.failing[5]
    await exported.until(lambda: exported.card(5).collectors[0].is_good)
    assert exported.card(5).reset_at is None
    exported.script.failing[5] = pynvml.NVMLError(pynvml.NVML_ERROR_RESET_REQUIRED)
    await exported.until(lambda: not exported.card(5).up)
    assert exported.card(5).reset_at is None, "it waits for it"
    del exported.script.failing[5]
    await exported.until(lambda: exported.card(5).up)
    assert exported.card(5).reset_at == 1000.0


async def test_an_energy_counter_that_begins_anew_reports_a_reset(exported: Exported) -> None:
    for joules, reset_at in ((500, None), (600, None), (3, 1000.0)):
        exported.script.readings[5] = GroupReading({ENERGY: joules})
        await exported.until(lambda joules=joules: exported.card(5).fields.get(ENERGY) == joules)
        assert exported.card(5).reset_at == reset_at


async def test_a_card_that_was_lost_for_a_moment_and_counts_on_was_not_reset(
    exported: Exported,
) -> None:
    exported.script.readings[5] = GroupReading({ENERGY: 600})
    await exported.until(lambda: exported.card(5).fields.get(ENERGY) == 600)
    for joules, reset_at in ((601, None), (3, 1000.0)):
        exported.script.failing[5] = pynvml.NVMLError(LOST)
        await exported.until(lambda: not exported.card(5).up)
        exported.script.readings[5] = GroupReading({ENERGY: joules})
        del exported.script.failing[5]
        await exported.until(lambda joules=joules: exported.card(5).fields.get(ENERGY) == joules)
        assert exported.card(5).reset_at == reset_at


async def test_one_collector_that_fails_costs_its_own_fields_only(exported: Exported) -> None:
    exported.script.readings[1] = GroupReading({UTIL: 77}, failures={"gpm": "Unknown Error"})
    await exported.until(lambda: exported.card(1).fields.get(UTIL) == 77)
    reported = runs(exported.card(1))
    assert [name for name in reported if not reported[name].is_good] == ["gpm"] and list(
        reported["gpm"].errors
    ) == ["unknown_error"]
    exported.script.readings[1] = GroupReading({UTIL: 78})
    await exported.until(lambda: exported.card(1).fields.get(UTIL) == 78)
    assert all(run.is_good for run in runs(exported.card(1)).values())


async def test_a_fault_of_fairlead_is_logged_once_with_its_trace(
    exported: Exported, caplog: pytest.LogCaptureFixture
) -> None:
    exported.script.failing[4] = ZeroDivisionError("a bug")
    await exported.until(
        lambda: exported.card(4).collectors[0].errors.get("zerodivisionerror", 0) >= 3
    )
    traced = [record for record in caplog.records if record.exc_info]
    assert [record.message for record in traced] == ["GPU 4 cannot be asked: a fault of Fairlead"]
    assert exported.now.is_driver_up and sum(card.up for card in exported.now.devices) == 8, (
        "its values are not stale yet"
    )


async def test_what_changes_slowly_is_asked_seldom_and_what_never_does_once(
    exported: Exported,
) -> None:
    await exported.turns(4)
    counts = {
        group: exported.script.asked.count((group, 0))
        for group in ("made", "static", "slow", "fast")
    }
    assert counts["fast"] >= 4 and (counts["made"], counts["static"], counts["slow"]) == (1, 1, 1)


async def test_a_driver_that_goes_away_is_begun_anew_with_new_handles(exported: Exported) -> None:
    exported.script.failing[0] = pynvml.NVMLError(GONE)
    await exported.until(lambda: not exported.now.is_driver_up)
    assert not any(card.up for card in exported.now.devices) and len(exported.now.devices) == 8
    assert exported.card(1).fields[UTIL] == 11, "stale values are another's to drop"
    del exported.script.failing[0]
    await exported.until(
        lambda: exported.now.is_driver_up and all(card.up for card in exported.now.devices)
    )
    assert exported.script.asked.count(("made", 3)) == 2
    assert exported.card(1).reset_at == 1000.0, "a driver that was taken out has reset its cards"


async def test_without_a_driver_it_starts_and_finds_one_that_comes(
    library: Path, state: StubState, script: Script, tmp_path: Path
) -> None:
    later = tmp_path / "later.so"
    made = Exported(later, script)
    await made.start()
    try:
        await made.until(lambda: "cannot be loaded" in made.now.driver_error)
        assert (made.now.is_driver_up, made.now.devices) == (False, ())
        shutil.copy(library, later)
        await made.until(lambda: made.now.is_driver_up and len(made.now.devices) == 2)
    finally:
        await made.stop()


async def test_of_two_cards_of_one_uuid_the_second_is_ignored_and_reported(
    library: Path, state: StubState, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    state.say({"1.uuid": uuid(0)})
    made = Exported(library, script)
    await made.start()
    try:
        await made.until(lambda: len(made.now.devices) == 2 and made.card(0).up)
        await made.turns(3)
        assert made.card(0).fields[UTIL] == 10
        second = made.card(1)
        assert (second.uuid, second.up, second.fields, second.collectors[0].is_good) == (
            "",
            False,
            {},
            False,
        )
        assert second.collectors[0].errors["same_uuid_as_gpu_0"] >= 2
        assert caplog.messages.count("GPU 1 cannot be read: same UUID as GPU 0") == 1
        state.say({"1.uuid": uuid(1)})
        await made.until(lambda: made.card(1).up and made.card(1).uuid == uuid(1))
    finally:
        await made.stop()


async def test_a_card_that_is_taken_out_goes_and_one_that_cannot_be_read_keeps_its_name(
    exported: Exported, state: StubState
) -> None:
    state.fail("nvmlDeviceGetHandleByIndex_v2", LOST, 3)
    await exported.until(lambda: not exported.card(3).up)
    assert (exported.card(3).uuid, exported.card(3).fields, len(exported.now.devices)) == (
        uuid(3),
        {},
        8,
    )
    state.fail("nvmlDeviceGetHandleByIndex_v2", None, 3)
    await exported.until(lambda: exported.card(3).up)
    state.say({"count": 6})
    await exported.until(
        lambda: [card.index for card in exported.now.devices] == [0, 1, 2, 3, 4, 5]
    )
    await exported.until(lambda: len(threads("gpu-GPU")) == 6)


async def test_a_cycle_is_the_time_it_takes_to_ask_the_cards(exported: Exported) -> None:
    await exported.turns()
    (cycle,) = [
        each
        for each in exporter_families(ExporterState("n1", "1", "nvml"), exported.now, 0.0)
        if each.name.endswith("cycle_duration_seconds")
    ]
    assert cycle.values == [exported.now.cycle_seconds] and (exported.now.cycle_seconds or 0) > 0


async def test_what_has_not_run_yet_has_not_succeeded(script: Script, tmp_path: Path) -> None:
    """Without a library no thread waits for events."""
    made = Exported(tmp_path / "no-such-library.so", script)
    await made.start()
    try:
        await made.until(lambda: made.now.number > 0)
        (events,) = made.now.collectors
        assert (events.is_good, events.succeeded_at) == (None, None)
        (success,) = [
            each
            for each in exporter_families(ExporterState("n1", "1", "nvml"), made.now, 0.0)
            if each.name.endswith("collector_success")
        ]
        assert success.values == [None], "unknown is absent"
    finally:
        await made.stop()


async def test_xids_are_counted_with_the_time_of_their_events(
    exported: Exported, state: StubState
) -> None:
    for _ in range(2):
        state.report_xid(63, 1)
    state.report_xid(79, 1)
    await exported.until(lambda: [event.count for event in exported.card(1).xids] == [2, 1])
    assert [event.xid for event in exported.card(1).xids] == [63, 79]
    assert all(event.last_at == pytest.approx(1000.0, abs=60) for event in exported.card(1).xids)
    assert exported.card(1).fields[XID] == 79 and exported.card(0).xids == ()


async def test_cards_without_a_bus_address_have_their_own_xids(
    library: Path, state: StubState, script: Script
) -> None:
    """Virtual cards do not report their place."""
    state.fail("nvmlDeviceGetPciInfo_v3", pynvml.NVML_ERROR_NOT_SUPPORTED)
    made = Exported(library, script)
    await made.start()
    try:
        await made.until(lambda: len(made.now.devices) == 2)
        state.report_xid(79, 0)
        await made.until(lambda: bool(made.card(0).xids))
        assert made.card(1).xids == ()
    finally:
        await made.stop()


class Records(KernelLog):
    """A kernel's log with the records that a test wrote into it."""

    def __init__(self) -> None:
        self.records: list[XidReport] = []
        self.failure: OutsideError | None = None

    def drain(self) -> list[XidReport]:
        if self.failure is not None:
            raise self.failure
        reported, self.records = self.records, []
        return reported


async def test_xids_without_a_listener_stand_in_the_kernels_log_and_count_once(
    library: Path, state: StubState, script: Script
) -> None:
    log = Records()
    log.records = [XidReport("0000:08:00", 79, time.monotonic() - 500)]
    made = Exported(library, script, log)
    await made.start()
    try:
        await made.until(lambda: len(made.now.devices) == 2 and bool(made.card(1).xids))
        (event,) = made.card(1).xids
        assert (event.xid, event.count) == (79, 1) and event.last_at == pytest.approx(500.0, abs=60)
        state.report_xid(63, 1)
        await made.until(lambda: len(made.card(1).xids) == 2)
        received_at = time.monotonic()
        log.records = [XidReport("0000:08:00", 79, received_at - 700)]
        await made.until(lambda: made.card(1).xids[1].count == 2)
        assert made.card(1).xids[1].last_at == event.last_at, (
            "an older event does not set its time back"
        )
        made.wall += 3600
        log.records = [XidReport("0000:08:00", 63, received_at)]
        await made.turns()
        again = made.card(1).xids[0]
        assert (again.xid, again.count, again.last_at) == (63, 1, pytest.approx(1000.0, abs=60)), (
            "a clock that is set makes no second one"
        )
        assert made.card(1).fields[XID] == 63, "the last is the last to happen"
        assert {run.collector: run.is_good for run in made.now.collectors} == {
            "events": True,
            "kmsg": True,
        }
        log.failure = OutsideError("kmsg", "`/dev/kmsg` cannot be read")
        await made.until(
            lambda: (
                {run.collector: run.is_good for run in made.now.collectors}
                == {"events": True, "kmsg": False}
            )
        )
        assert made.card(1).up, "it costs nothing else"
    finally:
        await made.stop()


async def test_equal_xids_within_two_seconds_each_count_where_the_kernels_log_is_off(
    exported: Exported, state: StubState
) -> None:
    """`--kmsg off`: events of one source are never merged."""
    for _ in range(3):
        state.report_xid(94, 1)
    await exported.until(
        lambda: [(event.xid, event.count) for event in exported.card(1).xids] == [(94, 3)]
    )


async def test_a_record_of_the_kernel_is_the_pair_of_one_event_only(
    library: Path, state: StubState, script: Script
) -> None:
    """The first two records belong to the two events. The third had no event, and the fourth
    belongs to another look.
    """
    log = Records()
    made = Exported(library, script, log)
    await made.start()
    try:
        await made.until(lambda: len(made.now.devices) == 2)
        for _ in range(2):
            state.report_xid(94, 1)
        await made.until(lambda: [event.count for event in made.card(1).xids] == [2])
        received_at = time.monotonic()
        log.records = [XidReport("0000:08:00", 94, received_at) for _ in range(3)]
        await made.until(lambda: [event.count for event in made.card(1).xids] == [3])
        log.records = [XidReport("0000:08:00", 94, received_at)]
        await made.until(lambda: [event.count for event in made.card(1).xids] == [4])
    finally:
        await made.stop()


async def test_without_a_kernels_log_there_is_no_such_collector(
    library: Path, state: StubState, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    made = Exported(library, script, KernelLog(state.folder / "no-kmsg"))
    await made.start()
    try:
        await made.until(lambda: len(made.now.devices) == 2)
        await made.turns(5)
        assert [run.collector for run in made.now.collectors] == ["events"]
        assert len([each for each in caplog.messages if "no-kmsg" in each]) == 1
    finally:
        await made.stop()


async def test_xids_of_a_card_that_fell_off_before_the_start_are_reported_by_its_place(
    library: Path, state: StubState, script: Script
) -> None:
    """docs/spec/telemetry.md#alerts-on-xid-errors: the card's identity is unknown by then, and its
    XID 79 raises the alert all the same.
    """
    log = Records()
    log.records = [
        XidReport("0000:08:00", 79, time.monotonic() - 30),
        XidReport("0000:99:00", 48, time.monotonic() - 30),
    ]
    state.fail("nvmlDeviceGetHandleByIndex_v2", LOST, 1)
    made = Exported(library, script, log)
    await made.start()
    try:
        await made.until(lambda: len(made.now.devices) == 2)
        lost = made.card(1)
        assert (lost.up, lost.uuid, lost.fields, lost.collectors[0].is_good) == (
            False,
            "",
            {},
            False,
        )
        assert [
            (card.pci_bus_id, [event.xid for event in card.xids]) for card in made.now.unnamed
        ] == [
            ("0000:08:00", [79]),
            ("0000:99:00", [48]),
        ]
        (last,) = [
            each
            for each in gpu_families(made.now.devices, None, made.now.unnamed)
            if each.name == "fairlead_gpu_xid_last_timestamp_seconds"
        ]
        assert dict(zip(last.keys, last.values, strict=True)) == {
            ("n1", "0000:08:00", "", "", "79"): pytest.approx(970, abs=60),
            ("n1", "0000:99:00", "", "", "48"): pytest.approx(970, abs=60),
        }
        state.fail("nvmlDeviceGetHandleByIndex_v2", None, 1)
        await made.until(lambda: made.card(1).up)
        assert (made.card(1).uuid, [event.xid for event in made.card(1).xids]) == (uuid(1), [79]), (
            "it is itself again"
        )
        assert [card.pci_bus_id for card in made.now.unnamed] == ["0000:99:00"]
        state.say({"count": 1})
        await made.until(lambda: len(made.now.devices) == 1)
        assert [card.pci_bus_id for card in made.now.unnamed] == ["0000:08:00", "0000:99:00"], (
            "what it had is not forgotten"
        )
    finally:
        await made.stop()


async def test_an_xid_79_before_the_start_raises_the_alert_of_an_exporter_that_never_saw_the_card(
    library: Path, state: StubState, script: Script
) -> None:
    """docs/spec/telemetry.md#alerts-on-xid-errors. A file plays the kernel's log; its first read
    returns its one record.
    """
    state.fail("nvmlDeviceGetHandleByIndex_v2", LOST, 1)
    record = (
        f"4,12,{int((time.monotonic() - 30) * 1e6)},-;NVRM: Xid (PCI:0000:08:00): 79, GPU has "
        "fallen off the bus.\n"
    )
    (state.folder / "kmsg").write_text(record, encoding="utf-8")
    made = Exported(library, script, KernelLog(state.folder / "kmsg"))
    await made.start()
    try:
        await made.until(
            lambda: bool(made.now.unnamed) and len(made.now.devices) == 2 and made.card(0).up
        )
        page = GpuExporter(made.devices, FixedClock(1000.0), GpuExporterSettings(node="n1"))
        await page.refresh()
        samples = parse_page(b"".join(page.page.pieces).decode()).samples
        (reported,) = [
            each for each in samples if each.name == "fairlead_gpu_xid_last_timestamp_seconds"
        ]
        assert reported.labels == {
            "node_name": "n1",
            "gpu": "0000:08:00",
            "uuid": "",
            "model": "",
            "xid": "79",
        }
        assert 0 <= 1000.0 - reported.value < 600, "FairleadGpuXidCritical holds"
        ups = {
            each.labels["gpu"]: (each.value, each.labels["uuid"])
            for each in samples
            if each.name == "fairlead_gpu_up"
        }
        assert ups == {"0": (1, uuid(0)), "1": (0, "")}, "FairleadGpuDown holds"
        assert not [
            each for each in samples if each.name.startswith("DCGM_") and each.labels["gpu"] != "0"
        ]
    finally:
        await made.stop()


async def test_a_card_that_could_not_be_registered_is_reported_and_tried_again(
    library: Path, state: StubState, script: Script
) -> None:
    state.fail("nvmlDeviceRegisterEvents", UNKNOWN, 1)
    made = Exported(
        library, script, beat=NvmlBeat(interval=0.05, slow_interval=0.5, call_timeout=0.1)
    )
    await made.start()
    try:
        await made.until(lambda: made.now.collectors[0].is_good is False)
        assert (made.now.collectors[0].collector, *made.now.collectors[0].errors) == (
            "events",
            "unknown_error",
        )
        state.fail("nvmlDeviceRegisterEvents", None, 1)
        await made.until(lambda: made.now.collectors[0].is_good)
        state.report_xid(48, 1)
        await made.until(lambda: [event.xid for event in made.card(1).xids] == [48])
    finally:
        await made.stop()


async def test_waiting_for_events_that_fails_is_reported_and_begun_anew(
    exported: Exported, state: StubState
) -> None:
    state.fail("nvmlEventSetWait_v2", UNKNOWN)
    await exported.until(lambda: exported.now.collectors[0].is_good is False)
    assert exported.now.collectors[0].errors["unknown_error"] >= 1
    state.fail("nvmlEventSetWait_v2", None)
    await exported.until(lambda: exported.now.collectors[0].is_good)


async def test_an_xid_of_a_mig_instance_stays_with_it(exported: Exported, state: StubState) -> None:
    parts = tuple(InstanceReading(gi, 0, "1g.18gb", f"MIG-{gi}") for gi in (1, 2))
    exported.script.readings[3] = GroupReading({UTIL: 1}, instances=parts)
    await exported.until(lambda: len(exported.card(3).instances) == 2)
    state.report_xid(94, 3, gpu_instance=2)
    await exported.until(lambda: [event.xid for event in exported.card(3).xids] == [94])
    assert [each.fields[XID] for each in exported.card(3).instances] == [0, 94] and exported.card(
        3
    ).fields[XID] == 0
    state.report_xid(79, 3)
    await exported.until(lambda: exported.card(3).fields[XID] == 79)
    assert [each.fields[XID] for each in exported.card(3).instances] == [0, 94]


async def test_a_card_whose_division_changed_is_asked_everything_again(
    exported: Exported, state: StubState
) -> None:
    state.report_change(3)
    await exported.until(lambda: ("forget", 3) in exported.script.asked)
    await exported.turns()
    asked = exported.script.asked
    assert (asked.count(("static", 3)), asked.count(("forget", 3)), asked.count(("static", 2))) == (
        2,
        1,
        1,
    )
