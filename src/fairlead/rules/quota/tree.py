"""The quota tree in the form that a plan walks.

Nodes and resources have numbers, bounds are precomputed, and sums are kept up to date.

A node is charged what is used and promised below it. With a lend limit L a node that uses less than
`min - L` is charged `min - L` nevertheless, so that this part of its min is not lent
(docs/spec/quota.md#charge-and-lend-limits).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm
from typing import Final

from fairlead.model.keys import DRAIN_OVER_MAX, MAX_JOBS
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import Amounts
from fairlead.rules.quota.managed import managed_resources

_VECTORS_MAX: Final = 20_000

Vector = tuple[int, ...]
"""Amounts of the managed resources, in the order of `TreeIndex.resources`."""
Capacity = tuple[int | None, ...]
"""What the cluster's nodes have of each managed resource; None = not known."""


class TreeIndex:
    """Nodes and resources by number.

    `up[n]`: n and its ancestors, n first. `max[n][k]`: None = no ceiling of its own. `weight[k]`
    makes amounts comparable: each is a share of the root's max. `root_max` and `least` are max and
    min as written; `max` and `min` are as they count where the cluster has less (`bind`). `strict`:
    strict leaves. `drained`: nodes from which pods are evicted while they use more than their max.
    """

    def __init__(self, root: QuotaNode) -> None:
        self.resources = tuple(each for each in managed_resources(root) if each != MAX_JOBS)
        self.nodes = list(root.walk())
        self.names = [node.name for node in self.nodes]
        number = {node.name: place for place, node in enumerate(self.nodes)}
        self.parent = [number[node.parent] if node.parent else -1 for node in self.nodes]
        self.children = [[number[child.name] for child in node.children] for node in self.nodes]
        self.up = [self._up(place) for place in range(len(self.nodes))]
        self.leaf_of = {
            name: number[leaf.name] for leaf in root.leaves() for name in leaf.namespaces
        }
        self.min = [[node.min.get(each, 0) for each in self.resources] for node in self.nodes]
        self.max = [[node.max.get(each) for each in self.resources] for node in self.nodes]
        self.strict = frozenset(place for place, node in enumerate(self.nodes) if node.is_strict)
        self.drained = [
            place
            for place, node in enumerate(self.nodes)
            if node.attributes.get(DRAIN_OVER_MAX) == "true"
        ]
        self.max_jobs = {
            place: node.max[MAX_JOBS]
            for place, node in enumerate(self.nodes)
            if MAX_JOBS in node.max
        }
        self.root_max: Capacity = tuple(self.max[0])
        self.least = self.min
        self._kept = [self._beyond_children(place) for place in range(len(self.nodes))]
        leaves = [place for place, below in enumerate(self.children) if not below]
        self._promised = [
            sum(self.least[place][k] for place in leaves) for k in range(len(self.resources))
        ]
        self._kept_total = [
            sum(self._kept[place][k] for place in range(1, len(self.nodes)))
            for k in range(len(self.resources))
        ]
        self._vectors: dict[int, tuple[Amounts, Vector]] = {}
        self.bind((None,) * len(self.resources), {})

    def vector(self, request: Amounts) -> Vector:
        """The request as a vector.

        Pods of one template often share their request, so vectors are cached.
        """
        try:
            return self._vectors[id(request)][1]
        except KeyError:
            pass
        if len(self._vectors) > _VECTORS_MAX:
            self._vectors.clear()
        found = tuple([request.get(each, 0) for each in self.resources])
        self._vectors[id(request)] = request, found
        return found

    def counted(self) -> dict[str, Amounts]:
        """By node name: mins that count as less than is written, with the amount that counts."""
        found: dict[str, Amounts] = {}
        for place, name in enumerate(self.names):
            mine = {
                self.resources[k]: self.min[place][k]
                for k in self.scarce
                if self.min[place][k] != self.least[place][k]
            }
            if mine:
                found[name] = mine
        return found

    def amounts(self, vector: Sequence[int]) -> dict[str, int]:
        """The vector by resource, without zeros."""
        return {name: amount for name, amount in zip(self.resources, vector, strict=True) if amount}

    def promised(self, k: int) -> int:
        """The sum of all leaves' mins of a resource, as written."""
        return self._promised[k]

    def _up(self, place: int) -> tuple[int, ...]:
        path = [place]
        while self.parent[path[-1]] >= 0:
            path.append(self.parent[path[-1]])
        return tuple(path)

    def _beyond_children(self, place: int) -> list[int]:
        """The part of an inner node's min that none of its children is guaranteed."""
        below = self.children[place]
        return [
            max(0, least - sum(self.least[child][k] for child in below)) if below else 0
            for k, least in enumerate(self.least[place])
        ]

    def bind(self, capacity: Capacity, firm: Mapping[int, Vector]) -> None:
        """Limit the root to the cluster's capacity.

        If leaves are guaranteed more than that, each min counts in proportion, and at least what
        the leaf's non-preemptible pods use (`firm`). The part of inner nodes' mins beyond their
        children's gets a share of the rest.
        """
        self.capacity = capacity
        self.scarce = [
            k
            for k, there in enumerate(capacity)
            if there is not None and there < self._promised[k] + self._kept_total[k]
        ]
        """Resources of which the mins guarantee more than the capacity."""
        pairs = zip(self.root_max, capacity, strict=True)
        self.max[0] = [
            own if there is None else there if own is None else min(own, there)
            for own, there in pairs
        ]
        self.min = [list(least) for least in self.least] if self.scarce else self.least
        for k in self.scarce:
            self._scale(k, capacity[k] or 0, firm)
        scale = lcm(*(most for most in self.max[0] if most))
        self.weight = [scale // most if most else 0 for most in self.max[0]]
        lent = (0,) * len(self.resources)
        self.floor = [
            self._floor(place) if node.lend_limit else lent for place, node in enumerate(self.nodes)
        ]

    def _scale(self, k: int, there: int, firm: Mapping[int, Vector]) -> None:
        promised, counts = self._promised[k], 0
        for place, below in enumerate(self.children):
            if not below:
                least = self.least[place][k]
                part = least * there // promised if there < promised else least
                self.min[place][k] = (
                    max(part, min(least, firm[place][k])) if place in firm else part
                )
                counts += self.min[place][k]
        left, kept = max(0, there - counts), self._kept_total[k]
        for place in reversed(range(1, len(self.nodes))):  # children before parents
            if below := self.children[place]:
                own = self._kept[place][k]
                self.min[place][k] = sum([self.min[child][k] for child in below]) + (
                    own * left // kept if left < kept else own
                )
        self.min[0][k] = min(self.least[0][k], there)

    def _floor(self, place: int) -> Vector:
        """What the node is charged at least: the part of its min that is not lent."""
        lend = self.nodes[place].lend_limit
        pairs = zip(self.resources, self.min[place], strict=True)
        return tuple(max(0, least - lend[each]) if each in lend else 0 for each, least in pairs)


class Sums:
    """What each node is charged with: used and promised.

    `own[n][k]`: before the lend limit of n. The parent of n is charged the amount after it.
    """

    def __init__(self, index: TreeIndex) -> None:
        self._index = index
        self.own = [[0] * len(index.resources) for _ in index.nodes]
        self.version = [0] * len(index.nodes)
        for place in reversed(range(len(index.nodes))):  # children before parents
            parent = index.parent[place]
            if parent >= 0:
                for k, own in enumerate(self.own[place]):
                    self.own[parent][k] += max(own, index.floor[place][k])

    def add(self, leaf: int, vector: Vector, sign: int = 1) -> None:
        index, path = self._index, self._index.up[leaf]
        for place in path:
            self.version[place] += 1
        for k, amount in enumerate(vector):
            delta = sign * amount
            for place in path:
                if not delta:
                    break
                own, floor = self.own[place], index.floor[place][k]
                before = own[k]
                own[k] = after = before + delta
                delta = max(after, floor) - max(before, floor)

    def blocks(self, leaf: int, vector: Vector) -> list[tuple[int, int]]:
        """(node, resource) that have no room for it, deepest first."""
        index = self._index
        found: list[tuple[int, int, int]] = []
        for k, amount in enumerate(vector):
            delta = amount
            for height, place in enumerate(index.up[leaf]):
                if not delta:
                    break
                own, most = self.own[place][k], index.max[place][k]
                if most is not None and own + delta > most:
                    found.append((height, k, place))
                if floor := index.floor[place][k]:
                    delta = max(own + delta, floor) - max(own, floor)
        return (
            [(place, k) for _, k, place in sorted(found)]
            if len(found) > 1
            else [(place, k) for _, k, place in found]
        )

    def lacks(self, leaf: int, vector: Vector, place: int, k: int) -> int:
        """How much more room the vector needs at a node above its leaf; 0 or less = it fits."""
        index, delta = self._index, vector[k]
        for node in index.up[leaf]:
            own = self.own[node][k]
            if node == place:
                return own + delta - (index.max[node][k] or 0)
            if floor := index.floor[node][k]:
                delta = max(own + delta, floor) - max(own, floor)
        return 0

    def room(self, leaf: int, k: int) -> int | None:
        """How much more of a resource the leaf can be charged with; None = unlimited."""
        index, most = self._index, None
        for place in reversed(index.up[leaf]):
            own, ceiling = self.own[place][k], index.max[place][k]
            # what the node is charged anyway, by its lend limit, adds nothing above it
            above = None if most is None else most + max(0, index.floor[place][k] - own)
            rooms = [
                each
                for each in (above, None if ceiling is None else ceiling - own)
                if each is not None
            ]
            most = max(0, min(rooms)) if rooms else None
        return most

    def over(self, place: int, k: int) -> int:
        """What the node has above its min; negative below it."""
        return self.own[place][k] - self._index.min[place][k]

    def is_within(self, place: int, vector: Vector, resources: Sequence[int]) -> bool:
        """Whether the node stays within its min with the vector, in these resources."""
        return all(self.over(place, k) + vector[k] <= 0 for k in resources)
