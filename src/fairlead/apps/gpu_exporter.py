"""The GPU exporter (`:9400`): makes a page of metrics of each snapshot of the devices.

Specification: docs/spec/telemetry.md#gpu-exporter.

Neither a scrape nor this loop touches a device: the port `Devices` asks them, at its own rate. The
page exists before the first device has answered, and is always 200.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct, structs
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from fairlead import __version__, settings
from fairlead.apps.configuration.counters_file import CountersFile, CountersInForce
from fairlead.apps.configuration.web_guard import WebGuard
from fairlead.apps.metrics_page import MetricsPage, PageResponse, make_page, process_metrics
from fairlead.apps.owner_names import OwnerNames
from fairlead.apps.pod_map import PodMap
from fairlead.apps.service import Probes, ServedApp, pages_app
from fairlead.errors import UserError
from fairlead.model.devices.device import DeviceChoice, DeviceSample, DeviceSnapshot
from fairlead.model.devices.series_names import SeriesNames
from fairlead.model.metric import Family
from fairlead.model.repeat_filter import RepeatFilter
from fairlead.ports import Clock, Devices
from fairlead.rules.devices.mig import chosen_devices
from fairlead.rules.devices.shown import RefusedValue, shown, stale_after
from fairlead.rules.metrics.container_gpu import container_families, process_families
from fairlead.rules.metrics.custom_gpu import custom_families
from fairlead.rules.metrics.dcgm import DcgmLabels, dcgm_families
from fairlead.rules.metrics.dcgm_computed import WINDOW_MS, ComputedMetrics
from fairlead.rules.metrics.exporter import ExporterState, exporter_families
from fairlead.rules.metrics.gpu import gpu_families
from fairlead.rules.metrics.legacy_gpu import legacy_families
from fairlead.wire.metrics.dcgm_devices import parse_devices
from fairlead.wire.metrics.dcgm_fields import MADE
from fairlead.wire.metrics.prom_text import render_dcgm_number, render_go_number, render_page

COMPATIBILITIES: Final = ("dcgm", "legacy", "custom")
HOSTNAME_LABELS: Final = {
    "Hostname": ("Hostname",),
    "hostname": ("hostname",),
    "both": ("Hostname", "hostname"),
}
SHORTEST_INTERVAL_MS: Final = 100
_NAMED_MAX: Final = 1000
_log = logging.getLogger(__name__)


class GpuExporterSettings(Struct, frozen=True):
    """`collectors`: path of a counters CSV, "" = built in. `node`: this exporter's own node.

    `devices`: the GPUs to print. `only`: names of Fairlead's own families to print, and no others
    at all; None = all. `read_seconds`: how long a client may take to send a request,
    `write_seconds`: to read the answer. `backend`: the source of the devices, nvml or sim.
    `stale_seconds`: how old a value may be, None = three intervals, at least 15 s. `is_alone`: only
    cards of `node` are printed. `needs_gpus`: `/health` is 503 while there is none.
    `has_containers`: containers have their own series; `has_processes`: so have their processes,
    and foreign ones.
    """

    collectors: str = ""
    is_strict_csv: bool = False
    interval_seconds: float = 5.0
    labels: DcgmLabels = DcgmLabels()
    compat: tuple[str, ...] = ("dcgm", "legacy")
    node: str = ""
    devices: DeviceChoice = DeviceChoice()
    only: frozenset[str] | None = None
    read_seconds: float = settings.READ_SECONDS
    write_seconds: float = settings.WRITE_SECONDS
    backend: str = "sim"
    stale_seconds: float | None = None
    is_alone: bool = False
    xid_window_ms: int = WINDOW_MS
    clock_window_ms: int = WINDOW_MS
    needs_gpus: bool = False
    has_containers: bool = True
    has_processes: bool = False

    @property
    def stale_after_seconds(self) -> float:
        return (
            stale_after(self.interval_seconds) if self.stale_seconds is None else self.stale_seconds
        )


FamiliesOf = Callable[[Sequence[DeviceSample]], Sequence[Family]]


class GpuExporter:
    """The loop and its page.

    `run` makes a page of each snapshot until cancelled; `refresh` makes one.

    `pods`: the holders of cards, if the devices do not report them. `wall` returns monotonic
    seconds. `counters`: used instead of the file in the settings. `names`: more about the owners of
    cards. `agents`: families that are on the pages of node agents, for a world without agents.
    """

    def __init__(
        self,
        devices: Devices,
        clock: Clock,
        chosen: GpuExporterSettings,
        wall: Callable[[], float] = time.monotonic,
        pods: PodMap | None = None,
        counters: CountersInForce | None = None,
        names: OwnerNames | None = None,
        agents: FamiliesOf | None = None,
    ) -> None:
        self._names = names or OwnerNames()
        self._pods = pods
        self._agents = agents
        self._wall = wall
        self._devices = devices
        self._clock = clock
        self._chosen = chosen
        self._counters = counters or CountersFile(chosen.collectors, is_strict=chosen.is_strict_csv)
        self._state = ExporterState(node=chosen.node, version=__version__, backend=chosen.backend)
        self._number = 0
        self._ticked_at = self._wall()
        self._refused: Counter[tuple[str, str, str]] = Counter()
        self._refused_of = 0
        self._named: set[tuple[str, str, str]] = set()
        self.faults: Counter[str] = Counter()
        self._fault = RepeatFilter()
        self._made = ComputedMetrics(chosen.xid_window_ms, chosen.clock_window_ms)
        self._scrapes = 0
        self._scrape_seconds: float | None = None
        self._has_page = asyncio.Event()
        self._news = asyncio.Event()
        self._is_reload_asked = False
        self.page = MetricsPage()
        self.probes = Probes(self._trouble)
        self.app = pages_app(
            "GPU exporter", self.probes, self._metrics, {"/health": self._dcgm_health}
        )

    def service(self, sock: socket.socket, guard: WebGuard | None = None) -> ServedApp:
        """The server. `guard` protects its pages.

        The first page exists before the first request is answered; it waits for no device.
        """
        loops = [self.run, self._ask_devices, self._follow_counters, self._follow_names]
        loops += [self._follow_pods] if self._pods else []
        loops += [guard.follow] if guard else []
        return ServedApp(
            app=guard.guarded(self.app) if guard else self.app,
            sock=sock,
            loops=tuple(loops),
            probes=self.probes,
            tls=guard.tls if guard else None,
            opens=self._has_page,
            reload=lambda: self._reload(guard),
            read_seconds=self._chosen.read_seconds,
            write_seconds=self._chosen.write_seconds,
        )

    async def _follow_counters(self) -> None:
        await self._counters.follow(self._news.set)

    async def _follow_pods(self) -> None:
        assert self._pods is not None
        await self._pods.run(self._news.set)

    async def _follow_names(self) -> None:
        await self._names.run(self._news.set)

    def _reload(self, guard: WebGuard | None) -> None:
        self.reload()
        if guard is not None:
            guard.reload()

    async def _ask_devices(self) -> None:
        await self._devices.run(self._news.set)

    async def run(self) -> None:
        while True:
            self._news.clear()
            try:
                await self.refresh()
            except Exception as error:  # noqa: BLE001 - a bug; the page stays, and its age shows that it is old
                self._note_fault(error)
            self._has_page.set()
            await self._news.wait()

    def _note_fault(self, error: Exception) -> None:
        """Log it if it differs from the last one; count it each time."""
        self.faults[type(error).__name__] += 1
        if self._fault.is_news(repr(error)):
            _log.error("the page stays as it was, because of a bug", exc_info=error)

    def reload(self) -> None:
        """Read the counters file again now, even if it seems unchanged, and make a page."""
        self._is_reload_asked = True
        self._counters.ask_now()
        self._news.set()

    async def refresh(self) -> None:
        """Make the page of the latest snapshot, in a thread: large pages must not delay scrapes."""
        began = self._wall()
        is_asked, self._is_reload_asked = self._is_reload_asked, False
        await asyncio.to_thread(lambda: self._counters.reload_if_changed(is_asked=is_asked))
        self._devices.want(frozenset(counter.field for counter in self._counters.counters.counters))
        snapshot = self._devices.latest()
        if snapshot.number == self._number:  # a page later than its values
            snapshot = structs.replace(snapshot, at=snapshot.at + int(began - self._ticked_at))
        self._state = structs.replace(
            self._state,
            scrapes=self._scrapes,
            scrape_seconds=self._scrape_seconds,
            page_bytes=self.page.size or None,
            reload_succeeded=self._counters.reload_succeeded,
            rows_rejected=len(self._counters.counters.rejected),
            pods=None if self._pods is None else self._pods.state,
            faults=tuple(sorted(self.faults.items())),
        )
        self.page = await asyncio.to_thread(self._make_page, self._of_chosen(snapshot))
        self._fault.is_news("")
        if snapshot.number != self._number:
            self._number, self._ticked_at = snapshot.number, began

    def _make_page(self, snapshot: DeviceSnapshot) -> MetricsPage:
        now = self._clock.now()
        seen = shown(snapshot, self._chosen.stale_after_seconds, now)
        if snapshot.number != self._refused_of:
            self._refused_of = snapshot.number
            self._count(seen.refused)
        samples = seen.samples if self._pods is None else self._pods.attributed(seen.samples)
        names = self._names.latest()
        state = structs.replace(
            self._state,
            refused=tuple((*place, count) for place, count in sorted(self._refused.items())),
            labels_left_out=tuple((names.left_out or {}).items()),
        )
        return make_page(self._render(samples, snapshot, state, names, now))

    def _count(self, refused: Sequence[RefusedValue]) -> None:
        """Counts each refused value in every snapshot; logs it once."""
        self._refused.update((each.node, each.gpu, each.why.value) for each in refused)
        for each in refused:
            place = (each.node, each.gpu, each.field)
            if place not in self._named and len(self._named) < _NAMED_MAX:
                self._named.add(place)
                _log.warning(
                    "GPU %s of %s: %s is %s, which is no value (%s)",
                    each.gpu,
                    each.node,
                    each.field,
                    each.value,
                    each.why.value,
                )

    @property
    def _makes_metrics(self) -> bool:
        """Whether they are printed; windows begin when the first row asks for one."""
        return any(counter.field in MADE for counter in self._counters.counters.counters)

    def _of_chosen(self, snapshot: DeviceSnapshot) -> DeviceSnapshot:
        chosen, node = self._chosen.devices, self._chosen.node if self._chosen.is_alone else None
        if chosen == DeviceChoice() and node is None:
            return snapshot
        devices = chosen_devices(
            [each for each in snapshot.devices if node in (None, each.node)], chosen
        )
        return structs.replace(snapshot, devices=tuple(devices))

    def _render(
        self,
        samples: Sequence[DeviceSample],
        snapshot: DeviceSnapshot,
        state: ExporterState,
        names: SeriesNames,
        now: float,
    ) -> Iterator[bytes]:
        compat, only = self._chosen.compat, self._chosen.only
        if "dcgm" in compat:
            made = self._made.of(samples, snapshot.at, now) if self._makes_metrics else {}
            families = dcgm_families(
                samples, self._counters.counters.counters, self._chosen.labels, made, names
            )
            yield from render_page(families, render_dcgm_number)
        if "legacy" in compat:
            yield from render_page(legacy_families(samples), render_go_number)
        if "custom" in compat:
            yield from render_page(custom_families(samples), render_dcgm_number)
        of_containers = container_families(samples, only) if self._chosen.has_containers else []
        of_processes = process_families(samples) if self._chosen.has_processes else []
        yield from render_page(
            [*gpu_families(samples, only, snapshot.unnamed), *of_containers, *of_processes]
        )
        yield from render_page(exporter_families(state, snapshot, now))
        of_agents = self._agents(samples) if self._agents else ()
        yield from render_page(each for each in of_agents if only is None or each.name in only)
        yield process_metrics()

    async def _metrics(self, request: Request) -> Response:
        began = self._wall()
        response = PageResponse(self.page, request)
        self._scrapes += 1
        self._scrape_seconds = self._wall() - began
        return response

    async def _dcgm_health(self, request: Request) -> Response:
        headers = {
            "X-Registry-Available": "true" if self.page.pieces else "false",
            "X-Reload-In-Progress": "true" if self._counters.is_reloading else "false",
        }
        if self._chosen.needs_gpus and not any(
            sample.up for sample in self._devices.latest().devices
        ):
            return PlainTextResponse("no GPU is seen", 503, headers)
        return PlainTextResponse("OK", headers=headers)

    def _trouble(self) -> str:
        silent = self._wall() - self._ticked_at
        return (
            f"no sample for {silent:.0f} s"
            if silent > 3 * self._chosen.interval_seconds + 10
            else ""
        )


def sampling_seconds(milliseconds: int) -> float:
    """The interval of `--collect-interval`. Raises UserError below `SHORTEST_INTERVAL_MS`."""
    if milliseconds < SHORTEST_INTERVAL_MS:
        what = f"`--collect-interval {milliseconds}` is below {SHORTEST_INTERVAL_MS} ms"
        raise UserError(what, "give milliseconds, for example `5000`")
    if milliseconds < 1000:
        slowest = "the driver's own utilization samples are no faster than 1/6 s"
        _log.warning("sampling every %d ms: %s", milliseconds, slowest)
    return milliseconds / 1000


def hostname_labels(word: str) -> tuple[str, ...]:
    """The labels of `--hostname-label`. Raises UserError for an unknown word."""
    if word not in HOSTNAME_LABELS:
        hint = f"choose from {', '.join(HOSTNAME_LABELS)}"
        raise UserError(f"`--hostname-label {word}` is not known", hint)
    return HOSTNAME_LABELS[word]


def printed_devices(text: str) -> DeviceChoice:
    """The GPUs of `--devices`, "" = all. Raises UserError."""
    try:
        return parse_devices(text or "f")
    except ValueError as error:
        hint = "write `f` for all, or indexes such as `g:0,2-4`"
        raise UserError(f"`--devices {text}` names no GPUs", hint) from error
