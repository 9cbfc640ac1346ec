"""The list "Needs attention": at most seven lines, the worst first.

Each has a count, objects and a time.

Broken objects come first, then waiting ones, then wasted GPUs. A line is about one kind of trouble;
broken cards with different faults have separate lines, because each fault needs a different action.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from fairlead.console.boards.gpu_map_cells import withheld_gpus
from fairlead.console.boards.idle_cards import Idleness
from fairlead.console.boards.rows import by_count
from fairlead.console.pages.cluster import AttentionLine, AttentionObject, StarvedLeaf
from fairlead.console.pages.envelope import Scalar, Sentence, counted, gpu_count, neat, timestamp
from fairlead.console.pages.jobs import JobRow
from fairlead.model.devices.xid import xid_text
from fairlead.model.keys import QUOTA_GATE
from fairlead.model.node import Node
from fairlead.model.occupancy import CardOccupancy, NodeOccupancy
from fairlead.model.pod import ContainerState, Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.jobs.waiting import UNSCHEDULABLE
from fairlead.rules.nodes.status import is_ready, is_silent

LINES_MAX: Final = 7
OBJECTS_MAX: Final = 3
"""Objects named per line; the others are counted."""
STUCK_SECONDS: Final = 120.0
"""Time after the end of its grace period from which a terminating pod needs attention."""
LONG_WAIT_SECONDS: Final = 600.0
"""Waiting time from which a job or pod needs attention."""
_IMAGE_REASONS: Final = frozenset(
    ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull")
)
_CRASH_LOOP: Final = "CrashLoopBackOff"
_LEVELS: Final = ("broken", "waiting", "wasted")
_OWN_WISH: Final = frozenset(("Suspended",))
"""Reasons that a user chose: they need no attention."""


class _TroubledObject(Struct, frozen=True, gc=False):
    """One object in trouble; `since`: epoch seconds, None = unknown."""

    about: AttentionObject
    since: float | None


def hardware_lines(nodes: Sequence[NodeOccupancy]) -> tuple[AttentionLine, ...]:
    """The lines about nodes and cards. `nodes`: those with GPUs."""
    return (*_node_lines([each.node for each in nodes], nodes), *_card_lines(nodes))


def attention_lines(
    snapshot: ClusterSnapshot,
    troubled: Iterable[Pod],
    hardware: Iterable[AttentionLine],
    starved: Sequence[StarvedLeaf],
    leaf_of: Mapping[str, str],
    job_by_pod: Mapping[str, str],
    jobs: Iterable[tuple[JobRow, float | None]],
    idle: Idleness,
    now: float,
) -> list[AttentionLine]:
    """`troubled`: `is_troubled` pods that ask for GPUs; `hardware`: those of `hardware_lines`;
    `starved`: leaves, the worst first; `leaf_of`: namespace -> path of its leaf.

    `job_by_pod`: key of a pod -> `type/name`. `jobs`: those that wait, and since when. Pods of
    waiting jobs appear as jobs.
    """

    def of_pod(pod: Pod) -> AttentionObject:
        return _pod(pod, job_by_pod)

    found = (
        *hardware,
        *_starved_lines(starved, snapshot.pods, leaf_of),
        *_job_lines(jobs, now),
        *_pod_lines(troubled, snapshot.node_by_name, of_pod, now),
        *_idle_lines(idle, of_pod),
    )
    return sorted(found, key=lambda line: _LEVELS.index(line.level))[:LINES_MAX]


def _node_lines(
    gpu_nodes: Sequence[Node], nodes: Sequence[NodeOccupancy]
) -> Iterator[AttentionLine]:
    cards = {each.node.name: each.gpus_total for each in nodes}
    silent = [_node(node) for node in gpu_nodes if is_silent(node)]
    gpus = sum(cards[thing.about.name] for thing in silent)
    text = (
        f"{counted(len(silent), 'node')} unreachable; "
        f"what runs on {'its' if len(silent) == 1 else 'their'} {counted(gpus, 'GPU')} is unknown"
    )
    yield from _line(
        "node-silent", "broken", silent, text, "kubectl describe node {name}", {"gpus": gpus}
    )
    unready = [_node(node) for node in gpu_nodes if not is_ready(node) and not is_silent(node)]
    text = f"{counted(len(unready), 'node')} not ready"
    yield from _line("node-not-ready", "broken", unready, text, "kubectl describe node {name}")


def _card_lines(nodes: Iterable[NodeOccupancy]) -> Iterator[AttentionLine]:
    """One line per fault, the most frequent fault first."""
    by_xid: dict[int | None, list[_TroubledObject]] = {}
    withheld: list[_TroubledObject] = []
    missing = 0
    for each in nodes:
        for card in each.cards:
            if card.is_healthy is False:
                xid, at = _xid(card)
                by_xid.setdefault(xid, []).append(_TroubledObject(_card(card), at))
        if count := withheld_gpus(each):
            missing += count
            withheld.append(_TroubledObject(AttentionObject("node", "", each.node.name), None))
    values: dict[str, Scalar] | None
    for xid, things in sorted(by_xid.items(), key=lambda item: (-len(item[1]), item[0] or 0)):
        if xid is None:
            text, code, values = "the device reports no reason", "gpu-broken-no-reason", None
        else:
            meaning = xid_text(xid)
            text, code, values = (
                f"XID {xid}, {meaning}",
                "gpu-broken-xid",
                {"xid": xid, "meaning": meaning},
            )
        text = f"{counted(len(things), 'GPU')} broken: {text}"
        yield from _line(
            "gpu-broken",
            "broken",
            things,
            text,
            "kubectl describe node {name}",
            values,
            code=code,
        )
    text = f"{counted(missing, 'GPU')} not offered to pods; which ones is unknown"
    yield from _line(
        "gpu-withheld",
        "broken",
        withheld,
        text,
        "kubectl describe node {name}",
        {"gpus": missing},
    )


def _starved_lines(
    leaves: Sequence[StarvedLeaf], pods: Iterable[Pod], leaf_of: Mapping[str, str]
) -> Iterator[AttentionLine]:
    """Leaves below their guarantee while pods wait,
    the largest gap first; since their oldest waiting pod.
    """
    if not leaves:
        return
    since: dict[str, float] = {}
    for pod in pods:
        path = leaf_of.get(pod.namespace)
        if path and QUOTA_GATE in pod.gates and pod.created_at is not None:
            since[path] = min(since.get(path, pod.created_at), pod.created_at)
    things = [
        _TroubledObject(AttentionObject("leaf", "", leaf.path), since.get(leaf.path))
        for leaf in leaves
    ]
    waiting, worst = sum(leaf.waiting_pods for leaf in leaves), leaves[0]
    used, least, unit = worst.used, worst.min, "" if worst.unit == "count" else f" {worst.unit}"
    if worst.unit == "bytes":
        used, least, unit = used / (1 << 30), least / (1 << 30), " GiB"
    values: dict[str, Scalar] = {
        "pods": waiting,
        "used": neat(used, 1),
        "min": neat(least, 1),
        "unit": unit.strip(),
    }
    text = (
        f"{counted(len(leaves), 'quota')} below the guaranteed minimum while "
        f"{_with_verb(waiting, 'pod', 'wait')}"
    )
    text += f"; the worst has {values['used']:g} of {values['min']:g}{unit} ({worst.resource})"
    values["resource"] = worst.resource
    yield from _line("leaf-starved", "waiting", things, text, "fairlead quota plan", values)


def _job_lines(jobs: Iterable[tuple[JobRow, float | None]], now: float) -> Iterator[AttentionLine]:
    """Jobs that waited long for room or quota, the longest first, with the first one's reason."""
    long = (
        (row, row.waiting, at)
        for row, at in jobs
        if row.waiting and at is not None and now - at > LONG_WAIT_SECONDS
    )
    waiting = [(at, row, why) for row, why, at in long if why.reason not in _OWN_WISH]
    waiting.sort(key=lambda each: each[0])
    things = [_TroubledObject(_job(row), at) for at, row, _ in waiting]
    text, command = (
        f"{counted(len(things), 'job')} {'is' if len(things) == 1 else 'are'} waiting",
        "arena get {pod} --type={type} -n {namespace} --explain",
    )
    for line in _line("jobs-waiting", "waiting", things, text, command):
        first = waiting[0][2]
        message = first.message or first.reason
        yield structs.replace(
            line, why=first.sentence or Sentence("why-said", {"said": message}, message)
        )


def is_troubled(pod: Pod) -> bool:
    """Whether a line may name the pod, now or later, if it stays as it is."""
    if pod.is_finished:
        return False
    return (
        pod.deleted_at is not None
        or not pod.node
        or any(each.state == ContainerState.WAITING for each in (*pod.init_statuses, *pod.statuses))
    )


def _pod_lines(
    pods: Iterable[Pod],
    nodes: Mapping[str, Node],
    of_pod: Callable[[Pod], AttentionObject],
    now: float,
) -> Iterator[AttentionLine]:
    stuck, crashing, pulling, waiting = (
        list[_TroubledObject](),
        list[_TroubledObject](),
        list[_TroubledObject](),
        list[_TroubledObject](),
    )
    restarts = 0
    for pod in pods:
        node, about = nodes.get(pod.node), of_pod(pod)
        if pod.deleted_at is not None:
            if now - pod.deleted_at > STUCK_SECONDS:
                stuck.append(_TroubledObject(of_pod(pod), pod.deleted_at))
        elif node is not None and is_silent(node):
            continue  # its status is old; its node has a line
        elif ended := _crash_ends(pod):
            crashing.append(_TroubledObject(of_pod(pod), min(ended)))
            restarts += sum(status.restarts for status in (*pod.init_statuses, *pod.statuses))
        elif _waits_for_image(pod):
            pulling.append(_TroubledObject(of_pod(pod), pod.held_since))
        elif (
            _waits_for_node(pod)
            and not about.job
            and pod.created_at is not None
            and now - pod.created_at > LONG_WAIT_SECONDS
        ):
            waiting.append(_TroubledObject(of_pod(pod), pod.created_at))
    describe, logs = (
        "kubectl -n {namespace} describe pod {pod}",
        "kubectl -n {namespace} logs {pod} --previous",
    )
    yield from _line(
        "pod-stuck",
        "broken",
        stuck,
        f"{counted(len(stuck), 'pod')} still Terminating long after the grace period",
        describe,
    )
    text = (
        f"{_with_verb(len(crashing), 'pod', 'crash')} repeatedly, "
        f"{counted(restarts, 'restart')} so far"
    )
    yield from _line("pod-crashing", "broken", crashing, text, logs, {"restarts": restarts})
    yield from _line(
        "pod-image",
        "broken",
        pulling,
        (
            f"{counted(len(pulling), 'pod')} cannot pull "
            f"{'its image' if len(pulling) == 1 else 'their images'}"
        ),
        describe,
    )
    text = (
        f"{counted(len(waiting), 'pod')} {'has' if len(waiting) == 1 else 'have'} been "
        "unschedulable for over 10 minutes"
    )
    yield from _line("pod-unschedulable", "waiting", waiting, text, describe)


def _idle_lines(
    idle: Idleness, of_pod: Callable[[Pod], AttentionObject]
) -> Iterator[AttentionLine]:
    """Cards that are held and have been idle for an hour, by holder."""
    gpus = gpu_count(idle.gpus)
    if not gpus:
        return
    since: dict[AttentionObject, float] = {}
    for seat in idle.long:
        about, at = of_pod(seat.pod), idle.now - seat.seconds
        since[about] = min(since.get(about, at), at)
    things = [_TroubledObject(about, at) for about, at in since.items()]
    text = f"{counted(gpus, 'GPU')} held and idle for over an hour"
    yield from _line("gpu-idle", "wasted", things, text, "arena top node {name} -d", count=gpus)


def _crash_ends(pod: Pod) -> list[float]:
    """When containers in CrashLoopBackOff last ended, in epoch seconds; empty = there are none."""
    statuses = (*pod.init_statuses, *pod.statuses)
    looping = [
        each
        for each in statuses
        if each.state == ContainerState.WAITING and each.reason == _CRASH_LOOP
    ]
    return [each.last_finished_at or pod.held_since or 0.0 for each in looping]


def _waits_for_image(pod: Pod) -> bool:
    return any(
        each.state == ContainerState.WAITING and each.reason in _IMAGE_REASONS
        for each in (*pod.init_statuses, *pod.statuses)
    )


def _waits_for_node(pod: Pod) -> bool:
    return not pod.node and any(
        each.type == "PodScheduled" and each.status == "False" and each.reason == UNSCHEDULABLE
        for each in pod.conditions
    )


def _line(
    kind: str,
    level: str,
    things: Sequence[_TroubledObject],
    text: str,
    command: str,
    values: Mapping[str, Scalar] | None = None,
    count: float = 0,
    *,
    code: str = "",
) -> Iterator[AttentionLine]:
    """The line, or nothing if there are no things. Things are named from the longest in trouble on.

    `code`: of its sentence, where one kind has several.
    """
    if not things:
        return
    ordered = sorted(
        things,
        key=lambda thing: (thing.since is None, thing.since or 0.0, by_count(thing.about.name)),
    )
    first = ordered[0].about
    number = count or len(things)
    yield AttentionLine(
        kind=kind,
        level=level,
        count=number,
        sentence=Sentence(f"attention-{code or kind}", {"n": number, **(values or {})}, text),
        since=timestamp(ordered[0].since),
        objects=[thing.about for thing in ordered[:OBJECTS_MAX]],
        more=max(0, len(things) - OBJECTS_MAX),
        command=_filled(command, first),
    )


def _with_verb(number: int, noun: str, verb: str) -> str:
    """
    >>> _with_verb(1, "pod", "crash"), _with_verb(2, "job", "wait")
    ('1 pod crashes', '2 jobs wait')
    """
    return (
        f"{counted(number, noun)} "
        f"{verb if number != 1 else verb + ('es' if verb.endswith('sh') else 's')}"
    )


def _filled(command: str, about: AttentionObject) -> str:
    """The command with the object's names, each quoted for a shell."""
    names = {
        "name": about.node or about.name,
        "namespace": about.namespace,
        "pod": about.name,
        "type": about.job.split("/")[0],
    }
    return command.format_map({key: shlex.quote(name) for key, name in names.items()})


def _node(node: Node) -> _TroubledObject:
    at = next((each.at for each in node.conditions if each.type == "Ready"), None)
    return _TroubledObject(AttentionObject("node", "", node.name), at)


def _card(card: CardOccupancy) -> AttentionObject:
    return AttentionObject("gpu", "", card.node, node=card.node, index=card.index)


def _job(row: JobRow) -> AttentionObject:
    return AttentionObject("job", row.namespace, row.name, job=f"{row.type}/{row.name}")


def _xid(card: CardOccupancy) -> tuple[int | None, float | None]:
    """The card's last XID and its time in epoch seconds; (None, None) if there was no XID."""
    reading = card.reading
    return (
        (reading.last_xid, reading.last_xid_at)
        if reading is not None and reading.last_xid
        else (None, None)
    )


def _pod(pod: Pod, job_by_pod: Mapping[str, str]) -> AttentionObject:
    return AttentionObject(
        "pod", pod.namespace, pod.name, node=pod.node, job=job_by_pod.get(pod.key, "")
    )
