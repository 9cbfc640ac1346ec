"""Victims on one cluster node, for a unit that has quota and fits on no node.

The fewest pods of one node that may be evicted: all that are needed, or none
(docs/spec/quota.md#room-made-on-a-cluster-node).

A group may be evicted if its leaf is above min in what the node lacks, from the root down as for
reclaim, and if `is_guaranteed` would not be true for it: otherwise two units would evict each other
in turn. For resources that the tree does not manage, that predicate alone decides.

No gang is broken where single pods and the surplus of gangs make enough room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from fairlead.model.quota.state import QuotaPod
from fairlead.rules.quota.account import QuotaAccount
from fairlead.rules.quota.reclaim import Reclaim, is_gang
from fairlead.rules.quota.room import PlacedPod, Rooms, Shape, largest_first, part_of, shape_of
from fairlead.rules.quota.seating.seats import Seats
from fairlead.rules.quota.units import Unit, VictimGroup

_FULL = 1_000_000


class _EvictedGroup(Struct, eq=False):
    """A group that is to be evicted, and the room that it left."""

    group: VictimGroup
    left: list[PlacedPod]


class NodeVictims:
    """The search for victims on nodes, of one plan."""

    def __init__(self, account: QuotaAccount, reclaim: Reclaim, seats: Seats) -> None:
        self._account = account
        self._reclaim = reclaim
        self._seats = seats
        self._weighed_at = -1
        self._weighed: dict[Shape, list[tuple[int, str]]] = {}

    def choose(self, unit: Unit) -> list[VictimGroup] | None:
        """All groups that are needed, or None.

        Chosen groups have left the account's sums, not yet their nodes.
        """
        rooms = self._seats.rooms_later()
        if rooms is None or not unit.pods:
            return None
        if self._weighed_at != len(self._account.undo):
            self._weighed_at = len(self._account.undo)
            self._weighed.clear()
        search = _Search(self._account, self._reclaim, self._seats, rooms, unit, self._weighed)
        found = search.run(breaks_gangs=False)
        search.close()
        if found is None and search.was_gang_passed_over:
            found = search.run(breaks_gangs=True)
            search.close()
        return found


class _Search:
    """The search for one unit. It is valid while the plan does not change.

    `weighed`: by shape of pod, the nodes that are worth a closer look, each with the least number
    of groups that would have to go.
    """

    def __init__(
        self,
        account: QuotaAccount,
        reclaim: Reclaim,
        seats: Seats,
        rooms: Rooms,
        unit: Unit,
        weighed: dict[Shape, list[tuple[int, str]]],
    ) -> None:
        self._account = account
        self._reclaim = reclaim
        self._seats = seats
        self._rooms = rooms
        self._unit = unit
        self._index = account.index
        self._fences = frozenset(reclaim.fences(unit))
        self._path = frozenset(self._index.up[unit.leaf])
        self._taken: list[_EvictedGroup] = []
        self._weighed = weighed
        self._breaks_gangs = False
        self.was_gang_passed_over = False
        self._on_node = account.victims_on()
        self._fresh: defaultdict[str, list[VictimGroup]] = defaultdict(list)
        for groups in reclaim.fresh.values():
            for group in groups:
                for node in {node for node, _ in self._places(group)}:
                    self._fresh[node].append(group)

    def run(self, *, breaks_gangs: bool) -> list[VictimGroup] | None:
        unit, rooms = self._unit, self._rooms
        self._breaks_gangs, self._taken = breaks_gangs, []
        seats: list[PlacedPod] = []
        is_housed = True
        for pod in sorted(unit.pods, key=largest_first):
            seat = rooms.seat([pod])
            if seat is None:
                node = self._clear(pod, is_first=not seats)
                seat = rooms.seat_on(pod, node) if node is not None else None
            if seat is None:
                is_housed = False
                break
            seats += seat
        rooms.unseat(seats)
        if is_housed and self._account.after.blocks(unit.leaf, unit.vector):
            more = self._reclaim.from_others(unit, breaks_gangs=breaks_gangs)
            is_housed = more is not None
            self.was_gang_passed_over |= not is_housed
            self._taken += [_EvictedGroup(group, self._leave(group)) for group in more or ()]
        if not is_housed:
            for each in self._taken:
                self._reclaim.spare(each.group)
            return None
        self._reprieve(self._taken, self._fits)
        return [each.group for each in self._taken]

    def close(self) -> None:
        """Restore the nodes as they were."""
        for each in self._taken:
            self._rooms.stay(each.left)

    def _places(self, group: VictimGroup) -> Iterable[tuple[str, QuotaPod]]:
        if group.unit is None:
            return [(pod.node, pod) for pod in group.pods]
        return [(seat.node, seat.pod) for seat in self._seats.of(group.unit)]

    # --- one pod of the unit ----------------------------------------------------------------------

    def _clear(self, pod: QuotaPod, *, is_first: bool) -> str | None:
        """The node where the fewest groups must go for the pod, with those groups gone."""
        best: tuple[tuple[int, int], list[VictimGroup], str] | None = None
        lowest = min(book.lowest for book in self._account.books.values())
        for bound, node in self._weigh(pod, is_first=is_first):
            if best is not None and (bound, lowest) >= best[0]:
                break
            going = self._going_from(node, pod, best[0][0] if best is not None else None)
            for each in going or ():
                self._undo(each)
            if going is not None:
                groups = [each.group for each in going]
                cost = (
                    _count(groups),
                    max((group.priority for group in groups if group.unit is None), default=0),
                )
                if best is None or cost < best[0]:
                    best = cost, groups, node
        if best is None:
            return None
        self._taken += [self._take(group) for group in best[1]]
        return best[2]

    def _weigh(self, pod: QuotaPod, *, is_first: bool) -> list[tuple[int, str]]:
        """Nodes that are worth a closer look, the most promising first: the borrowers there hold
        enough, if all of them may go.
        """
        shape = shape_of(pod)
        if is_first and shape in self._weighed:
            return self._weighed[shape]
        over, rooms, width = (
            self._account.after.over,
            self._rooms,
            range(len(self._index.resources)),
        )
        borrows = {leaf for leaf in self._account.books if any(over(leaf, k) > 0 for k in width)}
        found: list[tuple[int, str]] = []
        for node in rooms.nodes_for(pod):
            if not rooms.could_hold(pod, node):
                continue
            bound = 0
            if node not in self._fresh:
                there = [
                    group
                    for leaf, groups in self._on_node.get(node, {}).items()
                    if leaf in borrows
                    for group in groups
                ]
                for name, lack in rooms.lack_on(pod, node).items():
                    count = _fewest(
                        lack,
                        [
                            sum([part_of(each, name) for each in group.pods if each.node == node])
                            for group in there
                        ],
                    )
                    if count is None:
                        break
                    bound = max(bound, count)
                else:
                    found.append((bound, node))
            else:
                found.append((0, node))
        found.sort()
        if is_first:  # no group has left and no pod is seated yet for this unit
            self._weighed[shape] = found
        return found

    def _going_from(self, node: str, pod: QuotaPod, most: int | None) -> list[_EvictedGroup] | None:
        """Remove and return the groups that must leave the node.

        None: it would not fit, or more than `most` would have to go.
        """
        going: list[_EvictedGroup] = []
        while lack := self._rooms.lack_on(pod, node):
            group = self._next_from(node, lack)
            if group is not None:
                going += [self._take(each) for each in self._reclaim.with_surplus(group)]
            if group is None or (most is not None and _count(each.group for each in going) > most):
                for each in going:
                    self._undo(each)
                return None
        self._reprieve(going, lambda: not self._rooms.lack_on(pod, node))
        return going

    def _next_from(self, node: str, lack: Mapping[str, int]) -> VictimGroup | None:
        """A group that costs nothing; then the one that gives most of what is lacking; then the
        gang with the fewest pods; then the first victim of a leaf.
        """
        best: tuple[tuple[object, ...], VictimGroup] | None = None
        over, width = self._account.after.over, range(len(self._index.resources))
        leaves = (
            leaf for leaf in self._on_node.get(node, ()) if any(over(leaf, k) > 0 for k in width)
        )
        for group in (
            *self._fresh.get(node, ()),
            *(group for leaf in leaves for group in self._on_node[node][leaf]),
        ):
            if not self._fences.isdisjoint(self._index.up[group.leaf]) or not self._reclaim.may_go(
                group
            ):
                continue
            gives: defaultdict[str, int] = defaultdict(int)
            for where, pod in self._places(group):
                if where == node:
                    for name in lack:
                        gives[name] += part_of(pod, name)
            part = sum(
                min(amount, lack[name]) * _FULL // lack[name]
                for name, amount in gives.items()
                if self._is_lending(group, name)
            )
            if part and is_gang(group) and not self._breaks_gangs:
                self.was_gang_passed_over = True
            elif part:
                pods = (
                    sum(len(each.pods) for each in self._reclaim.with_surplus(group))
                    if is_gang(group)
                    else 0
                )
                key = group.unit is None, -part, pods, group.rank
                if best is None or key < best[0]:
                    best = key, group
        return best[1] if best is not None else None

    def _is_lending(self, group: VictimGroup, resource: str) -> bool:
        """Whether the resource may be taken back from the group.

        What its leaf's min covers may not.
        """
        index, leaf = self._index, group.leaf
        if resource in index.resources and not self._is_over(leaf, index.resources.index(resource)):
            return False
        asked = [k for k, amount in enumerate(group.vector) if amount]
        scarce = [k for k in self._account.contested[leaf] if group.vector[k]]
        return any(self._is_over(leaf, k) for k in scarce or asked)

    def _is_over(self, leaf: int, k: int) -> bool:
        """Whether reclaim, descending from the root, reaches the leaf.

        A node at or under its min is protected.
        """
        return all(
            self._account.after.over(node, k) > 0
            for node in self._index.up[leaf][:-1] or (leaf,)
            if node not in self._path
        )

    # --- leaving and being spared -----------------------------------------------------------------

    def _reprieve(self, going: list[_EvictedGroup], fits: Callable[[], bool]) -> None:
        """Spare each group that is not needed, the most important first.

        A gang's surplus goes with the gang.
        """
        for each in sorted(
            going, key=lambda each: (not _is_part(each, going), each.group.rank), reverse=True
        ):
            if _is_part(each, going):
                continue
            self._undo(each)
            if fits():
                going.remove(each)
            else:
                self._redo(each)

    def _fits(self) -> bool:
        unit = self._unit
        return not self._account.after.blocks(unit.leaf, unit.vector) and self._rooms.fits(
            unit.pods
        )

    def _take(self, group: VictimGroup) -> _EvictedGroup:
        self._reclaim.take(group)
        return _EvictedGroup(group, self._leave(group))

    def _leave(self, group: VictimGroup) -> list[PlacedPod]:
        if group.unit is None:
            return self._rooms.leave(group.pods)
        seats = list(self._seats.of(group.unit))
        self._rooms.unseat(seats)
        return seats

    def _undo(self, each: _EvictedGroup) -> None:
        self._rooms.stay(each.left)
        self._reclaim.spare(each.group)

    def _redo(self, each: _EvictedGroup) -> None:
        self._reclaim.take(each.group)
        each.left = self._leave(each.group)


def _fewest(lack: int, parts: list[int]) -> int | None:
    """The least number of these parts that add up to `lack`; None: all together are less."""
    if sum(parts) < lack:
        return None
    parts.sort(reverse=True)
    count = 0
    while lack > 0:
        lack -= parts[count]
        count += 1
    return count


def _is_part(each: _EvictedGroup, going: Sequence[_EvictedGroup]) -> bool:
    """Whether the group is the surplus of a gang that goes."""
    gang = each.group.gang
    return (
        gang is not None
        and not each.group.is_whole
        and any(other.group.is_whole and other.group.gang == gang for other in going)
    )


def _count(groups: Iterable[VictimGroup]) -> int:
    """Pods that are evicted, without those that this plan admitted."""
    return sum(len(group.pods) for group in groups if group.unit is None)
