"""What quota knows of the cluster: the API server's lists and watches, object by object.

A pod is kept twice: as a lean row, and as quota sees it (`QuotaPod`), which follows from its owners
and budgets, too, and is made again when those change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec.structs import replace

from fairlead.model.changes import (
    KIND_BUDGETS,
    KIND_NAMESPACES,
    KIND_NODES,
    KIND_PODS,
    KIND_QUOTA_TREES,
    Changes,
)
from fairlead.model.keys import (
    ANNOTATION_LOWERED,
    ANNOTATION_PARALLELISM,
    ANNOTATION_SUSPENDED_FOR,
    ANNOTATION_SUSPENDED_PRIORITY,
    QUOTA_GATE,
)
from fairlead.model.moment import Moment
from fairlead.model.node import Node
from fairlead.model.people.rows import KIND_GROUPS, GroupStatus, UserGroup
from fairlead.model.pod import Pod, without_report
from fairlead.model.quota.rows import Budget, Namespace, Workload
from fairlead.model.quota.state import NodeRoom, QuotaPod
from fairlead.model.quota.tree import QuotaSettings, QuotaTree
from fairlead.rules.nodes.status import is_ready
from fairlead.rules.quota.jobs.removal import in_removal_order, surplus_in
from fairlead.rules.quota.managed import caps_of
from fairlead.rules.quota.room import holes_of, node_room, taken_by
from fairlead.rules.quota.sight import PodContext, bound_at, is_job_pod, quota_pod
from fairlead.rules.quota.validate import TREE_NAME, TREE_NAMESPACE

Row = TypeVar("Row")
POD_GROUP: Final = "PodGroup"


class _Kept(Protocol):
    """The rows of one kind."""

    unreadable: frozenset[str]

    def put(self, uid: str, row: Any) -> bool:
        """Whether that changed anything that quota sees."""
        ...

    def drop(self, uid: str) -> bool: ...

    def replace(self, rows: dict[str, Any]) -> None: ...


class QuotaFeed:
    """Observes all kinds that quota follows; `workload_kinds` by their names in `Changes`.

    `is_rebuilt`: each kind was listed since the last `rebuild`.

    By uid: `known` pods; `waiting`: the place of the gate among the gates of those that have it;
    `restless`: those that stop, or are admitted and on no node. `fallen`: pods of gangs that ended
    without an eviction. `pods_of` counts pods by owner. `version` grows with every change that
    quota can see, `listings` with every `rebuild`. What is `touched` has changed since the last
    plan, which takes it away. `stale`: jobs by uid with marks of this controller that do not hold
    any more. `scheduled_at`: when any pod of the cluster came to a node, last.
    """

    def __init__(self, workload_kinds: Collection[str] = ()) -> None:
        self.settings = QuotaSettings()
        self.version = 0
        self.listings = 0
        self.is_rebuilt = False
        self.known: dict[str, QuotaPod] = {}
        self.waiting: dict[str, int] = {}
        self.restless: set[str] = set()
        self.pods_of: Counter[str] = Counter()
        self.rows: dict[str, Pod] = {}
        self.sight = PodContext(self.settings)
        self.fallen: list[QuotaPod] = []
        self.touched_nodes: set[str] = set()
        self.touched_pods: set[str] = set()
        self.touched_workloads: set[str] = set()
        self.stale: dict[str, tuple[str, ...]] = {}
        self.scheduled_at: Moment = 0.0
        self._of_job: defaultdict[str, set[str]] = defaultdict(set)
        self._surplus_of: dict[str, set[str]] = {}
        self._doubted_jobs: set[str] = set()
        self._in_namespace: defaultdict[str, set[str]] = defaultdict(set)
        self._on_node: defaultdict[str, set[str]] = defaultdict(set)
        self._rooms: dict[str, NodeRoom] = {}
        self._room_list: tuple[NodeRoom, ...] = ()
        self._doubted_nodes: set[str] = set()
        self._leaf_spaces: frozenset[str] = frozenset()
        self._doubted_spaces: set[str] = set()
        self._doubted_owners: dict[str, set[str]] = {}
        self.nodes = _Nodes(self)
        self.trees = _Trees(self)
        self.groups = _Groups(self)
        self._capped: tuple[QuotaTree, int, QuotaTree] | None = None
        self.namespaces: _Rows[Namespace] = _Rows(self)
        self._kinds: dict[str, _Kept] = {
            KIND_PODS: _Pods(self),
            KIND_NODES: self.nodes,
            KIND_QUOTA_TREES: self.trees,
            KIND_NAMESPACES: self.namespaces,
            KIND_BUDGETS: _Budgets(self),
            KIND_GROUPS: self.groups,
            **{kind: _Workloads(self) for kind in workload_kinds},
        }
        self._missing: set[str] = set()

    def rebuild(self) -> None:
        """Doubt all that is known, until each kind has been listed again."""
        self.is_rebuilt = False
        self.listings += 1
        self._missing = set(self._kinds)

    def observe(self, changes: Changes[Any]) -> None:
        """Take what the API server reported of one kind.

        ValueError for a kind that quota does not follow.
        """
        kept = self._kinds.get(changes.kind)
        if kept is None:
            raise ValueError(
                f"quota does not follow `{changes.kind}`, only {', '.join(self._kinds)}"
            )
        if changes.is_list:
            kept.unreadable = frozenset(changes.unreadable)
            kept.replace(changes.all_rows())
            self._listed(changes.kind)
            return
        is_news = False
        for uid, row in changes.rows.items():
            if kept.drop(uid) if row is None else kept.put(uid, row):
                is_news = True
        if is_news:
            self.changed()

    def _listed(self, kind: str) -> None:
        if kind in self._missing:
            self._missing.discard(kind)
            self.is_rebuilt = not self._missing
        self.changed()

    def changed(self) -> None:
        self.version += 1

    # --- pods as quota sees them ------------------------------------------------------------------

    def put_pod(self, uid: str, row: Pod) -> bool:
        """Whether that changed anything that quota sees."""
        self.scheduled_at = max(self.scheduled_at, bound_at(row))
        if row.is_finished:
            return self.drop_pod(uid)
        row = without_report(row)
        before = self.rows.get(uid)
        if before == row:
            return False
        self.rows[uid] = row
        self._in_namespace[row.namespace].add(uid)
        if is_job_pod(row) and (owner := row.controller) is not None:
            self._of_job[owner.uid].add(uid)
            self._doubted_jobs.add(owner.uid)
        if row.node and (
            before is None or before.node != row.node or before.containers != row.containers
        ):
            self._on_node[row.node].add(uid)
            self.touched_nodes.add(row.node)
        return self._see(uid, row)

    def drop_pod(self, uid: str) -> bool:
        row = self.rows.pop(uid, None)
        if row is None:
            return False
        self._in_namespace[row.namespace].discard(uid)
        if is_job_pod(row) and (owner := row.controller) is not None:
            self._of_job[owner.uid].discard(uid)
            self._doubted_jobs.add(owner.uid)
        if row.node:
            self._on_node[row.node].discard(uid)
            self.touched_nodes.add(row.node)
        self._know(uid, None)
        return True

    def _see(self, uid: str, row: Pod) -> bool:
        pod = quota_pod(row, self.sight)
        if pod is not None and not pod.is_admitted:
            self.waiting[uid] = row.gates.index(QUOTA_GATE)
        return self._know(uid, pod)

    def _know(self, uid: str, pod: QuotaPod | None) -> bool:
        before = self.known.get(uid)
        if before == pod:
            return False
        self.touched_pods.add(uid)
        if before is not None:
            self.pods_of[before.owner] -= 1
            if not self.pods_of[before.owner]:
                del self.pods_of[before.owner]
            if pod is None and before.gang and before.is_admitted and not before.is_stopping:
                self.fallen.append(before)
        if pod is None:
            del self.known[uid]
        else:
            self.known[uid] = pod
            self.pods_of[pod.owner] += 1
        if pod is None or pod.is_admitted:
            self.waiting.pop(uid, None)
        if pod is not None and (pod.is_stopping or (pod.is_admitted and not pod.node)):
            self.restless.add(uid)
        else:
            self.restless.discard(uid)
        return True

    def doubt_pods_of(self, workload: Workload) -> None:
        """Its pods may look different now; they are looked at again before the next plan."""
        if workload.kind == POD_GROUP:
            self.doubt_namespace(workload.namespace)
        else:
            self._doubted_owners.setdefault(workload.namespace, set()).add(workload.uid)
            self._doubted_jobs.add(workload.uid)

    def doubt_namespace(self, namespace: str) -> None:
        self._doubted_spaces.add(namespace)

    def settle(self) -> None:
        """Look again at pods whose owners or budgets have
        changed, or of whose Job others go now.
        """
        for uid in self._doubted_jobs:
            self._follow_job(uid)
        self._doubted_jobs.clear()
        for space in self._doubted_spaces:
            for uid in self._in_namespace[space]:
                self._see(uid, self.rows[uid])
        for space, owners in self._doubted_owners.items():
            for uid in self._in_namespace[space] if space not in self._doubted_spaces else ():
                row, known = self.rows[uid], self.known.get(uid)
                controller = row.controller
                if (controller is not None and controller.uid in owners) or (
                    known is not None and known.owner in owners
                ):
                    self._see(uid, row)
        self._doubted_spaces.clear()
        self._doubted_owners.clear()

    def active_of(self, job: str) -> list[Pod]:
        """The pods of a batch Job that its controller keeps, the first to be removed first."""
        surplus = self.sight.surplus
        return in_removal_order(
            self.rows[uid] for uid in self._of_job.get(job, ()) if uid not in surplus
        )

    def _follow_job(self, job: str) -> None:
        uids = self._of_job.get(job)
        before = self._surplus_of.pop(job, set())
        found = (
            surplus_in([self.rows[uid] for uid in uids], self.workload_of.get(job)) if uids else []
        )
        now = {pod.uid for pod in found}
        if uids is not None and not uids:
            del self._of_job[job]
        if now:
            self._surplus_of[job] = now
        self.sight.surplus = (self.sight.surplus - before) | now
        for uid in before ^ now:
            if uid in self.rows:
                self._see(uid, self.rows[uid])

    # --- the cluster around them ------------------------------------------------------------------

    def rooms(self, leaf_spaces: frozenset[str], now: float) -> tuple[NodeRoom, ...]:
        """The nodes; what pods ask that quota does not count is taken.

        Looked at are those that changed, and those of which the clock decides whether they count.
        """
        if leaf_spaces != self._leaf_spaces:
            self._leaf_spaces = leaf_spaces
            self.touched_nodes |= {node.name for node in self.nodes.rows.values()}
        looked_at = self.touched_nodes | self._doubted_nodes
        if not looked_at:
            return self._room_list
        nodes = {node.name: node for node in self.nodes.rows.values()}
        for name in looked_at:
            node = nodes.get(name)
            if node is None:
                self._rooms.pop(name, None)
                self._doubted_nodes.discard(name)
                continue
            bound = [self.rows[uid] for uid in self._on_node[name]]
            strange = [
                pod
                for pod in bound
                if pod.namespace not in leaf_spaces or pod.uid not in self.known
            ]
            room = node_room(node, taken_by(strange), holes_of(node, bound), now)
            if self._rooms.get(name) != room:  # who compares rooms by identity need not look
                self._rooms[name] = room
            if is_ready(node):
                self._doubted_nodes.discard(name)
            else:
                self._doubted_nodes.add(name)
        self.touched_nodes = set()
        self._room_list = tuple(self._rooms[name] for name in sorted(self._rooms))
        return self._room_list

    @property
    def workload_of(self) -> dict[str, Workload]:
        return self.sight.workloads

    @property
    def tree(self) -> QuotaTree | None:
        """The one that counts; under another tool's definition there may be others."""
        found = self.trees.rows.values()
        tree = next(
            (tree for tree in found if (tree.namespace, tree.name) == (TREE_NAMESPACE, TREE_NAME)),
            None,
        )
        return None if tree is None else self._with_caps(tree)

    def _with_caps(self, tree: QuotaTree) -> QuotaTree:
        """The tree with the caps of user groups: the same object while neither changes."""
        kept, version = self._capped, self.groups.version
        if kept is None or kept[0] is not tree or kept[1] != version:
            root = tree.root
            capped = root and root.with_user_caps(caps_of(self.groups.rows.values()))
            kept = self._capped = tree, version, replace(tree, root=capped)
        return kept[2]

    def follow_settings(self) -> None:
        """Those of the tree that is there; pods may be other victims by them."""
        settings = self.tree.settings if self.tree else QuotaSettings()
        if settings != self.settings:
            self.settings = self.sight.settings = settings
            for namespace in self._in_namespace:
                self.doubt_namespace(namespace)

    @property
    def unreadable(self) -> int:
        """How many objects could not be read; they count as they were before."""
        return sum(len(each.unreadable) for each in self._kinds.values())


class _Rows(Generic[Row]):
    """The rows of one kind by uid. `version` grows with every change."""

    def __init__(self, feed: QuotaFeed) -> None:
        self._feed = feed
        self.rows: dict[str, Row] = {}
        self.version = 0
        self.unreadable: frozenset[str] = frozenset()

    def replace(self, rows: dict[str, Row]) -> None:
        for key in [key for key in self.rows if key not in rows and key not in self.unreadable]:
            self.drop(key)
        for key, row in rows.items():
            self.put(key, row)

    def put(self, key: str, row: Row) -> bool:
        if self.rows.get(key) == row:
            return False
        self.rows[key] = row
        self.version += 1
        return True

    def drop(self, key: str) -> bool:
        self.version += 1
        return self.rows.pop(key, None) is not None


class _Trees(_Rows[QuotaTree]):
    """The quota tree. Its status is written by this controller, and no news."""

    def put(self, key: str, row: QuotaTree) -> bool:
        is_news = super().put(key, replace(row, status={}, user_use=()))
        self._feed.follow_settings()
        return is_news

    def drop(self, key: str) -> bool:
        is_news = super().drop(key)
        self._feed.follow_settings()
        return is_news


class _Groups(_Rows[UserGroup]):
    """User groups: what a group's caps depend on is news."""

    def put(self, key: str, row: UserGroup) -> bool:
        held = GroupStatus(leaf=row.status.leaf)
        return super().put(key, replace(row, status=held, version="", generation=0))


class _Workloads(_Rows[Workload]):
    """Workloads of one kind: what quota sees of a pod depends on its owners."""

    def put(self, key: str, row: Workload) -> bool:
        row = _without_stale(row, self._feed.stale.pop(row.uid, ()))
        if row.stale:
            self._feed.stale[row.uid] = row.stale
        if self._feed.sight.put(row):
            self._feed.doubt_pods_of(row)
        is_news = super().put(key, row)
        if is_news:
            self._feed.touched_workloads.add(row.uid)
        return is_news

    def drop(self, key: str) -> bool:
        before = self._feed.sight.drop(key)
        self._feed.stale.pop(key, None)
        if before is not None:
            self._feed.doubt_pods_of(before)
            self._feed.touched_workloads.add(before.uid)
        return super().drop(key)


class _Budgets(_Rows[Budget]):
    """PodDisruptionBudgets."""

    def put(self, key: str, row: Budget) -> bool:
        if self._feed.sight.put_budget(row):
            self._feed.doubt_namespace(row.namespace)
        return super().put(key, row)

    def drop(self, key: str) -> bool:
        before = self._feed.sight.drop_budget(key)
        if before is not None:
            self._feed.doubt_namespace(before.namespace)
        return super().drop(key)


class _Nodes(_Rows[Node]):
    """Nodes; heartbeats change nothing."""

    def put(self, key: str, row: Node) -> bool:
        before = self.rows.get(key)
        self.rows[key] = row
        if before is not None and _read_fields(before) == _read_fields(row):
            return False
        self._feed.touched_nodes.add(row.name)
        return True

    def drop(self, key: str) -> bool:
        row = self.rows.pop(key, None)
        if row is not None:
            self._feed.touched_nodes.add(row.name)
        return row is not None


class _Pods:
    """Pods, whose rows the feed keeps. Changes that quota cannot see change nothing."""

    def __init__(self, feed: QuotaFeed) -> None:
        self._feed = feed
        self.unreadable: frozenset[str] = frozenset()

    def replace(self, rows: dict[str, Pod]) -> None:
        for uid in [
            uid for uid in self._feed.rows if uid not in rows and uid not in self.unreadable
        ]:
            self.drop(uid)
        for uid, pod in rows.items():
            self.put(uid, pod)

    def put(self, uid: str, row: Pod) -> bool:
        return self._feed.put_pod(uid, row)

    def drop(self, uid: str) -> bool:
        return self._feed.drop_pod(uid)


def _without_stale(job: Workload, before: Collection[str]) -> Workload:
    """A mark that was seen not to hold does not hold again, though the job may look as if it did by
    now: its owner has suspended it himself, or has written the number that we had written.
    """
    stale = list(job.stale)
    if (
        ANNOTATION_SUSPENDED_FOR in before
        and job.suspended_for
        and ANNOTATION_SUSPENDED_FOR not in stale
    ):
        stale += [ANNOTATION_SUSPENDED_FOR]
        job = replace(job, suspended_for="")
    if ANNOTATION_PARALLELISM in before and job.own_parallelism:
        stale += [ANNOTATION_PARALLELISM, ANNOTATION_LOWERED]
        job = replace(job, own_parallelism=0, held=0)
    if (
        ANNOTATION_SUSPENDED_PRIORITY in before
        and job.priority
        and not job.suspended_for
        and not job.own_parallelism
    ):
        stale += [ANNOTATION_SUSPENDED_PRIORITY]
    return replace(job, stale=tuple(dict.fromkeys(stale)))


def _read_fields(node: Node) -> tuple[object, ...]:
    """The parts of a node that quota reads; most changes are heartbeats."""
    conditions = tuple(
        (each.type, each.status, each.at) for each in node.conditions if each.type == "Ready"
    )
    return (
        node.labels,
        node.taints,
        node.capacity,
        node.allocatable,
        node.unschedulable,
        conditions,
        node.gpus,
    )
