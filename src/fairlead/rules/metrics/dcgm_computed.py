"""Metrics that dcgm-exporter makes itself: counts over a window, health, links of cards.

Health is judged as DCGM's watches do.

docs/spec/telemetry.md#dcgm-metrics-made-by-the-exporter; all are gauges. Events and samples are put
in with their times, and rows come out: labels that follow those of the card, and a value. Times are
seconds of one steady clock; `now` is an argument. A card without any report has no rows, never
zeros.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.devices.device import DeviceSample, XidEvent
from fairlead.rules.devices.health_checks import FAIL, OK, WARN

XID_COUNT, CLOCK_COUNT = "DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_CLOCK_EVENTS_COUNT"
HEALTH_STATUS, P2P_STATUS = "DCGM_EXP_GPU_HEALTH_STATUS", "DCGM_EXP_P2P_STATUS"
WINDOW_MS: Final = 300_000
"""dcgm-exporter's default of both windows, in milliseconds."""

CLOCK_EVENTS: Final[Mapping[int, str]] = {
    0x1: "gpu_idle",
    0x2: "clocks_setting",
    0x4: "power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
    0x100: "display_clocks",
}
_WINDOW_LABEL: Final = "window_size_in_ms"


class ComputedRow(Struct, frozen=True, gc=False):
    """One series of a card: the labels that this metric adds to the card's, and the value."""

    labels: Mapping[str, str]
    value: int


class WindowCounts:
    """How often each event happened to each card within the last `window_ms`.

    What happened at `t` counts until just before `t` + window.
    """

    def __init__(self, window_ms: int) -> None:
        self.window_ms = window_ms
        self._seen: dict[str, deque[tuple[float, int, int]]] = {}
        self._counts: dict[str, Counter[int]] = {}

    def watch(self, card: str) -> None:
        """From now on a card without events counts as a card to which nothing happened."""
        self._seen.setdefault(card, deque())
        self._counts.setdefault(card, Counter())

    def add(self, card: str, what: int, at: float, times: int = 1) -> None:
        """Times of one card may come in any order."""
        self.watch(card)
        seen = self._seen[card]
        later = []
        while seen and seen[-1][0] > at:
            later.append(seen.pop())
        seen.append((at, what, times))
        seen.extend(reversed(later))
        self._counts[card][what] += times

    def counts(self, card: str, now: float) -> Mapping[int, int] | None:
        """Counts by event; None = the card is not watched."""
        seen = self._seen.get(card)
        if seen is None:
            return None
        counts = self._counts[card]
        while seen and seen[0][0] <= now - self.window_ms / 1000:
            _, what, times = seen.popleft()
            counts[what] -= times
            if not counts[what]:
                del counts[what]
        return counts

    def keep(self, cards: Collection[str]) -> None:
        """Forget all other cards and their events."""
        for gone in self._seen.keys() - set(cards):
            del self._seen[gone], self._counts[gone]


class XidCounts:
    """`DCGM_EXP_XID_ERRORS_COUNT`."""

    def __init__(self, window_ms: int = WINDOW_MS) -> None:
        self._counts = WindowCounts(window_ms)
        self._totals: dict[tuple[str, int], int] = {}

    def reported(self, card: str, xid: int, at: float) -> None:
        """The driver reported this XID of the card."""
        self._counts.add(card, xid, at)

    def set_totals(self, card: str, xids: Iterable[XidEvent], now: float, age: float = 0.0) -> None:
        """Take the card's totals as of now, where the events themselves are not available: new
        events happened `age` seconds ago. A total that is smaller than before starts again from 0.
        """
        self._counts.watch(card)
        for event in xids:
            before = self._totals.get((card, event.xid), 0)
            new = event.count - before if event.count >= before else event.count
            if new:
                self._counts.add(card, event.xid, now - age, new)
            self._totals[card, event.xid] = event.count

    def keep(self, cards: Collection[str]) -> None:
        self._counts.keep(cards)
        self._totals = {key: total for key, total in self._totals.items() if key[0] in cards}

    def rows(self, card: str, now: float) -> list[ComputedRow]:
        """Rows by XID; one row without `xid` if there was none.

        >>> counts = XidCounts()
        >>> counts.reported("GPU-a", 31, 10.0)
        >>> [(dict(row.labels), row.value) for row in counts.rows("GPU-a", 309.9)]
        [({'window_size_in_ms': '300000', 'xid': '31'}, 1)]
        >>> [(dict(row.labels), row.value) for row in counts.rows("GPU-a", 310.0)]
        [({'window_size_in_ms': '300000'}, 0)]
        """
        return _counted(self._counts, card, now, "xid", str)


class ClockEventCounts:
    """`DCGM_EXP_CLOCK_EVENTS_COUNT`: samples of the window in which a reason held the clocks."""

    def __init__(self, window_ms: int = WINDOW_MS) -> None:
        self._counts = WindowCounts(window_ms)
        self._sampled_at: dict[str, float] = {}

    def sampled(self, card: str, reasons: int | None, at: float) -> None:
        """Take the card's reasons as bits, read at `at`; None = the card does not report them.

        A sample that was already counted, or is older than the last one, is not counted.
        """
        if reasons is None or at <= self._sampled_at.get(card, float("-inf")):
            return
        self._sampled_at[card] = at
        self._counts.watch(card)
        for bit in CLOCK_EVENTS:
            if reasons & bit:
                self._counts.add(card, bit, at)

    def keep(self, cards: Collection[str]) -> None:
        self._counts.keep(cards)
        self._sampled_at = {card: at for card, at in self._sampled_at.items() if card in cards}

    def rows(self, card: str, now: float) -> list[ComputedRow]:
        """Rows by event, in the order of bits; one row without `clock_event` if there was none."""
        return _counted(self._counts, card, now, "clock_event", CLOCK_EVENTS.__getitem__)


def _counted(
    counts: WindowCounts, card: str, now: float, label: str, word: Callable[[int], str]
) -> list[ComputedRow]:
    found = counts.counts(card, now)
    if found is None:
        return []
    window = {_WINDOW_LABEL: str(counts.window_ms)}
    return [ComputedRow({**window, label: word(what)}, found[what]) for what in sorted(found)] or [
        ComputedRow(window, 0)
    ]


# --- health ---------------------------------------------------------------------------------------

WATCHES: Final = (
    "PCIE",
    "NVLINK",
    "PMU",
    "MCU",
    "MEM",
    "SM",
    "INFOROM",
    "THERMAL",
    "POWER",
    "DRIVER",
    "ALL",
)
_STATUS: Final = {OK: 0, WARN: 10, FAIL: 20}
_CHECKS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "PCIE": ("pcie", "lost"),
    "NVLINK": ("nvlink",),
    "MEM": ("ecc", "remap"),
    "THERMAL": ("thermal",),
    "POWER": ("power",),
}
_CODES: Final[Mapping[str, tuple[str, str]]] = {
    "pcie": ("DCGM_FR_PCIE_WIDTH", "DCGM_FR_PCIE_WIDTH"),
    "lost": ("DCGM_FR_FALLEN_OFF_BUS", "DCGM_FR_FALLEN_OFF_BUS"),
    "nvlink": ("DCGM_FR_NVLINK_ERROR_THRESHOLD", "DCGM_FR_NVLINK_ERROR_CRITICAL"),
    "ecc": ("DCGM_FR_VOLATILE_SBE_DETECTED", "DCGM_FR_VOLATILE_DBE_DETECTED"),
    "remap": ("DCGM_FR_PENDING_ROW_REMAP", "DCGM_FR_ROW_REMAP_FAILURE"),
    "thermal": ("DCGM_FR_CLOCK_THROTTLE_THERMAL", "DCGM_FR_THERMAL_VIOLATIONS"),
    "power": ("DCGM_FR_CLOCK_THROTTLE_POWER", "DCGM_FR_CLOCK_THROTTLE_POWER"),
    "xid": ("DCGM_FR_XID_ERROR", "DCGM_FR_XID_ERROR"),
}
"""DCGM's names, of a warning and of a failure."""


def health_rows(checks: Mapping[str, int]) -> list[ComputedRow]:
    """`DCGM_EXP_GPU_HEALTH_STATUS` of a card from `rules/devices/health_checks`: 0, 10 or 20.

    A watch that no check covers has no row; ALL is the worst of all checks, XIDs included. A row
    that passes has no code.

    >>> rows = health_rows({"ecc": 2, "remap": 1, "thermal": 0})
    >>> [(row.labels["health_watch"], row.value) for row in rows]
    [('MEM', 20), ('THERMAL', 0), ('ALL', 20)]
    """
    rows = []
    for watch in WATCHES:
        names = _CODES if watch == "ALL" else _CHECKS_OF.get(watch, ())
        made = [(checks[name], name) for name in names if name in checks]
        if made:
            level, worst = max(made, key=lambda each: each[0])
            code = {} if level == OK else {"health_error_code": _CODES[worst][level == FAIL]}
            rows.append(ComputedRow({**code, "health_watch": watch}, _STATUS[level]))
    return rows


# --- links between cards --------------------------------------------------------------------------

LINK_STATUS: Final = ("OK", "CNS", "GNS", "TNS", "DR", "NS", "U")
"""NVML's numbers in nvidia-smi's words: chipset, GPU, topology not supported, disabled, …"""


def p2p_rows(links: Mapping[int, int]) -> list[ComputedRow]:
    """`DCGM_EXP_P2P_STATUS` of a card: NVML's status by the index of each peer.

    An unknown number is `U`.

    >>> [(*row.labels.values(), row.value) for row in p2p_rows({3: 3, 1: 0})]
    [('OK', '1', 0), ('TNS', '3', 3)]
    """
    return [
        ComputedRow(
            {
                "link_status": LINK_STATUS[status] if 0 <= status < len(LINK_STATUS) else "U",
                "peer_gpu": str(peer),
            },
            status,
        )
        for peer, status in sorted(links.items())
    ]


# --- all of them ----------------------------------------------------------------------------------


class ComputedMetrics:
    """Metrics made from the snapshots of one exporter, each put in once and in order."""

    def __init__(self, xid_window_ms: int = WINDOW_MS, clock_window_ms: int = WINDOW_MS) -> None:
        self._xids = XidCounts(xid_window_ms)
        self._clocks = ClockEventCounts(clock_window_ms)

    def of(
        self, samples: Sequence[DeviceSample], at: float, now: float
    ) -> dict[str, dict[tuple[str, str], list[ComputedRow]]]:
        """Rows by field and card (node, uuid).

        `at`: the time of the snapshot; `now`: the same instant in epoch seconds.
        """
        made: dict[str, dict[tuple[str, str], list[ComputedRow]]] = {
            XID_COUNT: {},
            CLOCK_COUNT: {},
            HEALTH_STATUS: {},
            P2P_STATUS: {},
        }
        cards = {f"{sample.node}/{sample.uuid}": sample for sample in samples}
        for card, sample in cards.items():
            self._xids.set_totals(card, (), at)
            for event in sample.xids:
                self._xids.set_totals(card, (event,), at, max(0.0, now - event.last_at))
            reasons = sample.throttle_reasons if sample.up else None
            self._clocks.sampled(card, reasons, sample.sampled_at)
            place = (sample.node, sample.uuid)
            made[XID_COUNT][place] = self._xids.rows(card, at)
            made[CLOCK_COUNT][place] = self._clocks.rows(card, at)
            made[HEALTH_STATUS][place] = health_rows(sample.health_checks)
            made[P2P_STATUS][place] = p2p_rows(sample.peers) if sample.up else []
        self._xids.keep(cards)
        self._clocks.keep(cards)
        return made
