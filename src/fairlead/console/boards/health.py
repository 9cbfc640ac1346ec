"""The dependencies of the console: their state, what they affect, and what to set.

See docs/spec/console.md#health-page.

Every row is judged by observations: responses of servers, sources of the snapshot, pods and nodes.
Configuration is not evidence. A component that is not in use is `off`, never `fail`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct, structs

from fairlead.console.boards.notices import reporting_cards
from fairlead.console.pages.envelope import Scalar, Sentence, counted, listed
from fairlead.console.pages.health import HealthRow
from fairlead.kinds.parts.kind import label_of, source_of
from fairlead.kinds.registry import KINDS
from fairlead.model.dependency import (
    SKEW_SECONDS,
    SKEW_SECONDS_MAX,
    DependencyLooks,
    ServerLook,
)
from fairlead.model.occupancy import NodeOccupancy
from fairlead.model.resources import GPU_MEMORY
from fairlead.model.snapshot import GPU_TELEMETRY, ClusterSnapshot
from fairlead.model.source import Source, SourceState
from fairlead.rules.nodes.status import share_mode
from fairlead.rules.pods.status import is_ready
from fairlead.rules.usage.past import OFF
from fairlead.settings import (
    CLUSTER_EXPORTER_POD,
    GPU_EXTENDER_POD,
    NODE_AGENT_POD,
    PART_LABEL,
    PEOPLE_CONTROLLER_POD,
    QUOTA_CONTROLLER_POD,
)
from fairlead.wire.names import FLUID_DATASETS, FLUID_GROUP, PEOPLE_GROUP, QUOTA_PLURAL, USERS

SLOW_SECONDS: Final = 1.0
RECORDED_SECONDS: Final = 120.0
"""A recorder writes every 10 s (docs/spec/usage.md#recorder)."""
DATASETS: Final = f"{FLUID_DATASETS}.{FLUID_GROUP}"
PEOPLE: Final = f"{USERS}.{PEOPLE_GROUP}"
NAMED: Final = 5
_CORE: Final = ("nodes", "pods")

AFFECTED_CONTENT: Final = {
    "cluster-api": "all pages",
    "permissions": "content that the server is not allowed to read is missing on every page",
    "prometheus": "charts, their time range, and how long GPUs have been idle",
    "gpu-telemetry": "utilization, used GPU memory, temperature, health and idle time of GPUs",
    "cluster-exporter": "Grafana boards, alerts and autoscaling; no page of this console",
    "sharing-extender": "scheduling of pods that request a part of a GPU",
    "device-plugin": "start of pods that share a GPU",
    "quota-controller": "admission of pods that wait for quota, and reclaiming of borrowed GPUs",
    "people-controller": "rights of users and groups: changes take no effect without it",
    "job-kinds": "jobs of these kinds on the Training jobs board",
    "fluid": "datasets and their caches",
    "helm": "installing and upgrading components",
    "store": "signing in, every write and the audit",
    "usage-recorder": "usage, cost, idle GPUs, and the cluster as it was",
    "clock-skew": "times in the log of the console, and when its certificates expire",
    "base-url": "links, copied addresses and the event stream",
}


def _part(name: str) -> str:
    return (
        f"install the part {name}: fairlead upgrade --set parts.{name}=true, or helm upgrade with "
        "this value"
    )


SETTINGS: Final = {
    "cluster-api": (
        "choose another cluster with --kubeconfig and --context, or find out why this cluster "
        "does not respond"
    ),
    "permissions": (
        "fairlead upgrade, or helm upgrade, gives the console's ServiceAccount its rights again; "
        "deploy/reader.yaml lists them"
    ),
    "prometheus": "set --prometheus URL, or PROMETHEUS_ADDRESS",
    "gpu-telemetry": f"{_part('gpuExporter')}; --gpu-source selects another source",
    "cluster-exporter": _part("clusterExporter"),
    "sharing-extender": _part("gpuSharing"),
    "device-plugin": f"{_part('nodeAgent')}, and label the nodes cgpu=true",
    "quota-controller": _part("quota"),
    "people-controller": _part("people"),
    "job-kinds": "install an operator, such as training-operator or mpi-operator",
    "fluid": "install Fluid",
    "store": "set --prometheus URL to keep series longer than the process",
    "usage-recorder": "start fairlead usage-recorder with the store of the console",
    "clock-skew": "synchronize the clocks of both machines with NTP",
}


class LedgerLook(Struct, frozen=True):
    """What the ledger shows of its recorder. `seconds`: age of the newest record, None = there is
    none. `gaps`: times without a recorder. `failure`: why the ledger could not be read. `holder`:
    the recorder that claimed it last. `is_off`: none can run here.
    """

    seconds: float | None = None
    gaps: int = 0
    failure: str = ""
    holder: str = ""
    is_off: bool = False


class HealthFacts(Struct, frozen=True):
    """The observations. `snapshot` contains the source of GPU telemetry; `nodes`: nodes with GPUs.

    `looks` None: there is no API server (a saved snapshot). `history_seconds`: span of the built-in
    history. `store`, `ledger`: None = the console has none, because users do not sign in.
    """

    snapshot: ClusterSnapshot
    nodes: tuple[NodeOccupancy, ...]
    looks: DependencyLooks | None
    is_simulated: bool
    history_seconds: float
    base_path: str
    store: ServerLook | None = None
    ledger: LedgerLook | None = None


class _Found(Struct, frozen=True):
    state: str
    sentences: list[Sentence]
    sources: list[str] = []
    is_settable: bool = True


_NO_SERVER: Final = _Found(
    "off",
    [Sentence("health-snapshot", {}, "this is a saved snapshot: there is no API server")],
    is_settable=False,
)
_NOTHING_SHARED: Final = _Found(
    "off", [Sentence("health-nothing-shared", {}, "no node shares its GPUs")]
)


def health_rows(facts: HealthFacts) -> list[HealthRow]:
    """In the order of docs/spec/console.md#health-page."""
    return [_row(name, judged(facts)) for name, judged in _JUDGES.items()]


def health_sentence(rows: Iterable[HealthRow]) -> Sentence:
    """The worst state of the dependencies that are in use; rows that are `off` are not counted.

    >>> health_sentence([]).text
    'All dependencies in use are OK.'
    """
    states = [row.state for row in rows]
    fail, warn = states.count("fail"), states.count("warn")
    used = len(states) - states.count("off")
    values: dict[str, Scalar] = {"fail": fail, "warn": warn, "used": used}
    if fail:
        return Sentence("health-fails", values, f"{fail} of {used} dependencies in use failed.")
    if warn:
        return Sentence(
            "health-looks",
            values,
            f"{warn} of {used} dependencies in use {_verb(warn, 'need')} attention.",
        )
    return Sentence("health-well", values, "All dependencies in use are OK.")


def health_summary(rows: Iterable[HealthRow]) -> list[HealthRow]:
    """For researchers: states and what they affect, without addresses, names and settings."""
    return [structs.replace(row, found=[], setting=None) for row in rows]


def _verb(many: int, verb: str) -> str:
    return f"{verb}s" if many == 1 else verb


def _with_verb(pods: int) -> str:
    return "1 pod shares a GPU" if pods == 1 else f"{pods} pods share GPUs"


def _row(name: str, found: _Found) -> HealthRow:
    setting = SETTINGS.get(name)
    return HealthRow(
        name=name,
        state=found.state,
        found=found.sentences,
        affects=Sentence(f"health-affects-{name}", {}, AFFECTED_CONTENT[name]),
        setting=Sentence(f"health-set-{name}", {}, setting)
        if setting and found.state != "ok" and found.is_settable
        else None,
        sources=found.sources,
    )


def _failure(look: ServerLook | Source) -> Sentence:
    """The message of the failed server or source, with its hint in parentheses."""
    message = (
        look.failure
        if isinstance(look, ServerLook)
        else look.message or f"`{look.name}` cannot be read"
    )
    hint = look.hint
    if hint:
        return Sentence(
            "health-failure-hint", {"message": message, "hint": hint}, f"{message} ({hint})"
        )
    return Sentence("health-failure", {"message": message}, message)


def _listed(names: Collection[str]) -> str:
    return listed(names, NAMED)


def _unread(sources: Collection[str]) -> Sentence:
    some = _listed(sources)
    return Sentence(
        "health-failing",
        {"sources": some},
        f"cannot be read now: {some}; the data read last is shown",
    )


def _unfinished(sources: Collection[str]) -> Sentence:
    some = _listed(sources)
    return Sentence("health-syncing", {"sources": some}, f"still being read: {some}")


def _hours(facts: HealthFacts) -> float:
    return round(facts.history_seconds / 3600, 1)


def _cluster_api(facts: HealthFacts) -> _Found:
    if facts.looks is None:
        return _NO_SERVER
    look = facts.looks.api
    inputs = _inputs(facts.snapshot)
    failing = [each.name for each in inputs if each.state == SourceState.FAILING]
    if look.failure:
        return _Found("fail", [_failure(look)], failing)
    sentences = [_answers(look)]
    slow = look.seconds is not None and look.seconds > SLOW_SECONDS
    if failing:
        sentences.append(_unread(failing))
    syncing = [each.name for each in inputs if each.state == SourceState.SYNCING]
    if syncing:
        sentences.append(_unfinished(syncing))
    return _Found("warn" if failing or syncing or slow else "ok", sentences, failing)


def _answers(look: ServerLook) -> Sentence:
    milliseconds = round(1000 * (look.seconds or 0.0), 1)
    version = look.version or "?"
    text = f"{look.address} responds in {milliseconds:g} ms, version {version}"
    return Sentence(
        "health-answers",
        {"address": look.address, "version": version, "milliseconds": milliseconds},
        text,
    )


def _inputs(snapshot: ClusterSnapshot) -> list[Source]:
    """Sources of the API server. Faults of the quota tree are not failures of the server."""
    found = sorted(snapshot.main_sources.values(), key=lambda source: source.name)
    return [each for each in found if each.name not in (GPU_TELEMETRY, QUOTA_PLURAL)]


def _permissions(facts: HealthFacts) -> _Found:
    if facts.looks is None:
        return _NO_SERVER
    forbidden = sorted(
        name
        for name, source in facts.snapshot.sources.items()
        if source.is_forbidden and name != GPU_TELEMETRY
    )
    if (
        not forbidden
        and facts.looks.api.failure
        and not any(source.is_ok for source in _inputs(facts.snapshot))
    ):
        return _Found(
            "off", [Sentence("health-unknown", {}, "unknown: the API server does not respond")]
        )
    if not forbidden:
        return _Found(
            "ok",
            [Sentence("health-allowed", {}, "the server can read everything that the pages show")],
        )
    sentence = Sentence(
        "health-forbidden",
        {"sources": _listed(forbidden)},
        f"not allowed to read: {_listed(forbidden)}",
    )
    return _Found("fail" if set(forbidden) & set(_CORE) else "warn", [sentence], forbidden)


def _prometheus(facts: HealthFacts) -> _Found:
    look = facts.looks.prometheus if facts.looks else None
    if look is None:
        hours = _hours(facts)
        text = f"not configured; charts show what this process has recorded, at most {hours:g} h"
        return _Found("off", [Sentence("health-no-prometheus", {"hours": hours}, text)])
    telemetry = facts.snapshot.sources.get(GPU_TELEMETRY)
    if look.failure:
        return _Found(
            "fail",
            [_failure(look)],
            [GPU_TELEMETRY] if telemetry is not None and telemetry.has_failed else [],
        )
    series = Sentence(
        "health-series", {"series": look.series or 0}, f"it has {look.series or 0} GPU series"
    )
    return _Found("ok" if look.series else "warn", [_answers(look), series])


def _telemetry(facts: HealthFacts) -> _Found:
    source = facts.snapshot.sources.get(GPU_TELEMETRY)
    if not facts.nodes:
        return _Found(
            "off", [Sentence("health-no-gpus", {}, "no node has GPUs")], is_settable=False
        )
    if source is None or source.state == SourceState.OFF:
        return _Found(
            "off", [Sentence("health-no-telemetry", {}, "no source of GPU values is configured")]
        )
    if source.has_failed or source.is_missing:
        return _Found("fail", [_failure(source)], [GPU_TELEMETRY])
    if source.state == SourceState.SYNCING:
        return _Found("warn", [_unfinished([GPU_TELEMETRY])], [GPU_TELEMETRY])
    counts = [(each.node.name, *reporting_cards(each)) for each in facts.nodes]
    silent = [name for name, reported, expected in counts if reported < expected]
    reporting, total = len(counts) - len(silent), len(counts)
    text = f"all cards of {reporting} of {counted(total, 'GPU node')} report"
    sentences = [Sentence("health-reporting", {"reporting": reporting, "total": total}, text)]
    if silent:
        sentences.append(
            Sentence(
                "health-not-reporting",
                {"nodes": _listed(silent)},
                f"not all cards report on {_listed(silent)}",
            )
        )
    if source.message:
        sentences.append(_failure(source))
    if not reporting and not any(reported for _, reported, _ in counts):
        return _Found("fail", sentences, [GPU_TELEMETRY])
    return _Found("warn" if silent or source.message else "ok", sentences, [GPU_TELEMETRY])


def _cluster_exporter(facts: HealthFacts) -> _Found:
    return _component(facts, CLUSTER_EXPORTER_POD) or _nowhere(CLUSTER_EXPORTER_POD)


def _component(facts: HealthFacts, name: str) -> _Found | None:
    """State of a component by its pods; None if it has none. A simulated cluster needs none."""
    if facts.is_simulated:
        return _Found(
            "ok", [Sentence("health-played", {}, "the simulated cluster performs this work")]
        )
    pods = [
        pod
        for pod in facts.snapshot.pods
        if pod.labels.get(PART_LABEL) == name and not pod.is_finished
    ]
    if not pods:
        return None
    ready, places = [pod for pod in pods if is_ready(pod)], sorted({pod.namespace for pod in pods})
    text = f"{len(ready)} of {counted(len(pods), 'pod')} of {name} ready, in {_listed(places)}"
    sentence = Sentence(
        "health-pods",
        {"ready": len(ready), "pods": len(pods), "name": name, "namespaces": _listed(places)},
        text,
    )
    return _Found("ok" if len(ready) == len(pods) else "warn" if ready else "fail", [sentence])


def _nowhere(name: str, state: str = "off") -> _Found:
    return _Found(
        state,
        [
            Sentence(
                "health-no-pods",
                {"label": f"{PART_LABEL}={name}"},
                f"no pod has the label {PART_LABEL}={name}",
            )
        ],
    )


def _extender(facts: HealthFacts) -> _Found:
    """Another vendor's extender is recognized by its effect: pods with parts of cards."""
    found = _component(facts, GPU_EXTENDER_POD)
    if found is not None:
        return found
    if not _shared_nodes(facts):
        return _NOTHING_SHARED
    given = sum(1 for pod in facts.snapshot.pods if pod.grants and pod.is_holding)
    if given:
        text = (
            f"Fairlead's extender is not installed, but {_with_verb(given)}: another scheduler "
            "extender is active"
        )
        return _Found("ok", [Sentence("health-another", {"pods": given}, text)])
    return _nowhere(GPU_EXTENDER_POD, "warn")


def _shared_nodes(facts: HealthFacts) -> list[str]:
    """Nodes whose labels request sharing of their GPUs, or that offer parts of them."""
    return [
        node.name
        for node in facts.snapshot.nodes
        if share_mode(node.labels).is_shared or node.capacity.get(GPU_MEMORY)
    ]


def _device_plugin(facts: HealthFacts) -> _Found:
    """State of the device plugin by its effect: nodes that share GPUs offer parts of them."""
    shared = set(_shared_nodes(facts))
    if not shared:
        return _NOTHING_SHARED
    silent = [
        node.name
        for node in facts.snapshot.nodes
        if node.name in shared and not node.allocatable.get(GPU_MEMORY)
    ]
    offering = len(shared) - len(silent)
    sentences = [
        Sentence(
            "health-offering",
            {"offering": offering, "nodes": len(shared)},
            (
                f"{offering} of {counted(len(shared), 'node')} that share GPUs "
                f"{_verb(offering, 'offer')} parts of GPUs"
            ),
        )
    ]
    if silent:
        sentences.append(
            Sentence(
                "health-not-offering",
                {"nodes": _listed(silent)},
                f"no parts of GPUs are offered by {_listed(silent)}",
            )
        )
    agents = None if facts.is_simulated else _component(facts, NODE_AGENT_POD)
    state = "ok" if not silent else "warn" if offering else "fail"
    return _Found(state, [*sentences, *(agents.sentences if agents else [])])


def _quota_controller(facts: HealthFacts) -> _Found:
    tree = facts.snapshot.sources.get(QUOTA_PLURAL)
    if (
        tree is None
        or tree.is_missing
        or (tree.is_ok and facts.snapshot.quota_tree is None and facts.snapshot.quota is None)
    ):
        return _Found("off", [Sentence("health-no-tree", {}, "there is no quota tree")])
    found = _component(facts, QUOTA_CONTROLLER_POD) or _nowhere(QUOTA_CONTROLLER_POD, "warn")
    if tree.state == SourceState.FAILING:
        worse = "fail" if found.state == "fail" else "warn"
        return _Found(worse, [_failure(tree), *found.sentences], [QUOTA_PLURAL])
    return found


def _job_kinds(facts: HealthFacts) -> _Found:
    served = facts.looks.served if facts.looks else None
    versions = (
        {kind.TYPE: _readable(served.get(label_of(kind), ()), kind.VERSIONS) for kind in KINDS}
        if served is not None
        else {}
    )
    known = [
        kind
        for kind in KINDS
        if versions.get(kind.TYPE) or (served is None and facts.snapshot.was_read(source_of(kind)))
    ]
    if not known:
        return _Found(
            "off",
            [Sentence("health-no-kinds", {}, "this cluster serves no kinds of training jobs")],
        )
    kinds = ", ".join(
        f"{kind.KIND} {'/'.join(versions.get(kind.TYPE, ()))}".strip() for kind in known
    )
    sentences = [Sentence("health-kinds", {"kinds": kinds}, f"served: {kinds}")]
    unread = sorted(
        source_of(kind)
        for kind in known
        if (source := facts.snapshot.sources.get(source_of(kind))) and source.has_failed
    )
    if unread:
        sentences.append(_unread(unread))
    return _Found("warn" if unread else "ok", sentences, unread)


def _readable(served: Iterable[str], readable: Iterable[str]) -> tuple[str, ...]:
    known = frozenset(readable)
    return tuple(version for version in served if version in known)


def _people_controller(facts: HealthFacts) -> _Found:
    versions = _served(facts, PEOPLE)
    if isinstance(versions, _Found):
        return versions
    return _component(facts, PEOPLE_CONTROLLER_POD) or _nowhere(PEOPLE_CONTROLLER_POD, "warn")


def _served(facts: HealthFacts, name: str) -> str | _Found:
    """The versions of custom resources that the cluster serves; a row that is `off` for none."""
    served = facts.looks.served if facts.looks else None
    if served is None:
        return _Found(
            "off", [Sentence("health-not-known", {}, "it is unknown what the cluster serves")]
        )
    versions = "/".join(served.get(name, ()))
    if versions:
        return versions
    text = f"this cluster does not serve {name}"
    return _Found("off", [Sentence("health-not-served", {"name": name}, text)])


def _fluid(facts: HealthFacts) -> _Found:
    versions = _served(facts, DATASETS)
    if isinstance(versions, _Found):
        return versions
    return _Found(
        "ok",
        [
            Sentence(
                "health-served",
                {"name": DATASETS, "versions": versions},
                f"{DATASETS} {versions}",
            )
        ],
    )


def _helm(facts: HealthFacts) -> _Found:
    return _Found("off", [Sentence("health-no-helm", {}, "this version installs no components")])


def _store(facts: HealthFacts) -> _Found:
    look = facts.store
    if look is not None:
        if look.failure:
            return _Found("fail", [_failure(look)], is_settable=False)
        is_slow = look.seconds is not None and look.seconds > SLOW_SECONDS
        return _Found("warn" if is_slow else "ok", [_answers(look)], is_settable=False)
    if facts.looks is not None and facts.looks.prometheus is not None:
        return _Found(
            "off",
            [
                Sentence(
                    "health-series-kept",
                    {},
                    "no store is configured; Prometheus keeps the series",
                )
            ],
        )
    hours = _hours(facts)
    return _Found(
        "off",
        [
            Sentence(
                "health-no-store",
                {"hours": hours},
                (
                    f"no store is configured: {hours:g} h of series are kept in memory and are "
                    "lost when the process ends"
                ),
            )
        ],
    )


def _usage_recorder(facts: HealthFacts) -> _Found:
    look = facts.ledger
    if look is None:
        text = "this console has no store, and so no usage ledger"
        return _Found("off", [Sentence("health-no-ledger", {}, text)], is_settable=False)
    if look.failure:
        return _Found("warn", [_failure_of(look.failure)], is_settable=False)
    if look.is_off:
        sentence = Sentence("health-ledger-off", {}, "; ".join(OFF))
        return _Found("off", [sentence], is_settable=False)
    if look.seconds is None:
        text = "no usage recorder has written to this store"
        return _Found("off", [Sentence("health-unrecorded", {}, text)])
    seconds = round(look.seconds)
    params: dict[str, str | int | float | None] = {"seconds": seconds, "holder": look.holder}
    if look.seconds > RECORDED_SECONDS:
        text = (
            f"the newest record of usage is {seconds} s old: no usage recorder writes; "
            f"the last was `{look.holder}`"
        )
        return _Found("fail", [Sentence("health-recorder-away", params, text)])
    text = f"`{look.holder}` records usage; its newest record is {seconds} s old"
    sentences = [Sentence("health-recorded", params, text)]
    if look.gaps:
        text = f"{counted(look.gaps, 'time')} in the ledger without a recorder"
        sentences.append(Sentence("health-gaps", {"n": look.gaps}, text))
    return _Found("ok", sentences)


def _failure_of(message: str) -> Sentence:
    return Sentence("health-failure", {"message": message}, message)


def _clock_skew(facts: HealthFacts) -> _Found:
    if facts.is_simulated:
        return _Found(
            "off",
            [Sentence("health-own-time", {}, "a simulated cluster has its own time")],
            is_settable=False,
        )
    ahead = facts.looks.api.ahead_seconds if facts.looks else None
    if ahead is None:
        return _Found("off", [Sentence("health-no-time", {}, "the API server's time is unknown")])
    seconds = round(abs(ahead), 1)
    if seconds <= SKEW_SECONDS:
        return _Found(
            "ok",
            [
                Sentence(
                    "health-clock",
                    {"seconds": SKEW_SECONDS},
                    (
                        "the clocks of the API server and of this machine differ by at most "
                        f"{SKEW_SECONDS:g} s"
                    ),
                )
            ],
        )
    code, side = (
        ("health-clock-ahead", "ahead of") if ahead > 0 else ("health-clock-behind", "behind")
    )
    sentence = Sentence(
        code,
        {"seconds": seconds},
        f"the API server's clock is {seconds:g} s {side} this machine's",
    )
    return _Found("warn" if seconds <= SKEW_SECONDS_MAX else "fail", [sentence])


def _base_url(facts: HealthFacts) -> _Found:
    return _Found(
        "ok",
        [
            Sentence(
                "health-base", {"path": facts.base_path}, f"the pages are below {facts.base_path}"
            )
        ],
    )


_JUDGES: Final[Mapping[str, Callable[[HealthFacts], _Found]]] = {
    "cluster-api": _cluster_api,
    "permissions": _permissions,
    "prometheus": _prometheus,
    "gpu-telemetry": _telemetry,
    "cluster-exporter": _cluster_exporter,
    "sharing-extender": _extender,
    "device-plugin": _device_plugin,
    "quota-controller": _quota_controller,
    "people-controller": _people_controller,
    "job-kinds": _job_kinds,
    "fluid": _fluid,
    "helm": _helm,
    "store": _store,
    "usage-recorder": _usage_recorder,
    "clock-skew": _clock_skew,
    "base-url": _base_url,
}
