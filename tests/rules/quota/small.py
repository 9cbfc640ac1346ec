"""A small world in memory for quota plans: it does what controllers do with pods and jobs.

Evicted pods stop for some steps and then wait again; the pods of a suspended job stop and return
when it is resumed. With cluster nodes, an admitted pod is bound to the first node by name that has
room. Every plan is checked for the invariants that hold for all plans.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace
from tests.scenarios.quota.files import parse_tree

from fairlead.model.quota.plan import EvictionMethod, QuotaPlan
from fairlead.model.quota.rows import Workload, scaled
from fairlead.model.quota.state import NodeRoom, QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import sum_of
from fairlead.rules.quota.plan import plan_quota


def tree(
    text: str, attributes: Mapping[str, Mapping[str, str]] | None = None, resource: str = "gpu"
) -> QuotaNode:
    """Each leaf has one namespace with the leaf's name. Root's max is its min unless the text gives
    a max.
    """
    return parse_tree(text, attributes, resource)


class SmallWorld:
    """Pods by key. Each step advances time by one second."""

    def __init__(
        self,
        root: QuotaNode,
        *,
        grace: int = 1,
        seed: int = 0,
        resource: str = "gpu",
        plan: Callable[[QuotaState], QuotaPlan] = plan_quota,
        nodes: tuple[NodeRoom, ...] | None = None,
        **state: Any,
    ) -> None:
        self.tree = root
        self.nodes = nodes
        self.now = 1000.0
        self.pods: dict[str, QuotaPod] = {}
        self.workloads: dict[str, Workload] = {}
        self.evictions = 0
        self.victims: list[str] = []
        self.budgets: dict[str, int] = dict(state.pop("budgets", {}))
        self.state_more = state
        self.plan = plan
        self._grace = grace
        self._ends: dict[str, float] = {}
        self._away: dict[str, list[QuotaPod]] = {}
        self._rng = random.Random(seed)
        self._numbers: Counter[str] = Counter()
        self._resource = resource

    def add(
        self,
        leaf: str,
        count: int,
        request: int | Mapping[str, int] = 1,
        *,
        runs: bool = False,
        **more: Any,
    ) -> None:
        asked = request if isinstance(request, Mapping) else {self._resource: request}
        for _ in range(count):
            pod = QuotaPod(leaf, "", request=asked, **more)
            self._come(pod)
            if runs:
                self._start(f"{leaf}/p{self._numbers[leaf]:03d}")

    def add_job(
        self,
        leaf: str,
        name: str,
        count: int,
        request: int | Mapping[str, int] = 1,
        *,
        kind: str = "PyTorchJob",
        **more: Any,
    ) -> None:
        """A job that can be suspended. All its pods form one gang unless it is a Job."""
        asked = request if isinstance(request, Mapping) else {self._resource: request}
        uid = f"uid-{leaf}/{name}"
        size = 0 if kind == "Job" else int(more.pop("gang_size", count))
        total = sum_of([asked] * count)
        priority = int(more.get("priority", 0))
        self.workloads[uid] = Workload(
            kind,
            "",
            leaf,
            name,
            uid,
            can_suspend=True,
            pods=count,
            request=total,
            least=size,
            priority=priority,
            created_at=self.now,
        )
        if kind == "Job":
            self.workloads[uid] = replace(
                self.workloads[uid], can_lower=True, parallelism=count, each=asked
            )
        gang = {"gang": name, "gang_size": size} if size else {}
        self.add(leaf, count, asked, owner=uid, **gang, **more)

    def remove(self, keep: Callable[[QuotaPod], bool]) -> None:
        """Removes every pod that is not kept, at once."""
        self.pods = {key: pod for key, pod in self.pods.items() if keep(pod)}
        self._ends = {key: at for key, at in self._ends.items() if key in self.pods}

    def state(self) -> QuotaState:
        pods = list(self.pods.values())
        self._rng.shuffle(pods)
        workloads = list(self.workloads.items())
        self._rng.shuffle(workloads)
        nodes = (
            self.nodes
            if self.nodes is None
            else tuple(self._rng.sample(self.nodes, len(self.nodes)))
        )
        return QuotaState(
            self.tree,
            tuple(pods),
            dict(self.budgets),
            now=self.now,
            nodes=nodes,
            workloads=dict(workloads),
            **self.state_more,
        )

    def step(self) -> QuotaPlan:
        """Makes one plan and carries it out; stopping pods may end."""
        self.now += 1
        for key, at in list(self._ends.items()):
            if at <= self.now:
                del self._ends[key]
                self._go(self.pods.pop(key))
        for key in sorted(self.pods):
            if self.pods[key].is_admitted and not self.pods[key].node:
                self._bind(key)
        plan = self.plan(self.state())
        self._check(plan)
        for admission in plan.admit:
            self._start(admission.pod.key)
        for eviction in plan.evict:
            self._stop(eviction.pod)
            if eviction.method == EvictionMethod.LOWER:
                self._lower(eviction.workload)
            elif eviction.workload is not None:
                self._suspend(eviction.workload, eviction.for_unit)
        for resume in plan.resume:
            uid = resume.workload.uid
            away = self._away.pop(uid, [])
            if resume.pods:
                away, self._away[uid] = away[: resume.pods], away[resume.pods :]
                job = self.workloads[uid]
                count = job.pods * (not job.is_suspended) + resume.pods
                own = job.own_parallelism or job.parallelism
                self.workloads[uid] = scaled(job, count, own if count < own else 0)
            self.workloads[uid] = replace(self.workloads[uid], is_suspended=False, suspended_for="")
            for pod in away:
                self._come(pod)
        for waiting in plan.waiting:
            for pod in waiting.pods:
                if pod.key not in self.pods:  # its job was suspended
                    continue
                since = pod.claim_since if pod.claim_since is not None else self.now
                is_claim = waiting.reason == "WaitingForEvictions"
                self.change(
                    pod.key,
                    claim_since=since if is_claim else None,
                    condition_reason=str(waiting.reason),
                )
        return plan

    def settle(self, steps: int = 60) -> QuotaPlan:
        for _ in range(steps):
            plan = self.step()
            if plan.is_empty and not self._ends:
                return plan
        raise AssertionError(f"no end after {steps} plans")

    @property
    def is_busy(self) -> bool:
        return bool(self._ends)

    def running(self, *leaves: str) -> tuple[int, ...]:
        """Number of admitted pods by namespace."""
        counts = Counter(
            pod.namespace for pod in self.pods.values() if pod.is_admitted and not pod.is_stopping
        )
        return tuple(counts[leaf] for leaf in leaves)

    def reasons(self, leaf: str) -> Counter[str]:
        return Counter(
            str(each.reason) for each in self.plan(self.state()).waiting if each.leaf == leaf
        )

    def sentences(self, leaf: str) -> list[str]:
        return [each.message for each in self.plan(self.state()).waiting if each.leaf == leaf]

    def _come(self, pod: QuotaPod) -> None:
        """A new pod with the same properties."""
        self._numbers[pod.namespace] += 1
        self.now += 0.001
        name = f"p{self._numbers[pod.namespace]:03d}"
        new = QuotaPod(
            pod.namespace,
            name,
            f"uid-{pod.namespace}/{name}",
            pod.request,
            pod.priority,
            is_preemptible=pod.is_preemptible,
            owner=pod.owner,
        )
        more = {
            "gang": pod.gang,
            "gang_size": pod.gang_size,
            "deployment": pod.deployment,
            "revision": pod.revision,
        }
        more |= {
            "waits_for_surge": pod.waits_for_surge,
            "gated_by": pod.gated_by,
            "never_preempts": pod.never_preempts,
        }
        self.pods[new.key] = replace(
            new, created_at=self.now, user=pod.user, budgets=pod.budgets, **more
        )

    def _go(self, gone: QuotaPod) -> None:
        owner = self.workloads.get(gone.owner)
        mine = sum(pod.owner == gone.owner for pod in self.pods.values() if not pod.is_stopping)
        if owner is not None and (owner.is_suspended or (owner.held and mine >= owner.pods)):
            self._away.setdefault(owner.uid, []).append(gone)
        elif gone.owner != "none":
            self._come(gone)

    def _start(self, key: str) -> None:
        self.change(
            key,
            is_admitted=True,
            is_ready=True,
            admitted_at=self.now,
            claim_since=None,
            condition_reason="",
        )
        self._bind(key)

    def _bind(self, key: str) -> None:
        """Binds a pod to the first node that has room; without one it stays admitted
        and unbound.
        """
        if self.nodes is None:
            self.change(key, node="node-1")
            return
        request = self.pods[key].request
        for node in sorted(self.nodes, key=lambda each: each.name):
            there = [pod.request for pod in self.pods.values() if pod.node == node.name]
            if node.is_schedulable and all(
                sum(each.get(name, 0) for each in there) + amount
                <= node.allocatable.get(name, 0) - node.taken.get(name, 0)
                for name, amount in request.items()
                if amount
            ):
                self.change(key, node=node.name)
                return

    @property
    def unbound(self) -> list[str]:
        """Pods that were admitted and found no room on a node."""
        return [key for key, pod in self.pods.items() if pod.is_admitted and not pod.node]

    def _stop(self, pod: QuotaPod) -> None:
        self.change(pod.key, is_stopping=True, stopping_at=self.now)
        self._ends[pod.key] = self.now + self._rng.randint(1, self._grace)
        self.evictions += 1
        self.victims.append(pod.key)

    def _suspend(self, workload: Workload, for_unit: str) -> None:
        self.workloads[workload.uid] = replace(
            self.workloads[workload.uid], is_suspended=True, suspended_for=for_unit
        )
        for pod in [
            pod for pod in self.pods.values() if pod.owner == workload.uid and not pod.is_admitted
        ]:
            self._go(self.pods.pop(pod.key))

    def _lower(self, workload: Workload | None) -> None:
        """Lowers the job by one running pod. Its waiting pods go as well, because its controller
        removes them before running pods.
        """
        assert workload is not None
        job = self.workloads[workload.uid]
        waiting = [
            pod for pod in self.pods.values() if pod.owner == job.uid and not pod.is_admitted
        ]
        count = job.pods - len(waiting) - 1
        if count > 0:
            self.workloads[job.uid] = scaled(job, count, job.own_parallelism or job.parallelism)
            for pod in waiting:
                self._go(self.pods.pop(pod.key))
        else:
            self._suspend(job, "another")

    def change(self, key: str, **more: Any) -> None:
        self.pods[key] = replace(self.pods[key], **more)

    def _check(self, plan: QuotaPlan) -> None:
        """The invariants of every plan: no node above its max, stopping pods included; no pod both
        admitted and evicted; no member admitted to a gang that is evicted.
        """
        admitted = {each.pod.key for each in plan.admit}
        evicted = {each.pod.key for each in plan.evict}
        assert not admitted & evicted
        for pod in (each.pod for each in plan.admit if each.pod.gang):
            gang = [
                each
                for each in self.pods.values()
                if (each.namespace, each.gang) == (pod.namespace, pod.gang)
            ]
            if any(each.key in evicted for each in gang):
                runs = sum(
                    each.key in admitted
                    or (each.is_admitted and not each.is_stopping and each.key not in evicted)
                    for each in gang
                )
                assert runs >= pod.gang_size, (
                    f"{pod.key} joins {pod.gang}, of which others are evicted"
                )
        charged = [pod for pod in self.pods.values() if pod.is_admitted or pod.key in admitted]
        for node in self.tree.walk():
            spaces = {space for leaf in node.leaves() for space in leaf.namespaces}
            for resource, most in node.max.items():
                before = sum(
                    pod.request.get(resource, 0)
                    for pod in charged
                    if pod.namespace in spaces and pod.is_admitted
                )
                used = sum(
                    pod.request.get(resource, 0) for pod in charged if pod.namespace in spaces
                )
                assert used <= max(most, before), (
                    f"{node.name} uses {used} of max {most} {resource}"
                )
