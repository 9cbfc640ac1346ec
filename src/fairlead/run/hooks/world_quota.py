"""The quota controller of a simulated cluster: its decider is the same as on a real one.

This module turns objects of the simulated store into rows, and carries actions out under the
ServiceAccount that the controller has on a real cluster: the API server may refuse them like those
of any client.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.kinds.workloads import WORKLOAD_KINDS
from fairlead.model.actions import (
    AdmitPod,
    DeleteObject,
    EvictPod,
    ObjectRef,
    Outcome,
    PatchObject,
    QuotaAction,
    RecordObjectEvent,
    Result,
    ScaleJob,
    SetPodCondition,
    WriteTreeStatus,
)
from fairlead.model.changes import (
    KIND_BUDGETS,
    KIND_NAMESPACES,
    KIND_NODES,
    KIND_PODS,
    KIND_QUOTA_TREES,
    changed,
    listed,
)
from fairlead.model.keys import (
    ANNOTATION_LOWERED,
    ANNOTATION_PARALLELISM,
    ANNOTATION_SUSPENDED_FOR,
    ANNOTATION_SUSPENDED_PRIORITY,
    QUOTA_CONDITION,
    QUOTA_GATE,
)
from fairlead.model.node import Condition
from fairlead.model.people.rows import KIND_GROUPS
from fairlead.rules.quota.admission import CONTROLLER
from fairlead.rules.quota.machine import QuotaMachine
from fairlead.run.hooks.simulated_controller import SimulatedController
from fairlead.wire.kube.budgets import WireBudget, WireNamespace, parse_budget, parse_namespace
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod
from fairlead.wire.kube.time import render_time
from fairlead.wire.names import PEOPLE_GROUP, USER_GROUPS
from fairlead.wire.people.people_objects import WirePerson, parse_group
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead.wire.quota.tree_status import render_tree_status
from fairlead_sim.objects.resources import (
    ELASTIC_QUOTA_TREES,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.time.timers import Timers

COMPONENT: Final = "fairlead-quota-controller"
Object = dict[str, Any]


class _Followed(Struct):
    """Objects of a kind become rows. `looks`: the parts of one that its row follows from."""

    name: str
    decoder: msgspec.json.Decoder[Any]
    parse: Callable[[Any], Any]
    looks: Callable[[Object], object]

    def row(self, obj: Object) -> Any:
        """None for a malformed object: such an object never runs."""
        try:
            return self.parse(self.decoder.decode(msgspec.json.encode(obj)))
        except (msgspec.MsgspecError, ValueError):
            return None


_GROUPS: Final = _Followed(KIND_GROUPS, msgspec.json.Decoder(WirePerson), parse_group, lambda _: ())


class WorldQuota:
    """Lives in a world from its beginning. It sleeps until there is a quota tree."""

    def __init__(self, cluster: StoredCluster, recorder: Recorder, timers: Timers) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._is_awake = False
        self._kinds: dict[ResourceKind, _Followed] = {
            PODS: _Followed(
                KIND_PODS, msgspec.json.Decoder(WirePod), parse_pod, _read_fields_of_pod
            ),
            NODES: _Followed(
                KIND_NODES, msgspec.json.Decoder(WireNode), parse_node, _read_fields_of_node
            ),
            NAMESPACES: _Followed(
                KIND_NAMESPACES, msgspec.json.Decoder(WireNamespace), parse_namespace, _all
            ),
            POD_DISRUPTION_BUDGETS: _Followed(
                KIND_BUDGETS, msgspec.json.Decoder(WireBudget), parse_budget, _all
            ),
            ELASTIC_QUOTA_TREES: _Followed(
                KIND_QUOTA_TREES,
                msgspec.json.Decoder(WireQuotaTree),
                parse_quota_tree,
                _spec_and_metadata,
            ),
        }
        served = {(ref.group, ref.version, ref.plural): ref for ref in cluster.kinds()}
        workload_kinds = list[str]()
        for kind in WORKLOAD_KINDS:
            version = next(
                (each for each in kind.versions if (kind.group, each, kind.plural) in served), None
            )
            if version is not None:
                parse = partial(_parse_workload, kind.parse, version)
                ref = served[kind.group, version, kind.plural]
                self._kinds[ref] = _Followed(
                    kind.name, msgspec.json.Decoder(kind.wire), parse, _all
                )
                workload_kinds.append(kind.name)
        self.machine = QuotaMachine(workload_kinds)
        self._controller = SimulatedController(self.machine, self._apply, timers)
        for ref in self._kinds:
            cluster.subscribe(ref, partial(self._on_change, ref))
        cluster.witness(self._on_any_change)

    # --- what changes -----------------------------------------------------------------------------

    def _on_change(self, ref: ResourceKind, change: LoggedChange) -> None:
        if not self._is_awake:
            if ref is ELASTIC_QUOTA_TREES:
                self._wake_up()
            return
        followed = self._kinds[ref]
        uid = change.object["metadata"]["uid"]
        if change.type == DELETED:
            self._controller.observe(changed(followed.name, uid, None))
        elif change.previous is None or followed.looks(change.previous) != followed.looks(
            change.object
        ):
            self._controller.observe(changed(followed.name, uid, followed.row(change.object)))

    def _on_any_change(self, change: LoggedChange) -> None:
        """User groups are a kind that may be defined at any time."""
        obj = change.object
        if obj.get("kind") != "UserGroup" or not self._is_awake:
            return
        row = None if change.type == DELETED else _GROUPS.row(obj)
        self._controller.observe(changed(_GROUPS.name, obj["metadata"]["uid"], row))

    def _wake_up(self) -> None:
        self._is_awake = True
        self.machine.rebuild()
        for ref, followed in self._kinds.items():
            rows = {obj["metadata"]["uid"]: followed.row(obj) for obj in self._cluster.scan(ref)}
            self._controller.observe(
                listed(followed.name, {uid: row for uid, row in rows.items() if row is not None})
            )

        groups = {
            obj["metadata"]["uid"]: row
            for ref in self._cluster.kinds()
            if (ref.group, ref.plural) == (PEOPLE_GROUP, USER_GROUPS)
            for obj in self._cluster.scan(ref)
            if (row := _GROUPS.row(obj)) is not None
        }
        self._controller.observe(listed(_GROUPS.name, groups))

    # --- what the decider asks for ----------------------------------------------------------------

    def _apply(self, action: QuotaAction) -> Outcome:
        cluster, target = self._cluster, _target_of(action)
        found = self._found(target)
        if found is None:
            return Outcome(Result.GONE)
        match action:
            case AdmitPod():
                cluster.update(_without_gate(found), CONTROLLER)
            case EvictPod():
                options: Object = {"preconditions": {"uid": target.uid}}
                if action.grace_seconds is not None:
                    options["gracePeriodSeconds"] = action.grace_seconds
                (cluster.rehearsal() if action.is_trial else cluster).evict(
                    target.namespace, target.name, options
                )
            case SetPodCondition():
                cluster.mutate(
                    PODS,
                    target.namespace,
                    target.name,
                    partial(_with_condition, condition=action.condition),
                )
            case PatchObject():
                cluster.merge_patch(
                    self._ref(target),
                    target.namespace,
                    target.name,
                    action.patch,
                    action.subresource,
                )
            case ScaleJob():
                if (found["spec"].get("parallelism", 1), bool(found["spec"].get("suspend"))) != (
                    action.before,
                    action.is_resumed,
                ):
                    return Outcome(Result.REFUSED, "another client has changed the Job")
                cluster.update(_scaled(found, action), CONTROLLER)
            case WriteTreeStatus():
                cluster.update_status({**found, "status": render_tree_status(action)})
            case DeleteObject():
                cluster.delete(
                    self._ref(target), target.namespace, target.name, uid=target.uid or None
                )
            case RecordObjectEvent():
                record = (
                    self._recorder.warning if action.type == "Warning" else self._recorder.normal
                )
                record(found, action.reason, action.message, COMPONENT)
        return Outcome()

    def _ref(self, target: ObjectRef) -> ResourceKind:
        return self._cluster.kind_of({"apiVersion": target.api_version, "kind": target.kind})

    def _found(self, target: ObjectRef) -> Object | None:
        """This very object, not another one that has its name by now."""
        ref = self._ref(target)
        found = self._cluster.get(ref, target.namespace or None, target.name)
        return (
            None
            if found is None or (target.uid and found["metadata"]["uid"] != target.uid)
            else found
        )


def _target_of(action: QuotaAction) -> ObjectRef:
    if not isinstance(action, WriteTreeStatus):
        return action.target
    tree = action.tree
    return ObjectRef(
        ELASTIC_QUOTA_TREES.api_version,
        ELASTIC_QUOTA_TREES.kind,
        tree.name,
        tree.namespace,
        tree.uid,
    )


def _parse_workload(parse: Callable[[Any, str], Any], version: str, wire: Any) -> Any:
    return parse(wire, version)


def _without_gate(pod: Object) -> Object:
    gates = [
        gate for gate in pod["spec"].get("schedulingGates") or () if gate["name"] != QUOTA_GATE
    ]
    return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}


def _scaled(job: Object, action: ScaleJob) -> Object:
    is_own = action.count == action.own
    marks = (
        {}
        if is_own
        else {ANNOTATION_PARALLELISM: str(action.own), ANNOTATION_LOWERED: str(action.count)}
    )
    if action.priority and not is_own:
        marks[ANNOTATION_SUSPENDED_PRIORITY] = str(action.priority)
    managed = {
        ANNOTATION_PARALLELISM,
        ANNOTATION_LOWERED,
        ANNOTATION_SUSPENDED_PRIORITY,
        *((ANNOTATION_SUSPENDED_FOR,) * action.is_resumed),
    }
    kept = {
        key: value
        for key, value in (job["metadata"].get("annotations") or {}).items()
        if key not in managed
    }
    spec = {
        **job["spec"],
        "parallelism": action.count,
        **({"suspend": False} if action.is_resumed else {}),
    }
    return {**job, "metadata": {**job["metadata"], "annotations": {**kept, **marks}}, "spec": spec}


def _with_condition(pod: Object, condition: Condition) -> Object:
    status = pod.get("status") or {}
    held = [each for each in status.get("conditions") or () if each["type"] != condition.type]
    at = {} if condition.at is None else {"lastTransitionTime": render_time(condition.at)}
    row = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        **at,
    }
    return {**pod, "status": {**status, "conditions": [*held, row]}}


def _all(obj: Object) -> object:
    return obj


def _spec_and_metadata(obj: Object) -> object:
    metadata = obj["metadata"]
    return obj.get("spec"), metadata.get("annotations"), metadata.get("generation")


def _read_fields_of_node(node: Object) -> object:
    """Most writes are heartbeats and change none of it."""
    metadata, status = node["metadata"], node.get("status") or {}
    conditions = [(each["type"], each["status"]) for each in status.get("conditions") or ()]
    return (
        metadata.get("labels"),
        metadata.get("annotations"),
        status.get("allocatable"),
        node.get("spec"),
        conditions,
    )


def _read_fields_of_pod(pod: Object) -> object:
    """Most writes are about containers."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    conditions = [
        each
        for each in status.get("conditions") or ()
        if each["type"] in ("Ready", "PodScheduled", QUOTA_CONDITION)
    ]
    going = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    return (
        pod["spec"],
        metadata.get("labels"),
        metadata.get("annotations"),
        going,
        status.get("phase"),
        conditions,
    )
