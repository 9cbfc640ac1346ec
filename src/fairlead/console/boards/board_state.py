"""The cluster at one instant, as pages show it: a snapshot and all that is derived from it.

Everything is derived on demand, and at most once per board state. Routes ask a board state and
never a rule; a board state is never changed, the next one replaces it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from fairlead.console.boards.attention import attention_lines, hardware_lines, is_troubled
from fairlead.console.boards.gpu_map_cells import KnownNode, map_parts
from fairlead.console.boards.gpu_pools import gpu_pools
from fairlead.console.boards.gpus_rows import listed_gpus
from fairlead.console.boards.holders import holder_rows, holders_sentence
from fairlead.console.boards.idle_cards import IdleHours, Idleness
from fairlead.console.boards.job_detail import instance_rows, job_events
from fairlead.console.boards.job_life import job_life
from fairlead.console.boards.jobs_rows import (
    Explainer,
    job_row,
    job_rows,
    jobs_sentence,
    paths_by_namespace,
    waits_for_room,
    waits_since,
)
from fairlead.console.boards.mine import (
    WaitingLines,
    WorkChoices,
    mine_sentence,
    my_hold,
    my_leaves,
    my_starts,
    my_use,
    my_waits,
    offers_of,
    places_of_work,
)
from fairlead.console.boards.node_detail import (
    condition_rows,
    gpu_rows,
    is_about_node,
    node_pods,
    sharing,
    taint_rows,
)
from fairlead.console.boards.nodes_rows import node_row, node_rows, nodes_sentence
from fairlead.console.boards.notices import is_stale, series_missing, warnings_of
from fairlead.console.boards.overview import (
    cluster_sentence,
    faulty_gpus,
    gpu_counts,
    gpu_memory,
    gpu_node_counts,
    held_by_namespace,
    job_counts,
    recent_warnings,
    starved_leaves,
    top_consumers,
)
from fairlead.console.boards.quota.tree_edit import version_of
from fairlead.console.boards.quota.tree_rows import tree_rows
from fairlead.console.boards.quota.usage_rows import (
    WaitingJobs,
    invalid_sentence,
    quota_rows,
    quota_sentence,
)
from fairlead.console.boards.quota.waiting import (
    PlannedQuota,
    fault_rows,
    waiting_rows,
    waiting_sentence,
    waiting_unit,
)
from fairlead.console.boards.quota.what_if import (
    SHOWN_MAX,
    admitted_pods,
    changed_tree,
    effects_sentence,
    evicted_pods,
    refused_sentence,
    settled_leaves,
)
from fairlead.console.boards.rows import RowSet
from fairlead.console.boards.search import Search, SearchIndex, search, searched
from fairlead.console.boards.serving.rows import serving_rows, serving_sentence
from fairlead.console.pages.cluster import AttentionLine, FaultyGpu, Overview, Pool
from fairlead.console.pages.envelope import Sentence, Warning, exact_timestamp, neat, percent
from fairlead.console.pages.events import event_rows
from fairlead.console.pages.gpu_map import GpuMap
from fairlead.console.pages.gpus import ListedGpu
from fairlead.console.pages.holders import Holder
from fairlead.console.pages.jobs import JobDetail, JobRow
from fairlead.console.pages.mine import MyWork
from fairlead.console.pages.nodes import NodeDetail, NodeRow
from fairlead.console.pages.quota import QuotaRow, TreeFault, WaitingUnit
from fairlead.console.pages.quota_tree import BoundsChange, QuotaEffects, QuotaTreePage, QuotaWhatIf
from fairlead.console.pages.search import SearchAnswer
from fairlead.console.pages.serving.jobs import ServingJob
from fairlead.kinds.instances import all_instances
from fairlead.kinds.parts.kind import source_of
from fairlead.kinds.registry import KINDS
from fairlead.model.event import Event
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.jobs.serving import ServingObjects
from fairlead.model.keys import QUOTA_GATE
from fairlead.model.occupancy import GpuTotals, NodeOccupancy
from fairlead.model.pod import Pod
from fairlead.model.quota.plan import QuotaPlan, QuotaWaiting
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaTree, Violation
from fairlead.model.quota.use import QuotaUse
from fairlead.model.resources import Amounts, is_gpu_resource
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import ClusterOccupancy, cluster_occupancy
from fairlead.rules.nodes.room import NodeRooms
from fairlead.rules.nodes.status import NO_GPU, is_silent
from fairlead.rules.pods.devices import has_gpu
from fairlead.rules.quota.managed import DEFAULT_RESOURCES, managed_resources, own_namespaces
from fairlead.rules.quota.node_use import is_lost
from fairlead.rules.quota.plan import plan_quota
from fairlead.rules.quota.sight import quota_state
from fairlead.rules.quota.usage import borrowable, usage_of
from fairlead.rules.quota.validate import TREE_NAME, TREE_NAMESPACE, validate
from fairlead.rules.quota.what_if import settle
from fairlead.rules.sharing.ledger import ledger_of
from fairlead.rules.sharing.startable import NodeOffer
from fairlead.rules.sharing.why import ShareWhy


class BoardState:
    """`snapshot` with its GPU readings, at `now` of the cluster's clock, which runs at `speed`.

    `versions`: of each topic in it. `idle_hours`: from the series.
    """

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        now: float,
        speed: float = 1.0,
        versions: Mapping[str, str] | None = None,
        idle_hours: IdleHours | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.now = now
        self.speed = speed
        self.versions = versions or {}
        self._idle_hours = idle_hours or IdleHours()

    def version(self, page: str) -> str:
        """The version of the page's topic, the same number that hints of changes carry.

        A board state outside a server has none: "0".
        """
        return self.versions.get(page, "0")

    @property
    def generated_at(self) -> str:
        return exact_timestamp(self.now)

    def is_stale(self, page: str) -> bool:
        return is_stale(self.snapshot, page, self.now, self.speed)

    def warnings(self, page: str, job_types: Collection[str] = ()) -> list[Warning]:
        """`job_types`: those that were asked for by name. That another is not served is no news."""
        missing = self._missing_kinds
        unasked = set(missing.values()) - {
            missing[type_] for type_ in job_types if type_ in missing
        }
        warnings = warnings_of(self.snapshot.main_sources, page, unasked)
        silent = self.series_missing if page not in ("quota", "serving") else None
        return [*warnings, silent] if silent else warnings

    @cached_property
    def series_missing(self) -> Warning | None:
        return series_missing(self.occupancy.nodes)

    @cached_property
    def occupancy(self) -> ClusterOccupancy:
        return cluster_occupancy(self.snapshot)

    @cached_property
    def totals(self) -> GpuTotals:
        return self.occupancy.totals()

    @cached_property
    def idle(self) -> Idleness:
        return Idleness(self.occupancy.nodes, self.now, self._idle_hours)

    @cached_property
    def silent_nodes(self) -> frozenset[str]:
        """Names of unreachable nodes: what runs there is unknown."""
        return frozenset(node.name for node in self.snapshot.nodes if is_silent(node))

    @cached_property
    def instances(self) -> tuple[JobInstances, ...]:
        return all_instances(self.snapshot)

    @cached_property
    def job_by_pod(self) -> dict[str, str]:
        return {
            pod.key: f"{each.job.type}/{each.job.name}"
            for each in self.instances
            for pod in each.pods
        }

    @cached_property
    def _missing_kinds(self) -> dict[str, str]:
        """Types of jobs that this cluster does not serve -> their source."""
        sources = self.snapshot.main_sources
        named = ((kind.TYPE, source_of(kind)) for kind in KINDS)
        return {
            type_: name for type_, name in named if name in sources and sources[name].is_missing
        }

    def serving_jobs(self, objects: ServingObjects) -> RowSet[ServingJob]:
        """The serving jobs that these objects and the cluster's pods make."""
        return serving_rows(
            objects, self.snapshot, self.occupancy, self.now, self.explainer, self.silent_nodes
        )

    def serving_sentence(self, rows: Sequence[ServingJob]) -> Sentence:
        return serving_sentence(rows)

    @property
    def missing_types(self) -> list[str]:
        """Types of jobs that this cluster does not serve."""
        return sorted(self._missing_kinds)

    @cached_property
    def _job_by_kind(self) -> dict[tuple[str, str, str], str]:
        return {
            (each.job.namespace, each.job.kind, each.job.name): f"{each.job.type}/{each.job.name}"
            for each in self.instances
        }

    def _job_of(self, event: Event) -> str:
        """The job that the event is about, itself or one of its pods; "" = none."""
        if event.object_kind == "Pod":
            return self.job_by_pod.get(f"{event.about_namespace}/{event.object_name}", "")
        return self._job_by_kind.get(
            (event.about_namespace, event.object_kind, event.object_name), ""
        )

    @cached_property
    def explainer(self) -> Explainer:
        shares = self.shares_of_gpus
        return Explainer(self.share_why, self.rooms, shares, self.planned_quota)

    @cached_property
    def share_why(self) -> ShareWhy:
        snapshot = self.snapshot  # not `self`: a board state in a circle would outlive many others
        return ShareWhy(lambda: ledger_of(snapshot))

    @property
    def shares_of_gpus(self) -> dict[tuple[str, str], tuple[str, float, float]]:
        """Namespace and GPU resource -> its leaf's name, what it uses and is guaranteed."""
        leaves = [row for row in self.quota_list if row.is_leaf and is_gpu_resource(row.resource)]
        return {
            (namespace, row.resource): (row.name, row.used, row.min)
            for row in leaves
            for namespace in row.namespaces
        }

    @cached_property
    def rooms(self) -> NodeRooms:
        return NodeRooms(self.snapshot)

    @cached_property
    def nodes(self) -> RowSet[NodeRow]:
        return node_rows(self.snapshot, self.occupancy)

    @cached_property
    def nodes_sentence(self) -> Sentence:
        return nodes_sentence(self.totals)

    @cached_property
    def jobs(self) -> RowSet[JobRow]:
        return job_rows(
            self.instances,
            self.occupancy,
            self.snapshot.quota,
            self.now,
            self.explainer,
            self.silent_nodes,
        )

    @cached_property
    def job_list(self) -> list[JobRow]:
        return [entry.row for entry in self.jobs.entries]

    @cached_property
    def _job_waits(self) -> list[tuple[JobRow, float | None]]:
        """Jobs that wait, and since when."""
        of = {each.job.key: each for each in self.instances}
        return [
            (row, waits_since(of[row.namespace, row.type, row.name]))
            for row in self.job_list
            if row.waiting is not None
        ]

    @cached_property
    def jobs_sentence(self) -> Sentence:
        return jobs_sentence(self.job_list, self.now, self.instances)

    @cached_property
    def quota_resources(self) -> tuple[str, ...]:
        """The five of the Quota board always, others as far as the tree names them;
        none without a tree.
        """
        root = self.snapshot.quota
        named = managed_resources(root) if root else ()
        return (
            (*DEFAULT_RESOURCES, *(name for name in named if name not in DEFAULT_RESOURCES))
            if root
            else ()
        )

    @cached_property
    def quota(self) -> RowSet[QuotaRow]:
        return quota_rows(self.quota_uses, self.quota_resources, self._waiting_jobs)

    @cached_property
    def quota_uses(self) -> tuple[QuotaUse, ...]:
        return usage_of(self.quota_state) if self.snapshot.quota else ()

    @cached_property
    def borrowable(self) -> Mapping[str, Amounts]:
        return borrowable(self.quota_state) if self.snapshot.quota else {}

    @cached_property
    def quota_state(self) -> QuotaState:
        state = quota_state(self.snapshot, self.now)
        tree = self._quota_tree
        return msgspec.structs.replace(state, violations=self._violations_of(tree, tree, state))

    @cached_property
    def _quota_tree(self) -> QuotaTree | None:
        root = self.snapshot.quota
        return self.snapshot.quota_tree or (
            QuotaTree(TREE_NAME, TREE_NAMESPACE, root) if root else None
        )

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        return self.quota_state.violations

    def _violations_of(
        self, tree: QuotaTree | None, old: QuotaTree | None, state: QuotaState
    ) -> tuple[Violation, ...]:
        seen = self.snapshot
        own = own_namespaces(seen.namespaces)
        names = seen.namespace_names
        return validate(tree, old, names, seen.pods, state=state, own=own) if tree else ()

    @cached_property
    def quota_faults(self) -> list[TreeFault]:
        """Faults of the tree for which it is not written or not obeyed; without warnings."""
        return fault_rows(each for each in self.violations if each.is_error)

    @cached_property
    def quota_list(self) -> list[QuotaRow]:
        return [entry.row for entry in self.quota.entries]

    @cached_property
    def quota_sentence(self) -> Sentence:
        stopping = next((fault for fault in self.quota_faults if fault.stops), None)
        return invalid_sentence(stopping) if stopping else quota_sentence(self.quota_list)

    @cached_property
    def waiting(self) -> RowSet[WaitingUnit]:
        """Who waits for quota, and why:
        in the sentences that the controller writes, from the same plan.
        """
        return waiting_rows(self.quota_plan, self.snapshot.quota)

    @cached_property
    def quota_plan(self) -> QuotaPlan:
        return self.planned_quota.plan

    @cached_property
    def planned_quota(self) -> PlannedQuota:
        if not self.snapshot.quota:
            return PlannedQuota(None)
        state = self.quota_state
        return PlannedQuota(lambda: plan_quota(state))

    @cached_property
    def waiting_sentence(self) -> Sentence:
        return waiting_sentence([entry.row for entry in self.waiting.entries])

    @cached_property
    def quota_tree(self) -> QuotaTreePage:
        return QuotaTreePage(
            generated_at=self.generated_at,
            stale=self.is_stale("quota"),
            version=self.version("quota"),
            warnings=self.warnings("quota"),
            sentence=self.quota_sentence,
            resources=list(self.quota_resources),
            items=tree_rows(self.quota_uses, self.quota_resources),
            faults=fault_rows(self.violations),
            tree_version=version_of(self._quota_tree),
            managed=sorted(root.resources) if (root := self.snapshot.quota) else [],
        )

    def tree_page(self, tree: QuotaTree) -> QuotaTreePage:
        """The same page of a tree that this board state has not seen yet."""
        root = tree.root
        if root is None:
            return msgspec.structs.replace(self.quota_tree, tree_version=version_of(tree))
        resources = tuple(dict.fromkeys((*DEFAULT_RESOURCES, *managed_resources(root))))
        uses = usage_of(msgspec.structs.replace(self.quota_state, tree=root))
        return msgspec.structs.replace(
            self.quota_tree,
            resources=list(resources),
            items=tree_rows(uses, resources),
            faults=fault_rows(self._violations_of(tree, tree, self.quota_state)),
            tree_version=version_of(tree),
            managed=sorted(root.resources),
        )

    def what_if(self, asked: QuotaWhatIf) -> QuotaEffects:
        """Raises UserError for a node that the tree does not have,
        and where plans do not come to an end.
        """
        now, tree = self._quota_tree, self.changed_tree(asked.changes)
        state = self.state_under(tree)
        own = own_namespaces(self.snapshot.namespaces)
        return self.effects_of(tree, validate(tree, now, state=state, own=own))

    def changed_tree(self, changes: Iterable[BoundsChange]) -> QuotaTree:
        """Raises UserError for a node that the tree does not have."""
        return changed_tree(self._quota_tree or QuotaTree(TREE_NAME, TREE_NAMESPACE), changes)

    def state_under(self, tree: QuotaTree) -> QuotaState | None:
        """The state under another tree; None if that is malformed."""
        root = tree.sound_root
        return msgspec.structs.replace(self.quota_state, tree=root) if root is not None else None

    def effects_of(self, tree: QuotaTree, violations: Sequence[Violation]) -> QuotaEffects:
        """What this tree would do, if its violations do not refuse it.

        Raises UserError where plans do not come to an end.
        """
        faults = fault_rows(violations)
        valid = tree.root is not None and not any(fault.level == "error" for fault in faults)
        envelope: dict[str, Any] = {
            "generated_at": self.generated_at,
            "stale": self.is_stale("quota"),
            "version": self.version("quota"),
            "warnings": self.warnings("quota"),
            "valid": valid,
            "faults": faults,
        }
        if tree.root is None or not valid:
            return QuotaEffects(**envelope, sentence=refused_sentence(faults))
        before = msgspec.structs.replace(
            self.quota_state, tree=tree.root, settings=tree.settings, violations=()
        )
        settled = settle(before)
        paths = {leaf.name: leaf.path for leaf in tree.root.leaves()}
        return QuotaEffects(
            **envelope,
            sentence=effects_sentence(len(settled.admitted), len(settled.evicted)),
            admitted=admitted_pods(settled.admitted),
            admitted_count=len(settled.admitted),
            evicted=evicted_pods(settled.evicted),
            evicted_count=len(settled.evicted),
            leaves=settled_leaves(before, settled),
            waiting=[waiting_unit(each, paths) for each in settled.plan.waiting[:SHOWN_MAX]],
            waiting_count=len(settled.plan.waiting),
            plans=settled.plans,
        )

    @cached_property
    def _waiting_jobs(self) -> WaitingJobs:
        """Those that wait, or of which a pod waits for quota;
        those their owner suspended left out.
        """
        count: Counter[tuple[str, str]] = Counter()
        for each in self.instances:
            asked = [pod.requests for pod in each.pods if QUOTA_GATE in pod.gates]
            if waits_for_room(each):
                asked += [
                    {**role.limits, **role.requests} for role in each.job.roles if role.replicas
                ]
            count.update(
                {
                    (each.job.namespace, name)
                    for amounts in asked
                    for name, amount in amounts.items()
                    if amount
                }
            )
        return count

    @cached_property
    def overview(self) -> Overview:
        totals, idle = self.totals, self.idle
        starved, leaf_of = starved_leaves(self.quota_list), paths_by_namespace(self.snapshot.quota)
        return Overview(
            generated_at=self.generated_at,
            stale=self.is_stale("overview"),
            version=self.version("overview"),
            warnings=self.warnings("overview"),
            sentence=self.gpus_sentence,
            attention=attention_lines(
                self.snapshot,
                self.troubled_pods,
                self.hardware_lines,
                starved,
                leaf_of,
                self.job_by_pod,
                self._job_waits,
                idle,
                self.now,
            ),
            gpu_nodes=gpu_node_counts(totals),
            gpus=gpu_counts(totals),
            gpu_memory=gpu_memory(totals),
            gpu_util_percent=percent(totals.utilization_ratio),
            gpus_reporting=totals.gpus_reporting,
            jobs=job_counts(self.job_list),
            idle_gpus=neat(idle.gpus),
            pools=self.pools,
            top_consumers=top_consumers(self.held_by_namespace, self.job_list),
            starved_leaves=starved,
            faulty_gpus=self.faulty_gpus,
            recent_warnings=recent_warnings(self.snapshot.events, self.now, self._job_of),
        )

    @cached_property
    def gpu_pods(self) -> list[Pod]:
        return [pod for pod in self.snapshot.pods if has_gpu(pod)]

    @cached_property
    def troubled_pods(self) -> list[Pod]:
        return [pod for pod in self.gpu_pods if is_troubled(pod)]

    @cached_property
    def held_by_namespace(self) -> Mapping[str, Sequence[float]]:
        return held_by_namespace(self.gpu_pods, self.occupancy)

    @cached_property
    def hardware_lines(self) -> tuple[AttentionLine, ...]:
        return hardware_lines(self.occupancy.nodes)

    @cached_property
    def pools(self) -> list[Pool]:
        return gpu_pools(self.snapshot, self.occupancy)

    @cached_property
    def faulty_gpus(self) -> list[FaultyGpu]:
        return faulty_gpus(self.occupancy)

    @cached_property
    def gpus(self) -> RowSet[ListedGpu]:
        return listed_gpus(self.occupancy, self.now)

    @cached_property
    def holders(self) -> RowSet[Holder]:
        leaves = paths_by_namespace(self.snapshot.quota)
        owners = {
            pod.key: (each.job.kind, each.job.name) for each in self.instances for pod in each.pods
        }
        return holder_rows(
            self.snapshot,
            self.occupancy,
            leaves,
            self.job_by_pod,
            self._user_of_job,
            owners,
            self.silent_nodes,
            self.idle,
        )

    @cached_property
    def holders_sentence(self) -> Sentence:
        return holders_sentence([entry.row for entry in self.holders.entries])

    @cached_property
    def _user_of_job(self) -> dict[tuple[str, str], str]:
        return {(row.namespace, f"{row.type}/{row.name}"): row.user for row in self.job_list}

    @cached_property
    def places(self) -> WorkChoices:
        return places_of_work(self.snapshot, self.job_list)

    @cached_property
    def _lines(self) -> WaitingLines:
        return WaitingLines(self.snapshot, self.quota_plan)

    @cached_property
    def offers(self) -> list[NodeOffer]:
        return offers_of(self.snapshot, self.occupancy, self.rooms)

    @property
    def charged_pods(self) -> list[QuotaPod]:
        """Those that count as use of quota."""
        quota = self.quota_state if self.snapshot.quota else None
        if quota is None:
            return []
        return [pod for pod in quota.pods if not is_lost(pod, quota.now, quota.settings)]

    def shown_waiting(self, waiting: QuotaWaiting) -> QuotaWaiting:
        """What the reader of this board state may see of it."""
        return waiting

    def my_work(self, user: str, namespace: str, own: Collection[str] = ()) -> MyWork:
        """What one user or namespace has, may use, could start and waits for; both "": only the
        choices. `own`: the namespaces of the user's groups.
        """
        me = self.places.me(user, namespace, own)
        pods = {
            (each.job.namespace, f"{each.job.type}/{each.job.name}"): each.pods
            for each in self.instances
        }
        quota = self.quota_state if self.snapshot.quota else None
        leaf_of = paths_by_namespace(self.snapshot.quota)
        used = my_use(me, self.charged_pods, leaf_of, self.job_by_pod, self._user_of_job)
        held = my_hold(me, (entry.row for entry in self.holders.entries), self.job_list)
        waits = my_waits(
            me,
            self.snapshot,
            self._job_waits,
            pods,
            self.job_by_pod,
            self._user_of_job,
            self.explainer,
            self._lines,
        )
        return MyWork(
            generated_at=self.generated_at,
            stale=self.is_stale("jobs"),
            version=self.version("jobs"),
            warnings=self.warnings("jobs"),
            user=me.user,
            namespace=me.namespace,
            users=self.places.users,
            all_namespaces=self.places.namespaces,
            namespaces=list(me.namespaces),
            sentence=mine_sentence(me, held, waits, self.places.users),
            held=held,
            leaves=my_leaves(me, self.quota_list, used, self.borrowable),
            starts=my_starts(me, self.offers, quota, self.occupancy, leaf_of, self.shown_waiting),
            waits=waits,
        )

    @cached_property
    def gpus_sentence(self) -> Sentence:
        return cluster_sentence(self.totals, self.idle.gpus)

    @cached_property
    def search_index(self) -> SearchIndex:
        return searched(self.snapshot, self.occupancy.nodes)

    def search(self, text: str, most: int) -> SearchAnswer:
        return self._search_answer(search(self.search_index, self.job_by_pod, text, most), text)

    def _search_answer(self, found: Search, text: str) -> SearchAnswer:
        left_out = found.total - len(found.hits)
        warnings = warnings_of(self.snapshot.main_sources, "overview")
        envelope = (
            self.generated_at,
            self.is_stale("overview"),
            self.version("overview"),
            warnings,
        )
        return SearchAnswer(*envelope, text, found.total, left_out, found.hits)

    @cached_property
    def gpu_map(self) -> GpuMap:
        known = self.known_nodes("gpu_map")
        parts = map_parts(self.snapshot, self.occupancy, self.now, known=known)
        return GpuMap(
            generated_at=self.generated_at,
            stale=self.is_stale("gpus"),
            version=self.version("gpus"),
            warnings=self.warnings("gpus"),
            teams=parts.teams,
            models=parts.models,
            modes=parts.modes,
            statuses=parts.statuses,
            nodes=parts.nodes,
        )

    def known_nodes(self, part: str) -> KnownNode | None:
        """Nodes of a map (`part`) that need not be made again."""
        return None

    def node(self, name: str) -> NodeDetail | None:
        """One node, or None when there is no such node."""
        node = self.snapshot.node_by_name.get(name)
        if node is None:
            return None
        occupied = self.occupancy.by_node.get(name) or NodeOccupancy(node, NO_GPU)
        return NodeDetail(
            generated_at=self.generated_at,
            stale=self.is_stale("nodes"),
            version=self.version("nodes"),
            warnings=self.warnings("nodes"),
            node=node_row(node, occupied, self.snapshot),
            sharing=sharing(occupied),
            conditions=condition_rows(node),
            taints=taint_rows(node),
            labels=dict(sorted(node.labels.items())),
            kubelet_version=node.kubelet_version,
            runtime_version=node.runtime_version,
            os_image=node.os_image,
            gpus=gpu_rows(occupied, self.job_by_pod, self.idle),
            pods=node_pods(occupied, self.snapshot, self.occupancy, self.job_by_pod),
            events=event_rows(self.snapshot.events, is_about_node(node)),
        )

    def job_instances(self, namespace: str, type_: str, name: str) -> JobInstances | None:
        return next(
            (each for each in self.instances if each.job.key == (namespace, type_, name)), None
        )

    def job(self, namespace: str, type_: str, name: str) -> JobDetail | None:
        """One job, or None when there is no such job."""
        each = self.job_instances(namespace, type_, name)
        if each is None:
            return None
        return JobDetail(
            generated_at=self.generated_at,
            stale=self.is_stale("jobs"),
            version=self.version("jobs"),
            warnings=self.warnings("jobs"),
            job=job_row(
                each,
                self.occupancy,
                paths_by_namespace(self.snapshot.quota),
                self.now,
                self.explainer,
                self.silent_nodes,
            ),
            life=job_life(each, self.snapshot.events, self.now),
            instances=instance_rows(
                each, self.occupancy, self.now, self.explainer, self.silent_nodes
            ),
            events=job_events(each, self.snapshot.events),
        )

    def job_with_events(
        self, each: JobInstances, detail: JobDetail, events: Collection[Event]
    ) -> JobDetail:
        """The same with these events, beside those that are followed."""
        known = {event.uid for event in events}
        merged = [
            *events,
            *(event for event in self.snapshot.events if not event.uid or event.uid not in known),
        ]
        return msgspec.structs.replace(
            detail, life=job_life(each, merged, self.now), events=job_events(each, merged)
        )
