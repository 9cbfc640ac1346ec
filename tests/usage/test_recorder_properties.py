"""Random lives of nodes, pods and recorders: what the ledger has in the end adds up.

The oracle keeps the truth of each pod as docs/spec/usage.md defines it, and adds areas up interval
by interval in whole milliseconds.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.recording import (
    NODES,
    PODS,
    T0,
    KilledError,
    Recording,
    a_node,
    a_pod,
    at_once,
    finished,
    never,
)

from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.pod import Container, Pod
from fairlead.model.usage.actions import UsageAction, WriteLedger
from fairlead.model.usage.ledger import HOUR, OPEN, NodeInterval, PodInterval

CPU = 64_000
GPUS = 8
Step = tuple[str, int, int, int]
"""What happens, after how many milliseconds, to which one, and how much."""


class Truth(Struct):
    """A pod as it was: when it was bound, and when it finished or was seen to be gone."""

    pod: Pod
    bound: int
    end: int = OPEN
    resized: bool = False


class Life:
    """Plays steps on a recording. A pod is only bound where it fits, as a scheduler does."""

    def __init__(self, recording: Recording | None = None) -> None:
        self.now = int(T0) * 1000
        self.recording = Recording() if recording is None else recording
        self.truths: dict[str, Truth] = {}
        self.seen: set[str] = set()
        self.is_away = False
        self.was_away = False
        self.ended_in_order = False
        for name in ("a", "b"):
            self.recording.put(NODES, a_node(name, T0 - 100))
        self.recording.begin(T0)

    @property
    def seconds(self) -> float:
        return self.now / 1000

    def play(self, steps: list[Step], *, is_late: bool = False) -> None:
        """`is_late`: the recorder sees all changes of a moment at once."""
        for place, (what, wait, which, much) in enumerate(steps):
            self.now += wait
            getattr(self, f"_{what}")(which, much)
            if is_late and place + 1 < len(steps) and not steps[place + 1][1]:
                continue
            self.read()
            self.recording.look(self.seconds)
            self.seen |= {each.uid for each in self.recording.objects.get(PODS, {}).values()}
        if self.is_away:
            self._return(0, 0)
        self.now += HOUR + 121_000
        self.recording.look(self.seconds)
        self.recording.end(self.seconds)

    def read(self) -> None:
        """Each pod's card is read, some of them busy."""
        recorder = self.recording.recorder
        if recorder is not None:
            recorder.readings(
                [
                    GpuReading(
                        truth.pod.node,
                        number,
                        f"GPU-{truth.pod.node}-{number}",
                        utilization_ratio=(number % 3) * 0.01,
                        read_at=self.seconds,
                        holders=(GpuHolder("ml", truth.pod.name),),
                    )
                    for number, truth in enumerate(self.living())
                ],
                self.seconds,
            )

    def living(self) -> list[Truth]:
        return [each for each in self.truths.values() if each.end == OPEN]

    def _bind(self, which: int, much: int) -> None:
        node = "ab"[which % 2]
        if node not in {each.name for each in self.recording.objects[NODES].values()}:
            return
        gpus, cpu = much % 9, 1000 * (1 + much % 32)
        held = [each.pod for each in self.living() if each.pod.node == node]
        held_gpus = sum(_gpus(pod) for pod in held)
        held_cpu = sum(pod.requests["cpu"] for pod in held)
        if held_gpus + gpus > GPUS or held_cpu + cpu > CPU:
            return
        pod = a_pod(f"p{len(self.truths)}", node, self.seconds, gpus=gpus, cpu=cpu)
        self.truths[pod.uid] = Truth(pod, self.now // 1000 * 1000)
        self.recording.put(PODS, pod)

    def _finish(self, which: int, much: int) -> None:
        if living := self.living():
            truth = living[which % len(living)]
            truth.end = max(truth.bound, self.now // 1000 * 1000)
            self.recording.put(PODS, finished(truth.pod, truth.end / 1000))

    def _delete(self, which: int, much: int) -> None:
        if living := self.living():
            truth = living[which % len(living)]
            truth.end = self.now
            self.recording.drop(PODS, truth.pod.uid)

    def _resize(self, which: int, much: int) -> None:
        """Smaller only, so that it always fits."""
        if living := self.living():
            truth = living[which % len(living)]
            cpu = max(1, truth.pod.requests["cpu"] // 2)
            part = truth.pod.containers[0]
            smaller = Container("main", requests={**part.requests, "cpu": cpu}, limits=part.limits)
            truth.pod, truth.resized = replace(truth.pod, containers=(smaller,)), True
            self.recording.put(PODS, truth.pod)

    def _break(self, which: int, much: int) -> None:
        """A card of the node fails under its pods, or comes back."""
        nodes = list(self.recording.objects[NODES].values())
        if nodes:
            node = nodes[which % len(nodes)]
            left = {**node.allocatable, "nvidia.com/gpu": GPUS - much % 2}
            self.recording.put(NODES, replace(node, allocatable=left))

    def _relabel(self, which: int, much: int) -> None:
        nodes = list(self.recording.objects[NODES].values())
        if nodes:
            labels = {"fairlead.io/price-class": f"c{much % 3}"}
            self.recording.put(NODES, replace(nodes[which % len(nodes)], labels=labels))

    def _shrink(self, which: int, much: int) -> None:
        """Less CPU is allocatable, perhaps less than is held."""
        nodes = list(self.recording.objects[NODES].values())
        if nodes:
            node = nodes[which % len(nodes)]
            left = {**node.allocatable, "cpu": CPU - 1000 * (much % 48)}
            self.recording.put(NODES, replace(node, allocatable=left))

    def _leave(self, which: int, much: int) -> None:
        self.was_away = self.is_away = True
        if which % 2 and self.recording.recorder is not None:
            self.ended_in_order = True
            self.recording.end(self.seconds)
        else:
            self.recording.kill()

    def _return(self, which: int, much: int) -> None:
        if self.is_away:
            self.is_away = False
            self.recording.begin(self.seconds)


def _gpus(pod: Pod) -> int:
    return pod.limits.get("nvidia.com/gpu", 0)


KINDS = ("bind", "finish", "delete", "resize", "break", "relabel", "shrink")
WAITS = st.sampled_from((0, 1, 250, 999, 1000, 7_300, 30_000, 61_500, 900_000, 2_000_000))
WATCHED = st.lists(
    st.tuples(
        st.sampled_from(("bind", "bind", *KINDS)), WAITS, st.integers(0, 9), st.integers(0, 99)
    ),
    max_size=40,
)
ABSENT = st.lists(
    st.tuples(
        st.sampled_from(("bind", "bind", *KINDS, "leave", "return", "return")),
        WAITS,
        st.integers(0, 9),
        st.integers(0, 99),
    ),
    max_size=40,
)


IN_A_SECOND = st.lists(
    st.tuples(
        st.sampled_from(
            ("bind", "bind", "bind", "finish", "delete", "resize", "shrink", "leave", "return")
        ),
        st.sampled_from((0, 0, 1, 1, 250)),
        st.integers(0, 3),
        st.integers(0, 99),
    ),
    max_size=14,
)


def overlap(row: PodInterval | NodeInterval, start: int, end: int) -> int:
    return max(0, min(row.ended_at, end) - max(row.started_at, start))


def check_sums(ledger: MemoryLedger) -> None:
    """No negative time, no pod above its node, and the class of a pod is that of its node."""
    nodes = sorted(ledger.nodes.values(), key=lambda row: (row.node, row.started_at))
    for row in (*ledger.pods.values(), *nodes):
        assert row.ended_at >= row.started_at
    for one, other in pairwise(nodes):
        assert one.node != other.node or one.ended_at == other.started_at
    edges = sorted(
        {row.started_at for row in (*ledger.pods.values(), *nodes)}
        | {row.ended_at for row in (*ledger.pods.values(), *nodes)}
    )
    for at in edges:
        here = [row for row in ledger.pods.values() if row.started_at <= at < row.ended_at]
        for node in (row for row in nodes if row.started_at <= at < row.ended_at):
            mine = [row for row in here if row.node == node.node]
            for row in mine:
                assert row.price_class == node.price_class
            most = node.price_class
            assert sum(row.amount.gpu for row in mine) <= most.gpu
            assert sum(row.amount.cpu_milli for row in mine) <= most.cpu_milli
            assert sum(row.amount.memory_mib for row in mine) <= most.memory_mib


def check_contiguous(ledger: MemoryLedger) -> dict[str, tuple[int, int]]:
    """Intervals of a pod follow one another; its first beginning and its last end."""
    by_pod: dict[str, list[PodInterval]] = defaultdict(list)
    for row in ledger.pods.values():
        by_pod[row.pod_uid].append(row)
    found = {}
    for uid, rows in by_pod.items():
        rows.sort(key=lambda row: (row.started_at, row.ended_at))
        for one, other in pairwise(rows):
            assert one.ended_at == other.started_at
        found[uid] = rows[0].started_at, rows[-1].ended_at
    return found


def check_span(truth: Truth, start: int, end: int) -> None:
    """Times of the API are whole seconds: a bind that is seen after an end, or an end that is seen
    after a change, counts from then on.
    """
    assert truth.end <= end < truth.end + 1000
    assert truth.bound <= start < truth.bound + 1000 or start == end


def check_hours(ledger: MemoryLedger, *, is_complete: bool) -> None:
    for (uid, started_at, hour), row in ledger.hours_of_pods.items():
        interval = ledger.pods[uid, started_at]
        held = interval.amount.gpu * overlap(interval, hour, hour + HOUR)
        assert min(row.busy, row.idle, row.unknown) >= 0
        if is_complete and interval.ended_at != OPEN:
            assert row.busy + row.idle + row.unknown == held
    for (uid, started_at, hour), row in ledger.hours_of_nodes.items():
        node = ledger.nodes[uid, started_at]
        assert min(row.held, row.free, row.stranded, row.broken) >= 0
        if not is_complete or node.ended_at == OPEN:
            continue
        time = overlap(node, hour, hour + HOUR)
        assert row.held + row.free + row.stranded + row.broken == node.price_class.gpu * time
        start, end = max(hour, node.started_at), min(hour + HOUR, node.ended_at)
        pods = [each for each in ledger.pods.values() if each.node == node.node]
        assert row.held == sum(each.amount.gpu * overlap(each, start, end) for each in pods)


def check_hours_of_kills(ledger: MemoryLedger) -> None:
    """After kills alone, the hours of nodes that are stored have the time of all that is stored."""
    for (uid, started_at, hour), row in ledger.hours_of_nodes.items():
        node = ledger.nodes[uid, started_at]
        start = max(hour, node.started_at)
        end = min(hour + HOUR, node.ended_at, ledger.heartbeat)
        pods = [each for each in ledger.pods.values() if each.node == node.node]
        assert row.held == sum(each.amount.gpu * overlap(each, start, end) for each in pods)
        total = row.held + row.free + row.stranded + row.broken
        assert total == node.price_class.gpu * (end - start)


@given(WATCHED)
@example(  # a pod gets the room that another gave up in the same second, on a node that shrank
    [("bind", 0, 0, 12), ("shrink", 0, 0, 40), ("resize", 1, 0, 0), ("bind", 0, 0, 11)]
)
@example(
    [
        ("bind", 0, 0, 45),
        ("bind", 0, 0, 24),
        ("shrink", 0, 0, 19),
        ("resize", 1, 0, 0),
        ("bind", 0, 0, 45),
    ]
)
@settings(max_examples=200, deadline=None)
def test_a_watched_life_is_recorded_exactly(steps: list[Step]) -> None:
    life = Life()
    life.play(steps)
    ledger = life.recording.ledger
    check_sums(ledger)
    found = check_contiguous(ledger)
    check_hours(ledger, is_complete=True)
    assert found.keys() == life.truths.keys()
    for uid, truth in life.truths.items():
        start, end = found[uid]
        check_span(truth, start, end)
    assert {row.closed_by.value for row in ledger.pods.values()} <= {
        "",
        "finished",
        "deleted",
        "changed",
    }


@given(IN_A_SECOND, st.booleans())
@example(  # seen at once: the first of two pods fits since its bind, the second never does
    [
        *[("bind", 0, 0, 0)] * 6,
        ("bind", 0, 0, 25),
        ("shrink", 0, 0, 31),
        ("resize", 1, 0, 0),
        ("bind", 0, 0, 0),
        ("bind", 0, 0, 0),
    ],
    True,
)
@example(  # another recorder sees the pod that got the room
    [("bind", 0, 0, 3), ("delete", 1, 0, 0), ("leave", 0, 0, 0), ("bind", 0, 0, 42)],
    False,
)
@example(
    [
        ("bind", 1, 0, 61),
        ("resize", 0, 0, 0),
        ("delete", 0, 0, 0),
        ("leave", 0, 0, 0),
        ("bind", 0, 0, 2),
    ],
    False,
)
@settings(max_examples=200, deadline=None)
def test_what_happens_within_a_second_adds_up(steps: list[Step], is_late: bool) -> None:
    life = Life()
    life.play(steps, is_late=is_late)
    ledger = life.recording.ledger
    check_sums(ledger)
    found = check_contiguous(ledger)
    check_hours(ledger, is_complete=not life.was_away)
    for uid, (start, end) in found.items():
        if uid in life.recording.objects.get(PODS, {}):
            check_span(life.truths[uid], start, end)
    if not life.was_away:
        assert found.keys() == life.seen


@given(ABSENT)
@settings(max_examples=200, deadline=None)
def test_after_absences_what_the_api_shows_is_right_and_the_rest_is_inferred(
    steps: list[Step],
) -> None:
    life = Life()
    life.play(steps)
    ledger = life.recording.ledger
    check_sums(ledger)
    found = check_contiguous(ledger)
    check_hours(ledger, is_complete=not life.was_away)
    if not life.ended_in_order:
        check_hours_of_kills(ledger)
    shown = life.recording.objects.get(PODS, {})
    for uid in shown:
        truth, (start, end) = life.truths[uid], found[uid]
        check_span(truth, start, end)
    for row in ledger.pods.values():
        truth = life.truths[row.pod_uid]
        if row.pod_uid not in shown and row.closed_by == "inferred":
            assert row.ended_at <= max(truth.end, row.started_at)


@given(WATCHED)
@settings(max_examples=100, deadline=None)
def test_a_batch_may_be_written_again(steps: list[Step]) -> None:
    life = Life()
    life.play(steps)
    ledger = life.recording.ledger
    before = (
        dict(ledger.pods),
        dict(ledger.nodes),
        dict(ledger.states),
        dict(ledger.hours_of_pods),
    )
    for batch in tuple(ledger.batches)[-1:]:
        at_once(ledger.write_ledger(ledger.epoch, batch))
    assert before == (ledger.pods, ledger.nodes, ledger.states, ledger.hours_of_pods)


STORY: list[Step] = [
    ("bind", 1000, 0, 2),
    ("bind", 2000, 1, 8),
    ("resize", 30_000, 0, 0),
    ("bind", 400, 0, 4),
    ("relabel", 61_500, 0, 1),
    ("finish", 7_300, 1, 0),
    ("delete", 900, 0, 0),
    ("bind", 100, 0, 6),
    ("break", 30_000, 0, 1),
    ("delete", 900_000, 0, 0),
    ("bind", 250, 0, 3),
]


def ends(ledger: MemoryLedger) -> list[tuple[str, int, int, object, object]]:
    return sorted(
        (row.pod_uid, row.started_at, row.ended_at, row.amount, row.price_class)
        for row in ledger.pods.values()
    )


class KilledAt(Recording):
    """Its recorder is killed once, before or after the ledger has the write of this number, and
    begins again at once.
    """

    def __init__(self, number: int, *, is_stored: bool) -> None:
        super().__init__()
        self._number = number
        self.before, self.after = (never, self._kill) if is_stored else (self._kill, never)

    def _kill(self, action: UsageAction) -> None:
        if isinstance(action, WriteLedger) and self.writes >= self._number:
            self.before = self.after = never
            raise KilledError

    def look(self, now: float) -> None:
        try:
            super().look(now)
        except KilledError:
            self.kill()
            self.begin(now)

    def end(self, now: float) -> None:
        try:
            super().end(now)
        except KilledError:
            self.kill()
            self.begin(now)
            super().end(now)


def killed_at(number: int, *, is_stored: bool) -> MemoryLedger:
    recording = KilledAt(number, is_stored=is_stored)
    Life(recording).play(STORY)
    assert recording.before is recording.after, "it was not killed"
    return recording.ledger


def test_killed_after_any_write_the_end_is_as_undisturbed() -> None:
    life = Life()
    life.play(STORY)
    assert life.recording.writes > 10
    for number in range(2, life.recording.writes):
        ledger = killed_at(number, is_stored=True)
        assert ends(ledger) == ends(life.recording.ledger), number


def test_killed_before_any_write_only_what_the_api_does_not_show_is_inferred() -> None:
    life = Life()
    life.play(STORY)
    expected = check_contiguous(life.recording.ledger)
    for number in range(2, life.recording.writes - 1):
        ledger = killed_at(number, is_stored=False)
        check_sums(ledger)
        found = check_contiguous(ledger)
        assert found.keys() == expected.keys(), number
        last = {
            row.pod_uid: row
            for row in ledger.pods.values()
            if row.ended_at == found[row.pod_uid][1]
        }
        for uid, (start, end) in expected.items():
            assert found[uid][0] == start
            assert found[uid][1] == end or last[uid].closed_by == "inferred", number


@given(
    st.lists(
        st.tuples(st.sampled_from(("bind", "finish", "delete")), st.integers(-10_000, 10_000)),
        max_size=25,
    )
)
@settings(max_examples=150, deadline=None)
def test_a_clock_that_steps_makes_no_negative_time(steps: list[tuple[str, int]]) -> None:
    life = Life()
    for place, (what, wait) in enumerate(steps):
        life.now += wait
        getattr(life, f"_{what}")(place, place)
        life.read()
        life.recording.look(life.seconds)
    life.now += 2 * HOUR
    life.recording.look(life.seconds)
    ledger = life.recording.ledger
    assert all(row.ended_at >= row.started_at for row in ledger.pods.values())
    for row in ledger.hours_of_pods.values():
        assert min(row.busy, row.idle, row.unknown) >= 0
