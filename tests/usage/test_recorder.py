"""What the usage recorder writes, case by case (docs/spec/usage.md#recorder)."""

from __future__ import annotations

import gc
from types import FunctionType, ModuleType

import pytest
from msgspec.structs import replace
from tests.usage.recording import NODES, PODS, T0, TREES, Recording, a_node, a_pod, finished

from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.keys import LABEL_SERVING_NAME, LABEL_SERVING_TYPE
from fairlead.model.node import Condition
from fairlead.model.pod import Container, Owner
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.usage.ledger import GPU, HOUR, OPEN, ClosedBy, UsedBy

MS = 1000
START = int(T0) * MS


def rows(recording: Recording) -> list[tuple[str, float, float | None, str]]:
    """Intervals as (pod, start, end, closed by), in seconds after the start."""
    found = sorted(recording.ledger.pods.values(), key=lambda row: (row.started_at, row.pod))
    return [
        (
            row.pod,
            (row.started_at - START) / MS,
            None if row.ended_at == OPEN else (row.ended_at - START) / MS,
            row.closed_by.value,
        )
        for row in found
    ]


def begun() -> Recording:
    recording = Recording()
    recording.put(NODES, a_node("n", T0 - 100))
    recording.begin(T0)
    return recording


def test_a_pod_is_charged_from_its_bind_until_its_containers_have_finished() -> None:
    recording = begun()
    pod = a_pod("a", "n", T0 + 5)
    recording.put(PODS, pod)
    recording.look(T0 + 5.4)
    assert rows(recording) == [("a", 5, None, "")]
    recording.put(PODS, finished(pod, T0 + 65))
    recording.look(T0 + 66.2)
    assert rows(recording) == [("a", 5, 65, "finished")]
    recording.drop(PODS, pod.uid)
    recording.look(T0 + 90)
    assert rows(recording) == [("a", 5, 65, "finished")]
    (row,) = recording.ledger.pods.values()
    assert row.amount.gpu == GPU
    assert (row.amount.cpu_milli, row.amount.memory_mib) == (1000, 1024)
    assert (row.price_class.gpu, row.price_class.cpu_milli) == (8 * GPU, 64_000)


def test_a_terminating_pod_is_charged_until_its_object_is_gone() -> None:
    recording = begun()
    pod = a_pod("a", "n", T0 + 5)
    recording.put(PODS, pod)
    recording.look(T0 + 6)
    recording.put(PODS, replace(pod, deleted_at=T0 + 10))
    recording.look(T0 + 11)
    assert rows(recording) == [("a", 5, None, "")]
    recording.drop(PODS, pod.uid)
    recording.look(T0 + 40.25)
    assert rows(recording) == [("a", 5, 40.25, "deleted")]


def test_a_waiting_pod_is_not_charged() -> None:
    recording = begun()
    recording.put(PODS, a_pod("a", "", T0))
    recording.look(T0 + 6)
    assert rows(recording) == []


def test_a_resize_ends_one_interval_and_begins_another() -> None:
    recording = begun()
    pod = a_pod("a", "n", T0 + 5)
    recording.put(PODS, pod)
    recording.look(T0 + 6)
    larger = Container("main", requests={"cpu": 3000}, limits={"nvidia.com/gpu": 1})
    recording.put(PODS, replace(pod, containers=(larger,)))
    recording.look(T0 + 20)
    assert rows(recording) == [("a", 5, 20, "changed"), ("a", 20, None, "")]


def test_the_leaf_of_the_namespace_is_charged_from_the_change_of_the_tree_on() -> None:
    recording = begun()
    recording.put(PODS, a_pod("a", "n", T0 + 5, labels={"arena.kubeflow.org/console-user": "bob"}))
    recording.look(T0 + 6)
    leaf = QuotaNode("root.ml", "root.ml", "root", namespaces=("ml",))
    tree = QuotaTree("t", "kube-system", QuotaNode("root", "root", children=(leaf,)), "tree")
    recording.put(TREES, tree)
    recording.look(T0 + 30)
    found = sorted(recording.ledger.pods.values(), key=lambda row: row.started_at)
    assert [row.by for row in found] == [UsedBy("ml", "bob"), UsedBy("ml", "bob", "root.ml")]
    assert [row.closed_by for row in found] == [ClosedBy.CHANGED, ClosedBy.NOT]


def test_a_label_that_prices_match_ends_the_intervals_of_the_node_and_its_pods() -> None:
    recording = begun()
    recording.put(PODS, a_pod("a", "n", T0 + 5))
    recording.look(T0 + 6)
    recording.put(NODES, a_node("n", T0 - 100, labels={"fairlead.io/price-class": "spot"}))
    recording.look(T0 + 50)
    assert rows(recording) == [("a", 5, 50, "changed"), ("a", 50, None, "")]
    nodes = sorted(recording.ledger.nodes.values(), key=lambda row: row.started_at)
    assert [(row.ended_at - START) / MS for row in nodes[:-1]] == [50]
    assert nodes[-1].price_class.labels == (("fairlead.io/price-class", "spot"),)


def test_a_card_that_fails_under_its_pod_changes_no_price_class() -> None:
    recording = begun()
    recording.put(PODS, a_pod("a", "n", T0 + 5, gpus=8))
    recording.look(T0 + 6)
    broken = {"nvidia.com/gpu": 7, "cpu": 64_000, "memory": 256 << 30}
    recording.put(NODES, a_node("n", T0 - 100, allocatable=broken))
    recording.look(T0 + 50)
    assert rows(recording) == [("a", 5, None, "")]
    assert len(recording.ledger.nodes) == 1


def test_a_quiet_cluster_is_one_row_in_ten_seconds() -> None:
    recording = begun()
    recording.put(PODS, a_pod("a", "n", T0 + 5))
    recording.look(T0 + 6)
    before = recording.writes
    for second in range(7, 67):
        recording.look(T0 + second)
    assert recording.writes - before == 6
    assert recording.ledger.heartbeat == START + 66 * MS


def test_what_is_gone_after_an_absence_ends_at_the_heartbeat() -> None:
    recording = begun()
    recording.put(PODS, a_pod("gone", "n", T0 + 5))
    recording.put(PODS, a_pod("there", "n", T0 + 5))
    recording.look(T0 + 20)
    recording.kill()
    recording.drop(PODS, "pod-gone")
    recording.put(PODS, a_pod("new", "n", T0 + 1000))
    recording.put(PODS, finished(a_pod("brief", "n", T0 + 1000), T0 + 1500))
    recording.begin(T0 + 3600)
    assert rows(recording) == [
        ("gone", 5, 20, "inferred"),
        ("there", 5, None, ""),
        ("brief", 1000, 1500, "finished"),
        ("new", 1000, None, ""),
    ]
    assert recording.recorder is not None
    assert recording.recorder.intervals.inferred == 1
    assert [(gap.started_at - START) / MS for gap in recording.ledger.gaps.values()] == [20]


def test_a_pod_that_finished_before_an_absence_is_not_recorded_again() -> None:
    recording = begun()
    pod = a_pod("a", "n", T0 + 5)
    recording.put(PODS, pod)
    recording.look(T0 + 6)
    larger = Container("main", requests={"cpu": 3000}, limits={"nvidia.com/gpu": 1})
    pod = replace(pod, containers=(larger,))
    recording.put(PODS, pod)
    recording.look(T0 + 20)
    recording.put(PODS, finished(pod, T0 + 30))
    recording.look(T0 + 31)
    expected = [("a", 5, 20, "changed"), ("a", 20, 30, "finished")]
    for start in (40, 3600, 7200):
        recording.kill()
        recording.begin(T0 + start)
        assert rows(recording) == expected


def test_records_wait_while_the_store_is_down_and_nothing_is_lost() -> None:
    recording = begun()
    recording.put(PODS, a_pod("a", "n", T0 + 5))
    recording.look(T0 + 6)
    recording.is_down = True
    for second in range(7, 300):
        pod = a_pod(f"p{second}", "n", T0 + second)
        recording.put(PODS, pod)
        recording.look(T0 + second)
        recording.drop(PODS, pod.uid)
    recorder = recording.recorder
    assert recorder is not None
    assert recorder.waiting_since == START + 7 * MS
    assert recording.ledger.heartbeat == START + 6 * MS
    recording.is_down = False
    recording.look(T0 + 400)
    assert len(recording.ledger.pods) == 294
    assert recorder.waiting_since == 0
    assert recording.ledger.heartbeat == START + 400 * MS


def test_a_clock_that_goes_back_makes_no_negative_time() -> None:
    recording = begun()
    recording.put(PODS, a_pod("a", "n", T0 + 50))
    recording.look(T0 + 51)
    recording.drop(PODS, "pod-a")
    recording.put(PODS, a_pod("b", "n", T0 + 52))
    recording.look(T0 + 20)
    recording.drop(PODS, "pod-b")
    recording.look(T0 + 10)
    assert rows(recording) == [("b", 20, 20, "deleted"), ("a", 50, 50, "deleted")]


def reading(at: float, ratio: float, pod: str = "a", card: int = 0) -> GpuReading:
    holders = (GpuHolder("ml", pod),)
    return GpuReading(
        "n", card, f"GPU-{card}", utilization_ratio=ratio, read_at=at, holders=holders
    )


def test_a_card_is_idle_for_the_time_of_its_readings_and_unknown_for_the_rest() -> None:
    recording = begun()
    hour = START - START % HOUR + HOUR
    began = hour / MS + 10
    recording.put(PODS, a_pod("a", "n", began))
    recording.look(began)
    recorder = recording.recorder
    assert recorder is not None
    for at in (20.0, 50.0, 80.0, 1000.0):
        recorder.readings([reading(hour / MS + at, 0.0)], hour / MS + at)
    recording.look(hour / MS + 3600 + 121)
    (row,) = recording.ledger.hours_of_pods.values()
    # 20 to 50 and 50 to 80, and of the reading at 1,000 s the last 120
    assert (row.hour, row.busy, row.idle) == (hour, 0, 180 * MS * GPU)
    assert row.unknown == (3590 - 180) * MS * GPU


def test_a_reading_after_hours_without_one_counts_back_two_minutes() -> None:
    recording = begun()
    hour = START - START % HOUR + HOUR
    recording.put(PODS, a_pod("a", "n", hour / MS))
    recording.look(hour / MS)
    recorder = recording.recorder
    assert recorder is not None
    recorder.readings([reading(hour / MS + 10, 0.0)], hour / MS + 10)
    for ended in (1, 2, 3):
        recording.look((hour + ended * HOUR) / MS + 121)
    late = (hour + 3 * HOUR) / MS + 1000
    recorder.readings([reading(late, 0.0)], late)
    recording.look((hour + 4 * HOUR) / MS + 121)
    found = {row.hour: row for row in recording.ledger.hours_of_pods.values()}
    idle = [found[hour + number * HOUR].idle for number in range(4)]
    assert idle == [0, 0, 0, 120 * MS * GPU]


def test_cards_of_nodes_that_are_gone_are_forgotten() -> None:
    recording = begun()
    recording.put(PODS, a_pod("a", "n", T0))
    recording.look(T0)
    recorder = recording.recorder
    assert recorder is not None
    recorder.readings([reading(T0 + 10, 0.0)], T0 + 10)
    assert "GPU-0" in texts_in(recorder.hours)
    recording.drop(PODS, "pod-a")
    recording.drop(NODES, "node-n")
    recording.look(T0 + 20)
    recording.look(T0 + 2 * 3600)
    assert "GPU-0" not in texts_in(recorder.hours)


def test_after_a_kill_the_hour_of_a_node_has_what_pods_held_that_ended_before() -> None:
    recording = begun()
    hour = START - START % HOUR + HOUR
    at = hour / MS
    for name, gpus in (("ended", 2), ("finished", 1), ("there", 3)):
        recording.put(PODS, a_pod(name, "n", at + 100, gpus=gpus))
    recording.look(at + 100)
    recording.drop(PODS, "pod-ended")
    recording.put(PODS, finished(a_pod("finished", "n", at + 100), at + 600))
    recording.look(at + 600)
    recording.kill()
    recording.begin(at + 900)
    recording.look(at + 3600 + 121)
    row = next(each for each in recording.ledger.hours_of_nodes.values() if each.hour == hour)
    held = 500 * (2 + 1) + 3500 * 3
    assert (row.held, row.free) == (held * MS * GPU, (8 * 3600 - held) * MS * GPU)


def test_an_end_in_order_and_then_a_kill_count_no_time_of_a_node_twice() -> None:
    """The time between the end in order and the heartbeat of the kill is in no row."""
    recording = begun()
    hour = START - START % HOUR + HOUR
    at = hour / MS
    recording.put(PODS, a_pod("early", "n", at, gpus=4))
    recording.look(at)
    recording.drop(PODS, "pod-early")
    recording.look(at + 300)
    recording.end(at + 600)
    recording.begin(at + 600)
    for name, gpus in (("ended", 2), ("there", 3)):
        recording.put(PODS, a_pod(name, "n", at + 700, gpus=gpus))
    recording.look(at + 700)
    recording.drop(PODS, "pod-ended")
    recording.look(at + 900)
    recording.kill()
    recording.begin(at + 1000)
    recording.look(at + 3600 + 121)
    row = next(each for each in recording.ledger.hours_of_nodes.values() if each.hour == hour)
    held, total = 4 * 300 + 3 * 2700, 8 * (600 + 2700)
    assert (row.held, row.free) == (held * MS * GPU, (total - held) * MS * GPU)


def test_one_busy_reading_makes_a_card_busy_for_the_time_of_its_readings() -> None:
    recording = begun()
    hour = START - START % HOUR + HOUR
    recording.put(PODS, a_pod("a", "n", hour / MS, gpus=2))
    recording.look(hour / MS)
    recorder = recording.recorder
    assert recorder is not None
    for second in range(0, 3601, 30):
        at = hour / MS + second
        busy = 0.01 if second == 600 else 0.0099
        recorder.readings([reading(at, busy), reading(at, 0.0, card=1)], at)
    recording.look(hour / MS + 3600 + 121)
    (row,) = recording.ledger.hours_of_pods.values()
    assert (row.busy, row.idle, row.unknown) == (HOUR * GPU, HOUR * GPU, 0)
    (record,) = recording.ledger.pods.values()
    assert [card.uuid for card in record.cards] == ["GPU-0", "GPU-1"]


def test_an_end_in_order_stores_the_hour_so_far_and_the_next_recorder_goes_on() -> None:
    recording = begun()
    hour = START - START % HOUR + HOUR
    recording.put(PODS, a_pod("a", "n", hour / MS))
    recording.look(hour / MS)
    for second in (0, 30, 60):
        assert recording.recorder is not None
        recording.recorder.readings([reading(hour / MS + second, 0.0)], hour / MS + second)
    recording.end(hour / MS + 60)
    (row,) = recording.ledger.hours_of_pods.values()
    assert (row.busy, row.idle, row.unknown) == (0, 60 * MS * GPU, 0)
    recorder = recording.begin(hour / MS + 90)
    for second in (90, 120):
        recorder.readings([reading(hour / MS + second, 0.5)], hour / MS + second)
    recording.look(hour / MS + 3600 + 121)
    row = next(each for each in recording.ledger.hours_of_pods.values() if each.hour == hour)
    assert (row.busy, row.idle) == (90 * MS * GPU, 0)
    assert row.busy + row.idle + row.unknown == HOUR * GPU


def test_stranded_and_broken_gpus_are_counted_apart_with_the_holders() -> None:
    recording = Recording()
    hour = START - START % HOUR + HOUR
    left = {"nvidia.com/gpu": 7, "cpu": 64_000, "memory": 256 << 30}
    recording.put(NODES, a_node("n", T0 - 100, allocatable=left))
    recording.put(PODS, a_pod("greedy", "n", T0 - 50, gpus=2, cpu=63_500))
    recording.begin(hour / MS - 600)
    half = hour / MS + 1800
    recording.put(PODS, a_pod("waits", "", half, gpus=4))
    recording.look(half)
    for second in range(0, 1801, 10):
        recording.look(half + second)
    recording.look(hour / MS + 3600 + 121)
    row = next(each for each in recording.ledger.hours_of_nodes.values() if each.hour == hour)
    assert (row.held, row.broken) == (2 * HOUR * GPU, HOUR * GPU)
    assert (row.free, row.stranded) == (5 * HOUR * GPU // 2, 5 * HOUR * GPU // 2)
    assert (row.lacking, row.holders) == ("cpu", (("ml", "greedy"),))


def texts_in(root: object) -> set[str]:
    """All texts that are reachable from an object."""
    found: dict[int, object] = {}
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) not in found and not isinstance(each, type | ModuleType | FunctionType):
            found[id(each)] = each
            waiting += gc.get_referents(each)
            waiting += each if isinstance(each, dict) else ()  # keys that are texts are left out
    return {each for each in found.values() if isinstance(each, str)}


def test_nothing_is_remembered_of_serving_pods_that_are_gone() -> None:
    recording = begun()
    labels = {LABEL_SERVING_NAME: "chat", LABEL_SERVING_TYPE: "custom-serving"}
    owner = Owner("Deployment", "chat", "chat-uid", controller=True)
    for number in range(3):
        at = T0 + 10 * number
        pod = replace(a_pod(f"chat-{number}", "n", at), labels=labels, owners=(owner,))
        recording.put(PODS, pod)
        recording.look(at + 1)
        recording.drop(PODS, pod.uid)
        recording.look(at + 2)
    assert {row.job.name for row in recording.ledger.pods.values()} == {"chat"}
    uids = {row.pod_uid for row in recording.ledger.pods.values()}
    assert len(uids) == 3
    recording.look(T0 + 4 * 3600)
    assert texts_in(recording.recorder).isdisjoint(uids)


def test_states_are_kept_from_change_to_change() -> None:
    recording = begun()
    pod = a_pod("a", "", T0)
    recording.put(PODS, pod)
    recording.look(T0 + 1)
    condition = Condition("PodScheduled", "False", "Unschedulable", "no room")
    recording.put(PODS, replace(pod, conditions=(condition,)))
    recording.look(T0 + 2)
    recording.put(PODS, replace(pod, conditions=(condition,)))
    recording.look(T0 + 3)
    recording.drop(PODS, pod.uid)
    recording.look(T0 + 4)
    spans = sorted(
        ((row.started_at - START) / MS, (row.ended_at - START) / MS)
        for row in recording.ledger.states.values()
        if row.kind == "pod"
    )
    assert spans == [(1, 2), (2, 4)]


def test_the_heartbeat_of_a_large_first_list_is_that_of_its_last_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A recorder that is killed between two parts begins from nothing again."""
    monkeypatch.setattr("fairlead.rules.usage.recording.pending.MOST_RECORDS", 20)
    recording = Recording()
    recording.put(NODES, a_node("n", T0 - 100))
    for number in range(50):
        recording.put(PODS, a_pod(f"p{number}", "n", T0 - 50, gpus=0))
    recording.begin(T0)
    beats = [batch.at for batch in recording.ledger.batches]
    assert len(beats) > 3
    assert beats == [0] * (len(beats) - 1) + [START]
