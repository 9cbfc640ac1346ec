"""The ledger: which pod holds which part of which shared card, kept current change by change.

The problem. kube-scheduler asks the extender about hundreds of nodes for each pod and expects an
answer in milliseconds, and between its decision and the pod's event the same room must not be given
twice.

What it keeps, and what must be true of it:

- `nodes`: one account per node (`rules/holding/account`). An account is replaced as a whole
  whenever its node, its withheld cards or one of its tenants changes; nothing is added to it beside
  a tenant's seats.
- Each pod that holds room is a tenant of exactly one node, in one of four states. *Reserved*:
  chosen by `reserve` or `adopt`, and no event has confirmed it yet. *Unwritten*: seen on its node,
  without the annotation that names its cards. *Bound*: its annotation names them. *Assigned*: its
  containers have them. Only a reservation can be rolled back; what the API server has reported
  stays until the pod has finished or is deleted.
- A tenant outlives its node: a node that is deleted and comes back has its tenants again.
- Promises are pods that preemption has nominated for a node. Their room is not free for less
  important pods.
- `_plain` and the scores are derived from the accounts and dropped with them.

The API server is the only durable memory: everything but a reservation in flight follows from nodes
and pods, given in any order (`set_node`, `set_pod`), so a restart loses nothing. There is no clock,
I/O or lock here: the caller makes one call at a time.

Why reserve before binding: the event of a bound pod arrives later than the next question. A
reservation is given back only when its binding has certainly failed (`rules/sharing/bindings`): to
hold room too long delays a pod for a minute, to give it twice lets two pods fail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec import Struct, structs

from fairlead.model.node import Node
from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import GpuNeed, Placement, Verdict
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.account import (
    RESERVED,
    UNWRITTEN,
    NodeAccount,
    Tenant,
    TenantState,
    account,
    tenant_of,
)
from fairlead.rules.holding.booked import booked_grants
from fairlead.rules.holding.cards import unit_of_cluster
from fairlead.rules.holding.need import asks_share, gpu_need
from fairlead.rules.sharing.alike import NONE_STARTING, agrees, choose_on, not_yet, starting_on
from fairlead.rules.sharing.placement import (
    DEFAULT_POLICIES,
    SharePolicies,
    as_seen_by,
    first_fitting,
    gpu_policy,
    grants_of,
)
from fairlead.rules.sharing.score import card_score, node_score
from fairlead.rules.sharing.verdict import UNKNOWN_NODE, lacking_memory, too_large, verdict

_NO_GRANTS: GrantsByContainer = {}
_SCORES_MOST: Final = 64
"""`_SCORES_MOST`: sizes of needs with remembered scores per node.

With the unit MiB there may be thousands.
"""


class Filtered(Struct, frozen=True, gc=False):
    """Result of a filter.

    `failed` nodes may fit later; `hopeless` ones will not, whatever pods are evicted.
    """

    passed: list[str]
    failed: dict[str, str]
    hopeless: dict[str, str]


class Ledger:
    """Nodes, tenants and promises (pods nominated for a node).

    `policies` are the cluster's settings.
    """

    def __init__(self, policies: SharePolicies = DEFAULT_POLICIES) -> None:
        self.policies = policies
        self.nodes: dict[str, NodeAccount] = {}
        self.tenants: dict[str, Tenant] = {}
        self._sources: dict[str, tuple[Node, frozenset[int]]] = {}
        self._on: dict[str, dict[str, Tenant]] = {}
        self._promises: dict[str, Pod] = {}
        self._plain: dict[str, tuple[int, int, str]] = {}
        """By node on which all cards are healthy, known and promised to no pod: most units free on
        a card, most units of a card, and the unit.
        """
        self._scores: dict[str, dict[tuple[int, Placement | None], int]] = {}
        """Scores of plain needs by node, then units and policy, kept until its account changes."""

    # --- changes in the cluster -------------------------------------------------------------------

    def set_node(self, node: Node, withheld: Collection[int] = ()) -> None:
        """Add or replace a node.

        Its tenants are seated anew: its inventory may have moved, grown or shrunk.
        """
        self._sources[node.name] = (node, frozenset(withheld))
        found = self.nodes[node.name] = account(node, withheld=withheld)
        found.seat_all(self._on.get(node.name, {}).values())
        found.promised = {
            uid: pod for uid, pod in self._promises.items() if pod.nominated_node == node.name
        }
        self._refresh(found)

    def withhold(self, node: str, indexes: Collection[int]) -> None:
        """Take cards of a node out of use, or give them back, as an operator asked.

        The ConfigMap of docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory asks for it.
        """
        known = self._sources.get(node)
        if known is not None and known[1] != frozenset(indexes):
            self.set_node(known[0], indexes)

    def remove_node(self, name: str) -> None:
        """Remove a node. Its tenants are kept: the node may come back."""
        for kept in (self.nodes, self._sources, self._plain, self._scores):
            kept.pop(name, None)

    def set_pod(self, pod: Pod) -> None:
        """Add or replace a pod.

        A terminating pod holds its room until it has finished or is deleted.
        """
        before = self.tenants.get(pod.uid)
        if pod.is_finished or (before is None and not asks_share(pod)):
            self.remove_pod(pod.uid)
        elif pod.node:
            self._promise(pod.uid, None)
            self._seat(self._bound(pod, before))
        else:
            self._promise(pod.uid, pod if pod.nominated_node else None)
            # a real API server never reports this: a pod does not leave its node
            if before is not None and before.state != RESERVED:
                self._unseat(pod.uid)

    def remove_pod(self, uid: str) -> None:
        """The pod was deleted or has finished: free what it held."""
        self._promise(uid, None)
        self._unseat(uid)

    def is_guarded(self, name: str) -> bool:
        """Whether containers of equal units that are starting on
        the node must have equal grants.
        """
        account = self.nodes.get(name)
        return account is not None and account.is_guarded

    def node(self, name: str) -> Node:
        """The node as it was last reported."""
        return self._sources[name][0]

    # --- questions of the scheduler ---------------------------------------------------------------

    def filter(self, pod: Pod, names: Iterable[str]) -> Filtered:
        """Which of these nodes can take the pod, and why the others cannot."""
        need = gpu_need(pod)
        if need.is_plain and not need.is_nothing:
            return self._filter_plain(pod, need, names)
        answer, unit = Filtered([], {}, {}), self.policies.unit
        for name in names:
            account = self.nodes.get(name)
            if (
                account is not None
                and account.unit == unit
                and not account.promised
                and account.has_room(need)
            ):
                answer.passed.append(name)
            else:
                _sort_in(answer, name, self.verdict_on(name, pod, need))
        return answer

    def verdict_on(self, name: str, pod: Pod, need: GpuNeed | None = None) -> Verdict | None:
        """Why this node cannot take the pod; None if it can."""
        account = self.nodes.get(name)
        if account is None:
            return UNKNOWN_NODE
        return verdict(account, gpu_need(pod) if need is None else need, pod, self.policies)

    def prioritize(self, pod: Pod, names: Iterable[str]) -> list[tuple[str, int]]:
        """0..10 for each node, for the cards that bind would choose
        there; 0 where it would choose none.
        """
        need = gpu_need(pod)
        if need.is_nothing or need.fault:
            return [(name, 0) for name in names]
        if not need.is_plain:
            return [(name, self._score(name, pod, need)) for name in names]
        scores, key, answer = self._scores, (need.units, need.policy), []
        for name in names:
            known = scores.get(name)
            score = known.get(key) if known is not None else None
            answer.append(
                (name, self._plain_score(name, pod, need, key) if score is None else score)
            )
        return answer

    def reserve(self, pod: Pod, node: str, *, is_plan: bool = False) -> GrantsByContainer | Refusal:
        """Choose cards on the node and hold them for the pod.

        They are held until a pod of its uid is seen there or `roll_back`. A repeated question gets
        the same answer, unless another extender has given that room away while this one was without
        the Lease. A pod that asks for nothing gets nothing, and nothing is held. Returns `NotYet`
        on a guarded node where other pods must start first; in a plan they count as started.
        """
        tenant = self.tenants.get(pod.uid)
        if tenant is not None and (tenant.node != node or not tenant.grants):
            return Refusal(f"pod {pod.key} is already on node {tenant.node}")
        if tenant is not None and not self._still_fits(tenant):
            return Refusal(f"the room held for pod {pod.key} on node {node} was given to others")
        account = self.nodes.get(node)
        if tenant is not None:
            starting = starting_on(account, pod.uid) if account is not None else NONE_STARTING
            if account is not None and starting and not agrees(account, tenant.grants, starting):
                return not_yet(account, gpu_need(pod), starting)
            return tenant.grants
        return self._choose(pod, node, account, RESERVED, is_plan=is_plan)

    def adopt(self, pod: Pod) -> GrantsByContainer | Refusal:
        """Find and hold cards for a pod that was bound without this extender, by another scheduler
        or by a person who wrote `nodeName`.
        """
        tenant = self.tenants.get(pod.uid)
        if (
            tenant is not None
            and tenant.grants
            and (not tenant.is_first_written or self._still_fits(tenant))
        ):
            return tenant.grants
        self._unseat(pod.uid)
        # it runs already, so promises to other pods do not matter
        account = self.nodes.get(pod.node)
        answer = self._choose(
            pod, pod.node, structs.replace(account, promised={}) if account else None, UNWRITTEN
        )
        if isinstance(answer, Refusal):
            self.set_pod(pod)
        return answer

    def roll_back(self, uid: str) -> None:
        """Free the reservation of a binding that failed for certain.

        What the API server reported stays.
        """
        tenant = self.tenants.get(uid)
        if tenant is not None and tenant.state == RESERVED:
            self._unseat(uid)

    def card_units(self, node: str, grants: GrantsByContainer) -> int:
        """Units of the largest card of these grants, 0 if none is known."""
        account = self.nodes.get(node)
        cards = (
            (account.card_of(grant) for given in grants.values() for grant in given)
            if account is not None
            else ()
        )
        return max((card.units for card in cards if card is not None), default=0)

    def reserved(self) -> list[Tenant]:
        """Reservations that no event has confirmed yet."""
        return [tenant for tenant in self.tenants.values() if tenant.state == RESERVED]

    def unplaced(self) -> Iterator[Tenant]:
        """Pods that run on a node with an unknown card: to be adopted, else shown as PENDING."""
        return (
            tenant
            for tenant in self.tenants.values()
            if not tenant.grants and not gpu_need(tenant.pod).is_nothing
        )

    # --- inside -----------------------------------------------------------------------------------

    def _filter_plain(self, pod: Pod, need: GpuNeed, names: Iterable[str]) -> Filtered:
        """`filter` with one look-up per node.

        Nodes with promises or with cards in trouble are judged one by one.
        """
        plain, units = self._plain, need.units
        answer = Filtered([], {}, {})
        for name in names:
            known = plain.get(name)
            if known is None:
                _sort_in(answer, name, self.verdict_on(name, pod, need))
            elif units <= known[0]:
                answer.passed.append(name)
            elif units <= known[1]:
                answer.failed[name] = lacking_memory(units, known[0], known[2]).reason
            else:
                answer.hopeless[name] = too_large(units, known[1], known[2]).reason
        return answer

    def _score(self, name: str, pod: Pod, need: GpuNeed) -> int:
        account = self.nodes.get(name)
        if account is None:
            return 0
        choice = choose_on(
            as_seen_by(account, pod),
            need,
            gpu_policy(need, account, self.policies),
            starting_on(account),
        )
        return 0 if choice is None else node_score(choice, need, need.policy or self.policies.node)

    def _plain_score(
        self, name: str, pod: Pod, need: GpuNeed, key: tuple[int, Placement | None]
    ) -> int:
        """The score, kept until the account changes.

        On a node with promises it depends on the pod, and is not kept.
        """
        account = self.nodes.get(name)
        if account is None or account.promised or account.is_guarded:
            return self._score(name, pod, need)
        cards = first_fitting(
            account.cards, need.units, 0, 1, gpu_policy(need, account, self.policies)
        )
        score = (
            0
            if cards is None
            else card_score(cards[0], need.units, need.policy or self.policies.node)
        )
        known = self._scores.setdefault(name, {})
        if len(known) >= _SCORES_MOST:
            known.clear()
        known[key] = score
        return score

    def _choose(
        self,
        pod: Pod,
        node: str,
        account: NodeAccount | None,
        state: TenantState,
        *,
        is_plan: bool = False,
    ) -> GrantsByContainer | Refusal:
        need = gpu_need(pod)
        no = UNKNOWN_NODE if account is None else verdict(account, need, pod, self.policies)
        if account is None or no is not None:
            return Refusal((no or UNKNOWN_NODE).reason)
        if need.is_nothing:
            return _NO_GRANTS
        starting = NONE_STARTING if is_plan else starting_on(account)
        choice = choose_on(
            as_seen_by(account, pod), need, gpu_policy(need, account, self.policies), starting
        )
        if choice is None:
            assert starting, "the verdict was positive"
            return not_yet(account, need, starting)
        grants = grants_of(choice, need)
        self._seat(_tenant(pod, node, state, grants))
        return grants

    def _still_fits(self, tenant: Tenant) -> bool:
        account = self.nodes.get(tenant.node)
        if account is None:
            return False
        free = {
            card.key: (card.free, card.core_free)
            for card in account.without([tenant.pod.uid]).cards
        }
        taken: dict[str, tuple[int, int]] = {}
        for seat in account.seats(tenant):
            units, core = taken.get(seat.key, (0, 0))
            taken[seat.key] = units + seat.grant.units, core + seat.grant.core_percent
        return all(
            key in free and units <= free[key][0] and core <= free[key][1]
            for key, (units, core) in taken.items()
        )

    def _seat(self, tenant: Tenant) -> None:
        uid = tenant.pod.uid
        before = self.tenants.get(uid)
        if before is not None and _holds(before) == _holds(tenant):
            self._on[tenant.node][uid] = self.tenants[uid] = tenant
            account = self.nodes.get(tenant.node)
            if account is not None:
                account.tenants[uid] = tenant
            return
        self._unseat(uid)
        self.tenants[uid] = tenant
        self._on.setdefault(tenant.node, {})[uid] = tenant
        account = self.nodes.get(tenant.node)
        if account is not None:
            account.seat(tenant)
            self._refresh(account)

    def _bound(self, pod: Pod, before: Tenant | None) -> Tenant:
        """What the pod's annotations grant, else what it is known to hold there.

        A grant that is damaged while its pod runs frees no memory. A pod that is seen on its node
        is not reserved, however it was bound: no failed binding frees its memory.
        """
        found = tenant_of(pod)
        known = before if before is not None and before.node == pod.node and before.booked else None
        if known is not None and (
            not found.booked or (self._is_astray(found) and not self._is_astray(known))
        ):
            return structs.replace(
                known, pod=pod, state=UNWRITTEN if known.state == RESERVED else known.state
            )
        return found

    def _is_astray(self, tenant: Tenant) -> bool:
        """Whether a grant names a card that the node does not have."""
        account = self.nodes.get(tenant.node)
        return account is not None and any(seat.card is None for seat in account.seats(tenant))

    def _unseat(self, uid: str) -> None:
        tenant = self.tenants.pop(uid, None)
        if tenant is None:
            return
        del self._on[tenant.node][uid]
        if not self._on[tenant.node]:
            del self._on[tenant.node]
        account = self.nodes.get(tenant.node)
        if account is not None:
            account.unseat(uid)
            self._refresh(account)

    def _promise(self, uid: str, pod: Pod | None) -> None:
        before = self._promises.pop(uid, None)
        if pod is not None:
            self._promises[uid] = pod
        for node in {promised.nominated_node for promised in (before, pod) if promised is not None}:
            account = self.nodes.get(node)
            if account is not None:
                account.promised.pop(uid, None)
                if pod is not None and pod.nominated_node == node:
                    account.promised[uid] = pod
                self._refresh(account)

    def _refresh(self, account: NodeAccount) -> None:
        self._scores.pop(account.name, None)
        cards = account.cards
        is_special = (
            account.unit != self.policies.unit
            or not account.mode.is_shared
            or not cards
            or account.is_guarded
        )
        if is_special or account.promised or account.hidden or any(card.trouble for card in cards):
            self._plain.pop(account.name, None)
        else:
            self._plain[account.name] = (
                max(card.free for card in cards),
                max(card.units for card in cards),
                account.unit,
            )


def ledger_of(snapshot: ClusterSnapshot, policies: SharePolicies | None = None) -> Ledger:
    """The ledger of a whole cluster, after a restart and for questions about a snapshot.

    Without `policies`, which no object of the cluster contains, its pods ask in MiB if all sharing
    nodes do.
    """
    ledger = Ledger(policies or SharePolicies(unit=unit_of_cluster(snapshot.nodes)))
    for node in snapshot.nodes:
        ledger.set_node(node, snapshot.withheld.get(node.name, ()))
    for pod in snapshot.pods:
        ledger.set_pod(pod)
    return ledger


def _sort_in(answer: Filtered, name: str, no: Verdict | None) -> None:
    if no is None:
        answer.passed.append(name)
    elif no.is_final:
        answer.hopeless[name] = no.reason
    else:
        answer.failed[name] = no.reason


def _holds(tenant: Tenant) -> tuple[str, GrantsByContainer, bool]:
    return tenant.node, tenant.booked, tenant.is_hidden


def _tenant(pod: Pod, node: str, state: TenantState, grants: GrantsByContainer) -> Tenant:
    return Tenant(pod, node, state, grants, booked_grants(structs.replace(pod, grants=grants)))
