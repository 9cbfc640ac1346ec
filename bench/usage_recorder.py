"""The usage recorder's decider over 50,000 pods: its first list, quiet time, and a bind."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Iterable

from msgspec.structs import replace

from bench.support.options import options
from fairlead.kinds.job_marks import AllJobMarks
from fairlead.model.actions import Outcome
from fairlead.model.changes import KIND_NODES, KIND_PODS, changed, listed
from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, Pod, PodPhase
from fairlead.model.usage.actions import ClaimLedger, UsageAction, WriteLedger
from fairlead.model.usage.ledger import DAY, LedgerClaim
from fairlead.rules.usage.recording.recorder import UsageRecorder
from fairlead.wire.usage.states import state_body

GPUS = 8
T0 = 1_780_000_000.0
AMOUNTS = {"nvidia.com/gpu": GPUS, "cpu": 64_000, "memory": 256 << 30}
PART = Container(
    "main",
    requests={"nvidia.com/gpu": 1, "cpu": 4000, "memory": 16 << 30},
    limits={"nvidia.com/gpu": 1},
)


class Written:
    """Carries actions out at once and counts them."""

    def __init__(self, recorder: UsageRecorder) -> None:
        self.recorder = recorder
        self.batches = self.rows = 0

    def look(self, now: float) -> None:
        waiting: list[UsageAction] = [a for a in self.recorder.look(now) if a is not None]
        while waiting:
            action = waiting.pop(0)
            if isinstance(action, ClaimLedger):
                self.recorder.begin(LedgerClaim(1), 0, now)
            elif isinstance(action, WriteLedger):
                batch = action.batch
                self.batches += 1
                self.rows += len(batch.pods) + len(batch.pod_hours) + len(batch.node_hours)
            waiting += self.recorder.done(action, Outcome(), now)


def pod(number: int) -> Pod:
    bound = Condition("PodScheduled", "True", at=T0 - 3600)
    return Pod(
        f"team-{number % 50}",
        f"pod-{number}",
        f"uid-{number}",
        node=f"node-{number // GPUS}",
        phase=PodPhase.RUNNING,
        conditions=(bound,),
        containers=(PART,),
    )


def readings(count: int, at: float) -> list[GpuReading]:
    return [
        GpuReading(
            f"node-{number // GPUS}",
            number % GPUS,
            f"GPU-{number}",
            utilization_ratio=0.5,
            read_at=at,
            holders=(GpuHolder(f"team-{number % 50}", f"pod-{number}"),),
        )
        for number in range(count)
    ]


def timed(name: str, work: Iterable[object]) -> float:
    began = time.process_time()
    for _ in work:
        pass
    took = time.process_time() - began
    print(f"{name}: {took:.2f} s CPU", flush=True)
    return took


def measure_usage_recorder() -> None:
    """The usage recorder's decider over many pods: its first list, quiet time, and a bind."""
    parser = options(measure_usage_recorder)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--minutes", type=int, default=65, help="quiet time")
    chosen = parser.parse_args()
    count, minutes = chosen.pods, chosen.minutes
    recorder = UsageRecorder(
        (), (), state_body, AllJobMarks(), lambda at: (at - at % DAY, at + DAY)
    )
    written = Written(recorder)
    ready = (Condition("Ready", "True"),)
    nodes = [
        Node(f"node-{n}", f"node-uid-{n}", capacity=AMOUNTS, allocatable=AMOUNTS, conditions=ready)
        for n in range(-(-count // GPUS))
    ]
    for kind in recorder.kinds:
        rows: dict[str, object] = {}
        if kind == KIND_PODS:
            rows = {each.uid: each for each in map(pod, range(count))}
        elif kind == KIND_NODES:
            rows = {each.uid: each for each in nodes}
        recorder.observe(listed(kind, rows))

    def first() -> Iterable[object]:
        for step in range(20):
            yield written.look(T0 + step)

    timed(f"first list of {count} pods, {len(nodes)} nodes", first())
    rows_of_list, written.batches, written.rows = written.rows, 0, 0
    cards = readings(count, T0)

    reading = looking = 0.0
    for second in range(20, 60 * minutes):
        if second % 30 == 0:
            made = _at(cards, T0 + second)  # to read an exporter's page is not measured here
            began = time.process_time()
            recorder.readings(made, T0 + second)
            reading += time.process_time() - began
        began = time.process_time()
        written.look(T0 + second)
        looking += time.process_time() - began
    share = 100 * (reading + looking) / (60 * minutes)
    print(f"readings: {reading:.2f} s CPU; looks: {looking:.2f} s CPU")
    per_beat = written.batches / (6 * minutes)
    print(f"quiet: {share:.2f} % of a core, {per_beat:.2f} batches in 10 s")
    print(f"rows of hours: {written.rows}; rows of the first list: {rows_of_list}")
    spans = []
    for number in range(200):
        now = T0 + 60 * minutes + number
        began = time.perf_counter()
        recorder.observe(changed(KIND_PODS, f"new-{number}", pod(count + number)))
        written.look(now)
        spans.append(1000 * (time.perf_counter() - began))
    spans.sort()
    print(f"a bind to its write: {statistics.median(spans):.2f} ms, p99 {spans[-3]:.2f} ms")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory: {peak:.0f} MiB")


def _at(gpus: list[GpuReading], now: float) -> list[GpuReading]:
    return [replace(each, read_at=now) for each in gpus]
