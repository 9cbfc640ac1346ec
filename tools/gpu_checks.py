"""The checks of `make gpu-check`: what the exporter, the agent and the load generator say of real cards.

Each value is compared with what NVIDIA's own programs say before and after it was read: `nvidia-smi`, and
NVML through NVIDIA's bindings. It needs the packages of `requirements/run.txt`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pynvml

from fairlead.edge.nvml.driver import NvmlDriver
from fairlead.edge.nvml.library import close_library, open_library
from fairlead.model.metric import Sample
from fairlead.wire.metrics.prom_text import parse_page

OK, DIFFERS, SKIPPED = "ok", "differs", "skipped"
COLLECT_MS = 500
START_SECONDS = 60.0
SAMPLES = 3
"""Pages that are read for one comparison: a value passes if one of them agrees."""
MOVED = 0.05
"""A profiling field has moved when its ratio has grown by this much."""
MOVED_BYTES = 100e6
"""The same for fields in bytes per second."""
SKIP_STATUS = 2
"""`fairlead gpu-load` ends with it where the array library cannot make a load."""


@dataclass(frozen=True)
class Row:
    """One comparison. `card`: index, "" = of the node. `wanted`, `found`: as they were read."""

    check: str
    card: str
    subject: str
    result: str
    wanted: str = ""
    found: str = ""
    note: str = ""


@dataclass(frozen=True)
class Compared:
    """A field of DCGM beside a query of nvidia-smi. It may differ by `within`, or by `share` of the value."""

    query: str
    field: str
    within: float = 0.0
    share: float = 0.0


SMI = (
    Compared("memory.total", "DCGM_FI_DEV_FB_TOTAL", 1),
    Compared("memory.used", "DCGM_FI_DEV_FB_USED", 64),
    Compared("memory.free", "DCGM_FI_DEV_FB_FREE", 64),
    Compared("memory.reserved", "DCGM_FI_DEV_FB_RESERVED", 1),
    Compared("utilization.gpu", "DCGM_FI_DEV_GPU_UTIL", 15),
    Compared("utilization.memory", "DCGM_FI_DEV_MEM_COPY_UTIL", 15),
    Compared("power.draw", "DCGM_FI_DEV_POWER_USAGE", 5, 0.1),
    Compared("enforced.power.limit", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 1),
    Compared("temperature.gpu", "DCGM_FI_DEV_GPU_TEMP", 3),
    Compared("clocks.sm", "DCGM_FI_DEV_SM_CLOCK", 30, 0.1),
    Compared("clocks.mem", "DCGM_FI_DEV_MEM_CLOCK", 30, 0.1),
    Compared("ecc.errors.corrected.volatile.total", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"),
    Compared("ecc.errors.uncorrected.volatile.total", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
    Compared("pcie.link.gen.current", "DCGM_FI_DEV_PCIE_LINK_GEN"),
    Compared("pcie.link.width.current", "DCGM_FI_DEV_PCIE_LINK_WIDTH"),
    Compared("pcie.link.gen.max", "DCGM_FI_DEV_PCIE_MAX_LINK_GEN"),
    Compared("pcie.link.width.max", "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"),
)
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
BRAND = "DCGM_FI_DEV_BRAND"
LINK_BYTES = "fairlead_gpu_nvlink_bytes_total"
LINK_SHARE = 0.2
"""A rate of the counter may differ by this part from what profiling says: they are read at other times."""
LOADS = {
    1001: "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    1002: "DCGM_FI_PROF_SM_ACTIVE",
    1003: "DCGM_FI_PROF_SM_OCCUPANCY",
    1004: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    1005: "DCGM_FI_PROF_DRAM_ACTIVE",
    1006: "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
    1007: "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    1008: "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
    1009: "DCGM_FI_PROF_PCIE_TX_BYTES",
    1010: "DCGM_FI_PROF_PCIE_RX_BYTES",
    1011: "DCGM_FI_PROF_NVLINK_TX_BYTES",
    1012: "DCGM_FI_PROF_NVLINK_RX_BYTES",
}
"""Tests of `fairlead gpu-load`, and the field that each is made to move."""
NVLINK_LOADS = (1011, 1012)


@dataclass(frozen=True)
class Asked:
    """What to check. `load_seconds`: of each test; `sim_gpus`: what `--backend sim` of the load plays."""

    library: str
    backend: str = "auto"
    sim_gpus: str = ""
    load_seconds: int = 8
    loads: tuple[int, ...] = tuple(LOADS)


@dataclass(frozen=True)
class Nvml:
    """A card as NVIDIA's bindings show it."""

    index: int
    uuid: str
    name: str
    minor: int
    memory_mib: int
    energy_mj: int | None
    brand: int | None


class Exporter:
    """`fairlead gpu-exporter` as a process, with a row for each field that is compared."""

    def __init__(self, url: str) -> None:
        self.url = url

    def samples(self) -> list[Sample]:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            return parse_page(answer.read().decode()).samples

    def values(self, name: str) -> dict[str, float]:
        """By the card's index."""
        return values_of(self.samples(), name)


def values_of(samples: Iterable[Sample], name: str) -> dict[str, float]:
    return {each.labels.get("gpu", ""): each.value for each in samples if each.name == name}


@contextmanager
def exporting(library: str) -> Iterator[Exporter]:
    """Raises RuntimeError if it does not start."""
    fields = [*(each.field for each in SMI), ENERGY, *LOADS.values()]
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        rows = Path(folder, "fields.csv")
        rows.write_text("".join(f"{name}, gauge, Compared.\n" for name in fields) + f"{BRAND}, label, Compared.\n", encoding="utf-8")
        flags = ["--listen=127.0.0.1:0", f"--nvml-library={library}", f"--collectors={rows}", f"--collect-interval={COLLECT_MS}"]
        argv = [sys.executable, "-m", "fairlead", "gpu-exporter", *flags, "--slow-interval=1s", f"--kubelet-dir={folder}"]
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        said: list[str] = []
        try:
            url = next(
                (line.split(" http://", 1)[1].split("/", 1)[0] for line in _kept(process.stderr, said) if " http://127.0.0.1:" in line), ""
            )
            if not url:
                raise RuntimeError(f"the exporter ended with status {process.wait(30)}: {''.join(said).strip()}")
            reader = threading.Thread(target=process.stderr.read, daemon=True)
            reader.start()
            exporter = Exporter(f"http://{url}")
            _wait("every card was read", START_SECONDS, lambda: set(exporter.values("fairlead_gpu_up").values()) == {1.0})
            yield exporter
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[Any]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)


def _kept(lines: Iterable[str], kept: list[str]) -> Iterator[str]:
    for line in lines:
        kept.append(line)
        yield line


def _wait(what: str, seconds: float, is_so: Callable[[], bool]) -> None:
    limit = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > limit:
            raise RuntimeError(f"not so after {seconds:.0f} s: {what}")
        time.sleep(0.2)


def nvml_cards(library: str) -> list[Nvml]:
    """Raises OSError where the library cannot be loaded, NVMLError where it answers with an error."""
    open_library(library)
    try:
        return [_nvml_card(index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        close_library()


def _nvml_card(index: int) -> Nvml:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    return Nvml(
        index,
        pynvml.nvmlDeviceGetUUID(handle),
        pynvml.nvmlDeviceGetName(handle),
        pynvml.nvmlDeviceGetMinorNumber(handle),
        memory.total >> 20,
        _figure(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle),
        _figure(pynvml.nvmlDeviceGetBrand, handle),
    )


def _figure(call: Callable[[object], int], handle: object) -> int | None:
    """None where the card does not support the call."""
    try:
        return int(call(handle))
    except pynvml.NVMLError_NotSupported:
        return None


def smi_rows(queries: Sequence[str]) -> list[dict[str, float | None]]:
    """What nvidia-smi says of each card; None for what is no number, such as `[N/A]`.

    Raises CalledProcessError.
    """
    argv = ["nvidia-smi", f"--query-gpu={','.join(queries)}", "--format=csv,noheader,nounits"]
    text = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    return [dict(zip(queries, map(_number, line.split(", ")), strict=True)) for line in text.strip().splitlines()]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def beside_nvidia_smi(exporter: Exporter) -> list[Row]:
    """Each field of the page beside nvidia-smi, asked before and after."""
    check = "nvidia-smi"
    if shutil.which("nvidia-smi") is None:
        return [Row(check, "", "all fields", SKIPPED, note="nvidia-smi is not on PATH")]
    queries = [each.query for each in SMI]
    rounds: list[tuple[list[dict[str, float | None]], list[Sample], list[dict[str, float | None]]]] = []
    for _ in range(SAMPLES):
        before = smi_rows(queries)
        time.sleep(2 * COLLECT_MS / 1000)
        rounds.append((before, exporter.samples(), smi_rows(queries)))
    return [_beside(each, card, rounds) for each in SMI for card in range(len(rounds[0][0]))]


def _beside(
    each: Compared,
    card: int,
    rounds: Sequence[tuple[Sequence[Mapping[str, float | None]], Sequence[Sample], Sequence[Mapping[str, float | None]]]],
) -> Row:
    row = Row("nvidia-smi", str(card), f"{each.field} ({each.query})", SKIPPED, note="neither has it")
    for before, samples, after in rounds:
        found, first, last = values_of(samples, each.field).get(str(card)), before[card][each.query], after[card][each.query]
        if first is None or last is None:
            if found is not None:
                row = Row(row.check, row.card, row.subject, SKIPPED, "N/A", f"{found:g}", "nvidia-smi has no value")
            continue
        wanted = f"{first:g}" if first == last else f"{min(first, last):g} to {max(first, last):g}"
        room = each.within + each.share * max(abs(first), abs(last))
        is_near = found is not None and min(first, last) - room <= found <= max(first, last) + room
        row = Row(row.check, row.card, row.subject, OK if is_near else DIFFERS, wanted, "absent" if found is None else f"{found:g}")
        if is_near:
            return row
    return row


def beside_nvml(exporter: Exporter, library: str) -> list[Row]:
    """Energy and brand beside NVML; the rows that the exporter refused."""
    before = nvml_cards(library)
    time.sleep(2.0)
    samples = exporter.samples()
    after = nvml_cards(library)
    energy = values_of(samples, ENERGY)
    brands = {each.labels.get("gpu", ""): each.labels.get(BRAND, "") for each in samples if each.name == "DCGM_FI_DEV_FB_TOTAL"}
    rows = [_energy(first, last, energy.get(str(first.index))) for first, last in zip(before, after, strict=True)]
    rows += [_brand(card, brands.get(str(card.index), "")) for card in after]
    refused = sum(each.value for each in samples if each.name == "fairlead_exporter_config_rows_rejected")
    return [*rows, Row("exporter", "", "rows of the counters file refused", OK if not refused else DIFFERS, "0", f"{refused:g}")]


def _energy(first: Nvml, last: Nvml, found: float | None) -> Row:
    card, subject = str(first.index), f"{ENERGY} (mJ)"
    if first.energy_mj is None or last.energy_mj is None:
        return Row("nvml", card, subject, SKIPPED if found is None else DIFFERS, "not supported", f"{found}")
    is_between = found is not None and first.energy_mj <= found <= last.energy_mj
    return Row("nvml", card, subject, OK if is_between else DIFFERS, f"{first.energy_mj} to {last.energy_mj}", f"{found}")


def _brand(card: Nvml, found: str) -> Row:
    """The word is DCGM's, and NVML has a number: a person compares it with what `dcgmi` says."""
    names = {value: name.removeprefix("NVML_BRAND_") for name, value in vars(pynvml).items() if name.startswith("NVML_BRAND_")}
    wanted = "" if card.brand is None else names.get(card.brand, str(card.brand))
    note = "compare the word by eye"
    return Row("nvml", str(card.index), BRAND, SKIPPED if not found else OK, wanted, found or "absent", note)


def health_rows(exporter: Exporter) -> list[Row]:
    """Every health check of every card, and its word. A card that is ill is no fault of the exporter."""
    samples = exporter.samples()
    rows = [
        Row("health", gpu, "fairlead_gpu_healthy", OK, "", f"{value:g}")
        for gpu, value in values_of(samples, "fairlead_gpu_healthy").items()
    ]
    if not rows:
        return [Row("health", "", "fairlead_gpu_healthy", DIFFERS, "one for each card", "absent")]
    checks = [each for each in samples if each.name == "fairlead_gpu_health_check"]
    return rows + [Row("health", each.labels["gpu"], each.labels["check"], OK, "", f"{each.value:g}") for each in checks]


def inventory_rows(library: str) -> list[Row]:
    """The cards that the node agent offers, beside NVML."""
    wanted = {each.index: each for each in nvml_cards(library)}
    driver = NvmlDriver(library)
    try:
        found = {each.index: each for each in driver.cards()}
    finally:
        driver.close()
    rows = [Row("agent", "", "cards", OK if found.keys() == wanted.keys() else DIFFERS, f"{sorted(wanted)}", f"{sorted(found)}")]
    for index in sorted(wanted.keys() & found.keys()):
        card, slot = wanted[index], found[index]
        pairs = {"uuid": (card.uuid, slot.uuid), "model": (card.name, slot.model), "minor": (card.minor, slot.minor)}
        for subject, (one, other) in pairs.items():
            rows.append(Row("agent", str(index), subject, OK if one == other else DIFFERS, f"{one}", f"{other}"))
        is_within = 0 < (slot.memory_mib or 0) <= card.memory_mib
        rows.append(
            Row(
                "agent",
                str(index),
                "memory that is shared out (MiB)",
                OK if is_within else DIFFERS,
                f"at most {card.memory_mib}",
                f"{slot.memory_mib}",
            )
        )
    return rows


def load_rows(exporter: Exporter, asked: Asked, deadline: float) -> list[Row]:
    """Each test of the load generator: its field has moved on every card, and what else has."""
    rows: list[Row] = []
    cards = sorted(exporter.values("fairlead_gpu_up"))
    for test in asked.loads:
        if test in NVLINK_LOADS and len(cards) < 2:
            rows.append(Row("load", "", f"{test} {LOADS[test]}", SKIPPED, note="needs two cards"))
        elif time.monotonic() + asked.load_seconds > deadline:
            rows.append(Row("load", "", f"{test} {LOADS[test]}", SKIPPED, note="no time is left"))
        else:
            rows += _load(exporter, asked, test, cards, deadline)
    return rows


def _load(exporter: Exporter, asked: Asked, test: int, cards: Sequence[str], deadline: float) -> list[Row]:
    rest = exporter.samples()
    flags = ["--no-dcgm-validation", "--target-max-value", f"-t{test}", f"-d{asked.load_seconds}", f"--backend={asked.backend}"]
    flags += [f"--sim-gpus={asked.sim_gpus}"] if asked.sim_gpus else []
    peaks: dict[tuple[str, str], float] = {}
    began, links = time.monotonic(), _link_bytes(rest)
    rates: dict[str, float] = {}
    with tempfile.TemporaryFile("w+") as output:
        load = subprocess.Popen([sys.executable, "-m", "fairlead", "gpu-load", *flags], stdout=output, stderr=subprocess.STDOUT)
        try:
            while load.poll() is None and time.monotonic() < deadline:
                samples = exporter.samples()
                for each in samples:
                    key = each.name, each.labels.get("gpu", "")
                    peaks[key] = max(each.value, peaks.get(key, each.value))
                now, then = _link_bytes(samples), time.monotonic()
                for card in now:
                    rates[card] = max(rates.get(card, 0.0), (now[card] - links.get(card, now[card])) / (then - began))
                began, links = then, now
                time.sleep(2 * COLLECT_MS / 1000)
            is_late = load.poll() is None
        finally:
            _stop(load)
        output.seek(0)
        said = output.read().strip().splitlines()[-1:]
    subject = f"{test} {LOADS[test]}"
    if is_late:
        return [Row("load", "", subject, SKIPPED, note="no time is left")]
    status = load.returncode
    if status == SKIP_STATUS:
        return [Row("load", "", subject, SKIPPED, note="".join(said))]
    if status != 0:
        return [Row("load", "", subject, DIFFERS, "status 0", f"status {status}", "".join(said))]
    rows = [_moved(test, card, {name: values_of(rest, name).get(card, 0.0) for name in LOADS.values()}, peaks) for card in cards]
    return [*rows, *(_link_unit(card, rates.get(card), peaks) for card in cards)] if test == NVLINK_LOADS[0] else rows


def _link_bytes(samples: Iterable[Sample]) -> dict[str, float]:
    """By card; both directions together."""
    found: dict[str, float] = {}
    for each in samples:
        if each.name == LINK_BYTES:
            found[each.labels["gpu"]] = found.get(each.labels["gpu"], 0.0) + each.value
    return found


def _link_unit(card: str, rate: float | None, peaks: Mapping[tuple[str, str], float]) -> Row:
    """The unit of NVLink's counter, which NVIDIA documents for no driver: its rate beside profiling's."""
    profiled = [peaks[name, card] for name in (LOADS[test] for test in NVLINK_LOADS) if (name, card) in peaks]
    if rate is None or not profiled:
        return Row("load", card, f"unit of {LINK_BYTES}", SKIPPED, note="the card has no such counter, or no profiling")
    wanted = sum(profiled)
    result = OK if abs(rate - wanted) <= LINK_SHARE * wanted else DIFFERS
    return Row("load", card, f"unit of {LINK_BYTES}", result, f"{wanted:.4g} B/s", f"{rate:.4g} B/s")


def _moved(test: int, card: str, rest: Mapping[str, float], peaks: Mapping[tuple[str, str], float]) -> Row:
    own = LOADS[test]
    seen = {name: peaks[name, card] for name in LOADS.values() if (name, card) in peaks}
    if own not in seen:
        return Row("load", card, f"{test} {own}", SKIPPED, "it moves", "absent", "the card has no such field")
    moved = [name for name, peak in seen.items() if peak - rest[name] > (MOVED_BYTES if name.endswith("_BYTES") else MOVED)]
    others = ", ".join(f"{name.removeprefix('DCGM_FI_PROF_')} {seen[name]:.4g}" for name in moved if name != own)
    result = OK if own in moved else DIFFERS
    return Row(
        "load", card, f"{test} {own}", result, "it moves", f"{rest[own]:.4g} to {seen[own]:.4g}", f"moved too: {others or 'nothing'}"
    )


def check_all(asked: Asked, deadline: float) -> list[Row]:
    """All rows. `deadline`: seconds of the steady clock, when no further load begins."""
    rows = inventory_rows(asked.library)
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as loads:
        if asked.backend == "sim":
            os.environ.setdefault("FAIRLEAD_GPU_LOAD_DIR", loads)
        return rows + _served_rows(asked, deadline)


def _served_rows(asked: Asked, deadline: float) -> list[Row]:
    """What the exporter's page says."""
    with exporting(asked.library) as exporter:
        rows = [*health_rows(exporter), *beside_nvidia_smi(exporter), *beside_nvml(exporter, asked.library)]
        return [*rows, *load_rows(exporter, asked, deadline)]


def as_json(rows: Sequence[Row], **about: object) -> str:
    return json.dumps({**about, "rows": [asdict(row) for row in rows]}, indent=1)


def table(rows: Sequence[Row]) -> str:
    columns = ("CHECK", "CARD", "SUBJECT", "RESULT", "WANTED", "FOUND", "NOTE")
    lines = [columns, *((row.check, row.card, row.subject, row.result, row.wanted, row.found, row.note) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines)
