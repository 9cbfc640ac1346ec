"""The checks of `make gpu-check`: the exporter, the agent and the load generator on real GPUs.

Each value of the exporter's page is compared with `nvidia-smi`, and with NVML through NVIDIA's
bindings, before and after the page was read. It needs the packages of `requirements/run.txt`.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import pynvml

from fairlead.edge.node.process_homes import sees_node
from fairlead.edge.nvml.driver import NvmlDriver
from fairlead.edge.nvml.library import close_library, open_library
from fairlead.model.metric import Sample
from fairlead.wire.metrics.prom_text import parse_page
from gpu_memory import HOLDS

OK, DIFFERS, SKIPPED = "ok", "differs", "skipped"
HOLDER = Path(__file__).with_name("gpu_memory.py")
COLLECT_MS = 500
START_SECONDS = 60.0
"""Patience with the exporter's first values of all cards."""
SAMPLES = 3
"""Pages that are read for one comparison: a value passes if one of them agrees."""
HELD_MIB = 1024
"""Memory that is held on each card while memory is compared."""
HOLD_SECONDS = 45.0
"""Patience with the array library until it holds the memory."""
SEEN_SECONDS = 10.0
"""Patience with the exporter until its page shows the held memory, or shows it gone."""
REST_SECONDS = 15.0
"""Patience with the cards until the fields of the load before are back at rest."""
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
    """A field of DCGM and a query of nvidia-smi.

    They may differ by `within`, or by `share` of the value.
    """

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
USED = "DCGM_FI_DEV_FB_USED"
UP = "fairlead_gpu_up"
FAULTS = "fairlead_exporter_collector_errors_total"
PROCESS_USED = "fairlead_process_gpu_memory_used_bytes"
LINK_BYTES = "fairlead_gpu_nvlink_bytes_total"
LINK_SHARE = 0.2
"""A rate of the counter may differ by this part from profiling's: they are read at other times."""
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
    """What to check.

    `load_seconds`: of each test; `sim_gpus`: what `--backend sim` of the load plays.
    """

    library: str
    backend: str = "auto"
    sim_gpus: str = ""
    load_seconds: int = 8
    loads: tuple[int, ...] = tuple(LOADS)
    start_seconds: float = START_SECONDS
    rest_seconds: float = REST_SECONDS


@dataclass(frozen=True)
class Nvml:
    """A card as NVIDIA's bindings show it. `error`: NVML's words for a card without an answer."""

    index: int
    uuid: str = ""
    name: str = ""
    minor: int = -1
    memory_mib: int = 0
    energy_mj: int | None = None
    brand: int | None = None
    error: str = ""


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
        text = "".join(f"{name}, gauge, Compared.\n" for name in fields)
        rows.write_text(f"{text}{BRAND}, label, Compared.\n", encoding="utf-8")
        flags = ["--listen=127.0.0.1:0", f"--nvml-library={library}", f"--collectors={rows}"]
        flags += [f"--collect-interval={COLLECT_MS}", "--slow-interval=1s"]
        flags += ["--process-metrics=process", f"--kubelet-dir={folder}"]
        argv = [sys.executable, "-m", "fairlead", "gpu-exporter", *flags]
        kubelet = _empty_kubelet(Path(folder, "pod-resources"))
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        printed: list[str] = []
        try:
            url = ""
            for line in process.stderr:
                printed.append(line)
                if " http://127.0.0.1:" in line:
                    url = line.split(" http://", 1)[1].split("/", 1)[0]
                    break
            if not url:
                text = "".join(printed).strip()
                raise RuntimeError(f"the exporter ended with status {process.wait(30)}: {text}")
            reader = threading.Thread(target=process.stderr.read, daemon=True)
            reader.start()
            yield Exporter(f"http://{url}")
        finally:
            _stop(process)
            kubelet.stop(None)


def _empty_kubelet(folder: Path) -> grpc.Server:
    """A kubelet without pods: the exporter has rows of processes only while a kubelet answers."""
    folder.mkdir()
    method: Any = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
    lister = grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": method})
    server = grpc.server(ThreadPoolExecutor(1), [lister])
    server.add_insecure_port(f"unix:{folder / 'kubelet.sock'}")
    server.start()
    return server


def up_rows(exporter: Exporter, asked: Asked) -> list[Row]:
    """A row for each card of NVML, with the exporter's reason where it has no values of the card.

    Waits for cards that answer NVML; a card that does not answer has no values to wait for.
    """
    cards = nvml_cards(asked.library)
    answering = {str(card.index) for card in cards if not card.error}
    _is_so_within(asked.start_seconds, lambda: answering <= _up(exporter.samples()))
    samples = exporter.samples()
    up = _up(samples)
    rows = []
    for card in cards:
        index = str(card.index)
        is_up = index in up
        note = "" if is_up else "; ".join(filter(None, [card.error, *_faults(samples, index)]))
        found = values_of(samples, UP).get(index)
        text = "absent" if found is None else f"{found:g}"
        rows.append(Row("exporter", index, UP, OK if is_up else DIFFERS, "1", text, note))
    if rows:
        return rows
    return [Row("exporter", "", UP, DIFFERS, "one for each card", "absent", "NVML counts no card")]


def _up(samples: Iterable[Sample]) -> set[str]:
    return {card for card, value in values_of(samples, UP).items() if value == 1.0}


def _faults(samples: Iterable[Sample], card: str) -> list[str]:
    """The errors that the exporter counts for a card, and for the driver: `device: GPU is lost`."""
    found = [each.labels for each in samples if each.name == FAULTS and each.value > 0]
    own = [each for each in found if each.get("gpu") in (card, "")]
    return [f"{each.get('collector')}: {each.get('error')}" for each in own]


def _stop(process: subprocess.Popen[Any]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)


def _is_so_within(seconds: float, is_so: Callable[[], bool]) -> bool:
    limit = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > limit:
            return False
        time.sleep(0.2)
    return True


def nvml_cards(library: str) -> list[Nvml]:
    """Raises OSError where the library cannot be loaded,
    NVMLError where it does not count cards.
    """
    open_library(library)
    try:
        return [_nvml_card(index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        close_library()


def _nvml_card(index: int) -> Nvml:
    try:
        return _answering_card(index)
    except pynvml.NVMLError as error:
        return Nvml(index, error=f"NVML: {error}")


def _answering_card(index: int) -> Nvml:
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


def smi_rows(queries: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """nvidia-smi's answers by card; None for what is no number, such as `[N/A]`.

    Raises CalledProcessError.
    """
    argv = ["nvidia-smi", f"--query-gpu=index,{','.join(queries)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    found = {}
    for line in done.stdout.strip().splitlines():
        index, *values = line.split(", ")
        found[index] = dict(zip(queries, map(_number, values), strict=True))
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


Smi = Mapping[str, Mapping[str, float | None]]


def beside_nvidia_smi(exporter: Exporter) -> list[Row]:
    """Each field of the page beside nvidia-smi, asked before and after."""
    check, subject = "nvidia-smi", "all fields"
    if shutil.which("nvidia-smi") is None:
        return [Row(check, "", subject, SKIPPED, note="nvidia-smi is not on PATH")]
    queries = [each.query for each in SMI]
    rounds: list[tuple[Smi, list[Sample], Smi]] = []
    try:
        for _ in range(SAMPLES):
            before = smi_rows(queries)
            time.sleep(2 * COLLECT_MS / 1000)
            rounds.append((before, exporter.samples(), smi_rows(queries)))
    except subprocess.CalledProcessError as error:
        note = f"{error.stderr or error.stdout}".strip()
        return [Row(check, "", subject, DIFFERS, "status 0", f"status {error.returncode}", note)]
    cards = sorted(set.intersection(*({*first, *last} for first, _, last in rounds)))
    return [_beside(each, card, rounds) for each in SMI for card in cards]


def _beside(each: Compared, card: str, rounds: Sequence[tuple[Smi, Sequence[Sample], Smi]]) -> Row:
    check, subject = "nvidia-smi", f"{each.field} ({each.query})"
    row = Row(check, card, subject, SKIPPED, note="neither has it")
    for before, samples, after in rounds:
        found = values_of(samples, each.field).get(card)
        first, last = (side.get(card, {}).get(each.query) for side in (before, after))
        text = "absent" if found is None else f"{found:g}"
        if first is None or last is None:
            if found is not None:
                row = Row(check, card, subject, SKIPPED, "N/A", text, "nvidia-smi has no value")
            continue
        least, most = min(first, last), max(first, last)
        wanted = f"{first:g}" if first == last else f"{least:g} to {most:g}"
        room = each.within + each.share * max(abs(first), abs(last))
        is_near = found is not None and least - room <= found <= most + room
        row = Row(check, card, subject, OK if is_near else DIFFERS, wanted, text)
        if is_near:
            return row
    return row


@contextmanager
def held_memory(exporter: Exporter, library: str) -> Iterator[list[Row]]:
    """Holds `HELD_MIB` on each card in a process; the rows of the page's memory and its process.

    The array library is cupy or torch, as for the loads. Without one a row is skipped.
    """
    before = exporter.values(USED)
    argv = [sys.executable, str(HOLDER), str(HELD_MIB)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    holder = subprocess.Popen(argv, **pipes)  # type: ignore[call-overload]
    ender = threading.Timer(HOLD_SECONDS, holder.kill)
    ender.start()
    try:
        line = holder.stdout.readline().strip()
        ender.cancel()
        subject = f"{HELD_MIB} MiB held"
        if line == HOLDS:
            yield held_rows(exporter, library, before)
        elif line:
            yield [Row("memory", "", subject, SKIPPED, note=line)]
        else:
            note = f"ended within {HOLD_SECONDS:.0f} s without holding it"
            status = f"status {holder.wait(20)}"
            yield [Row("memory", "", subject, DIFFERS, HOLDS, status, note)]
    finally:
        ender.cancel()
        holder.stdin.close()
        _stop(holder)


def held_rows(exporter: Exporter, library: str, before: Mapping[str, float]) -> list[Row]:
    """Memory in use has grown on each card, and the page has the process that NVML has."""

    def has_grown(used: Mapping[str, float]) -> bool:
        return all(used.get(card, 0.0) - before[card] >= HELD_MIB for card in before)

    _is_so_within(SEEN_SECONDS, lambda: has_grown(exporter.values(USED)))
    time.sleep(2 * COLLECT_MS / 1000)
    holders = nvml_processes(library)
    samples = exporter.samples()
    used, rows = values_of(samples, USED), []
    for card, rest in sorted(before.items()):
        now = used.get(card, 0.0)
        result = OK if now - rest >= HELD_MIB else DIFFERS
        wanted = f"at least {HELD_MIB} more"
        subject = f"{USED} with {HELD_MIB} MiB held"
        rows.append(Row("memory", card, subject, result, wanted, f"{rest:g} to {now:g}"))
    own = [_process(samples, *each) for each in holders if each[2] >= HELD_MIB]
    note = "NVML names no process with this memory"
    return rows + (own or [Row("memory", "", PROCESS_USED, SKIPPED, note=note)])


def _process(samples: Iterable[Sample], card: str, pid: str, mib: float) -> Row:
    """The page's row of a process that NVML names: they may differ by 64 MiB."""
    own = [each for each in samples if each.name == PROCESS_USED]
    found = {each.labels["pid"]: each.value / 2**20 for each in own if each.labels["gpu"] == card}
    subject = f"{PROCESS_USED} (MiB of one process)"
    if not sees_node():
        note = "process ids here are not the node's"
        return Row("memory", card, subject, SKIPPED, f"{mib:g}", note=note)
    text = "absent" if pid not in found else f"{found[pid]:g}"
    result = OK if pid in found and abs(found[pid] - mib) <= 64 else DIFFERS
    return Row("memory", card, subject, result, f"{mib:g}", text)


def nvml_processes(library: str) -> list[tuple[str, str, float]]:
    """Card, pid and MiB of each computing process for which NVML has the memory."""
    open_library(library)
    try:
        found = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            for each in _processes(index):
                if each.usedGpuMemory is not None:
                    found.append((str(index), str(each.pid), each.usedGpuMemory / 2**20))
        return found
    finally:
        close_library()


def _processes(index: int) -> Sequence[Any]:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        return list(pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except pynvml.NVMLError:
        return ()  # a card without an answer has its row of `fairlead_gpu_up`


def beside_nvml(exporter: Exporter, library: str) -> list[Row]:
    """Energy and brand beside NVML; the rows that the exporter refused."""
    before = nvml_cards(library)
    time.sleep(2.0)
    samples = exporter.samples()
    after = nvml_cards(library)
    energy = values_of(samples, ENERGY)
    brands = {
        each.labels.get("gpu", ""): each.labels.get(BRAND, "")
        for each in samples
        if each.name == "DCGM_FI_DEV_FB_TOTAL"
    }
    pairs = [
        each for each in zip(before, after, strict=True) if not any(card.error for card in each)
    ]
    rows = [_energy(first, last, energy.get(str(first.index))) for first, last in pairs]
    rows += [_brand(card, brands.get(str(card.index), "")) for _, card in pairs]
    refused = sum(
        each.value for each in samples if each.name == "fairlead_exporter_config_rows_rejected"
    )
    return [
        *rows,
        Row(
            "exporter",
            "",
            "rows of the counters file refused",
            OK if not refused else DIFFERS,
            "0",
            f"{refused:g}",
        ),
    ]


def _energy(first: Nvml, last: Nvml, found: float | None) -> Row:
    card, subject = str(first.index), f"{ENERGY} (mJ)"
    if first.energy_mj is None or last.energy_mj is None:
        return Row(
            "nvml",
            card,
            subject,
            SKIPPED if found is None else DIFFERS,
            "not supported",
            f"{found}",
        )
    is_between = found is not None and first.energy_mj <= found <= last.energy_mj
    return Row(
        "nvml",
        card,
        subject,
        OK if is_between else DIFFERS,
        f"{first.energy_mj} to {last.energy_mj}",
        f"{found}",
    )


def _brand(card: Nvml, found: str) -> Row:
    """The word is DCGM's, and NVML has a number: compare it with the output of `dcgmi`."""
    names = {
        value: name.removeprefix("NVML_BRAND_")
        for name, value in vars(pynvml).items()
        if name.startswith("NVML_BRAND_")
    }
    wanted = "" if card.brand is None else names.get(card.brand, str(card.brand))
    note = "compare the word by eye"
    return Row(
        "nvml",
        str(card.index),
        BRAND,
        SKIPPED if not found else OK,
        wanted,
        found or "absent",
        note,
    )


def health_rows(exporter: Exporter) -> list[Row]:
    """Every health check of every card, and its state.

    An unhealthy card is no fault of the exporter.
    """
    samples = exporter.samples()
    rows = [
        Row("health", gpu, "fairlead_gpu_healthy", OK, "", f"{value:g}")
        for gpu, value in values_of(samples, "fairlead_gpu_healthy").items()
    ]
    if not rows:
        return [Row("health", "", "fairlead_gpu_healthy", DIFFERS, "one for each card", "absent")]
    checks = [each for each in samples if each.name == "fairlead_gpu_health_check"]
    return rows + [
        Row("health", each.labels["gpu"], each.labels["check"], OK, "", f"{each.value:g}")
        for each in checks
    ]


def inventory_rows(library: str) -> list[Row]:
    """The cards that the node agent offers, beside NVML."""
    wanted = {each.index: each for each in nvml_cards(library) if not each.error}
    driver = NvmlDriver(library)
    try:
        found = {each.index: each for each in driver.cards()}
    finally:
        driver.close()
    rows = [
        Row(
            "agent",
            "",
            "cards",
            OK if found.keys() == wanted.keys() else DIFFERS,
            f"{sorted(wanted)}",
            f"{sorted(found)}",
        )
    ]
    for index in sorted(wanted.keys() & found.keys()):
        card, slot = wanted[index], found[index]
        pairs = {
            "uuid": (card.uuid, slot.uuid),
            "model": (card.name, slot.model),
            "minor": (card.minor, slot.minor),
        }
        for subject, (one, other) in pairs.items():
            rows.append(
                Row(
                    "agent",
                    str(index),
                    subject,
                    OK if one == other else DIFFERS,
                    f"{one}",
                    f"{other}",
                )
            )
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
    cards = sorted(_up(exporter.samples()))
    for test in asked.loads:
        if test in NVLINK_LOADS and len(cards) < 2:
            rows.append(Row("load", "", f"{test} {LOADS[test]}", SKIPPED, note="needs two cards"))
        elif time.monotonic() + asked.load_seconds > deadline:
            rows.append(Row("load", "", f"{test} {LOADS[test]}", SKIPPED, note="no time is left"))
        else:
            rows += _load(exporter, asked, test, cards, deadline)
    return rows


def _load(
    exporter: Exporter, asked: Asked, test: int, cards: Sequence[str], deadline: float
) -> list[Row]:
    is_quiet = _is_so_within(asked.rest_seconds, lambda: not _busy(exporter.samples()))
    rest = exporter.samples()
    flags = [
        "--no-dcgm-validation",
        "--target-max-value",
        f"-t{test}",
        f"-d{asked.load_seconds}",
        f"--backend={asked.backend}",
    ]
    flags += [f"--sim-gpus={asked.sim_gpus}"] if asked.sim_gpus else []
    peaks: dict[tuple[str, str], float] = {}
    began, links = time.monotonic(), _link_bytes(rest)
    rates: dict[str, float] = {}
    with tempfile.TemporaryFile("w+") as output:
        load = subprocess.Popen(
            [sys.executable, "-m", "fairlead", "gpu-load", *flags],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while load.poll() is None and time.monotonic() < deadline:
                samples = exporter.samples()
                for each in samples:
                    key = each.name, each.labels.get("gpu", "")
                    peaks[key] = max(each.value, peaks.get(key, each.value))
                now, then = _link_bytes(samples), time.monotonic()
                for card in now:
                    rates[card] = max(
                        rates.get(card, 0.0),
                        (now[card] - links.get(card, now[card])) / (then - began),
                    )
                began, links = then, now
                time.sleep(2 * COLLECT_MS / 1000)
            is_late = load.poll() is None
        finally:
            _stop(load)
        output.seek(0)
        last_line = output.read().strip().splitlines()[-1:]
    subject = f"{test} {LOADS[test]}"
    if is_late:
        return [Row("load", "", subject, SKIPPED, note="no time is left")]
    status = load.returncode
    if status == SKIP_STATUS:
        return [Row("load", "", subject, SKIPPED, note="".join(last_line))]
    if status != 0:
        return [
            Row("load", "", subject, DIFFERS, "status 0", f"status {status}", "".join(last_line))
        ]
    busy = "" if is_quiet else f"; before it: {', '.join(_busy(rest))}"
    rows = []
    for card in cards:
        before = {name: values_of(rest, name).get(card, 0.0) for name in LOADS.values()}
        row = _moved(test, card, before, peaks)
        rows.append(replace(row, note=row.note + busy))
    return (
        [*rows, *(_link_unit(card, rates.get(card), peaks) for card in cards)]
        if test == NVLINK_LOADS[0]
        else rows
    )


def _busy(samples: Iterable[Sample]) -> list[str]:
    """Profiling fields that are not at rest, on any card, each with its value."""
    own = [each for each in samples if each.name in LOADS.values()]
    return [
        f"{_short(each.name)} {each.value:.4g}" for each in own if each.value > _step(each.name)
    ]


def _step(name: str) -> float:
    return MOVED_BYTES if name.endswith("_BYTES") else MOVED


def _short(name: str) -> str:
    return name.removeprefix("DCGM_FI_PROF_")


def _link_bytes(samples: Iterable[Sample]) -> dict[str, float]:
    """By card; both directions together."""
    found: dict[str, float] = {}
    for each in samples:
        if each.name == LINK_BYTES:
            found[each.labels["gpu"]] = found.get(each.labels["gpu"], 0.0) + each.value
    return found


def _link_unit(card: str, rate: float | None, peaks: Mapping[tuple[str, str], float]) -> Row:
    """The unit of NVLink's counter, by its rate beside profiling's.

    NVIDIA documents the unit for no driver.
    """
    profiled = [
        peaks[name, card]
        for name in (LOADS[test] for test in NVLINK_LOADS)
        if (name, card) in peaks
    ]
    if rate is None or not profiled:
        return Row(
            "load",
            card,
            f"unit of {LINK_BYTES}",
            SKIPPED,
            note="the card has no such counter, or no profiling",
        )
    wanted = sum(profiled)
    result = OK if abs(rate - wanted) <= LINK_SHARE * wanted else DIFFERS
    return Row(
        "load", card, f"unit of {LINK_BYTES}", result, f"{wanted:.4g} B/s", f"{rate:.4g} B/s"
    )


def _moved(
    test: int, card: str, rest: Mapping[str, float], peaks: Mapping[tuple[str, str], float]
) -> Row:
    own = LOADS[test]
    seen = {name: peaks[name, card] for name in LOADS.values() if (name, card) in peaks}
    if own not in seen:
        return Row(
            "load",
            card,
            f"{test} {own}",
            SKIPPED,
            "it moves",
            "absent",
            "the card has no such field",
        )
    moved = [name for name, peak in seen.items() if peak - rest[name] > _step(name)]
    others = ", ".join(f"{_short(name)} {seen[name]:.4g}" for name in moved if name != own)
    result = OK if own in moved else DIFFERS
    return Row(
        "load",
        card,
        f"{test} {own}",
        result,
        "it moves",
        f"{rest[own]:.4g} to {seen[own]:.4g}",
        f"moved too: {others or 'nothing'}",
    )


def check_all(asked: Asked, deadline: float) -> list[Row]:
    """All rows. `deadline`: seconds of the steady clock, when no further load begins."""
    rows = inventory_rows(asked.library)
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as loads:
        if asked.backend == "sim":
            os.environ.setdefault("FAIRLEAD_GPU_LOAD_DIR", loads)
        return rows + _served_rows(asked, deadline)


def _served_rows(asked: Asked, deadline: float) -> list[Row]:
    """The comparisons of the exporter's page: most of them while memory of each card is held."""
    library = asked.library
    with exporting(library) as exporter:
        rows = up_rows(exporter, asked)
        if not _up(exporter.samples()):
            return rows
        rows += health_rows(exporter)
        with held_memory(exporter, library) as held:
            rows += [*held, *beside_nvidia_smi(exporter), *beside_nvml(exporter, library)]
        return [*rows, *load_rows(exporter, asked, deadline)]


def as_json(rows: Sequence[Row], **about: object) -> str:
    return json.dumps({**about, "rows": [asdict(row) for row in rows]}, indent=1)


def table(rows: Sequence[Row]) -> str:
    columns = ("CHECK", "CARD", "SUBJECT", "RESULT", "WANTED", "FOUND", "NOTE")
    lines = [
        columns,
        *(
            (row.check, row.card, row.subject, row.result, row.wanted, row.found, row.note)
            for row in rows
        ),
    ]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
