"""Checks of nodes and of other programs on them: versions, CDI, clocks, the node agent, other
device plugins, exporters and extenders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from fairlead.model.dependency import SKEW_SECONDS, SKEW_SECONDS_MAX
from fairlead.model.installed.facts import (
    InstallationFacts,
    InventoryFact,
    NodeFact,
    Unread,
    WorkloadFact,
)
from fairlead.model.installed.finding import Finding, State
from fairlead.model.node_choice import NodeChoice
from fairlead.rules.installation.finding_lists import counted, dotted, some, unread
from fairlead.rules.nodes.choice import may_use_labelled
from fairlead.settings import GPU_EXPORTER_LABELS, NODE_AGENT_POD

OLDER_KUBELETS: Final = 3
"""Minor versions by which a kubelet may be older than the API server; it may not be newer.

Source: https://kubernetes.io/releases/version-skew-policy/.
"""
LEASE_SECONDS: Final = 40.0
"""`nodeLeaseDurationSeconds`, the kubelet's default: a ready node has renewed its Lease since."""
_CDI_DEFAULT: Final = {"containerd": (2, 0), "cri-o": (1, 23)}
"""The first version of each runtime with CDI on by default.

Sources: docs/cri/config.md of containerd (`enable_cdi`); the change log of CRI-O 1.23.
"""
_CDI_FIRST: Final = {"containerd": (1, 7), "cri-o": (1, 23)}
_CDI: Final = (
    'set `enable_cdi = true` and `cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]` in containerd\'s '
    "configuration, or use containerd 2"
)
_PLUGINS: Final = (
    *("k8s-device-plugin", "nvidia-device-plugin", "gpushare-device-plugin"),
    *("k8s-gpushare-plugin", "hami-device-plugin", "projecthami/hami", "vgpu-device-plugin"),
)
_EXPORTERS: Final = ("dcgm-exporter",)
_EXTENDERS: Final = (
    *("gpushare-schd-extender", "gpushare-scheduler-extender"),
    *("hami-scheduler", "projecthami/hami"),
)
"""Parts of the image or the name of programs that do what a part of Fairlead does."""
_NUMBERS: Final = re.compile(r"(?<!\d)(\d{1,9})\.(\d{1,9})")


def check_nodes(facts: InstallationFacts) -> Iterator[Finding]:
    if isinstance(facts.nodes, Unread):
        yield unread("nodes", facts.nodes)
    else:
        yield _kubelets(facts.nodes, facts.server.numbers)
        yield _node_clocks(facts.nodes, facts)
        if facts.agent is not None:
            yield from _gpu_nodes(facts.nodes, facts.agent, facts)
    yield from _neighbours(facts)
    yield _extender_configurations(facts)


def _kubelets(nodes: Sequence[NodeFact], server: tuple[int, int] | None) -> Finding:
    if not nodes:
        return Finding("kubelets", State.WARN, "the cluster has no nodes", "add a node")
    if server is None:
        sentence = "the API server's version is not known"
        return Finding("kubelets", State.UNKNOWN, sentence, "`kubectl version` prints it")
    newer = [_versioned(each) for each in nodes if (_numbers(each.kubelet) or server) > server]
    if newer:
        sentence = f"kubelets newer than the API server ({dotted(server)}): {some(newer)}"
        return Finding("kubelets", State.FAIL, sentence, "upgrade the control plane first")
    oldest = (server[0], server[1] - OLDER_KUBELETS)
    older = [_versioned(each) for each in nodes if (_numbers(each.kubelet) or oldest) < oldest]
    if older:
        sentence = f"kubelets older than {dotted(oldest)}: {some(older)}"
        return Finding("kubelets", State.FAIL, sentence, "upgrade these nodes")
    return Finding(
        "kubelets", State.OK, f"{counted(len(nodes), 'node')}: {_tally(nodes, _kubelet)}"
    )


def _node_clocks(nodes: Sequence[NodeFact], facts: InstallationFacts) -> Finding:
    """Nodes write their own time into their Leases; it is compared with the API server's.

    A Lease may have been renewed while facts were read.
    """
    if isinstance(facts.node_leases, Unread):
        return unread("node-clocks", facts.node_leases)
    if facts.server.is_simulated:
        sentence = "nodes of a simulated cluster have its one clock, which may run faster"
        return Finding("node-clocks", State.OK, sentence)
    ready = {each.name for each in nodes if each.is_ready}
    ahead = {
        each.name: each.renewed_at - facts.server_now
        for each in facts.node_leases
        if each.name in ready and each.renewed_at is not None
    }
    most = SKEW_SECONDS + facts.read_seconds
    wrong = {name: by for name, by in ahead.items() if by > most or by < -LEASE_SECONDS}
    if not wrong:
        sentence = f"no clock of {counted(len(ahead), 'ready node')} differs from the API server's"
        return Finding("node-clocks", State.OK, sentence)
    named = [
        f"{name} ({abs(by):.0f} s {'ahead' if by > 0 else 'behind'})"
        for name, by in sorted(wrong.items(), key=lambda pair: -abs(pair[1]))
    ]
    is_far = any(abs(by) > SKEW_SECONDS_MAX for by in wrong.values())
    return Finding(
        "node-clocks",
        State.FAIL if is_far else State.WARN,
        f"node Leases are not of the API server's time: {some(named)}",
        "synchronize the clocks of these nodes (NTP)",
    )


def _gpu_nodes(
    nodes: Sequence[NodeFact], agent: NodeChoice, facts: InstallationFacts
) -> Iterator[Finding]:
    selected = [each for each in nodes if _may_use(agent, each)]
    yield _kernels(selected)
    yield _cdi(selected)
    yield _agents(selected, [each for each in nodes if each.gpus and each not in selected], facts)


def _kernels(nodes: Sequence[NodeFact]) -> Finding:
    if not nodes:
        return Finding("kernels", State.OK, "the node agent selects no node")
    sentence = f"{counted(len(nodes), 'GPU node')}: {_tally(nodes, lambda node: node.kernel)}"
    if len({_numbers(each.kernel) for each in nodes}) == 1:
        return Finding("kernels", State.OK, sentence)
    mend = "check that the NVIDIA driver of each node is made for its kernel: `nvidia-smi`"
    return Finding("kernels", State.WARN, sentence, mend)


def _cdi(nodes: Sequence[NodeFact]) -> Finding:
    """Whether the container runtimes have CDI, by which the node agent gives GPUs to containers."""
    if not nodes:
        return Finding("cdi", State.OK, "the node agent selects no node")
    without = [node for node in nodes if not _has(node, _CDI_FIRST)]
    if without:
        sentence = f"container runtimes without CDI: {some([_running(each) for each in without])}"
        return Finding("cdi", State.FAIL, sentence, "use containerd 2, or CRI-O 1.23 or later")
    unset = [node for node in nodes if not _has(node, _CDI_DEFAULT)]
    if unset:
        sentence = f"CDI is off by default: {some([_running(each) for each in unset])}"
        return Finding("cdi", State.UNKNOWN, sentence, _CDI)
    sentence = f"CDI is on by default: {_tally(nodes, lambda node: node.runtime)}"
    return Finding("cdi", State.OK, sentence)


def _has(node: NodeFact, first: dict[str, tuple[int, int]]) -> bool:
    name, _, version = node.runtime.partition("://")
    return name in first and (_numbers(version) or (0, 0)) >= first[name]


def _agents(
    selected: Sequence[NodeFact], unselected: Sequence[NodeFact], facts: InstallationFacts
) -> Finding:
    """Whether each node with GPUs has a node agent that is ready."""
    if unselected:
        names = [f"{each.name} ({some(each.gpus)})" for each in unselected]
        sentence = f"nodes with GPUs that the node agent does not select: {some(names)}"
        mend = "`kubectl label node NODE nvidia.com/gpu.present=true`"
        return Finding("agents", State.WARN, sentence, mend)
    if not isinstance(facts.inventory, InventoryFact):
        sentence = f"the node agent selects {counted(len(selected), 'node')}"
        return Finding("agents", State.OK, sentence)
    if isinstance(facts.pods, Unread):
        return unread("agents", facts.pods)
    ready = {each.node for each in facts.pods if each.part == NODE_AGENT_POD and each.is_ready}
    missing = [each.name for each in selected if each.name not in ready]
    if missing:
        sentence = f"GPU nodes without a node agent that is ready: {some(missing)}"
        mend = "`kubectl get pods -A -o wide -l app.kubernetes.io/name=fairlead-node-agent`"
        return Finding("agents", State.FAIL, sentence, mend)
    sentence = f"a node agent is ready on each of {counted(len(selected), 'GPU node')}"
    return Finding("agents", State.OK, sentence)


def _neighbours(facts: InstallationFacts) -> Iterator[Finding]:
    """Workloads of other programs that do the same as a part of Fairlead."""
    if isinstance(facts.workloads, Unread):
        yield unread("other-programs", facts.workloads)
        return
    own = {(each["metadata"].get("namespace"), each["metadata"]["name"]) for each in facts.wanted}
    others = [each for each in facts.workloads if (each.namespace, each.name) not in own]
    daemon_sets = [each for each in others if each.kind == "DaemonSet" and each.wanted]
    if facts.agent is not None:
        yield _plugins(_called(daemon_sets, _PLUGINS), facts.agent, facts)
    if facts.chosen.parts.gpu_exporter:
        yield _exporters(_called(daemon_sets, _EXPORTERS))
    if facts.chosen.parts.gpu_sharing:
        yield _extenders(
            _called((each for each in others if each.kind == "Deployment"), _EXTENDERS)
        )


def _called(workloads: Iterable[WorkloadFact], words: Sequence[str]) -> list[WorkloadFact]:
    return [
        each
        for each in workloads
        if any(word in text for word in words for text in (each.name, *each.images))
    ]


def _plugins(found: Sequence[WorkloadFact], agent: NodeChoice, facts: InstallationFacts) -> Finding:
    check = "device-plugins"
    if not found:
        return Finding(check, State.OK, "no other device plugin for GPUs is found")
    if isinstance(facts.nodes, Unread):
        return unread(check, facts.nodes)
    on_same = [
        f"{_place(each)} ({counted(len(both), 'node')}, such as {both[0]})"
        for each in found
        if (
            both := [
                node.name
                for node in facts.nodes
                if _may_use(agent, node) and _may_use(each.choice, node)
            ]
        )
    ]
    if on_same:
        sentence = f"other device plugins on nodes of the node agent: {some(on_same)}"
        mend = "a card would be given out twice: remove the plugin, or keep it off these nodes"
        return Finding(check, State.FAIL, sentence, mend)
    sentence = f"other device plugins, on other nodes: {some([_place(each) for each in found])}"
    return Finding(check, State.OK, sentence)


def _exporters(found: Sequence[WorkloadFact]) -> Finding:
    if not found:
        return Finding("exporters", State.OK, "no other exporter of GPU metrics is found")
    sentence = f"other exporters of GPU metrics: {some([_place(each) for each in found])}"
    mend = f"scrape one of them and not both; Fairlead's has the label {GPU_EXPORTER_LABELS}"
    return Finding("exporters", State.WARN, sentence, mend)


def _extenders(found: Sequence[WorkloadFact]) -> Finding:
    if not found:
        return Finding("extenders", State.OK, "no other program that places shared GPUs is found")
    sentence = f"other programs place shared GPUs: {some([_place(each) for each in found])}"
    mend = "two accounts of one card disagree: remove it with its pods, or keep it off these nodes"
    return Finding("extenders", State.FAIL, sentence, mend)


def _extender_configurations(facts: InstallationFacts) -> Finding:
    """ConfigMaps of kube-system; a file on a control-plane machine is not visible."""
    check = "scheduler"
    if isinstance(facts.extenders, Unread):
        return unread(check, facts.extenders)
    found = [
        f"{each.namespace}/{each.name} ({some(each.addresses)})"
        for each in facts.extenders
        if each.addresses
    ]
    if found:
        sentence = f"configurations of kube-scheduler with extenders: {some(found)}"
        mend = "check that no extender but Fairlead's manages aliyun.com/gpu-mem"
        return Finding(check, State.WARN, sentence, mend)
    sentence = (
        "no ConfigMap of kube-system has an extender; files of control-plane machines are not "
        "visible from here"
    )
    return Finding(check, State.OK, sentence)


def _may_use(choice: NodeChoice, node: NodeFact) -> bool:
    return may_use_labelled(choice, node.name, node.labels, node.taints)


def _place(workload: WorkloadFact) -> str:
    return f"{workload.kind} {workload.namespace}/{workload.name}"


def _running(node: NodeFact) -> str:
    return f"{node.name} ({node.runtime or 'unknown runtime'})"


def _versioned(node: NodeFact) -> str:
    return f"{node.name} ({node.kubelet})"


def _kubelet(node: NodeFact) -> str:
    return node.kubelet


def _tally(nodes: Sequence[NodeFact], word: Callable[[NodeFact], str]) -> str:
    """Each value with the number of its nodes, if there are several values."""
    values = [word(each) or "unknown" for each in nodes]
    distinct = sorted(set(values))
    if len(distinct) == 1:
        return distinct[0]
    return some([f"{each} ({counted(values.count(each), 'node')})" for each in distinct])


def _numbers(version: str) -> tuple[int, int] | None:
    """
    >>> _numbers("v1.36.3"), _numbers("6.1.0-13-amd64"), _numbers("")
    ((1, 36), (6, 1), None)
    """
    found = _NUMBERS.search(version)
    return (int(found[1]), int(found[2])) if found else None
