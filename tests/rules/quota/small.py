"""A small world for quota plans: Deployments whose evicted pods come back waiting, written as the contract's scenarios are.

`tree("root[40]{a[10/20] b[10]}")`: name[min/max], amounts of the first resource; `x[cpu 1/2, gpu 0/4]` of several.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from fairlead.model.quota.plan import QuotaPlan
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode
from fairlead.rules.quota.plan import plan_quota

_NODE = re.compile(r"\s*([\w.]+)\[([^\]]*)\]")


def tree(text: str, attributes: Mapping[str, Mapping[str, str]] | None = None, resource: str = "gpu") -> QuotaNode:
    """Each leaf has one namespace, called as the leaf is. Root's max is its min unless it is written."""
    found, rest = _node(text, "", "", attributes or {}, resource)
    assert not rest.strip(), rest
    return replace(found, max=found.max or found.min)


def _node(text: str, parent: str, path: str, attributes: Mapping[str, Mapping[str, str]], resource: str) -> tuple[QuotaNode, str]:
    match = _NODE.match(text)
    assert match, text
    name, bounds = match.groups()
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for part in bounds.split(","):
        word, _, numbers = part.strip().rpartition(" ")
        low, _, high = numbers.partition("/")
        least[word or resource] = int(low)
        if high:
            most[word or resource] = int(high)
    rest, children = text[match.end() :].lstrip(), []
    if rest.startswith("{"):
        rest = rest[1:].lstrip()
        while not rest.startswith("}"):
            child, rest = _node(rest, name, f"{path}.{name}", attributes, resource)
            children.append(child)
            rest = rest.lstrip()
        rest = rest[1:]
    spaces = () if children else (name,)
    return QuotaNode(name, f"{path}.{name}", parent, least, most, spaces, attributes.get(name, {}), tuple(children)), rest


class SmallWorld:
    """Pods by key. Time goes on by one second with each step; evicted pods stop for `grace` steps and come back waiting."""

    def __init__(self, root: QuotaNode, *, grace: int = 1, seed: int = 0, resource: str = "gpu", **state: Any) -> None:
        self.tree = root
        self.now = 0.0
        self.pods: dict[str, QuotaPod] = {}
        self.evictions = 0
        self.victims: list[str] = []
        self.state_more = state
        self._grace = grace
        self._ends: dict[str, float] = {}
        self._rng = random.Random(seed)
        self._numbers: Counter[str] = Counter()
        self._resource = resource

    def add(self, leaf: str, count: int, request: int | Mapping[str, int] = 1, *, runs: bool = False, **more: Any) -> None:
        for _ in range(count):
            self._numbers[leaf] += 1
            self.now += 0.001
            asked = request if isinstance(request, Mapping) else {self._resource: request}
            pod = QuotaPod(leaf, f"p{self._numbers[leaf]:03d}", request=asked, created_at=self.now, **more)
            self.pods[pod.key] = replace(pod, uid=f"uid-{pod.key}", is_admitted=runs, is_ready=runs, admitted_at=self.now if runs else 0.0)

    def state(self) -> QuotaState:
        pods = list(self.pods.values())
        self._rng.shuffle(pods)
        return QuotaState(self.tree, tuple(pods), now=self.now, **self.state_more)

    def step(self) -> QuotaPlan:
        """One plan, carried out; who stops may come to his end."""
        self.now += 1
        for key, at in list(self._ends.items()):
            if at <= self.now:
                del self._ends[key]
                gone = self.pods.pop(key)
                if gone.owner != "none":
                    self.add(gone.namespace, 1, gone.request, priority=gone.priority, gang=gone.gang, gang_size=gone.gang_size)
        plan = plan_quota(self.state())
        self._check(plan)
        for admission in plan.admit:
            self._set(admission.pod.key, is_admitted=True, is_ready=True, admitted_at=self.now, claim_since=None)
        for eviction in plan.evict:
            self._set(eviction.pod.key, is_stopping=True)
            self._ends[eviction.pod.key] = self.now + self._rng.randint(1, self._grace)
            self.evictions += 1
            self.victims.append(eviction.pod.key)
        for waiting in plan.waiting:
            for pod in waiting.pods:
                since = pod.claim_since if pod.claim_since is not None else self.now
                self._set(pod.key, claim_since=since if waiting.reason == "WaitingForEvictions" else None)
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
        counts = Counter(pod.namespace for pod in self.pods.values() if pod.is_admitted and not pod.is_stopping)
        return tuple(counts[leaf] for leaf in leaves)

    def reasons(self, leaf: str) -> Counter[str]:
        return Counter(str(each.reason) for each in plan_quota(self.state()).waiting if each.leaf == leaf)

    def sentences(self, leaf: str) -> list[str]:
        return [each.message for each in plan_quota(self.state()).waiting if each.leaf == leaf]

    def _set(self, key: str, **more: Any) -> None:
        self.pods[key] = replace(self.pods[key], **more)

    def _check(self, plan: QuotaPlan) -> None:
        """What holds of every plan: no node above its max, stopping pods included; nobody both admitted and evicted."""
        admitted = {each.pod.key for each in plan.admit}
        assert not admitted & {each.pod.key for each in plan.evict}
        charged = [pod for pod in self.pods.values() if pod.is_admitted or pod.key in admitted]
        for node in self.tree.walk():
            spaces = {space for leaf in node.leaves() for space in leaf.namespaces}
            for resource, most in node.max.items():
                before = sum(pod.request.get(resource, 0) for pod in charged if pod.namespace in spaces and pod.is_admitted)
                used = sum(pod.request.get(resource, 0) for pod in charged if pod.namespace in spaces)
                assert used <= max(most, before), f"{node.name} uses {used} of max {most} {resource}"
