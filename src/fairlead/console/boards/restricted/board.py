"""The board state of a researcher: own objects from a restricted snapshot, capacity from the whole.

The same row builders work on both. What is expensive and has no names (nodes, cards, totals, the
quota plan) is made once in the whole board state and shared by all researchers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, Protocol, TypeVar

from msgspec import structs

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.gpu_map_cells import (
    ANOTHER_TEAM,
    MapParts,
    Numbering,
    map_cells,
    map_parts,
)
from fairlead.console.boards.gpus_rows import FilterKeys, gpu_entries, listed_gpus
from fairlead.console.boards.holders import holder_row_set
from fairlead.console.boards.idle_cards import Idleness
from fairlead.console.boards.jobs_rows import (
    Explainer,
    held_since,
    job_entry,
    job_row,
    job_row_set,
    paths_by_namespace,
    seconds_since,
)
from fairlead.console.boards.node_detail import gpu_rows
from fairlead.console.boards.nodes_rows import node_row
from fairlead.console.boards.overview import cluster_sentence
from fairlead.console.boards.quota.usage_rows import quota_entry
from fairlead.console.boards.quota.waiting import PlannedQuota, fault_rows
from fairlead.console.boards.restricted.nameless import nameless
from fairlead.console.boards.rows import CompletedRows, Entry, RowSet, choices
from fairlead.console.boards.search import search
from fairlead.console.pages.cluster import AttentionLine, FaultyGpu, Pool
from fairlead.console.pages.envelope import Sentence, Warning
from fairlead.console.pages.gpu_map import GpuMap, MapNode
from fairlead.console.pages.gpus import ListedGpu
from fairlead.console.pages.holders import Holder
from fairlead.console.pages.jobs import JobDetail, JobRow, Waiting
from fairlead.console.pages.list_query import ListQuery
from fairlead.console.pages.nodes import NodeDetail, NodeRow
from fairlead.console.pages.quota import QuotaRow
from fairlead.console.pages.quota_tree import QuotaTreePage, QuotaTreeRow
from fairlead.console.pages.search import SearchAnswer
from fairlead.console.pages.serving.jobs import ServingJob
from fairlead.model.event import Event
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.jobs.serving import ServingObjects
from fairlead.model.occupancy import GpuTotals
from fairlead.model.people.reach import Reach
from fairlead.model.pod import Pod
from fairlead.model.quota.clauses import SEPARATOR
from fairlead.model.quota.plan import QuotaWaiting
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode, Violation
from fairlead.model.resources import Amounts
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import ClusterOccupancy
from fairlead.rules.jobs.status import job_duration
from fairlead.rules.jobs.waiting import Wait
from fairlead.rules.nodes.room import NodeRooms
from fairlead.rules.people.restricted import ANOTHER_TEAM as SOME_TEAM
from fairlead.rules.people.restricted import (
    is_plain,
    is_quota_reason,
    restricted_events,
    restricted_instances,
    restricted_plan,
    restricted_violations,
    restricted_waiting,
)
from fairlead.rules.pods.devices import whole_gpus
from fairlead.rules.sharing.startable import NodeOffer
from fairlead.rules.sharing.why import ShareWhy


class _InNamespace(Protocol):
    @property
    def namespace(self) -> str: ...


_Placed = TypeVar("_Placed", bound=_InNamespace)
_Row = TypeVar("_Row")

_OWN_FIGURES: Final = ("requested", "lent", "claimed", "lost", "waiting_pods", "waiting_jobs")
"""Of a node above own leaves: the sums of the own leaves. Its other figures are its own."""
_SENTENCES_OF_NONE: Final = {
    "jobs-none": "There are no training jobs in your namespaces.",
    "holders-none": "No pod of yours holds a GPU.",
    "serving-none": "There are no serving jobs in your namespaces.",
    "quota-none": "No quota is assigned to you. Ask an administrator.",
}


class SharedBoard(BoardState):
    """The board state of the whole cluster, with what the boards of researchers share of it."""

    @cached_property
    def pod_counts(self) -> Mapping[str, int]:
        """Pods in each namespace; made with it: the indexes by which pictures are cut out."""
        self.snapshot.index_for_parts()
        return {name: len(self.snapshot.pods_in(name)) for name in self.snapshot.pod_namespaces}

    def pods_within(self, namespaces: Iterable[str]) -> int:
        return sum(self.pod_counts.get(name, 0) for name in namespaces)

    @cached_property
    def instances_by_namespace(self) -> Mapping[str, Sequence[JobInstances]]:
        return _by(self.instances, lambda each: each.job.namespace)

    def has_instances(self, each: JobInstances) -> bool:
        """Whether it is this very object, and not one that names less."""
        return id(each) in self.ids_of_instances

    @cached_property
    def ids_of_instances(self) -> frozenset[int]:
        return frozenset(map(id, self.instances))

    @cached_property
    def plain_instances(self) -> frozenset[int]:
        """Ids of those that name nothing of another team, however few namespaces a reader has."""
        return frozenset(id(each) for each in self.instances if is_plain(each))

    @cached_property
    def held_since(self) -> Mapping[tuple[str, str, str], float | None]:
        """Key of a job -> since when it holds devices."""
        return {each.job.key: held_since(each.pods) for each in self.instances}

    @cached_property
    def job_places(self) -> Mapping[str, Sequence[tuple[int, Entry[JobRow]]]]:
        """Namespace -> rows of its jobs, with their places among all."""
        return _by(enumerate(self.jobs.entries), lambda placed: placed[1].row.namespace)

    @cached_property
    def holder_places(self) -> Mapping[str, Sequence[tuple[int, Entry[Holder]]]]:
        """Namespace -> rows of its pods, with their places among all."""
        return _by(enumerate(self.holders.entries), lambda placed: placed[1].row.namespace)

    @cached_property
    def gpu_pods_by_namespace(self) -> Mapping[str, Sequence[Pod]]:
        return _by(self.gpu_pods, lambda pod: pod.namespace)

    @cached_property
    def troubled_pods_by_namespace(self) -> Mapping[str, Sequence[Pod]]:
        return _by(self.troubled_pods, lambda pod: pod.namespace)

    @cached_property
    def nameless_gpus(self) -> RowSet[ListedGpu]:
        return listed_gpus(self.occupancy, self.now, lambda pod: False)

    @cached_property
    def places_of_gpus(self) -> Mapping[str, range]:
        """Node -> the places of its cards among `nameless_gpus`."""
        places: dict[str, range] = {}
        for place, entry in enumerate(self.nameless_gpus.entries):
            name = entry.row.node
            places[name] = range(places[name].start if name in places else place, place + 1)
        return places

    @cached_property
    def nameless_map(self) -> MapParts:
        """Every card that is held, by another team (0)."""
        known = self.known_nodes("nameless_map")
        return map_parts(self.snapshot, self.occupancy, self.now, lambda pod: ANOTHER_TEAM, known)


class RestrictedBoard(BoardState):
    """`snapshot`: of `rules.people.restricted`, of the same moment as `whole`."""

    def __init__(
        self,
        whole: SharedBoard,
        snapshot: ClusterSnapshot,
        reach: Reach,
        now: float,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(snapshot, now, whole.speed, versions)
        self._whole = whole
        self._reach = reach

    # Capacity: the same figures for everyone.

    @property
    def occupancy(self) -> ClusterOccupancy:
        """Ask it about own pods, and about nodes for figures."""
        return self._whole.occupancy

    @property
    def totals(self) -> GpuTotals:
        return self._whole.totals

    @property
    def series_missing(self) -> Warning | None:
        return self._whole.series_missing

    @property
    def silent_nodes(self) -> frozenset[str]:
        return self._whole.silent_nodes

    @property
    def nodes(self) -> RowSet[NodeRow]:
        return self._whole.nodes

    @property
    def nodes_sentence(self) -> Sentence:
        return self._whole.nodes_sentence

    @property
    def hardware_lines(self) -> tuple[AttentionLine, ...]:
        return self._whole.hardware_lines

    @property
    def pools(self) -> list[Pool]:
        return self._whole.pools

    @property
    def faulty_gpus(self) -> list[FaultyGpu]:
        return self._whole.faulty_gpus

    @property
    def rooms(self) -> NodeRooms:
        return self._whole.rooms

    @property
    def offers(self) -> list[NodeOffer]:
        return self._whole.offers

    @property
    def share_why(self) -> ShareWhy:
        return self._whole.share_why

    @cached_property
    def gpus_sentence(self) -> Sentence:
        """Without idle GPUs: whether those of other teams are used is not shown."""
        return cluster_sentence(self.totals, 0)

    @cached_property
    def idle(self) -> Idleness:
        return self._whole.idle.within(self._reach.namespaces)

    # Cards: those of own pods by name, the others without.

    @property
    def gpus(self) -> RowSet[ListedGpu]:
        """Not kept: of 40,000 cards it would be the largest part of a picture."""
        shared, nodes = self._whole.nameless_gpus, self._own_nodes
        own: dict[str, dict[int, Entry[ListedGpu]]] = {}

        def of_node(name: str) -> dict[int, Entry[ListedGpu]]:
            if name not in own:
                own[name] = self._own_cards(name, nodes[name])
            return own[name]

        def named(row: ListedGpu) -> ListedGpu:
            if row.node not in nodes:
                return row
            for place, entry in of_node(row.node).items():
                if shared.entries[place].row is row:
                    return entry.row
            return row

        def entries() -> Sequence[Entry[ListedGpu]]:
            every = list(shared.entries)
            for name in nodes:
                for place, entry in of_node(name).items():
                    every[place] = entry
            return every

        return _NamedGpus(
            ListedGpu, _Late(entries), shared.facets, shared.ties, shared=shared, named=named
        )

    def _own_cards(self, name: str, pods: Sequence[Pod]) -> dict[int, Entry[ListedGpu]]:
        """Place among all cards -> row with the names of own holders, of the cards of a node."""
        places = self._whole.places_of_gpus[name]
        if all(map(self._is_seated, pods)):
            return self._with_holders(places, pods)
        on = self.occupancy.by_node[name]
        rows = gpu_entries(on, FilterKeys(), self._whole.now, self._is_own)
        return dict(zip(places, rows, strict=True))

    def _is_own(self, pod: Pod) -> bool:
        return pod.namespace in self._reach.namespaces

    def _team_of(self, pod: Pod) -> str:
        return pod.namespace if self._is_own(pod) else ANOTHER_TEAM

    def _is_seated(self, pod: Pod) -> bool:
        """Whether all its cards are known from grants or readings."""
        cards = {card.index for card, _ in self.occupancy.seats(pod)}
        return len(cards) >= max(1, whole_gpus(pod.limits))

    def _with_holders(self, places: range, pods: Iterable[Pod]) -> dict[int, Entry[ListedGpu]]:
        """Rows of a node's cards that these pods hold, with their names."""
        entries = self._whole.nameless_gpus.entries
        place_of = {entries[place].row.index: place for place in places}
        held: dict[int, list[str]] = {}
        for pod in pods:
            for index in sorted({card.index for card, _ in self.occupancy.seats(pod)}):
                held.setdefault(place_of[index], []).append(pod.key)
        return {
            place: Entry(
                structs.replace(entries[place].row, holders=keys),
                "\n".join((entries[place].text, *keys)).lower(),
                entries[place].answers,
            )
            for place, keys in held.items()
        }

    @property
    def gpu_map(self) -> GpuMap:
        shared, teams = self._whole.nameless_map, Numbering()
        teams.of(ANOTHER_TEAM)
        own = {
            name: map_cells(self.occupancy.by_node[name], teams, self._whole.now, self._team_of)
            for name in self._own_nodes
        }
        nodes: list[MapNode] = [
            structs.replace(node, gpus=own[node.name]) if node.name in own else node
            for node in shared.nodes
        ]
        return GpuMap(
            generated_at=self.generated_at,
            stale=self.is_stale("gpus"),
            version=self.version("gpus"),
            warnings=self.warnings("gpus"),
            teams=teams.names,
            models=shared.models,
            modes=shared.modes,
            statuses=shared.statuses,
            nodes=nodes,
        )

    @cached_property
    def _own_nodes(self) -> dict[str, list[Pod]]:
        """Nodes on which own pods hold GPUs, with these pods."""
        found = _by((pod for pod in self.gpu_pods if pod.is_holding), lambda pod: pod.node)
        return {name: pods for name, pods in found.items() if name in self.occupancy.by_node}

    def node(self, name: str) -> NodeDetail | None:
        """Without Events: they stand in a namespace that is no researcher's."""
        found = super().node(name)
        occupied = self.occupancy.by_node.get(name)
        if found is None or occupied is None:
            return found
        seen = nameless(occupied, self._reach.namespaces)
        rows = [
            structs.replace(row, pods=[pod for pod in row.pods if pod.namespace != ANOTHER_TEAM])
            for row in gpu_rows(seen, self.job_by_pod, self.idle)
        ]
        shown = node_row(occupied.node, occupied, self._whole.snapshot)
        return structs.replace(found, node=shown, gpus=rows)

    # Jobs and pods: the builders see own objects only.

    @cached_property
    def instances(self) -> tuple[JobInstances, ...]:
        plain = self._whole.plain_instances
        return tuple(
            each if id(each) in plain else restricted_instances(each, self._reach)
            for name in sorted(self._reach.namespaces)
            for each in self._whole.instances_by_namespace.get(name, ())
        )

    @property
    def job_by_pod(self) -> dict[str, str]:
        """Of the whole: ask it about own pods."""
        return self._whole.job_by_pod

    @cached_property
    def gpu_pods(self) -> list[Pod]:
        found = self._whole.gpu_pods_by_namespace
        return [pod for name in sorted(self._reach.namespaces) for pod in found.get(name, ())]

    @cached_property
    def troubled_pods(self) -> list[Pod]:
        found = self._whole.troubled_pods_by_namespace
        return [pod for name in sorted(self._reach.namespaces) for pod in found.get(name, ())]

    @cached_property
    def held_by_namespace(self) -> Mapping[str, Sequence[float]]:
        held = self._whole.held_by_namespace
        return {name: held[name] for name in self._reach.namespaces if name in held}

    @cached_property
    def jobs(self) -> RowSet[JobRow]:
        """The rows of the whole, but for what depends on the time and on the reason of a wait."""
        own = {each.job.key: each for each in self.instances}
        leaves = paths_by_namespace(self.snapshot.quota)
        entries = self._in_order(self._whole.job_places)
        return job_row_set([self._own_job(entry, own, leaves) for entry in entries])

    @cached_property
    def holders(self) -> RowSet[Holder]:
        return holder_row_set(self._in_order(self._whole.holder_places))

    def _in_order(self, places: Mapping[str, Sequence[tuple[int, _Row]]]) -> list[_Row]:
        """What belongs to own namespaces, in the order of the whole."""
        own = (each for name in self._reach.namespaces for each in places.get(name, ()))
        return [row for _, row in sorted(own, key=itemgetter(0))]

    def _own_job(
        self,
        entry: Entry[JobRow],
        own: Mapping[tuple[str, str, str], JobInstances],
        leaves: Mapping[str, str],
    ) -> Entry[JobRow]:
        row = entry.row
        each = own[row.namespace, row.type, row.name]
        if row.waiting is not None or not self._whole.has_instances(each):
            made = job_row(
                each, self.occupancy, leaves, self.now, self.explainer, self.silent_nodes
            )
            return job_entry(made, each.job)
        since = self._whole.held_since[each.job.key]
        duration, held = int(job_duration(each.job, self.now)), seconds_since(since, self.now)
        if (duration, held) == (row.duration_seconds, row.held_seconds):
            return entry
        shown = structs.replace(row, duration_seconds=duration, held_seconds=held)
        return Entry(shown, entry.text, entry.answers)

    @cached_property
    def jobs_sentence(self) -> Sentence:
        return _own(super().jobs_sentence)

    @cached_property
    def holders_sentence(self) -> Sentence:
        return _own(super().holders_sentence)

    @cached_property
    def explainer(self) -> Explainer:
        return _RestrictedExplainer(
            self.share_why, self.rooms, self.shares_of_gpus, self.planned_quota
        )

    def job_with_events(
        self, each: JobInstances, detail: JobDetail, events: Collection[Event]
    ) -> JobDetail:
        own = [event for event in events if event.about_namespace in self._reach.namespaces]
        return super().job_with_events(each, detail, restricted_events(own))

    def serving_jobs(self, objects: ServingObjects) -> RowSet[ServingJob]:
        return super().serving_jobs(
            structs.replace(
                objects,
                workloads=self._own_rows(objects.workloads),
                services=self._own_rows(objects.services),
            )
        )

    def serving_sentence(self, rows: Sequence[ServingJob]) -> Sentence:
        return _own(super().serving_sentence(rows))

    def _own_rows(self, rows: Iterable[_Placed]) -> tuple[_Placed, ...]:
        return tuple(row for row in rows if row.namespace in self._reach.namespaces)

    def search(self, text: str, most: int) -> SearchAnswer:
        """In the index of the whole, which is too large to be made for each researcher."""
        found = search(
            self._whole.search_index, self.job_by_pod, text, most, self._reach.namespaces
        )
        return self._search_answer(found, text)

    # Quota: own leaves and the nodes above them, from the whole account and plan.

    @property
    def quota_state(self) -> QuotaState:
        """The whole account: what could start depends on it."""
        return self._whole.quota_state

    @property
    def borrowable(self) -> Mapping[str, Amounts]:
        return self._whole.borrowable

    @property
    def charged_pods(self) -> list[QuotaPod]:
        own = self._reach.namespaces
        return [pod for pod in self._whole.charged_pods if pod.namespace in own]

    def shown_waiting(self, waiting: QuotaWaiting) -> QuotaWaiting:
        return restricted_waiting(waiting, self._reach)

    @cached_property
    def planned_quota(self) -> PlannedQuota:
        if not self.snapshot.quota:
            return PlannedQuota(None)
        whole, reach = self._whole, self._reach
        return PlannedQuota(lambda: restricted_plan(whole.quota_plan, reach))

    @property
    def quota_resources(self) -> tuple[str, ...]:
        return self._whole.quota_resources if self.snapshot.quota else ()

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        names = frozenset(node.name for node in self._visible.values())
        return tuple(restricted_violations(self._whole.violations, names))

    @cached_property
    def _visible(self) -> dict[str, QuotaNode]:
        """Path -> own leaf with own namespaces alone, or a node above one."""
        root = self.snapshot.quota
        return {node.path: node for node in root.walk()} if root else {}

    @cached_property
    def quota(self) -> RowSet[QuotaRow]:
        rows = [
            self._own_leaf(entry.row)
            for entry in self._whole.quota.entries
            if entry.row.path in self._visible
        ]
        leaves = [row for row in rows if row.is_leaf]
        rows = [row if row.is_leaf else _above(row, leaves) for row in rows]
        facets = {
            "path": choices(row.path for row in rows),
            "name": choices(row.name for row in rows),
            "resource": list(self.quota_resources),
        }
        return RowSet(QuotaRow, [quota_entry(row) for row in rows], facets)

    def _own_leaf(self, row: QuotaRow) -> QuotaRow:
        names = self._visible[row.path].namespaces
        is_whole = len(names) == len(row.namespaces)
        return structs.replace(
            row,
            namespaces=list(names),
            by_namespace=[each for each in row.by_namespace if each.namespace in names],
            by_user=row.by_user if is_whole else [],
        )

    @cached_property
    def quota_sentence(self) -> Sentence:
        return _own(super().quota_sentence)

    @cached_property
    def quota_tree(self) -> QuotaTreePage:
        whole = self._whole.quota_tree
        rows = [row for row in whole.items if row.path in self._visible]
        leaves = [row for row in rows if row.is_leaf]
        return structs.replace(
            whole,
            generated_at=self.generated_at,
            stale=self.is_stale("quota"),
            version=self.version("quota"),
            warnings=self.warnings("quota"),
            sentence=self.quota_sentence,
            resources=list(self.quota_resources),
            items=[
                structs.replace(row, namespaces=list(self._visible[row.path].namespaces))
                if row.is_leaf
                else _above_in_tree(row, leaves)
                for row in rows
            ],
            faults=fault_rows(self.violations),
            tree_version="",
            managed=[],
        )


class _RestrictedExplainer(Explainer):
    """Its clauses and messages are those of the restricted plan."""

    def explain(self, wait: Wait, pods: Sequence[Pod]) -> Waiting:
        found = super().explain(wait, pods)
        if wait.code == "suspended-for" and wait.values.get("claimant") == SOME_TEAM:
            return structs.replace(
                found, sentence=Sentence("wait-suspended-for-others", {}, wait.message)
            )
        if wait.code or not is_quota_reason(wait.reason):
            return found
        if found.clauses:
            message = SEPARATOR.join(each.text for each in found.clauses)
            return structs.replace(found, message=message)
        words = Sentence("wait-quota", {"reason": wait.reason}, f"{wait.message}.")
        return structs.replace(found, sentence=words)


class _Late(Sequence[Entry[ListedGpu]]):
    """A long list that is made when a client looks at it."""

    def __init__(self, made: Callable[[], Sequence[Entry[ListedGpu]]]) -> None:
        self._made = made

    @cached_property
    def _rows(self) -> Sequence[Entry[ListedGpu]]:
        return self._made()

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def __iter__(self) -> Iterator[Entry[ListedGpu]]:
        return iter(self._rows)


class _NamedGpus(RowSet[ListedGpu], frozen=True, kw_only=True):
    """`shared`, with the names of own holders: they matter to what `q` finds, and to what is shown
    of the cards on a page, but to no filter and to no order.
    """

    shared: RowSet[ListedGpu]
    named: Callable[[ListedGpu], ListedGpu]

    def found(self, query: ListQuery) -> Sequence[ListedGpu]:
        if query.q:
            return RowSet.found(self, query)
        return CompletedRows(self.shared.found(query), self.named)

    def has_found(self, query: ListQuery) -> bool:
        return self.shared.has_found(query)


def _by(rows: Iterable[_Row], key: Callable[[_Row], str]) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _own(sentence: Sentence) -> Sentence:
    """The same, but "there is none" of the own namespaces, not of the cluster."""
    text = _SENTENCES_OF_NONE.get(sentence.code)
    return Sentence(f"{sentence.code}-own", {}, text) if text else sentence


def _above(row: QuotaRow, leaves: Iterable[QuotaRow]) -> QuotaRow:
    below = [
        leaf
        for leaf in leaves
        if leaf.resource == row.resource and leaf.path.startswith(f"{row.path}.")
    ]
    sums = {name: sum(getattr(leaf, name) for leaf in below) for name in _OWN_FIGURES}
    return structs.replace(row, namespaces=[], by_namespace=[], by_user=[], **sums)


def _above_in_tree(row: QuotaTreeRow, leaves: Iterable[QuotaTreeRow]) -> QuotaTreeRow:
    below = [leaf for leaf in leaves if leaf.path.startswith(f"{row.path}.")]
    bounds = [
        structs.replace(each, waiting_pods=sum(leaf.bounds[place].waiting_pods for leaf in below))
        for place, each in enumerate(row.bounds)
    ]
    return structs.replace(
        row,
        namespaces=[],
        attributes={},
        bounds=bounds,
        waiting_pods=sum(leaf.waiting_pods for leaf in below),
    )
