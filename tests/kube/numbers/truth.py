"""Every number of the mixed company, from kubectl's JSON and the exporters' cards, by code that
shares nothing with Fairlead's.

One method for each page; `shown` reads the same names from the console's answers. Memory is in MiB,
times are epoch seconds.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from tests.kube.numbers.node_truth import (
    UNITS,
    NodeTruth,
    bound_at,
    busy_of,
    mean,
    percent,
    seconds,
    total,
    total_of,
    used_of,
)
from tests.kube.numbers.reported_cards import ReportedCard, Seat, is_holding, key, limits_of
from tests.kube.numbers.tied_pods import GATE, USER
from tests.kube.objects import GPU, GPU_MEMORY, Object

Numbers = dict[str, object]
RESOURCES = (GPU, GPU_MEMORY, "cpu", "memory")


def amount(text: str) -> float:
    """The number of a quantity, in the spellings that these tests use."""
    found = re.fullmatch(r"(\d+)(m|Ki|Mi|Gi)?", str(text))
    assert found, text
    return int(found[1]) * {None: 1, "m": 0.001, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}[found[2]]


class Truth:
    def __init__(
        self, found: Mapping[str, list[Object]], seats: Mapping[tuple[str, int], list[Seat]]
    ) -> None:
        self.pods = found["Pod"]
        self.all_nodes = [NodeTruth(node, self.pods, seats) for node in found["Node"]]
        self.gpu_nodes = [node for node in self.all_nodes if node.mode != "none"]
        self.by_name = {node.name: node for node in self.all_nodes}
        self.trainings = [*found["MPIJob"], *found["TFJob"]]
        (tree,) = found["ElasticQuotaTree"]
        self.root = tree["spec"]["root"]
        self.leaf_of = {
            space: leaf["name"] for leaf in self.root["children"] for space in leaf["namespaces"]
        }
        self.holding = [pod for pod in self.pods if is_holding(pod) and limits_of(pod)]

    def node_of(self, pod: Object) -> NodeTruth:
        return self.by_name[pod["spec"]["nodeName"]]

    def gpus_of(self, pods: Iterable[Object]) -> float:
        return sum(
            self.node_of(pod).worth(pod) for pod in pods if is_holding(pod) and limits_of(pod)
        )

    def memory_of(self, pods: Iterable[Object]) -> float:
        return sum(
            self.node_of(pod).memory_of(pod) for pod in pods if is_holding(pod) and limits_of(pod)
        )

    def used_by(self, pods: Iterable[Object]) -> float | None:
        return total(self.node_of(pod).used_by(pod) for pod in pods if is_holding(pod))

    def used_of(self, pods: Iterable[Object]) -> float | None:
        return total(self.node_of(pod).used_of(pod) for pod in pods if is_holding(pod))

    def busy_of(self, pods: Iterable[Object]) -> float | None:
        return mean(
            busy for pod in pods if is_holding(pod) for busy in self.node_of(pod).busy_of(pod)
        )

    def idle_of(self, pods: Iterable[Object]) -> float:
        return sum(
            self.node_of(pod).idle_of(pod) for pod in pods if is_holding(pod) and limits_of(pod)
        )

    def nodes(self) -> Numbers:
        found: Numbers = {}
        for node in self.all_nodes:
            is_gpu = node.mode != "none"
            found |= {
                f"{node.name} status": node.status,
                f"{node.name} schedulable": not node.is_cordoned,
                f"{node.name} ip": node.ip,
                f"{node.name} gpuMode": node.mode,
                f"{node.name} gpuModel": node.model,
                f"{node.name} gpusTotal": node.gpus,
                f"{node.name} gpusAllocated": node.allocated,
                f"{node.name} gpusUnhealthy": node.broken,
                f"{node.name} gpusReporting": sum(busy is not None for busy in node.busy),
                f"{node.name} gpuMemoryTotalMiB": node.memory,
                f"{node.name} gpuMemoryAllocatedMiB": node.memory_allocated if is_gpu else None,
                f"{node.name} gpuMemoryUsedMiB": node.memory_used,
                f"{node.name} gpuMemoryUsedOfMiB": node.memory_used_of,
                f"{node.name} gpuUtilPercent": percent(mean(node.busy)),
            }
        return found

    def cards(self) -> Numbers:
        """Cells of the map and rows of the list of GPUs: how many are in each state; and of each
        card its values and holders.
        """
        found: Numbers = {
            f"{node.name} {state}": count
            for node in self.gpu_nodes
            for state, count in node.cells.items()
            if count
        }
        for node in self.gpu_nodes:
            for card in node.cards:
                name = f"{node.name}/{card.index}"
                found[f"{name} util"] = found[f"{name} heat"] = percent(busy_of(card))
                found[f"{name} used"] = used_of(card)
                found[f"{name} total"] = total_of(card)
                found[f"{name} holders"] = sorted(
                    {f"{seat.space}/{seat.pod}" for seat in node.seats[card.index]}
                )
                healthy = "Unknown" if node.ready == "Unknown" else "Healthy"
                found[f"{name} health"] = (
                    healthy if card.is_healthy or card.family == "dcgm" else "Unhealthy"
                )
                if card.family == "dcgm":
                    found[f"{name} health"] = "Unknown"
        return found

    def node_pages(self) -> Numbers:
        """Each node's page: its pods with what they hold and since when, its cards, their
        instances.
        """
        found: Numbers = {}
        for node in self.gpu_nodes:
            for pod in node.pods:
                name = f"{node.name} {key(pod)}"
                found |= {
                    f"{name} gpus": node.worth(pod),
                    f"{name} memory": node.memory_of(pod),
                    f"{name} since": bound_at(pod),
                }
                found[f"{name} cards"] = sorted({card.index for card, _ in node.seats_of(pod)})
            for card in node.cards:
                name, seats = f"{node.name}/{card.index}", node.seats[card.index]
                allocated = min(total_of(card), sum(math.floor(seat.limit) for seat in seats))
                found |= {
                    f"{name} allocated": allocated,
                    f"{name} free": self._free_memory(card, allocated),
                }
                found[f"{name} is idle"] = any(
                    busy_of(card) == 0 and node.idle_of(pod)
                    for pod in node.pods
                    if node.seats_on(card, pod)
                )
                for each in card.instances:
                    who = [f"{seat.space}/{seat.pod}" for seat in seats if seat.instance == each.id]
                    found[f"{name} instance {each.id}"] = [
                        each.profile,
                        each.total,
                        each.used,
                        percent(each.busy),
                        *who,
                    ]
        return found

    @staticmethod
    def _free_memory(card: ReportedCard, allocated: int) -> int:
        """Memory of the card that a pod could get: the rest of a shared or divided card, otherwise
        all or nothing.
        """
        if not card.is_healthy:
            return 0
        if card.units:
            return card.total * (UNITS - round(allocated * UNITS / card.total)) // UNITS
        return total_of(card) - allocated if card.instances or not allocated else 0

    def pools(self) -> Numbers:
        """Whole cards by model and mode that the next pod could get, and the largest free part of a
        shared card in MiB.
        """
        found: Numbers = {}
        pools: dict[str, list[NodeTruth]] = defaultdict(list)
        for node in self.gpu_nodes:
            pools[f"{node.model} {node.mode}"].append(node)
        for name, nodes in pools.items():
            found[f"{name} gpus"] = sum(node.gpus for node in nodes)
            found[f"{name} allocated"] = sum(node.allocated for node in nodes)
            found[f"{name} free"] = sum(node.cells["free"] for node in nodes)
            found[f"{name} unhealthy"] = sum(node.broken for node in nodes)
            if name.endswith("share"):
                found[f"{name} largest"] = max(self._free_share(node) for node in nodes)
        return found

    @staticmethod
    def _free_share(node: NodeTruth) -> int:
        free = (
            card.total * (UNITS - sum(seat.units for seat in node.seats[card.index])) // UNITS
            for card in node.cards
        )
        return max(free) if node.is_open else 0

    def overview(self) -> Numbers:
        nodes = self.gpu_nodes
        reported = [busy for node in nodes for busy in node.busy]
        working = sum(node.gpus - node.broken for node in nodes)
        speaking = sum(
            busy_of(card) is not None and card.is_healthy for node in nodes for card in node.cards
        )
        states = Counter(self.status_of(job) for job in self.trainings)
        return {
            "nodes total": len(nodes),
            "nodes allocated": sum(node.allocated > 0 for node in nodes),
            "nodes unhealthy": sum(node.ready != "True" for node in nodes),
            "nodes faulty": sum(node.broken > 0 for node in nodes),
            "gpus total": sum(node.gpus for node in nodes),
            "gpus allocated": sum(node.allocated for node in nodes),
            "gpus unhealthy": sum(node.broken for node in nodes),
            "gpus idle": self.idle_of(self.pods),
            "gpus reporting": sum(busy is not None for busy in reported),
            "warned reporting": speaking,
            "warned total": working,
            "memory total": total(node.memory for node in nodes),
            "memory allocated": total(node.memory_allocated for node in nodes),
            "memory used": total(node.memory_used for node in nodes),
            "memory used of": total(node.memory_used_of for node in nodes),
            "utilization": percent(mean(reported)),
            **{
                f"jobs {word}": states[word]
                for word in ("Running", "Pending", "Succeeded", "Failed")
            },
            **self._consumers(),
            **self._attention(),
        }

    def _consumers(self) -> Numbers:
        """Namespaces that hold GPUs, and how many jobs of each do."""
        found: Numbers = {}
        for space, pods in _grouped(self.holding, lambda pod: str(pod["metadata"]["namespace"])):
            jobs = [
                job
                for job in self.trainings
                if job["metadata"]["namespace"] == space and self.gpus_of(self.pods_of(job))
            ]
            found |= {
                f"consumer {space} gpus": self.gpus_of(pods),
                f"consumer {space} memory": self.memory_of(pods),
            }
            found[f"consumer {space} jobs"] = len(jobs)
        return found

    def _attention(self) -> Numbers:
        """What is broken, wasted or owed; a line without an entry is left out."""
        silent = [node for node in self.gpu_nodes if node.ready == "Unknown"]
        counts: dict[str, float] = {
            "node-silent": len(silent),
            "node-silent gpus": sum(node.gpus for node in silent),
            "node-not-ready": sum(node.ready == "False" for node in self.gpu_nodes),
            "gpu-broken": sum(
                not card.is_healthy for node in self.gpu_nodes for card in node.cards
            ),
            "gpu-idle": round(self.idle_of(self.pods), 1),
            "leaf-starved": sum(self._is_starved(leaf) for leaf in self.root["children"]),
        }
        return {f"attention {kind}": count for kind, count in counts.items() if count}

    def _is_starved(self, leaf: Object) -> bool:
        """Whether a leaf has less than its guarantee of
        everything that its waiting pods request.
        """
        charged, waiting = (
            self.of_leaf(leaf["name"], waiting=False),
            self.of_leaf(leaf["name"], waiting=True),
        )
        asked = [name for name in RESOURCES if any(self.asked_of(pod, name) for pod in waiting)]
        used = {name: round(sum(self.asked_of(pod, name) for pod in charged), 6) for name in asked}
        return bool(asked) and all(used[name] < amount(leaf["min"][name]) for name in asked)

    # --- training jobs ----------------------------------------------------------------------------

    def pods_of(self, job: Object) -> list[Object]:
        uid = job["metadata"]["uid"]
        return [
            pod
            for pod in self.pods
            if uid in {owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())}
        ]

    def status_of(self, job: Object) -> str:
        printed = {each["type"] for each in job["status"]["conditions"] if each["status"] == "True"}
        for word in ("Failed", "Succeeded"):
            if word in printed:
                return word
        waits = any(pod["status"]["phase"] == "Pending" for pod in self.pods_of(job))
        return "Running" if "Running" in printed and not waits else "Pending"

    def jobs(self) -> Numbers:
        found: Numbers = {}
        for job in self.trainings:
            name, pods, status = job["metadata"]["name"], self.pods_of(job), job["status"]
            (replicas,) = (
                value.values()
                for field, value in job["spec"].items()
                if field.endswith("ReplicaSpecs")
            )
            silent = [
                pod
                for pod in pods
                if pod["status"]["phase"] == "Running" and self.node_of(pod).ready == "Unknown"
            ]
            phases = Counter(pod["status"]["phase"] for pod in pods)
            began, ended = (
                seconds(status[field]) if field in status else None
                for field in ("startTime", "completionTime")
            )
            held = [bound_at(pod) for pod in pods if is_holding(pod)]
            found |= {
                f"{name} status": self.status_of(job),
                f"{name} asked": sum(
                    each["replicas"] * limits_of(each["template"]).get(GPU, 0) for each in replicas
                ),
                f"{name} gpus": self.gpus_of(pods),
                f"{name} memory": self.memory_of(pods),
                f"{name} used": self.used_by(pods),
                f"{name} used of": self.used_of(pods),
                f"{name} util": percent(self.busy_of(pods)),
                f"{name} desired": sum(each["replicas"] for each in replicas),
                f"{name} running": phases["Running"] - len(silent),
                f"{name} unknown": len(silent),
                f"{name} pending": phases["Pending"],
                f"{name} failed": phases["Failed"],
                f"{name} nodes": sorted(
                    {pod["spec"]["nodeName"] for pod in pods if is_holding(pod)}
                ),
                f"{name} duration from": began if began and not ended else None,
                f"{name} duration": ended - began if began and ended else 0 if not began else None,
                f"{name} held from": min(held, default=None),
                f"{name} quota": self.leaf_of[job["metadata"]["namespace"]],
            }
        waiting = [
            seconds(job["metadata"]["creationTimestamp"])
            for job in self.trainings
            if self.status_of(job) == "Pending"
        ]
        running = [
            pod
            for job in self.trainings
            if self.status_of(job) == "Running"
            for pod in self.pods_of(job)
        ]
        found["sentence gpus"] = round(self.gpus_of(running), 1)
        found["sentence waits from"] = min(waiting, default=None)
        return found

    def job_pages(self) -> Numbers:
        """Each job's page: its pods, and when the last of them was bound."""
        found: Numbers = {}
        for job in self.trainings:
            name, pods = job["metadata"]["name"], self.pods_of(job)
            bound = [pod for pod in pods if pod["spec"].get("nodeName")]
            found[f"{name} scheduled"] = [len(bound), len(pods)] if bound else None
            found[f"{name} bound since"] = max(map(bound_at, bound), default=None)
            for pod in pods:
                is_received = pod not in bound or self.node_of(pod).ready != "Unknown"
                word = {"Failed": "Error"}.get(pod["status"]["phase"], pod["status"]["phase"])
                found |= {
                    f"{key(pod)} status": word if is_received else "Unknown",
                    f"{key(pod)} gpus": self.gpus_of([pod]),
                    f"{key(pod)} memory": self.memory_of([pod]),
                    f"{key(pod)} used": self.used_by([pod]),
                    f"{key(pod)} util": percent(self.busy_of([pod])),
                }
        return found

    # --- who holds --------------------------------------------------------------------------------

    def owner_of(self, pod: Object) -> tuple[str, str]:
        """The pod's owner in the user's terms: the Deployment of a ReplicaSet."""
        owners = pod["metadata"].get("ownerReferences") or [
            {"kind": "Pod", "name": pod["metadata"]["name"]}
        ]
        kind, name = owners[0]["kind"], owners[0]["name"]
        return ("Deployment", name.rpartition("-")[0]) if kind == "ReplicaSet" else (kind, name)

    def user_of(self, pod: Object) -> str:
        owned = {owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())}
        named = [pod, *(job for job in self.trainings if job["metadata"]["uid"] in owned)]
        return next(
            (
                each["metadata"]["labels"][USER]
                for each in named
                if USER in each["metadata"].get("labels", {})
            ),
            "",
        )

    def holders(self) -> Numbers:
        found: Numbers = {}
        for pod in self.holding:
            node = self.node_of(pod)
            name = key(pod)
            found |= {
                f"{name} gpus": node.worth(pod),
                f"{name} idle": node.idle_of(pod),
                f"{name} memory": node.memory_of(pod),
                f"{name} used": node.used_by(pod),
                f"{name} used of": node.used_of(pod),
                f"{name} util": percent(mean(node.busy_of(pod))),
                f"{name} since": bound_at(pod),
                f"{name} node": node.name,
                f"{name} owner": "/".join(self.owner_of(pod)),
                f"{name} user": self.user_of(pod),
                f"{name} unknown": node.ready == "Unknown",
            }
        owners = {(pod["metadata"]["namespace"], *self.owner_of(pod)) for pod in self.holding}
        found |= {
            "pods": len(self.holding),
            "owners": len(owners),
            "gpus": round(self.gpus_of(self.holding), 1),
        }
        return {**found, "idle": round(self.idle_of(self.holding), 1)}

    def groups(self) -> Numbers:
        """Sums of holders by owner, leaf, user and namespace."""
        keys: dict[str, Callable[[Object], str]] = {
            "owner": lambda pod: "/".join((pod["metadata"]["namespace"], *self.owner_of(pod))),
            "leaf": lambda pod: self.leaf_of[pod["metadata"]["namespace"]],
            "user": self.user_of,
            "namespace": lambda pod: str(pod["metadata"]["namespace"]),
        }
        found: Numbers = {}
        for by, name_of in keys.items():
            for name, pods in _grouped(self.holding, name_of):
                found |= {
                    f"{by} {name} pods": len(pods),
                    f"{by} {name} gpus": self.gpus_of(pods),
                    f"{by} {name} idle": self.idle_of(pods),
                    f"{by} {name} memory": self.memory_of(pods),
                    f"{by} {name} used": self.used_by(pods),
                    f"{by} {name} used of": self.used_of(pods),
                    f"{by} {name} since": min(bound_at(pod) for pod in pods),
                }
        return found

    # --- quota ------------------------------------------------------------------------------------

    @staticmethod
    def waits_for_quota(pod: Object) -> bool:
        return any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates", ()))

    @staticmethod
    def asked_of(pod: Object, resource: str) -> float:
        return sum(
            amount(each["resources"].get("requests", {}).get(resource, "0"))
            for each in pod["spec"]["containers"]
        )

    def of_leaf(self, leaf: str, *, waiting: bool) -> list[Object]:
        unfinished = [
            pod for pod in self.pods if pod["status"]["phase"] not in ("Succeeded", "Failed")
        ]
        mine = [
            pod
            for pod in unfinished
            if self.leaf_of.get(pod["metadata"]["namespace"]) == leaf or leaf == "root"
        ]
        return [pod for pod in mine if self.waits_for_quota(pod) == waiting]

    def available(self, resource: str) -> float:
        """What nodes offer to pods that quota counts: all of the nodes that take pods, and what
        such pods hold on the others.

        Infinite where no node that takes pods offers the resource: then the tree alone counts.
        """
        charged, there, is_offered = self.of_leaf("root", waiting=False), 0.0, False
        for node in self.all_nodes:
            offered = amount(node.allocatable.get(resource, "0")) if node.takes_pods else 0
            held = sum(
                self.asked_of(pod, resource)
                for pod in charged
                if pod["spec"].get("nodeName") == node.name
            )
            there, is_offered = there + max(held, offered), is_offered or offered > 0
        return there if is_offered else math.inf

    def min_of(self, node: Object, resource: str) -> float:
        """The min that counts. Where leaves are promised more than nodes offer, each min is reduced
        in proportion.
        """
        least, there = amount(node["min"][resource]), self.available(resource)
        promised = sum(amount(leaf["min"][resource]) for leaf in self.root["children"])
        if there >= promised:
            return least
        return min(least, there) if node is self.root else math.floor(least * there / promised)

    def borrowable(self, leaf: Object, resource: str) -> float:
        """What its max and the root leave, less what the leaf can still get by its min. The nodes
        bound the root.
        """
        most = min(amount(self.root["max"][resource]), self.available(resource))
        rooms = [
            bound - sum(self.asked_of(pod, resource) for pod in self.of_leaf(name, waiting=False))
            for name, bound in ((leaf["name"], amount(leaf["max"][resource])), ("root", most))
        ]
        used = sum(
            self.asked_of(pod, resource) for pod in self.of_leaf(leaf["name"], waiting=False)
        )
        return max(0.0, min(rooms) - max(0.0, self.min_of(leaf, resource) - used))

    def quota(self) -> Numbers:
        found: Numbers = {}
        for node in (self.root, *self.root["children"]):
            name = node["name"]
            charged, waiting = self.of_leaf(name, waiting=False), self.of_leaf(name, waiting=True)
            for resource in RESOURCES:
                used, waits = (
                    sum(self.asked_of(pod, resource) for pod in pods) for pods in (charged, waiting)
                )
                least = self.min_of(node, resource)
                by_user: dict[str, float] = defaultdict(float)
                for pod in charged:
                    by_user[self.user_of(pod)] += self.asked_of(pod, resource)
                found |= {
                    f"{name} {resource} min": least,
                    f"{name} {resource} written": amount(node["min"][resource]),
                    f"{name} {resource} max": amount(node["max"][resource]),
                    f"{name} {resource} used": used,
                    f"{name} {resource} requested": used + waits,
                    f"{name} {resource} waiting": sum(
                        self.asked_of(pod, resource) > 0 for pod in waiting
                    ),
                }
                if name != "root":
                    found[f"{name} {resource} borrowed"] = max(0, used - least)
                    found |= {
                        f"{name} {resource} of {user or '-'}": value
                        for user, value in by_user.items()
                        if value
                    }
            found[f"{name} waiting"] = len(waiting)
        return found

    def most_to_start(self) -> Numbers:
        """The most that a single pod could get on a node now, by model: whole cards, or units of a
        shared card.
        """
        found: dict[str, int] = {}
        for node in self.gpu_nodes:
            if node.mode == "exclusive":
                most = node.cells["free"]
            else:
                most = max(
                    (
                        UNITS - sum(seat.units for seat in node.seats[card.index])
                        for card in node.cards
                        if card.units
                    ),
                    default=0,
                )
            if most and node.is_open:
                found[f"start {node.model}"] = max(most, found.get(f"start {node.model}", 0))
        return dict(found)

    def mine(self) -> Numbers:
        """The numbers of one user and of one namespace."""
        found: Numbers = self.most_to_start()
        asked: dict[str, Callable[[Object], bool]] = {
            "user=ann": lambda pod: self.user_of(pod) == "ann",
            "user=bob": lambda pod: self.user_of(pod) == "bob",
            "namespace=vision": lambda pod: bool(pod["metadata"]["namespace"] == "vision"),
        }
        for who, is_mine in asked.items():
            pods = [pod for pod in self.holding if is_mine(pod)]
            found |= {
                f"{who} pods": len(pods),
                f"{who} gpus": self.gpus_of(pods),
                f"{who} idle": self.idle_of(pods),
            }
            found[f"{who} waits"] = sorted(
                key(pod) for pod in self.pods if is_mine(pod) and self.waits_for_quota(pod)
            )
            named = [*self.pods, *self.trainings] if who.startswith("user") else self.pods
            spaces = {obj["metadata"]["namespace"] for obj in named if is_mine(obj)}
            for leaf in self.root["children"]:
                charged = [pod for pod in self.of_leaf(leaf["name"], waiting=False) if is_mine(pod)]
                for resource in RESOURCES if spaces & set(leaf["namespaces"]) else ():
                    name = f"{who} {leaf['name']} {resource}"
                    found[name] = sum(self.asked_of(pod, resource) for pod in charged)
                    found[f"{name} guaranteed"] = self.min_of(leaf, resource)
                    found[f"{name} borrowable"] = self.borrowable(leaf, resource)
        return found


def _grouped(
    pods: Iterable[Object], name_of: Callable[[Object], str]
) -> Iterator[tuple[str, list[Object]]]:
    groups: dict[str, list[Object]] = defaultdict(list)
    for pod in pods:
        groups[name_of(pod)].append(pod)
    yield from groups.items()
