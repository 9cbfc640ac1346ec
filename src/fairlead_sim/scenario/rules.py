"""Contradictions in a scenario: names given twice, unknown references, work that fits nowhere.

Each rule yields the way to the key and a sentence; `file` knows the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from ipaddress import AddressValueError, IPv4Address
from typing import Final

from fairlead.wire.kube.quantity import parse_amounts, parse_quantity
from fairlead_sim.gpus.cards import CARD_MODELS
from fairlead_sim.gpus.division import bad_division
from fairlead_sim.objects.pod_counts import MOST_PODS
from fairlead_sim.scenario.network import API_SERVICE, split_port
from fairlead_sim.scenario.scenario import (
    ContainerRequests,
    ForeignProcess,
    Hang,
    NodePool,
    Quota,
    Scenario,
    ScenarioService,
    Stream,
    Xid,
    pool_nodes,
)
from fairlead_sim.store.cluster import FIRST_NAMESPACES
from fairlead_sim.store.service_allocation import NODE_PORTS, SERVICE_NETWORK

KeyPath = tuple[str | int, ...]
"""The way to a value: ("streams", 2, "runs")."""
Faults = Iterator[tuple[KeyPath, str]]

MOST_PRIORITY: Final = 1_000_000_000
_KNOWN_CARDS = ", ".join(f"`{name}`" for name in CARD_MODELS)
_NODE_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def contradictions(scenario: Scenario) -> Faults:
    """All of them; what others are named by comes first."""
    named = (_bad_pools, _bad_node_names, _bad_teams, _bad_priorities)
    for rule in (
        *named,
        _bad_asks,
        _bad_services,
        _bad_streams,
        _bad_pods,
        _bad_network,
        _bad_quota,
        _bad_devices,
        _bad_outages,
    ):
        yield from rule(scenario)


def _twice(
    section: str, names: Iterable[tuple[str, str]], pattern: re.Pattern[str] = _NAME
) -> Faults:
    """Names (each in a namespace, or "") that are no Kubernetes names, or there already."""
    seen: dict[tuple[str, str], int] = {}
    for index, (namespace, name) in enumerate(names):
        if not pattern.fullmatch(name):
            yield (
                (section, index, "name"),
                f"`{name}` is not a Kubernetes name (lower-case letters, digits and `-`)",
            )
        elif (namespace, name) in seen:
            where = f" in namespace `{namespace}`" if namespace else ""
            yield (
                (section, index, "name"),
                f"`{name}` is there twice{where}: also `{section}[{seen[namespace, name]}]`",
            )
        seen.setdefault((namespace, name), index)


# --- machines -------------------------------------------------------------------------------------


def _bad_pools(scenario: Scenario) -> Faults:
    for index, pool in enumerate(scenario.node_pools):
        here: KeyPath = ("node_pools", index)
        if not pool.name and not pool.names:
            yield (*here, "name"), "a pool needs a `name`, or exact `names`"
        if pool.names and pool.count != 1:
            yield (
                (*here, "count"),
                (
                    f"`names` gives {len(pool.names)} machines, `count` {pool.count}: give "
                    "one of the two"
                ),
            )
        for field, low, high in (
            ("count", 1, 5000),
            ("gpus", 0, 16),
            ("cpu", 1, 4096),
            ("pods", 0, 5000),
        ):
            if not low <= getattr(pool, field) <= high:
                yield (*here, field), f"{getattr(pool, field)} is not between {low} and {high}"
        if problem := _bad_quantity(pool.memory):
            yield (*here, "memory"), problem
        yield from _bad_cards(here, pool)


def _bad_cards(here: KeyPath, pool: NodePool) -> Faults:
    if pool.gpus and pool.gpu_model not in CARD_MODELS:
        yield (
            (*here, "gpu_model"),
            f"`{pool.gpu_model}` is not a known card; known are {_KNOWN_CARDS}",
        )
    if pool.gpu_model and not pool.gpus:
        yield (*here, "gpu_model"), f"a model (`{pool.gpu_model}`) of no cards: `gpus` is 0"
    if pool.shared and not pool.gpus:
        yield (*here, "shared"), "a node without GPUs cannot share them"
    if pool.mig and pool.shared:
        yield (*here, "mig"), "a node divides its GPUs by MIG or shares them, not both"
    elif (
        pool.mig
        and pool.gpu_model in CARD_MODELS
        and (problem := bad_division(CARD_MODELS[pool.gpu_model], pool.mig))
    ):
        yield (*here, "mig"), problem
    elif pool.mig and not pool.gpus:
        yield (*here, "mig"), "a node without GPUs cannot divide them"


def _bad_node_names(scenario: Scenario) -> Faults:
    nodes: dict[str, int] = {}
    addresses: dict[str, int] = {}
    for index, pool in enumerate(scenario.node_pools):
        key: KeyPath = ("node_pools", index, "names" if pool.names else "name")
        for name in pool_nodes(pool):
            if not _NODE_NAME.fullmatch(name):
                yield (
                    key,
                    (
                        f"`{name if pool.names else pool.name}` is not a Kubernetes name "
                        "(lower-case letters, digits, `-` and `.`)"
                    ),
                )
            elif name in nodes:
                yield key, f"there are two nodes `{name}`: also in `node_pools[{nodes[name]}]`"
            nodes.setdefault(name, index)
        if pool.addresses and len(pool.addresses) != len(pool.names):
            yield (
                ("node_pools", index, "addresses"),
                f"there are {len(pool.addresses)} addresses for {len(pool.names)} names",
            )
        for address in pool.addresses:
            if problem := _bad_address(address):
                yield ("node_pools", index, "addresses"), problem
            elif address in addresses:
                yield ("node_pools", index, "addresses"), f"two nodes have the address `{address}`"
            addresses.setdefault(address, index)


# --- people and quotas ----------------------------------------------------------------------------


def _bad_teams(scenario: Scenario) -> Faults:
    yield from _twice("teams", (("", team.name) for team in scenario.teams))
    holders: dict[str, str] = {}
    for index, team in enumerate(scenario.teams):
        for namespace in team.namespaces:
            if not _NAME.fullmatch(namespace):
                yield (
                    ("teams", index, "namespaces"),
                    (
                        f"`{namespace}` is not a Kubernetes name (lower-case "
                        "letters, digits and `-`)"
                    ),
                )
            elif namespace in FIRST_NAMESPACES:
                yield (
                    ("teams", index, "namespaces"),
                    f"`{namespace}` belongs to the cluster and to no team",
                )
            elif namespace in holders:
                yield (
                    ("teams", index, "namespaces"),
                    f"`{namespace}` is already of team `{holders[namespace]}`",
                )
            holders.setdefault(namespace, team.name)


def _bad_quota(scenario: Scenario) -> Faults:
    known, families = set(scenario.namespaces), _children(scenario)
    before: dict[str, int] = {}
    paths = {node.path for node in scenario.quota}
    holders: dict[str, str] = {}
    for index, node in enumerate(scenario.quota):
        here: KeyPath = ("quota", index)
        yield from (((*here, "path"), problem) for problem in _bad_path(node.path, before, paths))
        before.setdefault(node.path, index)
        if node.namespaces and node.path in families:
            yield (*here, "namespaces"), f"`{node.path}` has children: namespaces belong to leaves"
        for namespace in node.namespaces:
            if namespace not in known:
                yield (*here, "namespaces"), f"no team has namespace `{namespace}`"
            if namespace in holders:
                yield (*here, "namespaces"), f"`{namespace}` is already on `{holders[namespace]}`"
            holders[namespace] = node.path
    readable = True
    for index, node in enumerate(scenario.quota):
        for field in ("min", "max"):
            if problem := _bad_amounts(getattr(node, field)):
                readable = False
                yield ("quota", index, field), problem
    if readable:
        yield from _bad_sums(scenario)


def _bad_path(path: str, before: Mapping[str, int], paths: Set[str]) -> Iterator[str]:
    """`before`: the paths that stand above it, with their place."""
    parent = path.rpartition(".")[0]
    if path in before:
        yield f"`{path}` is there twice: also `quota[{before[path]}]`"
    elif not before and parent:
        yield f"the first node is the root and has no parent, but `{path}` has a dot"
    elif before and not parent:
        yield f"`{path}` has no dot: there is one root already, `{next(iter(before))}`"
    elif before and parent not in paths:
        yield f"`{path}` has no parent `{parent}` in the tree"
    elif before and parent not in before:
        yield f"`{path}` stands before its parent `{parent}`"


def _bad_sums(scenario: Scenario) -> Faults:
    """No quota is guaranteed more than its max, and children together no more than their parent."""
    families = _children(scenario)
    for index, node in enumerate(scenario.quota):
        low, high = parse_amounts(node.min), parse_amounts(node.max)
        for resource in low:
            if low[resource] > high.get(resource, low[resource]):
                yield (
                    ("quota", index, "min"),
                    (
                        f"min {node.min[resource]} of {resource} is more "
                        f"than max {node.max[resource]}"
                    ),
                )
        children = families.get(node.path, [])
        asked: dict[str, int] = {}
        for child in children:
            for resource, amount in parse_amounts(child.min).items():
                asked[resource] = asked.get(resource, 0) + amount
        for resource, amount in asked.items():
            if amount > low.get(resource, 0):
                detail = ", ".join(
                    f"{child.path} {child.min[resource]}"
                    for child in children
                    if resource in child.min
                )
                yield (
                    ("quota", index, "min"),
                    (
                        f"its children's min of {resource} ({detail}) is more than its own min "
                        f"{node.min.get(resource, 0)}"
                    ),
                )


def _children(scenario: Scenario) -> dict[str, list[Quota]]:
    found: dict[str, list[Quota]] = {}
    for node in scenario.quota:
        found.setdefault(node.path.rpartition(".")[0], []).append(node)
    return found


def _bad_priorities(scenario: Scenario) -> Faults:
    yield from _twice("priority_classes", (("", item.name) for item in scenario.priority_classes))
    default = ""
    for index, item in enumerate(scenario.priority_classes):
        if item.name.startswith("system-"):
            yield (
                ("priority_classes", index, "name"),
                f"`{item.name}`: names that begin with `system-` are the cluster's own",
            )
        if not -(2**31) <= item.value <= MOST_PRIORITY:
            yield (
                ("priority_classes", index, "value"),
                f"{item.value} is not between {-(2**31)} and {MOST_PRIORITY}",
            )
        if item.global_default and default:
            yield (
                ("priority_classes", index, "global_default"),
                f"`{default}` is the default already",
            )
        default = default or (item.name if item.global_default else "")


# --- work -----------------------------------------------------------------------------------------


def _bad_asks(scenario: Scenario) -> Faults:
    """What services and streams have in common."""
    known = set(scenario.namespaces)
    classes = {item.name for item in scenario.priority_classes}
    work: dict[str, Sequence[ScenarioService | Stream]] = {
        "services": scenario.services,
        "streams": scenario.streams,
    }
    for section, parts in work.items():
        yield from _twice(section, ((part.namespace, part.name) for part in parts))
        for index, part in enumerate(parts):
            here: KeyPath = (section, index)
            if part.namespace not in known:
                yield (
                    (*here, "namespace"),
                    (
                        f"no team has namespace `{part.namespace}`; known are "
                        f"{', '.join(sorted(known)) or 'none'}"
                    ),
                )
            if part.priority_class and part.priority_class not in classes:
                yield (
                    (*here, "priority_class"),
                    f"`{part.priority_class}` is not among `priority_classes`",
                )
            yield from (
                ((*here, field), problem)
                for field, problem in _bad_amount(part, scenario.node_pools)
            )


def _bad_amount(asks: ContainerRequests, pools: Sequence[NodePool]) -> Iterator[tuple[str, str]]:
    if asks.gpus and asks.gpu_memory:
        yield (
            "gpu_memory",
            (
                "a container asks for whole GPUs (`gpus`) or for a part of one (`gpu_memory`), not "
                "both"
            ),
        )
    if asks.mig and (asks.gpus or asks.gpu_memory):
        yield (
            "mig",
            "a container asks for a MIG instance (`mig`) or for other parts of GPUs, not both",
        )
    offered = dict.fromkeys(profile for pool in pools for profile in pool.mig)
    if asks.mig and asks.mig not in offered and not asks.oversized:
        yield (
            "mig",
            f"no machine has an instance `{asks.mig}`; there are {', '.join(offered) or 'none'}",
        )
    for field in ("gpus", "gpu_memory"):
        if getattr(asks, field) < 0:
            yield field, f"{getattr(asks, field)} is below 0"
    problems = {
        field: problem
        for field in ("cpu", "memory")
        if (problem := _bad_quantity(getattr(asks, field)))
    }
    yield from problems.items()
    if not problems and not asks.oversized:
        yield from _too_large(asks, pools)


def _too_large(asks: ContainerRequests, pools: Sequence[NodePool]) -> Iterator[tuple[str, str]]:
    """What no machine could ever hold, however empty."""
    whole = [pool.gpus for pool in pools if not pool.shared and not pool.mig]
    largest = {"gpus": max(whole, default=0), "gpu_memory": _largest_share(pools)}
    for field, most in largest.items():
        if getattr(asks, field) > most:
            yield field, f"{getattr(asks, field)} fits on no machine; the largest has {most}"
    cpu = max((pool.cpu for pool in pools), default=0)
    if parse_quantity(asks.cpu) > cpu:
        yield "cpu", f"`{asks.cpu}` fits on no machine; the largest has {cpu}"
    memory = max(
        (pool.memory for pool in pools if not _bad_quantity(pool.memory)),
        key=parse_quantity,
        default="0",
    )
    if parse_quantity(asks.memory) > parse_quantity(memory):
        yield "memory", f"`{asks.memory}` fits on no machine; the largest has `{memory}`"


def _largest_share(pools: Sequence[NodePool]) -> int:
    """Units of the largest shared card: a container's share lies on one."""
    return max(
        (
            CARD_MODELS[pool.gpu_model].units
            for pool in pools
            if pool.shared and pool.gpu_model in CARD_MODELS
        ),
        default=0,
    )


def _bad_services(scenario: Scenario) -> Faults:
    for index, service in enumerate(scenario.services):
        if not 0 <= service.replicas <= MOST_PODS:
            yield ("services", index, "replicas"), f"must be 0 to {MOST_PODS}"


def _bad_streams(scenario: Scenario) -> Faults:
    for index, stream in enumerate(scenario.streams):
        yield from ((("streams", index, field), problem) for field, problem in _bad_stream(stream))


def _bad_stream(stream: Stream) -> Iterator[tuple[str, str]]:
    if stream.runs[0].seconds > stream.runs[1].seconds:
        yield "runs", "the shortest is longer than the longest"
    if stream.every.seconds < 1:
        yield "every", "must be at least `1s`"
    if not stream.workers or not 1 <= min(stream.workers) <= max(stream.workers) <= MOST_PODS:
        yield "workers", f"name at least one number of workers, each 1 to {MOST_PODS}"
    if stream.parameter_servers and stream.kind != "tfjob":
        yield "parameter_servers", f"a {stream.kind} has no parameter servers"
    for field in ("parameter_servers", "backoff_limit", "max_waiting", "max_active", "standing"):
        if not 0 <= getattr(stream, field) <= MOST_PODS:
            yield field, f"must be 0 to {MOST_PODS}"
    for field in ("failing", "crashing"):
        if not 0 <= getattr(stream, field) <= 1:
            yield field, f"{getattr(stream, field):g} is no share: it is between 0 and 1"
    if stream.failing + stream.crashing > 1:
        yield "failing", "`failing` and `crashing` together are more than 1"


# --- single pods, Services, faults ----------------------------------------------------------------


def _bad_pods(scenario: Scenario) -> Faults:
    known = {*scenario.namespaces, *FIRST_NAMESPACES}
    yield from _twice("pods", ((pod.namespace, pod.name) for pod in scenario.pods), _NODE_NAME)
    for index, pod in enumerate(scenario.pods):
        if pod.namespace not in known:
            yield ("pods", index, "namespace"), f"no team has namespace `{pod.namespace}`"
        if not 1 <= pod.containers <= 20:
            yield ("pods", index, "containers"), f"{pod.containers} is not between 1 and 20"


def _bad_network(scenario: Scenario) -> Faults:
    known = {*scenario.namespaces, *FIRST_NAMESPACES}
    held: dict[str | int, str] = {API_SERVICE["spec"]["clusterIP"]: "kubernetes"}
    yield from _twice(
        "network_services", ((item.namespace, item.name) for item in scenario.network_services)
    )
    for index, item in enumerate(scenario.network_services):
        here: KeyPath = ("network_services", index)
        if item.namespace not in known:
            yield (*here, "namespace"), f"no team has namespace `{item.namespace}`"
        if (item.namespace, item.name) == ("default", "kubernetes"):
            yield (*here, "name"), "every cluster has the Service `kubernetes` already"
        address = item.cluster_ip
        if address not in ("", "None") and (
            problem := _bad_address(address) or _bad_holding(address, item.name, held)
        ):
            yield (*here, "cluster_ip"), problem
        if not item.ports:
            yield (*here, "ports"), "name at least one port, such as `80/TCP`"
        for text in item.ports:
            try:
                node_port = split_port(text)[1]
            except ValueError as error:
                yield (*here, "ports"), str(error)
            else:
                if node_port is None:
                    continue
                if item.type == "ClusterIP":
                    yield (
                        (*here, "ports"),
                        (
                            f"`{text}` has a port on the nodes, which a Service of type "
                            "`ClusterIP` does not have"
                        ),
                    )
                elif problem := _bad_holding(node_port, item.name, held):
                    yield (*here, "ports"), problem


def _bad_devices(scenario: Scenario) -> Faults:
    """Events of cards: XIDs, hangs, foreign processes."""
    pools = {node: pool for pool in scenario.node_pools for node in pool_nodes(pool)}
    for index, xid in enumerate(scenario.xids):
        yield from (
            (("xids", index, field), problem) for field, problem in _no_such_card(xid, pools)
        )
        if xid.code < 1:
            yield ("xids", index, "code"), f"{xid.code} is no XID: they count from 1"
    hung_until: dict[tuple[str, int], float] = {}
    for index, hang in sorted(enumerate(scenario.hangs), key=lambda each: each[1].at.seconds):
        yield from (
            (("hangs", index, field), problem)
            for field, problem in (*_no_such_card(hang, pools), *_bad_span(hang))
        )
        if hang.at.seconds < hung_until.get((hang.node, hang.gpu), 0.0):
            yield (
                ("hangs", index, "at"),
                f"GPU {hang.gpu} of `{hang.node}` hangs already at that time",
            )
        hung_until[hang.node, hang.gpu] = (
            hang.until.seconds if hang.until is not None else float("inf")
        )
    for index, process in enumerate(scenario.foreign_processes):
        here: KeyPath = ("foreign_processes", index)
        yield from (
            ((*here, field), problem)
            for field, problem in (*_no_such_card(process, pools), *_bad_span(process))
        )
        if problem := _bad_quantity(process.memory):
            yield (*here, "memory"), problem
        if process.node in pools and pools[process.node].mig:
            yield (
                (*here, "node"),
                (
                    f"the GPUs of `{process.node}` are divided by MIG; a foreign process "
                    "takes memory of whole GPUs only"
                ),
            )


def _no_such_card(
    named: Xid | Hang | ForeignProcess, pools: Mapping[str, NodePool]
) -> Iterator[tuple[str, str]]:
    if named.node not in pools:
        yield "node", f"there is no node `{named.node}`"
    elif not 0 <= named.gpu < pools[named.node].gpus:
        yield (
            "gpu",
            (
                f"node `{named.node}` has {pools[named.node].gpus} GPUs, "
                f"there is no index {named.gpu}"
            ),
        )


def _bad_span(named: Hang | ForeignProcess) -> Iterator[tuple[str, str]]:
    if named.until is not None and named.until.seconds <= named.at.seconds:
        yield "until", "is not after `at`"


def _bad_outages(scenario: Scenario) -> Faults:
    pools = {node: pool for pool in scenario.node_pools for node in pool_nodes(pool)}
    silent_until: dict[str, float] = {}
    for index, outage in sorted(enumerate(scenario.outages), key=lambda each: each[1].at.seconds):
        here: KeyPath = ("outages", index)
        if outage.node not in pools:
            yield (*here, "node"), f"there is no node `{outage.node}`"
        elif not pools[outage.node].ready:
            yield (
                (*here, "node"),
                f"`{outage.node}` never reports (`ready = false`): it cannot fall silent",
            )
        if outage.until is not None and outage.until.seconds <= outage.at.seconds:
            yield (*here, "until"), "is not after `at`"
        if outage.at.seconds < silent_until.get(outage.node, 0.0):
            yield (*here, "at"), f"`{outage.node}` is silent already at that time"
        silent_until[outage.node] = (
            outage.until.seconds if outage.until is not None else float("inf")
        )


def _bad_address(text: str) -> str:
    try:
        IPv4Address(text)
    except AddressValueError:
        return f"`{text}` is no IPv4 address"
    return ""


def _bad_holding(number: str | int, name: str, held: dict[str | int, str]) -> str:
    """Why the Service `name` cannot have this address or port on the nodes; "" if it can.

    Then `held` (addresses and ports in use, by Service) contains it.
    """
    if isinstance(number, str) and IPv4Address(number) not in SERVICE_NETWORK:
        return f"`{number}` is not in {SERVICE_NETWORK}, where the cluster's Services are"
    if isinstance(number, int) and number not in NODE_PORTS:
        return f"{number} is no port on the nodes: they are {NODE_PORTS[0]} to {NODE_PORTS[-1]}"
    if held.setdefault(number, name) != name:
        return f"`{number}` is that of the Service `{held[number]}` already"
    return ""


def _bad_quantity(text: str) -> str:
    try:
        return "" if parse_quantity(text) >= 0 else f"`{text}` is below 0"
    except ValueError as error:
        return str(error)


def _bad_amounts(amounts: Mapping[str, str | int]) -> str:
    try:
        parse_amounts(amounts)
    except ValueError as error:
        return str(error)
    return next(
        (
            f"{amount} of {resource} is below 0"
            for resource, amount in amounts.items()
            if str(amount).startswith("-")
        ),
        "",
    )
