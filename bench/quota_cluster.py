"""The quota controller on the real API server, beside Kueue and alone."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import re
import shutil
import ssl
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from tests.kube.addresses import free_port, is_listening
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.objects import namespace
from tests.kube.quota_line import QuotaController, enforce, install, tree
from tests.waiting import wait_until

from bench.support.clusters import FirstSeen, api_server, at_once, create
from bench.support.options import options
from bench.support.processes import cpu_seconds, memory
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.model.keys import QUOTA_CONDITION

TOOLS: Final = Path(__file__).resolve().parents[1] / "tools"
API: Final = "kueue.x-k8s.io/v1beta1"
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
Object = dict[str, Any]


def kueue_program() -> Path:
    """The program; it is built when it is absent, which takes minutes."""
    sys.path.insert(0, str(TOOLS))
    import build_kube
    import kube_programs

    build_kube.build_missing((kube_programs.KUEUE,))
    return Path(kube_programs.program_path("kueue"))


def _definitions() -> list[Object]:
    import build_kube
    import kube_programs

    folder = build_kube.module_dir(kube_programs.KUEUE) / "config/components/crd/bases"
    return [
        yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))
    ]


@contextmanager
def running_kueue(
    cluster: ControlPlane, namespaces: Sequence[str], cpu: str, qps: int
) -> Iterator[Component]:
    """Kueue at work, with a queue on hold for each namespace, each with `cpu`."""
    program = kueue_program()
    cluster.admin.apply(_definitions())
    wait_until(
        "its kinds are served",
        lambda: "workloads" in cluster.admin.run("api-resources", "--api-group=kueue.x-k8s.io"),
        seconds=60,
    )
    folder = cluster.folder / "kueue"
    pair = cluster.issue("kueue-webhook", names=["127.0.0.1"])
    for part in ("metrics", "webhook"):
        (folder / part).mkdir(parents=True)
        shutil.copy(pair.certificate, folder / part / "tls.crt")
        shutil.copy(pair.key, folder / part / "tls.key")
    probe = free_port()
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{probe}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": free_port(), "host": "127.0.0.1", "certDir": str(folder / "webhook")},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": qps, "burst": 2 * qps},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["batch/job"]},
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    kubeconfig = cluster.write_user_kubeconfig("kueue", ["system:masters"])
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "TMPDIR": str(folder),
        "KUBECONFIG": str(kubeconfig),
    }
    flags = [
        f"--config={folder / 'config.yaml'}",
        "--feature-gates=VisibilityOnDemand=false",
        "--zap-log-level=error",
    ]
    component = Component("kueue", [str(program), *flags], cluster.logs / "kueue.log", environment)
    try:
        component.start()
        component.wait_until(lambda: is_listening(probe), 120)
        cluster.admin.apply(
            [
                _object("ResourceFlavor", "default", {}),
                *(each for name in namespaces for each in _queues(name, cpu)),
            ]
        )
        yield component
    finally:
        component.stop()


def release(cluster: ControlPlane, namespaces: Sequence[str], cpu: str) -> None:
    cluster.admin.apply([_cluster_queue(name, cpu, "None") for name in namespaces])


def _queues(namespace: str, cpu: str) -> list[Object]:
    local = _object("LocalQueue", "jobs", {"clusterQueue": namespace})
    local["metadata"]["namespace"] = namespace
    return [_cluster_queue(namespace, cpu, "Hold"), local]


def _cluster_queue(name: str, cpu: str, stop: str) -> Object:
    flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    return _object(
        "ClusterQueue",
        name,
        {
            "namespaceSelector": {},
            "stopPolicy": stop,
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        },
    )


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


PREEMPTIBLE = {"quota.scheduling.alibabacloud.com/preemptible": "true"}
"""Or a bare pod would need a min."""
KUEUE_WORKLOADS, KUEUE_SECONDS = 15_000, 351.1
KUEUE_SOURCE = (
    "kueue v0.14.0, test/performance/scheduler/default_rangespec.yaml: maxWallMs, average of 5 runs"
)


def bench(jobs: int, leaves: int, rounds: int, qps: int) -> None:
    seen: dict[str, list[tuple[float, float, float]]] = {"kueue": [], "fairlead": []}
    for number in range(rounds):
        for side in seen:
            seen[side].append(_SIDES[side](jobs, leaves, qps))
            admitted, running, cpu = seen[side][-1]
            rates = f"{admitted:6.1f} admitted/s, {running:6.1f} running/s, {cpu:5.2f} ms CPU a job"
            print(f"round {number}: {side:<9} {rates}, load {os.getloadavg()[0]:.1f}", flush=True)
    fairlead, kueue = (
        [statistics.median(each) for each in zip(*seen[side], strict=True)]
        for side in ("fairlead", "kueue")
    )
    admitted, running, cpu = (mine / other for mine, other in zip(fairlead, kueue, strict=True))
    print(
        f"medians of {rounds}: {admitted:.2f} x Kueue admitted, {running:.2f} x running, "
        f"{cpu:.2f} x CPU"
    )


def bench_sustained(jobs: int, leaves: int, qps: int, seconds: float) -> None:
    """Kueue's test of its own is of 15,000 Workloads in 30 queues, too, without Jobs and pods."""
    names = _names(leaves)
    with _waiting(names, jobs, qps) as (cluster, controller, admitted):
        before, began = _cpu(cluster, controller.component.pid), time.monotonic()
        cluster.admin.apply([tree(_quota_admissions_root(names, jobs))])
        while len(admitted.at) < jobs and time.monotonic() < began + seconds:
            time.sleep(0.1)
        took = sorted(at - began for at in admitted.at.values())
        _print_cpu(cluster, controller.component.pid, before, len(took))
        counted = controller.metrics().value("fairlead_quota_admissions_total")
        tenths = [took[max(0, len(took) * part // 10 - 1)] for part in range(11)]
    print(
        f"{len(took)} of {jobs} admitted in {took[-1]:.0f} s: {len(took) / took[-1]:.1f} a "
        f"second, load {os.getloadavg()[0]:.1f}"
    )
    print(f"    the controller's own count by then, which no watch delays: {counted:.0f}")
    rates = (len(took) / 10 / (after - before) for before, after in itertools.pairwise(tenths))
    print("    by tenths: " + ", ".join(f"{rate:.0f}" for rate in rates))
    print(
        f"    Kueue's published figure: {KUEUE_WORKLOADS / KUEUE_SECONDS:.1f} a second "
        f"({KUEUE_SOURCE})"
    )


def bench_one_by_one(pods: int) -> None:
    names = _names(1)
    with running_control_plane() as cluster:
        _prepare(cluster, names)
        install(cluster)
        controller = QuotaController(cluster)
        controller.start()
        try:
            enforce(cluster, _quota_admissions_root(names, 2 * pods))
            admitted = FirstSeen(cluster, "/api/v1/pods", _is_admitted_pod, "team-")
            took = sorted(
                _admission_seconds(cluster, admitted, f"pod-{number}") * 1000
                for number in range(pods)
            )
        finally:
            controller.stop()
    p50, p90, p99 = (took[min(pods - 1, int(pods * part))] for part in (0.5, 0.9, 0.99))
    print(
        f"{pods} pods, created to gate gone: p50 {p50:.0f}, p90 {p90:.0f}, p99 {p99:.0f} "
        "ms, load "
        f"{os.getloadavg()[0]:.1f}"
    )


def _admission_seconds(cluster: ControlPlane, admitted: FirstSeen, name: str) -> float:
    context = ssl.create_default_context(cafile=str(cluster.authority))
    context.load_cert_chain(*cluster.admin_pair)
    connection = http.client.HTTPSConnection("127.0.0.1", cluster.port, context=context)
    spec = _job(name, "team-0", {}, False)["spec"]["template"]["spec"]
    body = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": PREEMPTIBLE},
            "spec": spec,
        }
    )
    connection.request(
        "POST", "/api/v1/namespaces/team-0/pods", body, {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    assert answer.status == 201, answer.read()
    began, key = time.monotonic(), f"team-0/{name}"
    while key not in admitted.at:
        time.sleep(0.001)
    connection.close()
    return max(0.0, admitted.at[key] - began)


def _names(leaves: int) -> list[str]:
    return [f"team-{number}" for number in range(leaves)]


def _kueue(jobs: int, leaves: int, qps: int) -> tuple[float, float, float]:
    names, cpu = _names(leaves), str(jobs)
    with running_control_plane() as cluster:
        _prepare(cluster, names)
        with running_kueue(cluster, names, cpu, qps) as kueue:
            _create(cluster, names, jobs, {QUEUE_LABEL: "jobs"}, is_suspended=True)
            admitted = FirstSeen(
                cluster, "/apis/kueue.x-k8s.io/v1beta1/workloads", _is_admitted_workload, "team-"
            )
            wait_until("all are queued", lambda: len(admitted.made) == jobs, seconds=300)
            return _measure(
                cluster, jobs, kueue.pid, admitted, lambda: release(cluster, names, cpu)
            )


def _fairlead(jobs: int, leaves: int, qps: int) -> tuple[float, float, float]:
    names = _names(leaves)
    with _waiting(names, jobs, qps) as (cluster, controller, admitted):
        return _measure(
            cluster,
            jobs,
            controller.component.pid,
            admitted,
            lambda: cluster.admin.apply([tree(_quota_admissions_root(names, jobs))]),
        )


@contextmanager
def _waiting(
    names: Sequence[str], jobs: int, qps: int
) -> Iterator[tuple[ControlPlane, QuotaController, FirstSeen]]:
    """Fairlead's controller, and the pods of `jobs` Jobs behind the gate."""
    with running_control_plane() as cluster:
        _prepare(cluster, names, jobs)
        install(cluster)
        controller = QuotaController(
            cluster, more=(f"--kube-api-qps={qps}", f"--kube-api-burst={2 * qps}")
        )
        controller.start()
        try:
            enforce(cluster, _quota_admissions_root(names, 0))
            admitted = FirstSeen(cluster, "/api/v1/pods", _is_admitted_pod, "team-")
            _create(cluster, names, jobs, {}, is_suspended=False)
            wait_until("all pods are there", lambda: len(admitted.made) == jobs, seconds=900)
            made = admitted.made.values()
            print(
                f"    pods made, with the gate: {jobs / (max(made) - min(made)):.0f} a second",
                flush=True,
            )
            yield cluster, controller, admitted
        finally:
            controller.stop()


def _quota_admissions_root(names: Sequence[str], cpu: int) -> Object:
    """Each leaf may have as much as root has."""
    bound = {"cpu": str(cpu)}
    children = [
        {"name": f"root.{name}", "min": {"cpu": "0"}, "max": bound, "namespaces": [name]}
        for name in names
    ]
    return {"name": "root", "min": bound, "max": bound, "children": children}


def _measure(
    cluster: ControlPlane, jobs: int, pid: int, admitted: FirstSeen, let_go: Callable[[], None]
) -> tuple[float, float, float]:
    running = FirstSeen(cluster, "/api/v1/pods", _is_running, "team-")
    before, began = _cpu(cluster, pid), time.monotonic()
    let_go()
    wait_until("all are admitted", lambda: len(admitted.at) >= jobs, seconds=600)
    cost = _print_cpu(cluster, pid, before, jobs)
    wait_until("all run", lambda: len(running.at) >= jobs, seconds=600)
    return (
        jobs / (max(admitted.at.values()) - began),
        jobs / (max(running.at.values()) - began),
        cost,
    )


def _cpu(cluster: ControlPlane, pid: int) -> dict[str, float]:
    """CPU seconds of the controller and of each part of the cluster."""
    parts = {name: cpu_seconds(component.pid) for name, component in cluster.components.items()}
    return {"controller": cpu_seconds(pid), **parts, "this script": time.process_time()}


def _print_cpu(cluster: ControlPlane, pid: int, before: dict[str, float], jobs: int) -> float:
    """The controller's milliseconds a job; those of all are printed."""
    spent = {name: (now - before[name]) * 1000 / jobs for name, now in _cpu(cluster, pid).items()}
    print(
        "    ms CPU a job: " + ", ".join(f"{name} {each:.2f}" for name, each in spent.items()),
        flush=True,
    )
    return spent["controller"]


def _prepare(cluster: ControlPlane, names: Sequence[str], jobs: int = 1000) -> None:
    nodes = 10 * max(1, jobs // 5000)
    cluster.admin.create(
        [
            *(namespace(name) for name in names),
            *(_quota_admissions_node(number) for number in range(nodes)),
        ]
    )


def _quota_admissions_node(number: int) -> Object:
    amounts = {"cpu": "1000", "memory": "1Ti", "pods": "1000"}
    meta = {
        "name": f"node-{number}",
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"type": "kwok"},
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _create(
    cluster: ControlPlane,
    names: Sequence[str],
    jobs: int,
    labels: dict[str, str],
    *,
    is_suspended: bool,
) -> None:
    made = [
        _job(f"job-{number}", names[number % len(names)], labels, is_suspended)
        for number in range(jobs)
    ]

    async def create_all() -> None:
        connection = find_connection(str(cluster.kubeconfig))
        assert connection is not None
        async with KubeApi(connection) as api:
            await at_once(
                lambda number: create(
                    api, _jobs_of(made[number]["metadata"]["namespace"]), made[number]
                ),
                range(jobs),
            )

    asyncio.run(create_all())


def _jobs_of(space: str) -> str:
    return f"/apis/batch/v1/namespaces/{space}/jobs"


def _job(name: str, space: str, labels: dict[str, str], is_suspended: bool) -> Object:
    container = {
        "name": "c",
        "image": "app:1",
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
    }
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            "automountServiceAccountToken": False,
        },
    }
    spec = {"suspend": is_suspended, "template": template, "backoffLimit": 0}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": space, "labels": labels},
        "spec": spec,
    }


def _is_admitted_workload(workload: Object) -> bool:
    conditions = workload.get("status", {}).get("conditions", ())
    return any(each["type"] == "Admitted" and each["status"] == "True" for each in conditions)


def _is_admitted_pod(pod: Object) -> bool:
    return not pod["spec"].get("schedulingGates")


def _is_running(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Running", "Succeeded")


_SIDES = {"kueue": _kueue, "fairlead": _fairlead}


def measure_quota_admissions() -> None:
    """Quota beside Kueue: one-pod Jobs that are released at once, through the real API server.

        python -m bench quota_admissions [--jobs 1000] [--leaves 30] [--rounds 2] [--qps 500]
        python -m bench quota_admissions --one-by-one 200
        python -m bench quota_admissions --sustained 15000 [--seconds 240]

    Both sides find the same Jobs waiting: Fairlead's as pods behind the quota gate, below a tree
    that gives nothing; Kueue's as suspended Jobs in queues on hold. Then everything is let go at
    once. Seconds from there until the last Job is admitted (its pod's gate is gone; its Workload is
    Admitted) and until all its pods run on KWOK's nodes. A controller's CPU is printed, too. Kueue
    is built when it is absent, which takes minutes.

    `--one-by-one`: Fairlead alone, an empty queue: from the answer to a pod's creation until a
    watch shows it without the gate, one pod after the other.

    `--sustained`: Fairlead alone, this number of Jobs let go at once, for at most `--seconds`.
    """
    parser = options(measure_quota_admissions)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--leaves", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--qps", type=int, default=500)
    parser.add_argument("--sustained", type=int, default=0, metavar="JOBS")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--one-by-one", type=int, default=0, metavar="PODS")
    chosen = parser.parse_args()
    if chosen.one_by_one:
        bench_one_by_one(chosen.one_by_one)
    elif chosen.sustained:
        bench_sustained(chosen.sustained, chosen.leaves, chosen.qps, chosen.seconds)
    else:
        bench(chosen.jobs, chosen.leaves, chosen.rounds, chosen.qps)


LEAVES = 100
PODS_PER_NODE = 100
EVENTS = "events"
QUIET_SECONDS = 35
"""Longer than the controller rests between two plans."""
WRITE = re.compile(
    r'^apiserver_request_total\{(.*verb="(?:POST|PUT|PATCH|DELETE|APPLY)".*)\} (\S+)$'
)


def _run(waiting: int, running: int, seconds: int) -> None:
    spaces = [f"team-{number}" for number in range(LEAVES)]
    with api_server() as cluster:
        began = time.monotonic()
        asyncio.run(_fill(cluster, spaces, running))
        print(f"{running} pods made in {time.monotonic() - began:.0f} s", flush=True)
        install(cluster)
        controller = QuotaController(cluster)
        controller.start(120)
        try:
            enforce(cluster, _quota_controller_idle_root(spaces, running))
            began = time.monotonic()
            asyncio.run(
                _make(
                    cluster,
                    (_pod(f"waits-{number}", spaces[number % LEAVES]) for number in range(waiting)),
                    waiting,
                )
            )
            print(f"{waiting} that wait made in {time.monotonic() - began:.0f} s", flush=True)
            _rest(cluster, 5, EVENTS)
            pid = controller.component.pid
            print(
                f"all have a condition: {cpu_seconds(pid):.1f} CPU s since its start, "
                f"{_memory(pid)}; one of them:\n    {_waiting_message(cluster)}"
            )
            controller.stop()
            began = time.monotonic()
            controller.start(120)
            pid = controller.component.pid
            print(
                (
                    f"started again: ready in {time.monotonic() - began:.1f} s, "
                    f"{cpu_seconds(pid):.1f} CPU s, {_memory(pid)}"
                ),
                flush=True,
            )
            _rest(cluster, QUIET_SECONDS)
            cpu, written, began = cpu_seconds(pid), _writes(cluster), time.monotonic()
            time.sleep(seconds)
            share = (cpu_seconds(pid) - cpu) / (time.monotonic() - began)
            print(
                f"idle for {seconds} s: {share:.2%} of a core, "
                f"{_writes(cluster) - written:.0f} "
                f"writes, {_memory(pid)}"
            )
        finally:
            controller.stop()


def _memory(pid: int) -> str:
    return f"{memory(pid, 'VmRSS'):.0f} MiB, at most {memory(pid, 'VmHWM'):.0f}"


def _waiting_message(cluster: ControlPlane) -> str:
    """The message of a waiting pod's condition; an error when there is none."""
    pod = json.loads(cluster.admin.run("get", "pod", "waits-0", "-n", "team-0", "-o", "json"))
    return next(
        str(each["message"])
        for each in pod["status"]["conditions"]
        if each["type"] == QUOTA_CONDITION
    )


async def _fill(cluster: ControlPlane, spaces: list[str], running: int) -> None:
    connection = find_connection(str(cluster.kubeconfig))
    assert connection is not None
    async with KubeApi(connection) as api:
        for space in spaces:
            await create(api, "/api/v1/namespaces", {"metadata": {"name": space}})
            await create(
                api,
                f"/api/v1/namespaces/{space}/serviceaccounts",
                {"metadata": {"name": "default"}},
            )
        await at_once(
            lambda number: create(api, "/api/v1/nodes", _quota_controller_idle_node(number)),
            range(_nodes(running)),
        )
    pods = (
        _pod(f"runs-{number}", spaces[number % LEAVES], f"node-{number % _nodes(running)}")
        for number in range(running)
    )
    await _make(cluster, pods, running)


async def _make(cluster: ControlPlane, pods: Iterable[Object], count: int) -> None:
    connection = find_connection(str(cluster.kubeconfig))
    assert connection is not None
    left = iter(pods)

    async with KubeApi(connection) as api:

        async def one(_: int) -> None:
            pod = next(left)
            await create(api, f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)

        await at_once(one, range(count))


def _nodes(running: int) -> int:
    return max(1, running // PODS_PER_NODE)


def _quota_controller_idle_node(number: int) -> Object:
    amounts = {"cpu": "1000", "memory": "1Ti", "pods": "1000"}
    conditions = [
        {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
    ]
    status = {"capacity": amounts, "allocatable": amounts, "conditions": conditions}
    return {
        "metadata": {
            "name": f"node-{number}",
            "labels": {"kubernetes.io/hostname": f"node-{number}"},
        },
        "status": status,
    }


def _pod(name: str, space: str, node: str = "") -> Object:
    """With what pods of jobs carry: labels, environment, volumes."""
    container = {
        "name": "main",
        "image": "registry.example.com/team/train:2026-01-05",
        "command": ["python", "train.py", "--epochs", "90", "--data", "/data/imagenet"],
        "env": [
            {"name": f"SETTING_{index}", "value": f"value-{index}-of-{name}"} for index in range(12)
        ],
        "resources": {"limits": {"cpu": "1", "memory": "4Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    labels = {"app": name, "quota.scheduling.alibabacloud.com/preemptible": "true"}
    spec: Object = {
        "containers": [container],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "automountServiceAccountToken": False,
    }
    return {
        "metadata": {"name": name, "namespace": space, "labels": labels},
        "spec": {**spec, **({"nodeName": node} if node else {})},
    }


def _quota_controller_idle_root(spaces: list[str], running: int) -> Object:
    """Full with what runs: who wants more waits for idle quota."""
    least, most = {"cpu": str(running // LEAVES)}, {"cpu": str(running)}
    children = [
        {"name": f"root.{name}", "min": least, "max": most, "namespaces": [name]} for name in spaces
    ]
    return {"name": "root", "min": most, "max": most, "children": children}


def _writes(cluster: ControlPlane, but: str = "") -> float:
    """`but`: a resource whose writes are not counted; Leases are not, either."""
    page = cluster.admin.run("get", "--raw", "/metrics")
    found = [each for line in page.splitlines() if (each := WRITE.match(line)) is not None]
    return sum(
        float(each[2])
        for each in found
        if not any(f'resource="{name}"' in each[1] for name in ("leases", but))
    )


def _rest(cluster: ControlPlane, seconds: float, but: str = "") -> None:
    """Wait until no client has written anything for `seconds`."""
    before, since = _writes(cluster, but), time.monotonic()
    while time.monotonic() < since + seconds:
        time.sleep(1)
        if (now := _writes(cluster, but)) != before:
            before, since = now, time.monotonic()


def measure_quota_controller_idle() -> None:
    """The quota controller beside a large cluster in which nothing happens, on the real API server.

        python -m bench quota_controller_idle [--waiting 10000] [--running 40000] [--seconds 60]

    etcd and kube-apiserver alone, so that no other client writes: pods that hold all quota, and
    pods that wait. When all of these have their condition, the controller is started again (its
    Events, ten a second, would go on for a quarter of an hour) and left alone until it writes no
    more.
    Then its CPU, its memory and its writes over `--seconds` are printed. Its Lease is renewed
    meanwhile, and does not count as a write.
    """
    parser = options(measure_quota_controller_idle)
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=40_000)
    parser.add_argument("--seconds", type=int, default=60)
    chosen = parser.parse_args()
    _run(chosen.waiting, chosen.running, chosen.seconds)
