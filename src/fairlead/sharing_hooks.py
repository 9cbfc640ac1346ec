"""How does the simulated cluster reach our rules of GPU sharing? The hooks of `sim`, filled with the ledger and the admission rules.

What a newcomer gets wrong: this is what `fairlead scheduler-extender` and the admission policies are on a real cluster, and it decides
as little as they do. The ledger lives from the cluster's own events, so a world that goes on after a stop finds every grant again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from fairlead.model.node import Node
from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import MANAGED, NO_ROOM, NOT_PLACED
from fairlead.rules.share_admission import GRANT_POLICY, GRANT_WRITERS, refuse_grants, scheduler_for
from fairlead.rules.share_ledger import Ledger
from fairlead.rules.share_mode import CONFLICT, share_mode
from fairlead.rules.share_preempt import Victims as PlannedVictims
from fairlead.rules.share_preempt import plan_preemption
from fairlead.rules.share_verdict import whose_gpu_is_unknown
from fairlead.rules.share_why import why_no_room
from fairlead.sim.admission import CREATE, Write
from fairlead.sim.cluster import Cluster
from fairlead.sim.hooks import Hooks, Object, Unfit, Victims
from fairlead.sim.recorder import Recorder
from fairlead.sim.resources import CONFIG_MAPS, NODES, PODS
from fairlead.sim.saved import SavedWorld
from fairlead.sim.scenario import Scenario
from fairlead.sim.watch_log import DELETED, WatchEvent
from fairlead.sim.world import World
from fairlead.wire.allocation import anew, parse_withheld, render_bind
from fairlead.wire.kube import WireNode, WirePod, parse_node, parse_pod
from fairlead.wire.kube_status import ApiStatus, forbidden
from fairlead.wire.names import UNHEALTHY_GPUS_NAMESPACE, UNHEALTHY_GPUS_PREFIX

COMPONENT: Final = "fairlead-scheduler"
EXTENDER_USER: Final = "system:serviceaccount:fairlead-system:fairlead-scheduler"
assert EXTENDER_USER in GRANT_WRITERS

Row = TypeVar("Row")
_nodes: Final = msgspec.json.Decoder(WireNode)
_pods: Final = msgspec.json.Decoder(WirePod)


def sharing_world(scenario: Scenario, seed: int, epoch: float, saved: SavedWorld | None = None) -> World:
    """A simulated world that shares GPUs by our rules: the one that every command, server and board lives on."""
    return World(scenario, seed, epoch, sharing_hooks, saved)


def sharing_hooks(cluster: Cluster, recorder: Recorder) -> Hooks:
    return Hooks(SharedGpus(cluster, recorder), admit, lambda labels: share_mode(labels).is_shared)


class SharedGpus:
    """Fills `sim.hooks.Extender`."""

    def __init__(self, cluster: Cluster, recorder: Recorder) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._conflicts: dict[str, str] = {}
        self._not_placed: dict[str, str] = {}
        self._no_room: dict[str, str] = {}
        self.ledger = Ledger()
        cluster.subscribe(NODES, self._on_node)
        cluster.subscribe(PODS, self._on_pod)
        cluster.subscribe(CONFIG_MAPS, self._on_config_map)

    def wants(self, pod: Object) -> bool:
        return asks_share(pod)

    def filter(self, pod: Object, nodes: Sequence[str]) -> Unfit:
        answer = self.ledger.filter(_pod(pod), nodes)
        return Unfit(answer.failed, answer.hopeless)

    def prioritize(self, pod: Object, nodes: Sequence[str]) -> Mapping[str, int]:
        return dict(self.ledger.prioritize(_pod(pod), nodes))

    def bind(self, pod: Object, node: str) -> str:
        """One call: the API server merges the annotations and sets the node in one write."""
        asker = _pod(pod)
        grants = self.ledger.reserve(asker, node)
        if isinstance(grants, Refusal):
            return grants.reason
        annotations = self._annotations(asker, node, grants)
        binding = {"target": {"kind": "Node", "name": node}, "metadata": {"uid": asker.uid, "annotations": annotations}}
        try:
            self._cluster.bind(asker.namespace, asker.name, binding, EXTENDER_USER)
        except ApiStatus as refusal:
            self.ledger.roll_back(asker.uid)
            return refusal.message
        return ""

    def preempt(self, pod: Object, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        proposed = {node: PlannedVictims(tuple(each.uids), each.violations) for node, each in victims.items()}
        planned = plan_preemption(self.ledger, _pod(pod), proposed)
        return {node: Victims(each.uids, each.violations) for node, each in planned.items()}

    # --- what the API tells ------------------------------------------------------------------------------------------------------

    def _on_node(self, event: WatchEvent) -> None:
        node, name = event.object, event.object["metadata"]["name"]
        if event.type == DELETED:
            self.ledger.remove_node(name)
        elif event.previous is None or _looks(event.previous) != _looks(node):
            row = _read(node, _node)
            if row is None:
                return
            self.ledger.set_node(row, self._withheld(name))
            self._tell_conflict(node, share_mode(row.labels).conflict)
            self._adopt_on(name)

    def _on_pod(self, event: WatchEvent) -> None:
        pod, uid = event.object, event.object["metadata"]["uid"]
        if not asks_share(pod):
            return
        row = None if event.type == DELETED else _read(pod, _pod)
        before = self.ledger.tenants.get(uid)
        if row is None:
            self.ledger.remove_pod(uid)
            self._not_placed.pop(uid, None)
            self._no_room.pop(uid, None)
        else:
            self.ledger.set_pod(row)
            self._tell_no_room(pod, row)
        after = self.ledger.tenants.get(uid)
        for node in {tenant.node for tenant in (before, after) if tenant is not None}:
            self._adopt_on(node)

    def _on_config_map(self, event: WatchEvent) -> None:
        metadata = event.object["metadata"]
        if metadata["namespace"] == UNHEALTHY_GPUS_NAMESPACE and metadata["name"].startswith(UNHEALTHY_GPUS_PREFIX):
            node = metadata["name"].removeprefix(UNHEALTHY_GPUS_PREFIX)
            self.ledger.withhold(node, self._withheld(node))

    def _withheld(self, node: str) -> Collection[int]:
        found = self._cluster.get(CONFIG_MAPS, UNHEALTHY_GPUS_NAMESPACE, f"{UNHEALTHY_GPUS_PREFIX}{node}")
        return parse_withheld((found or {}).get("data"))

    def _adopt_on(self, node: str) -> None:
        """Give cards to pods that somebody else put on the node, and say it where there are none."""
        account = self.ledger.nodes.get(node)
        if account is None:
            return
        for tenant in [tenant for tenant in account.tenants.values() if tenant.is_misread or not tenant.grants]:
            pod = tenant.pod
            found = self._cluster.get(PODS, pod.namespace, pod.name)
            if pod.deleted_at is not None or found is None:
                continue
            if not tenant.grants and pod.has_started:  # it has none to be given: its kubelet would not look any more
                self._tell_not_placed(found, whose_gpu_is_unknown(account, pod.uid))
                continue
            grants = self.ledger.adopt(pod)
            if isinstance(grants, Refusal):
                self._tell_not_placed(found, f"node {node} has no room: {grants.reason}")
            elif grants:
                written = self._annotations(pod, node, grants)
                annotations = anew(written, pod.annotations) if tenant.is_misread else written
                self._cluster.mutate(PODS, pod.namespace, pod.name, partial(_annotated, annotations=annotations))

    def _annotations(self, pod: Pod, node: str, grants: GrantsByContainer) -> dict[str, str]:
        """Nothing for a pod that names the resources with an amount of 0: it gets no cards."""
        if not grants:
            return {}
        cards = (self.ledger.nodes[node].card_of(grant) for given in grants.values() for grant in given)
        units = max((card.units for card in cards if card is not None), default=0)
        return render_bind(pod, grants, units, self._cluster.clock.now())

    def _tell_no_room(self, pod: Object, row: Pod) -> None:
        """The numbers that kube-scheduler leaves out: of nodes whose sum is too small it says only that it is, and never asks."""
        if row.node or row.deleted_at is not None:
            return
        if any(condition.type == "PodScheduled" and condition.reason == "Unschedulable" for condition in row.conditions):
            why = why_no_room(self.ledger, row)
            if why and self._no_room.get(row.uid) != why:
                self._no_room[row.uid] = why
                self._recorder.warning(pod, NO_ROOM, why, COMPONENT)

    def _tell_not_placed(self, pod: Object, why: str) -> None:
        uid = pod["metadata"]["uid"]
        if why and self._not_placed.get(uid) != why:
            self._recorder.warning(pod, NOT_PLACED, why, COMPONENT)
        self._not_placed[uid] = why

    def _tell_conflict(self, node: Object, conflict: str) -> None:
        name = node["metadata"]["name"]
        if conflict and self._conflicts.get(name) != conflict:
            self._recorder.warning(node, CONFLICT, conflict, COMPONENT)
        self._conflicts[name] = conflict


def asks_share(pod: Object) -> bool:
    """Whether kube-scheduler would ask the extender: a container names one of its resources, whatever the amount."""
    spec = pod["spec"]
    parts = (*spec["containers"], *spec["initContainers"]) if spec.get("initContainers") else spec["containers"]
    amounts = ((part.get("resources") or {}).get(side) for part in parts for side in ("limits", "requests"))
    return any(name in each for each in amounts if each for name in MANAGED)


def admit(write: Write) -> Object:
    """The admission policies of Fairlead: which scheduler a pod is for, and that nobody else writes grants."""
    if write.ref is not PODS:
        return write.new
    new, metadata = write.new, write.new.get("metadata") or {}
    before = ((write.old or {}).get("metadata") or {}).get("annotations") or {}
    refusal = refuse_grants(before, metadata.get("annotations") or {}, write.user)
    if refusal is not None:
        told = f"ValidatingAdmissionPolicy '{GRANT_POLICY}' with binding '{GRANT_POLICY}' denied request: {refusal.reason}"
        status = forbidden(PODS, metadata.get("name", ""), told)
        raise ApiStatus(status.code, status.reason, status.message, {**status.details, "causes": [{"message": told}]})
    if write.verb != CREATE or write.subresource or not _may_ask_share(new):
        return new
    row = _read(new, _pod)
    return new if row is None else {**new, "spec": {**new["spec"], "schedulerName": scheduler_for(row)}}


def _may_ask_share(pod: Object) -> bool:
    """As `asks_share`, of an object that nobody has checked yet."""
    try:
        return asks_share(pod)
    except (KeyError, TypeError, AttributeError):
        return False


def _looks(node: Object) -> tuple[Any, ...]:
    """The parts of a node that the ledger reads; most writes are heartbeats and change none."""
    metadata, status = node["metadata"], node.get("status") or {}
    return metadata.get("labels"), metadata.get("annotations"), status.get("capacity")


def _annotated(pod: Object, annotations: Mapping[str, str]) -> Object:
    metadata = pod["metadata"]
    return {**pod, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}}


def _node(node: Object) -> Node:
    return parse_node(_nodes.decode(msgspec.json.encode(node)))


def _pod(pod: Object) -> Pod:
    return parse_pod(_pods.decode(msgspec.json.encode(pod)))


def _read(obj: Object, parse: Callable[[Object], Row]) -> Row | None:
    """None for what nobody can read: such an object never runs."""
    try:
        return parse(obj)
    except (msgspec.MsgspecError, ValueError):
        return None
