"""Fairlead on other versions of Kubernetes: installed, checked, sharing, with quota, removed.

Each version has an API server, a controller manager and schedulers of its own. The containers of
the installation are processes at their pods' addresses, and kube-scheduler of that version reads
the shipped configuration. The cases are the same for all versions.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import pytest
import yaml
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.etcd_keys import keys, marked
from tests.kube.objects import share_node
from tests.kube.played_pods import (
    NEEDS_ROOT,
    SYSTEM,
    Serving,
    all_serving,
    played,
    pod_kubeconfig,
    pod_ranges,
    running_pods,
)
from tests.kube.programs import other_kubernetes, program
from tests.kube.quota_line import DEMO, big_node, clear, deployment, enforce, settled
from tests.kube.quota_truth import QuotaTruth
from tests.kube.servers import (
    FAIRLEAD,
    Page,
    Server,
    environment,
    fairlead_answer,
    run_arena,
    run_fairlead,
    running,
)
from tests.kube.sharing_words import fate, pod, ready
from tests.programs import run_program
from tests.waiting import wait_until

from fairlead.wire import names

pytestmark = pytest.mark.skipif(bool(NEEDS_ROOT), reason=NEEDS_ROOT)
Object = dict[str, Any]
VERSIONS = other_kubernetes()


def has_policies(minor: str) -> bool:
    """Whether MutatingAdmissionPolicy is served in `v1`; docs/reference/compatibility.md."""
    return int(minor.partition(".")[2]) >= 36


WAYS = [
    (minor, admission)
    for minor in VERSIONS
    for admission in ("policies", "webhooks")
    if admission == "webhooks" or has_policies(minor)
]
PLACES = ("namespace1", "namespace2", "namespace3")
STEPS = ((4,), (4, 4), (3, 3, 2))
"""The number of pods that run in each namespace after each step of the 40-core demo."""
NOT_ASKED = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeProxyVersion"),
    *("operatingSystem", "architecture"),
)
"""Of a node's description; the API server wants each."""
UNITS = 14
"""GiB of the one GPU, a Tesla T4, that the node agent hands out."""
INSTALL_SECONDS = 300


class Installed(NamedTuple):
    """An installation at work, and what was before it.

    `doctor`: the answer of `fairlead doctor` for the values. `plain`: of `fairlead install
    --dry-run` without values. `serving`: the processes, by container. `keys`, `marks`: of etcd, and
    of nodes and namespaces.
    """

    cluster: ControlPlane
    minor: str
    admission: str
    doctor: subprocess.CompletedProcess[str]
    plain: subprocess.CompletedProcess[str]
    keys: set[str]
    marks: dict[str, Mapping[str, Any]]
    serving: dict[Serving, Component]
    leaving: ExitStack

    def pages(self, name: str) -> list[Page]:
        """The metrics of each process of a workload."""
        return [
            Server(component, f"http://{each.address}").metrics()
            for each, component in self.serving.items()
            if each.pod["metadata"]["labels"]["app.kubernetes.io/name"] == name
        ]


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, ControlPlane]]:
    """The control plane of the version in use, at most one; `_cluster` starts it."""
    with ExitStack() as leaving:
        yield _Clusters(leaving)


class _Clusters(dict[str, ControlPlane]):
    def __init__(self, leaving: ExitStack) -> None:
        self._leaving = leaving

    def __missing__(self, minor: str) -> ControlPlane:
        self._leaving.close()
        self.clear()
        made = self._leaving.enter_context(
            running_control_plane(kubernetes=minor, routes_to_endpoints=True)
        )
        nodes = [big_node("big", 128), share_node("shared", 1, UNITS)]
        ranges = self._leaving.enter_context(pod_ranges(len(nodes)))
        for addresses, node in zip(ranges, nodes, strict=True):
            node["spec"] = {"podCIDR": addresses, "podCIDRs": [addresses]}
            node["metadata"]["labels"]["kubernetes.io/os"] = "linux"
            node["status"]["nodeInfo"] = {
                "kubeletVersion": f"v{VERSIONS[minor]}",
                "containerRuntimeVersion": "containerd://2.2.9",
                **dict.fromkeys(NOT_ASKED, "none"),
            }
        made.admin.create(nodes)
        wait_until("the nodes are ready", lambda: len(ready(made)) == len(nodes))
        self[minor] = made
        return made


@pytest.fixture(scope="module", params=WAYS, ids="-".join)
def installed(
    request: pytest.FixtureRequest, clusters: dict[str, ControlPlane]
) -> Iterator[Installed]:
    minor, admission = request.param
    cluster = clusters[minor]
    values = _values(minor, admission)
    doctor = fairlead_answer(cluster.kubeconfig, "doctor", *values)
    plain = fairlead_answer(cluster.kubeconfig, "install", "--dry-run")
    before = doctor, plain, keys(cluster), marked(cluster)
    with ExitStack() as leaving:
        serving = leaving.enter_context(_installed_and_played(cluster, values))
        leaving.enter_context(_schedulers(cluster, minor, serving))
        yield Installed(cluster, minor, admission, *before, serving, leaving)


def _values(minor: str, admission: str) -> list[str]:
    """As docs/how-to/install.md has them for this version."""
    image = f"registry.k8s.io/kube-scheduler:v{VERSIONS[minor]}"
    return [f"--set=admission={admission}", f"--set=kubeSchedulerImage={image}"]


@contextmanager
def _installed_and_played(
    cluster: ControlPlane, values: list[str]
) -> Iterator[dict[Serving, Component]]:
    """`fairlead install` waits until the webhooks are answered, by pods that are played as soon as
    they are there.
    """
    command = [*FAIRLEAD, "install", *values, f"--wait={INSTALL_SECONDS}"]
    log = cluster.logs / "install.log"
    with log.open("w") as output, ExitStack() as leaving:
        install = subprocess.Popen(
            [*command, f"--kubeconfig={cluster.kubeconfig}"],
            env=environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        leaving.callback(install.wait, 30)
        leaving.callback(install.kill)
        wait_until(
            lambda: f"all pods run: {log.read_text()}",
            lambda: install.poll() is not None or _all_run(cluster),
            INSTALL_SECONDS,
        )
        serving = leaving.enter_context(played(cluster, all_serving))
        install.wait(INSTALL_SECONDS)
        assert install.returncode == 0, log.read_text()
        yield serving


def _all_run(cluster: ControlPlane) -> bool:
    """Whether every workload of the installation has its pods; the last one that is written is the
    webhook's.
    """
    found = cluster.admin.get("deployments,daemonsets", "-l", "app.kubernetes.io/part-of=fairlead")
    wanted = sum(
        each["status"].get("desiredNumberScheduled", each["spec"].get("replicas", 0))
        for each in found
    )
    kinds = {each["metadata"]["name"] for each in found}
    return len(kinds) == WORKLOADS and len(running_pods(cluster)) == wanted


WORKLOADS = 8
"""Console, cluster exporter, GPU exporter, node agent, scheduler, quota controller, people
controller, webhook.
"""


@contextmanager
def _schedulers(
    cluster: ControlPlane, minor: str, serving: dict[Serving, Component]
) -> Iterator[None]:
    """kube-scheduler beside each extender, with the configuration of the installation and the
    pod's account.
    """
    (config,) = (
        each
        for each in cluster.admin.get("configmaps", "-n", SYSTEM)
        if each["metadata"]["name"] == "fairlead-scheduler"
    )
    text = config["data"]["scheduler.yaml"]
    assert "http://127.0.0.1:12345/" in text
    with ExitStack() as leaving:
        for each in serving:
            if not each.is_extender:
                continue
            name, address = each.pod["metadata"]["name"], each.pod["status"]["podIP"]
            kubeconfig = pod_kubeconfig(cluster, each.pod)
            changed = yaml.safe_load(text.replace("127.0.0.1:12345", each.address))
            changed["clientConnection"] = {"kubeconfig": str(kubeconfig)}
            file = cluster.folder / f"{name}-scheduler.yaml"
            file.write_text(yaml.safe_dump(changed), encoding="utf-8")
            asked = ("authentication", "authorization")
            flags = [f"--{what}-kubeconfig={kubeconfig}" for what in asked]
            scheduler = Component(
                f"kube-scheduler {minor}",
                [
                    program("kube-scheduler", minor),
                    *(f"--config={file}", f"--bind-address={address}", "--secure-port=10259"),
                    *(f"--cert-dir={cluster.folder / name}", *flags),
                ],
                cluster.logs / f"{name}-scheduler.log",
                environment(),
            )
            leaving.callback(scheduler.stop)
            scheduler.start()
        yield


def test_before_it_the_doctor_finds_nothing_bad(installed: Installed) -> None:
    version = VERSIONS[installed.minor]
    assert installed.doctor.returncode == 0, installed.doctor.stdout
    assert f"Kubernetes v{version}; admission by {installed.admission} needs " in (
        installed.doctor.stdout
    )
    assert f"kube-scheduler {installed.minor} beside the API server {installed.minor}" in (
        installed.doctor.stdout
    )


def test_without_values_it_works_or_is_refused_with_those_that_work(installed: Installed) -> None:
    words = installed.plain.stdout + installed.plain.stderr
    if has_policies(installed.minor):
        assert installed.plain.returncode == 0, words
        return
    assert installed.plain.returncode == 1, words
    assert f"error: Kubernetes {installed.minor}; admission by policies needs 1.36\n" in words
    image = f"registry.k8s.io/kube-scheduler:v{installed.minor}.PATCH"
    assert (
        "hint: `--set admission=webhooks` works with Kubernetes 1.32 and later, with "
        f"`--set kubeSchedulerImage={image}`\n"
    ) in words


def test_after_it_the_doctor_finds_nothing_bad(installed: Installed) -> None:
    cluster = installed.cluster
    wait_until(
        lambda: fairlead_answer(cluster.kubeconfig, "doctor").stdout,
        lambda: fairlead_answer(cluster.kubeconfig, "doctor").returncode == 0,
        60,
    )
    again = run_fairlead(cluster.kubeconfig, "upgrade", "--dry-run").splitlines()
    assert len(again) == 1 and again[0].endswith(" objects do not change")


def test_console_exporter_and_arena_count_what_the_nodes_report(installed: Installed) -> None:
    """One node has one GPU."""
    cluster = installed.cluster
    total = "arena_total_gpus_of_cluster"
    wait_until("one exporter leads", lambda: _numbers(installed, total) == [1])
    (reader, *_) = (
        each
        for each in running_pods(cluster)
        if each["metadata"]["labels"]["app.kubernetes.io/name"] == "fairlead-console"
    )
    flags = [f"--kubeconfig={pod_kubeconfig(cluster, reader)}"]
    with running("console", *flags, log=cluster.logs / "console.log") as console:
        assert console.api("/overview")["gpus"]["total"] == 1
        assert {row["name"] for row in console.api("/nodes")["items"]} == {"big", "shared"}
    table = run_arena("top", "node", kubeconfig=cluster.kubeconfig)
    assert {"big", "shared"} <= {line.split()[0] for line in table.splitlines() if line}


def _numbers(installed: Installed, name: str) -> list[float]:
    """Of the exporters that show it: those that stand by do not."""
    pages = installed.pages("fairlead-cluster-exporter")
    return [page.value(name) for page in pages if page.has(name)]


def test_pods_share_a_gpu_and_one_without_room_waits(installed: Installed) -> None:
    """Neither pod names a scheduler: admission sends it to Fairlead's."""
    admin = installed.cluster.admin
    here = {"kubernetes.io/hostname": "shared"}
    for name, units in (("first", UNITS - 5), ("second", 5), ("third", 1)):
        made = pod(name, units)
        made["spec"]["nodeSelector"] = here
        admin.create([made])
        wait_until(f"{name} is answered", lambda name=name: _fate(installed, name) is not None, 60)  # type: ignore[misc]
    first, second, third = (_fate(installed, name) for name in ("first", "second", "third"))
    assert first is not None and second is not None and third is not None
    assert (first["node"], second["node"], third["node"]) == ("shared", "shared", ""), (
        first,
        second,
        third,
    )
    assert [(card[0], card[1]) for card in first["cards"]["c0"]] == [(0, UNITS - 5)]
    assert [(card[0], card[1]) for card in second["cards"]["c0"]] == [(0, 5)]
    assert "Insufficient aliyun.com/gpu-mem" in third["told"]
    _refused_forgery(installed)
    admin.run("delete", "pods", "--all", "-n", "default", "--force", "--grace-period=0")


def _fate(installed: Installed, name: str) -> Object | None:
    """Where the pod is, or why it waits; None before."""
    (found,) = installed.cluster.admin.get(
        "pods", "-n", "default", f"--field-selector=metadata.name={name}"
    )
    seen = fate(found)
    return seen if seen is not None and (seen["node"] or seen["told"]) else None


def _refused_forgery(installed: Installed) -> None:
    """Only Fairlead may write a grant."""
    patch = {"metadata": {"annotations": {names.ANNOTATION_ALLOCATION: json.dumps({})}}}
    almost = installed.cluster.write_user_kubeconfig("owner")
    admin = installed.cluster.admin
    binding = ("clusterrolebinding", "owner")
    admin.run("create", *binding, "--clusterrole=edit", "--user=owner")
    command = ["patch", "pod", "third", "-n", "default", "-p", json.dumps(patch)]
    answer = run_program(
        [program("kubectl"), *command, f"--kubeconfig={almost}"],
        env={**environment(), **admin.folders},
    )
    admin.run("delete", *binding)
    assert answer.returncode == 1, answer.stdout
    assert "only Fairlead" in answer.stderr, answer.stderr


def test_quota_lends_and_takes_back(installed: Installed) -> None:
    """Three steps of the 40-core demo: the first two namespaces borrow, the third one's share is
    reclaimed by two evictions.
    """
    cluster = installed.cluster
    enforce(cluster, DEMO)
    truth = QuotaTruth(cluster, DEMO)
    try:
        for wanted, place in zip(STEPS, PLACES, strict=True):
            cluster.admin.create([deployment("web", place, 5, "5")])
            settled(truth, dict(zip(PLACES, wanted, strict=False)))
        assert truth.faults == []
        assert len(truth.evicted) == 2
        assert truth.waiting() == dict.fromkeys(PLACES, 3) | {"namespace1": 2, "namespace2": 2}
    finally:
        truth.stop()
        clear(cluster, PLACES)


def test_uninstall_leaves_nothing(installed: Installed) -> None:
    cluster = installed.cluster
    installed.leaving.close()
    lines = run_fairlead(cluster.kubeconfig, "uninstall", "--delete-data", seconds=400)
    assert "is removed" in lines
    cluster.admin.run(
        "delete", "namespace", *PLACES, "namespace4", "--ignore-not-found", seconds=200
    )
    wait_until(
        lambda: f"not as before: {keys(cluster) ^ installed.keys}",
        lambda: keys(cluster) == installed.keys,
        60,
    )
    assert marked(cluster) == installed.marks


def test_the_expressions_of_policies_are_those_of_an_older_api_server() -> None:
    """`EMULATED` is the oldest version that the API server emulates: it compiles what that version
    would. Webhooks work from 1.32 on.
    """
    oldest = min(VERSIONS)
    values = _values(oldest, "webhooks")
    with running_control_plane(kubernetes=oldest, emulated=EMULATED) as cluster:
        run_fairlead(cluster.kubeconfig, "install", *values, "--wait=0")
        found = cluster.admin.get("validatingadmissionpolicies")
        assert {each["metadata"]["name"] for each in found} >= LIMITS


EMULATED = "1.31"
LIMITS = {
    *("fairlead-node-agent-nodes", "fairlead-node-agent-pods", "fairlead-quota-ends"),
    *("fairlead-quota-namespaces", "fairlead-quota-pods", "fairlead-quota-workloads"),
    "fairlead-scheduler-writes",
}
"""Some policies about Fairlead's own accounts; an installation with webhooks has them, too."""
