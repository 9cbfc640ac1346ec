"""The scheduler extender: its answers without HTTP, over HTTP, and with a real kube-scheduler."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import random
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

import msgspec
import pytest
import uvloop
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.extender import PREFIX, SYSTEM, Extender, scheduler_for
from tests.kube.objects import namespace
from tests.kube.share_truth import ShareTruth
from tests.kube.sharing_words import as_real, ready
from tests.waiting import wait_until

from bench.support.options import options
from bench.support.processes import cpu_seconds
from fairlead.apps import extender as driver
from fairlead.apps.scheduler_extender import SchedulerExtender
from fairlead.apps.server import bind_socket, serve
from fairlead.model.changes import KIND_NODES, KIND_PODS, changed
from fairlead.model.devices.gpu import GpuSlot
from fairlead.model.node import Node
from fairlead.model.pod import Container, Pod
from fairlead.model.refusal import Refusal
from fairlead.model.resources import GPU_COUNT, GPU_MEMORY
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.sharing.ledger import Ledger, ledger_of
from fairlead.rules.sharing.machine import SharingMachine
from fairlead.rules.sharing.preempt import Victims, plan_preemption
from fairlead.rules.sharing.what_if import what_must_go
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.gpus.allocation import render_bind
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.scenario import NodePool, Scenario

CARDS = 8
FILTER_ROUNDS = 400


def node(number: int) -> Node:
    name = f"gpu-node-{number:05}"
    slots = tuple(
        GpuSlot(card, f"GPU-{number:08}-{card}", card, "NVIDIA H200", 143150, 139, mode="shared")
        for card in range(CARDS)
    )
    return Node(
        name,
        labels={"cgpu": "true"},
        capacity={GPU_MEMORY: 139 * CARDS, GPU_COUNT: CARDS},
        gpus=slots,
    )


def pod(number: int, units: int, **more: Any) -> Pod:
    limits = {GPU_MEMORY: units}
    return Pod(
        "work",
        f"pod-{number}",
        f"uid-{number}",
        containers=(Container("main", requests=limits, limits=limits),),
        **more,
    )


def filled(nodes: list[Node], chance: random.Random) -> Ledger:
    """Two thirds of all memory granted, in pods of 10 to 60 units."""
    ledger = ledger_of(ClusterSnapshot(nodes=tuple(nodes)))
    for number in range(len(nodes) * CARDS * 8 // 3):
        asker = pod(number, chance.randint(10, 60))
        name = chance.choice(nodes).name
        grants = ledger.reserve(asker, name)
        if not isinstance(grants, Refusal):
            ledger.set_pod(msgspec.structs.replace(asker, node=name, grants=grants))
    return ledger


def timed(what: str, ask: Callable[[int], object], rounds: int = FILTER_ROUNDS) -> None:
    took = []
    for number in range(rounds):
        before = time.thread_time()
        ask(number)
        took.append((time.thread_time() - before) * 1000)
    took.sort()
    print(
        f"{what:<44} p50 {statistics.median(took):7.3f} ms   p99 "
        f"{took[int(len(took) * 0.99)]:7.3f} ms"
    )


def _crowded() -> None:
    """A node with as many pods as units, 1,112: on known cards, on unknown cards, and half of each.

    Then the same with room that is promised to a pod.
    """
    for every, place in ((1, "cards known"), (0, "cards unknown"), (2, "half known")):
        crowd = ledger_of(ClusterSnapshot(nodes=(node(0),)))
        known = [number for number in range(139 * CARDS) if every and number % every == 0]
        # known cards first: the room for the others is unknown
        for number in dict.fromkeys([*known, *range(139 * CARDS)]):
            is_known = bool(every) and number % every == 0
            where, rank = "" if is_known else node(0).name, number % 7
            asker = pod(
                number, 1, phase="Running", started_at=float(number), node=where, priority=rank
            )
            grants = crowd.reserve(asker, node(0).name) if is_known else None
            if isinstance(grants, Refusal):
                raise AssertionError(grants.reason)
            crowd.set_pod(
                asker
                if grants is None
                else msgspec.structs.replace(asker, node=node(0).name, grants=grants)
            )
        _time_crowd(crowd, f"1,112 pods, {place}")


def _time_crowd(crowd: Ledger, title: str) -> None:
    timed(f"{title}: preempt", lambda number: _preempt(crowd, number, 139), 20)
    timed(f"{title}: preempt, small", lambda number: _preempt(crowd, number, 5), 20)
    timed(f"{title}: what must go", lambda number: what_must_go(crowd, pod(-number, 139)), 20)
    timed(f"{title}: node anew", lambda _: crowd.set_node(node(0)), 20)
    crowd.set_pod(pod(-9999, 20, priority=50, nominated_node=node(0).name))
    timed(f"{title}, promised: preempt", lambda number: _preempt(crowd, number, 5), 20)


def _preempt(crowd: Ledger, number: int, units: int) -> None:
    plan_preemption(crowd, pod(-number, units, priority=40), {node(0).name: Victims(())})


def _adopted() -> None:
    """1,112 pods that another scheduler put on a node: the longest time between two points at
    which other work can run.
    """
    for phase in ("Pending", "Running"):
        machine = SharingMachine()
        machine.feed.observe(changed(KIND_NODES, "n", node(0)))
        for number in range(139 * CARDS):
            started = 1.0 if phase == "Running" else None
            machine.feed.observe(
                changed(
                    KIND_PODS,
                    f"uid-{number}",
                    pod(number, 1, phase=phase, started_at=started, node=node(0).name),
                )
            )
        longest, before = 0.0, time.thread_time()
        for action in machine.adoption.look():
            if action is None:
                longest, before = max(longest, time.thread_time() - before), time.thread_time()
        print(f"{f'1,112 pods, {phase}: adoption':<44} longest {longest * 1000:7.3f} ms")


def _filter_run(node_count: int, name_count: int) -> None:
    chance = random.Random(1)
    nodes = [node(number) for number in range(node_count)]
    names = [[each.name for each in chance.sample(nodes, name_count)] for _ in range(FILTER_ROUNDS)]
    ledger = filled(nodes, chance)
    fits = sum(len(ledger.filter(pod(-1, 100), asked).passed) for asked in names) / FILTER_ROUNDS
    print(
        f"{node_count} nodes x {CARDS} cards, {len(ledger.tenants)} pods, {name_count} "
        "names; 100 "
        f"units fit {fits:.0f} of them"
    )
    sizes = [chance.randint(1, 139) for _ in range(FILTER_ROUNDS)]
    timed(
        "filter, memory on one card",
        lambda number: ledger.filter(pod(-number, sizes[number]), names[number]),
    )
    timed("filter, never fits", lambda number: ledger.filter(pod(-number, 140), names[number]))
    labels = {GPU_COUNT: "2"}
    timed(
        "filter, two cards",
        lambda number: ledger.filter(pod(-number, 2 * sizes[number], labels=labels), names[number]),
    )
    timed(
        "prioritize", lambda number: ledger.prioritize(pod(-number, sizes[number]), names[number])
    )

    def bind(number: int) -> None:
        asker, name = pod(-1 - number, 8), names[number][0]
        grants = ledger.reserve(asker, name)
        if not isinstance(grants, Refusal):
            ledger.set_pod(msgspec.structs.replace(asker, node=name, grants=grants))
            ledger.remove_pod(asker.uid)

    timed("reserve, confirm, release", bind)
    proposed = {name: Victims(tuple(ledger.nodes[name].tenants)[:1]) for name in names[0][:10]}
    timed(
        "preempt on ten nodes",
        lambda number: plan_preemption(ledger, pod(-number, 139, priority=1), proposed),
    )
    _crowded()
    _adopted()
    pods = tuple(tenant.pod for tenant in ledger.tenants.values())[:10_000]
    snapshot = ClusterSnapshot(nodes=tuple(nodes), pods=pods)
    before = time.perf_counter()
    ledger_of(snapshot)
    print(
        f"rebuild from {len(nodes)} nodes and {len(pods)} pods: "
        f"{time.perf_counter() - before:.2f} s"
    )


def measure_filter() -> None:
    """The extender's answers without HTTP: 500 names of 5,000 nodes × 8 cards.

    Also a rebuild from 10,000 pods.

        python -m bench filter [nodes] [names]

    Prints the median and the 99th percentile of each question, in milliseconds of processor time:
    other work on the machine does not count.
    """
    parser = options(measure_filter)
    parser.add_argument("nodes", nargs="?", type=int, default=5000)
    parser.add_argument("names", nargs="?", type=int, default=500)
    chosen = parser.parse_args()
    _filter_run(chosen.nodes, chosen.names)


SCHEDULER_EXTENDER_ROUNDS = 2000
Object = dict[str, Any]


# --- filter ---------------------------------------------------------------------------------------


def _serve_extender(ready: Connection, node_count: int) -> None:
    asked = driver.Extender(None, "bench", lease_name="bench")  # type: ignore[arg-type]
    asked.leader.held_until = float("inf")
    asked.machine.feed.is_rebuilt = True
    asked.machine.feed.ledger = filled(
        [node(number) for number in range(node_count)], random.Random(1)
    )
    _scheduler_extender_run(ready, SchedulerExtender(asked))


def _serve_echo(ready: Connection, size: int) -> None:
    async def echo(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"application/json"), (b"content-length", str(size).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b" " * size})

    _scheduler_extender_run(ready, echo)


def _scheduler_extender_run(ready: Connection, app: Any) -> None:
    sock = bind_socket("127.0.0.1", 0)
    ready.send(sock.getsockname()[1])
    uvloop.run(serve(app, sock=sock))


@contextmanager
def served(target: Callable[..., None], argument: int) -> Iterator[http.client.HTTPConnection]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=target, args=(there, argument), daemon=True
    )
    process.start()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", here.recv())
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection
    finally:
        process.kill()
        process.join()


def bench_filter(node_count: int, name_count: int) -> None:
    rng = random.Random(2)
    names = [f"gpu-node-{number:05}" for number in range(node_count)]
    bodies = [
        _filter_body(rng.sample(names, name_count), rng.randint(1, 139), number)
        for number in range(50)
    ]
    with served(_serve_extender, node_count) as extender:
        size = statistics.mean(len(_ask(extender, body)) for body in bodies)
        with served(_serve_echo, round(size)) as echo:
            took: dict[str, list[float]] = {"extender": [], "echo": []}
            for number in range(SCHEDULER_EXTENDER_ROUNDS):
                for name, connection in (("extender", extender), ("echo", echo)):
                    began = time.perf_counter()
                    _ask(connection, bodies[number % len(bodies)])
                    took[name].append((time.perf_counter() - began) * 1000)
    print(
        f"filter of {name_count} names of {node_count} nodes x {CARDS} cards, answers of "
        f"{size:.0f} bytes, load {os.getloadavg()[0]:.1f}"
    )
    for name, times in took.items():
        times.sort()
        print(
            f"  {name:<9} p50 {statistics.median(times):6.2f} ms   p99 "
            f"{times[int(len(times) * 0.99)]:6.2f} ms"
        )


def _filter_body(names: list[str], units: int, number: int) -> bytes:
    limits = {"aliyun.com/gpu-mem": str(units)}
    asked = {
        "metadata": {"name": f"p{number}", "uid": f"u{number}"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]},
    }
    return json.dumps({"Pod": asked, "Nodes": None, "NodeNames": names}).encode()


def _ask(connection: http.client.HTTPConnection, body: bytes) -> bytes:
    connection.request("POST", f"{PREFIX}/filter", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200
    return answer.read()


# --- bind -----------------------------------------------------------------------------------------


def bench_bind(node_count: int, pod_count: int, rounds: int, against: str) -> None:
    with running_control_plane() as cluster, ExitStack() as leaving:
        cluster.admin.create([namespace(SYSTEM), *_nodes(node_count)])
        wait_until("the nodes are ready", lambda: len(ready(cluster)) == node_count, seconds=120)
        plain, sides = _plain_scheduler(cluster), {"shared": _extender(cluster, "shared", "")}
        if against:
            sides["against"] = _extender(cluster, "against", against)
        schedulers = {
            side: scheduler_for(cluster, extender.port, f"bench-{side}", qps=500)
            for side, extender in sides.items()
        }
        seen: dict[str, list[tuple[float, float, float]]] = {side: [] for side in ("plain", *sides)}
        for number in range(rounds):
            seen["plain"].append((*_pods_a_second(cluster, plain, "plain", pod_count, number), 0.0))
            _print("plain", number, seen["plain"][-1])
            _clear(cluster)
            for side, extender in sides.items():  # one at a time: there is one Lease
                leaving.callback(extender.component.stop)
                extender.start()
                before = cpu_seconds(extender.component.pid)
                rates = _pods_a_second(cluster, schedulers[side], side, pod_count, number)
                seen[side].append(
                    (*rates, (cpu_seconds(extender.component.pid) - before) * 1000 / pod_count)
                )
                _print(side, number, seen[side][-1])
                _clear(cluster)
                if number == rounds - 1:
                    _print_where(extender)
                extender.component.stop()
    medians = {
        side: [statistics.median(each) for each in zip(*rows, strict=True)]
        for side, rows in seen.items()
    }
    plain_bound, plain_running, _ = medians.pop("plain")
    for side, (bound, running, cost) in medians.items():
        ratios = (
            f"{bound / plain_bound:.2f} x plain bound, {running / plain_running:.2f} x plain "
            "running"
        )
        print(f"{side:<8} median of {rounds}: {ratios}, {cost:.2f} ms CPU a pod")


def _extender(cluster: ControlPlane, side: str, source: str) -> Extender:
    """Not started; of another version if `source` names its `src`."""
    with pytest.MonkeyPatch.context() as environment:
        if source:
            environment.setenv("PYTHONPATH", source)
        return Extender(cluster, f"bench-{side}", ("--kube-api-qps=1000", "--kube-api-burst=2000"))


def _clear(cluster: ControlPlane) -> None:
    """A round begins without pods: the cards have room for three."""
    cluster.admin.run("delete", "--raw", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0")
    wait_until("the pods are gone", lambda: not cluster.admin.get("pods"))


def _print(side: str, number: int, figures: tuple[float, float, float]) -> None:
    bound, running, cost = figures
    rates = f"{bound:6.1f} pods/s bound, {running:6.1f} pods/s running, {cost:5.2f} ms CPU a pod"
    print(f"round {number}: {side:<8} {rates}, load {os.getloadavg()[0]:.1f}", flush=True)


def _nodes(count: int) -> list[Object]:
    pool = NodePool(
        name="gpu",
        count=count,
        cpu=256,
        memory="1024Gi",
        gpu_model="Tesla V100-SXM2-16GB",
        gpus=CARDS,
        shared=True,
    )
    world = sharing_world(Scenario(title="bench", node_pools=(pool,)), 1, 1_767_600_000.0)
    return [as_real(each) for each in world.cluster.list(NODES)]


def _plain_scheduler(cluster: ControlPlane) -> Component:
    path = cluster.folder / "bench-plain.json"
    client = {
        "kubeconfig": str(cluster.write_kubeconfig("bench-plain", cluster.admin_pair)),
        "qps": 500,
        "burst": 1000,
    }
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
    }
    path.write_text(
        json.dumps(
            {**head, "clientConnection": client, "profiles": [{"schedulerName": "plain-scheduler"}]}
        )
    )
    return cluster.extra_component("kube-scheduler", "bench-plain", f"--config={path}")


def _pods_a_second(
    cluster: ControlPlane, scheduler: Component, side: str, count: int, number: int
) -> tuple[float, float]:
    """Bound, and running, per second since the first was bound."""
    cluster.admin.create([_pod(f"{side}-{number}-{each}", side) for each in range(count)])
    truth = ShareTruth(cluster)
    first = bound_at = running_at = 0.0
    scheduler.start()
    try:
        while not running_at:
            bound = [pod for pod in truth.bound() if pod.name.startswith(f"{side}-{number}-")]
            now = time.monotonic()
            first = first or (now if bound else 0.0)
            bound_at = bound_at or (now if len(bound) == count else 0.0)
            running_at = now if sum(pod.phase == "Running" for pod in bound) == count else 0.0
            time.sleep(0.02)
    finally:
        scheduler.stop()
        truth.stop()
    assert not truth.faults
    return count / (bound_at - first), count / (running_at - first)


def _pod(name: str, side: str) -> Object:
    limits = {
        "cpu": "10m",
        "memory": "8Mi",
        **({"aliyun.com/gpu-mem": "2"} if side != "plain" else {}),
    }
    container = {"name": "c", "image": "app:1", "resources": {"limits": limits}}
    scheduler = "plain-scheduler" if side == "plain" else "fairlead-scheduler"
    spec = {
        "schedulerName": scheduler,
        "containers": [container],
        "automountServiceAccountToken": False,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def _print_where(extender: Extender) -> None:
    page, cpu = extender.metrics(), cpu_seconds(extender.component.pid)
    for verb in ("filter", "prioritize", "bind"):
        seconds, count = (
            page.value(f"fairlead_gpushare_extender_seconds_{what}", verb=verb)
            for what in ("sum", "count")
        )
        print(f"  {verb:<10} {count:6.0f} times, {1000 * seconds / max(1, count):6.2f} ms each")
    print(f"  the extender's CPU since its start: {cpu:.1f} s")


def _rebuild(cluster: ControlPlane, extender: Extender) -> None:
    held = sum(len(card["pods"]) for found in extender.inspect().values() for card in found["devs"])
    extender.component.kill()
    began = time.monotonic()
    extender.start()
    print(
        f"ready again {time.monotonic() - began:.1f} s after a kill, start of Python and "
        "a wait "
        f"of 1 s included; {held} pods hold cards"
    )
    assert held == sum(
        len(card["pods"]) for found in extender.inspect().values() for card in found["devs"]
    )


# --- rebuild --------------------------------------------------------------------------------------


def bench_rebuild(node_count: int, pod_count: int, rounds: int) -> None:
    nodes = _nodes(node_count)
    pods = _bound_pods(nodes, pod_count)
    with running_control_plane() as cluster:
        cluster.admin.create([namespace(SYSTEM), *nodes])
        for first in range(0, pod_count, 500):
            cluster.admin.create(pods[first : first + 500])
        extender = Extender(cluster, "bench-extender")
        extender.start()
        try:
            for _ in range(rounds):
                _rebuild(cluster, extender)
                print(
                    (
                        f"  CPU until then {cpu_seconds(extender.component.pid):.1f} s, load "
                        f"{os.getloadavg()[0]:.1f}"
                    ),
                    flush=True,
                )
        finally:
            extender.component.stop()


def _bound_pods(nodes: list[Object], count: int) -> list[Object]:
    """Pods that were put on their nodes, card by card, with the annotations of a bind."""
    ledger = Ledger()
    for each in nodes:
        ledger.set_node(parse_node(msgspec.json.decode(json.dumps(each), type=WireNode)))
    pods = [_pod(f"held-{number}", "shared") for number in range(count)]
    for number, pod in enumerate(pods):
        node = nodes[number % len(nodes)]["metadata"]["name"]
        body = json.dumps({**pod, "metadata": {**pod["metadata"], "uid": str(number)}})
        asking = parse_pod(msgspec.json.decode(body, type=WirePod))
        grants = ledger.reserve(asking, node)
        assert not isinstance(grants, Refusal), grants.reason
        pod["metadata"]["annotations"] = render_bind(asking, grants, 15, 1_767_600_000.0)
        pod["spec"]["nodeName"] = node
    return pods


def measure_scheduler_extender() -> None:
    """The extender over HTTP: answers against an echo server, and pods that kube-scheduler binds.

        python -m bench scheduler_extender filter [--nodes 5000] [--names 500]
        python -m bench scheduler_extender bind [--nodes 50] [--pods 500] [--rounds 2]
            [--against SRC]
        python -m bench scheduler_extender rebuild [--nodes 500] [--pods 10000] [--rounds 2]

    `filter`: both servers are processes of their own (uvloop, httptools; the echo is an ASGI app
    in the shell of our other servers), asked over one kept-alive connection in turns; the echo
    reads the same question and sends back as many bytes as the answer has.

    `bind`: kube-apiserver, KWOK, and for each side a kube-scheduler (client qps 500) that finds
    all pods waiting when it starts. Two rates: from the first pod bound to the last, and from the
    first bound until all run. The first favours the side that binds fastest on a machine without
    spare cores: what the kubelets (KWOK) have to do for each pod is put off until afterwards. With
    them the extender's CPU a pod. `--against`: the `src` folder of another version, whose extender
    takes its turns, too; medians and ratios of all rounds stand at the end.

    `rebuild`: an extender that starts beside a cluster full of pods that hold cards, until it is
    ready. The last two need the programs that `tools/build_kube.py` builds.
    """
    parser = options(measure_scheduler_extender)
    parser.add_argument("what", choices=("filter", "bind", "rebuild"))
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--names", type=int, default=500)
    parser.add_argument("--pods", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--against", default="")
    chosen = parser.parse_args()
    if chosen.what == "filter":
        bench_filter(chosen.nodes or 5000, chosen.names)
    elif chosen.what == "bind":
        bench_bind(chosen.nodes or 50, chosen.pods or 500, chosen.rounds, chosen.against)
    else:
        bench_rebuild(chosen.nodes or 500, chosen.pods or 10_000, chosen.rounds)
