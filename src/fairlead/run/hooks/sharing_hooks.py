"""The simulated cluster's hooks with the sharing decider and admission rules of a real one.

They do what `fairlead scheduler-extender` and the admission policies do on a real cluster, and
contain no rules of their own either. The ledger follows from the cluster's own events, so a world
that continues after a stop has every grant again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from fairlead.model.actions import BindPod, Outcome, RecordEvent, Result, WriteGrants
from fairlead.model.changes import KIND_NODES, KIND_PODS, changed
from fairlead.model.installation import OwnAccounts
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import MANAGED, BindAsked, Withheld
from fairlead.model.snapshot import GPU_WITHHELD
from fairlead.rules.nodes.status import share_mode
from fairlead.rules.sharing.admission import (
    ASK_POLICY,
    GRANT_POLICY,
    refuse_asking,
    refuse_grants,
    scheduler_for,
)
from fairlead.rules.sharing.bindings import AnswerBind
from fairlead.rules.sharing.machine import SharingMachine
from fairlead.rules.sharing.preempt import Victims, plan_preemption
from fairlead.run.hooks.node_memory import MemoryOfNodes
from fairlead.run.hooks.node_shares import EnvironmentOfNodes, SharesOfNodes
from fairlead.run.hooks.people_admission import PeoplePolicies
from fairlead.run.hooks.quota_admission import QuotaPolicies, denied
from fairlead.run.hooks.world_quota import WorldQuota
from fairlead.wire.gpus.allocation import parse_withheld, render_action
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod
from fairlead.wire.names import PEOPLE_GROUP, UNHEALTHY_GPUS_NAMESPACE, UNHEALTHY_GPUS_PREFIX
from fairlead_sim.objects.resources import CONFIG_MAPS, NODES, PODS
from fairlead_sim.objects.saved import SavedWorld
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.scenario.scenario import Scenario
from fairlead_sim.scheduler.hooks import Hooks, HookVictims, Object, Unfit
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.admission import CREATE, DELETE, Write
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.world.world import World

COMPONENT: Final = "fairlead-scheduler"
EXTENDER_USER: Final = OwnAccounts().scheduler

Row = TypeVar("Row")
_nodes: Final = msgspec.json.Decoder(WireNode)
_pods: Final = msgspec.json.Decoder(WirePod)


def sharing_world(
    scenario: Scenario, seed: int, epoch: float, saved: SavedWorld | None = None
) -> World:
    """A simulated world that shares GPUs by Fairlead's rules, for commands, servers and boards."""
    return World(scenario, seed, epoch, sharing_hooks, saved)


def sharing_hooks(cluster: StoredCluster, recorder: Recorder) -> Hooks:
    """Sharing, quota, and the admission rules of both, of users and of groups."""
    quota, admit_quota = partial(WorldQuota, cluster, recorder), QuotaPolicies(cluster)

    judge_people = PeoplePolicies(cluster)

    def admission(write: Write) -> Object:
        if write.subresource == "token" or write.ref.group == PEOPLE_GROUP:
            return judge_people(write)
        if write.verb == DELETE:  # only users and groups are judged when they are deleted
            return write.new
        return admit_quota(write._replace(new=admit(write)))

    return Hooks(
        SharedGpus(cluster, recorder),
        admission,
        lambda labels: share_mode(labels).is_shared,
        quota,
        SharesOfNodes(cluster),
        MemoryOfNodes(cluster),
        EnvironmentOfNodes(cluster),
    )


class SharedGpus:
    """The laptop's `SchedulingHook`: a driver of the sharing decider whose calls end at once."""

    def __init__(self, cluster: StoredCluster, recorder: Recorder) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._machine = SharingMachine()
        self.ledger = self._machine.ledger
        self._notify_scheduler: Callable[[], None] = _no_scheduler
        cluster.subscribe(NODES, self._on_node)
        cluster.subscribe(PODS, self._on_pod)
        cluster.subscribe(CONFIG_MAPS, self._on_config_map)

    def wants(self, pod: Object) -> bool:
        return asks_share(pod)

    def on_change(self, notify: Callable[[], None]) -> None:
        self._notify_scheduler = notify

    def filter(self, pod: Object, nodes: Sequence[str]) -> Unfit:
        answer = self._machine.filter(_pod(pod), nodes)
        return Unfit(answer.failed, answer.hopeless)

    def prioritize(self, pod: Object, nodes: Sequence[str]) -> Mapping[str, int]:
        return dict(self.ledger.prioritize(_pod(pod), nodes))

    def bind(self, pod: Object, node: str) -> str:
        asker, bindings = _pod(pod), self._machine.bindings
        bindings.remember(asker)
        now = self._cluster.clock.now()
        steps = bindings.ask(BindAsked(asker.namespace, asker.name, asker.uid, node), now)
        while True:
            # a bind does not wait here: the scheduler tries again by itself
            (step,) = steps or bindings.waited(math.inf)
            if isinstance(step, AnswerBind):
                return step.why
            if isinstance(step, BindPod):
                steps = bindings.called(step, self._bind(step), now)
            else:
                found = self._cluster.get(PODS, step.asked.namespace, step.asked.name)
                steps = bindings.read(step, None if found is None else _pod(found), now)

    def preempt(self, pod: Object, victims: Mapping[str, HookVictims]) -> Mapping[str, HookVictims]:
        proposed = {
            node: Victims(tuple(each.uids), each.violations) for node, each in victims.items()
        }
        planned = plan_preemption(self.ledger, _pod(pod), proposed)
        return {node: HookVictims(each.uids, each.violations) for node, each in planned.items()}

    # --- reports of the API server ----------------------------------------------------------------

    def _on_node(self, event: LoggedChange) -> None:
        uid, observe = event.object["metadata"]["uid"], self._machine.feed.observe
        if event.type == DELETED:
            observe(changed(KIND_NODES, uid, None))
        elif event.previous is None or _read_fields(event.previous) != _read_fields(event.object):
            row = _read(event.object, _node)
            if row is not None:
                observe(changed(KIND_NODES, uid, row))
        self._look()

    def _on_pod(self, event: LoggedChange) -> None:
        if asks_share(event.object):
            row = None if event.type == DELETED else _read(event.object, _pod)
            self._machine.feed.observe(changed(KIND_PODS, event.object["metadata"]["uid"], row))
            self._look()

    def _on_config_map(self, event: LoggedChange) -> None:
        metadata = event.object["metadata"]
        if metadata["namespace"] == UNHEALTHY_GPUS_NAMESPACE and metadata["name"].startswith(
            UNHEALTHY_GPUS_PREFIX
        ):
            node, indexes = (
                metadata["name"].removeprefix(UNHEALTHY_GPUS_PREFIX),
                parse_withheld(event.object.get("data")),
            )
            row = None if event.type == DELETED else Withheld(node, indexes)
            self._machine.feed.observe(changed(GPU_WITHHELD, metadata["uid"], row))
            self._look()
            self._notify_scheduler()

    # --- actions of the decider -------------------------------------------------------------------

    def _look(self) -> None:
        for action in self._machine.adoption.look():
            if isinstance(action, RecordEvent):
                self._report(action)
            elif isinstance(action, WriteGrants):
                self._machine.adoption.written(action, self._annotate(action))

    def _bind(self, action: BindPod) -> Outcome:
        """Bind by one call: the API server merges the annotations and sets the node at once."""
        pod, annotations = action.pod, render_action(action, self._cluster.clock.now())
        binding = {
            "target": {"kind": "Node", "name": action.node},
            "metadata": {"uid": pod.uid, "annotations": annotations},
        }
        try:
            self._cluster.bind(pod.namespace, pod.name, binding, EXTENDER_USER)
        except ApiStatus as refusal:
            return Outcome(Result.REFUSED, refusal.message)
        return Outcome()

    def _annotate(self, action: WriteGrants) -> Outcome:
        pod = action.pod
        if self._cluster.get(PODS, pod.namespace, pod.name) is None:
            return Outcome(Result.GONE)
        annotations = render_action(action, self._cluster.clock.now())
        self._cluster.mutate(
            PODS, pod.namespace, pod.name, partial(_annotated, annotations=annotations)
        )
        return Outcome()

    def _report(self, event: RecordEvent) -> None:
        subject = event.subject
        ref, namespace = (PODS, subject.namespace) if isinstance(subject, Pod) else (NODES, "")
        found = self._cluster.get(ref, namespace, subject.name)
        if found is not None:
            self._recorder.warning(found, event.reason, event.message, COMPONENT)


def _no_scheduler() -> None:
    """Do nothing: no scheduler is subscribed yet."""


def asks_share(pod: Object) -> bool:
    """Whether kube-scheduler asks the extender: a container names a resource of it."""
    spec = pod["spec"]
    parts = (
        (*spec["containers"], *spec["initContainers"])
        if spec.get("initContainers")
        else spec["containers"]
    )
    amounts = (
        (part.get("resources") or {}).get(side) for part in parts for side in ("limits", "requests")
    )
    return any(name in each for each in amounts if each for name in MANAGED)


def admit(write: Write) -> Object:
    """Fairlead's admission policies: the scheduler of a pod, pods that no node can run, and which
    users may write grants.
    """
    if write.ref is not PODS:
        return write.new
    new, metadata = write.new, write.new.get("metadata") or {}
    before = ((write.old or {}).get("metadata") or {}).get("annotations") or {}
    refusal = refuse_grants(before, metadata.get("annotations") or {}, write.user)
    if refusal is not None:
        raise _refused_by(GRANT_POLICY, new, refusal)
    if write.verb != CREATE or write.subresource or not _may_ask_share(new):
        return new
    row = _read(new, _pod)
    if row is None:
        return new
    if (refusal := refuse_asking(row)) is not None:
        raise replace(_refused_by(ASK_POLICY, new, refusal), code=422, reason="Invalid")
    return {**new, "spec": {**new["spec"], "schedulerName": scheduler_for(row)}}


def _refused_by(policy: str, pod: Object, refusal: Refusal) -> ApiStatus:
    message = (
        f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: "
        f"{refusal.reason}"
    )
    return denied(PODS, (pod.get("metadata") or {}).get("name", ""), message)


def _may_ask_share(pod: Object) -> bool:
    """As `asks_share`, for an object that is not validated yet."""
    try:
        return asks_share(pod)
    except (KeyError, TypeError, AttributeError):
        return False


def _read_fields(node: Object) -> tuple[Any, ...]:
    """The parts of a node that the ledger reads; most writes are heartbeats and change none."""
    metadata, status = node["metadata"], node.get("status") or {}
    return metadata.get("labels"), metadata.get("annotations"), status.get("capacity")


def _annotated(pod: Object, annotations: Mapping[str, str]) -> Object:
    metadata = pod["metadata"]
    return {
        **pod,
        "metadata": {
            **metadata,
            "annotations": {**(metadata.get("annotations") or {}), **annotations},
        },
    }


def _node(node: Object) -> Node:
    return parse_node(_nodes.decode(msgspec.json.encode(node)))


def _pod(pod: Object) -> Pod:
    return parse_pod(_pods.decode(msgspec.json.encode(pod)))


def _read(obj: Object, parse: Callable[[Object], Row]) -> Row | None:
    """None for a malformed object: such an object never runs."""
    try:
        return parse(obj)
    except (msgspec.MsgspecError, ValueError):
        return None
