"""The loop that runs the controllers: what changed is looked at again, and the plan is carried out.

Equal objects waiting are looked at once; the order is that of the first change. A conflict between
two plans is no error: the later one sees the result and plans anew.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from fairlead.wire.data.fluid import FLUID_NAMESPACE
from fairlead_sim.controllers import (
    cron_job,
    daemon_set,
    deployment,
    disruption_budget,
    endpoints,
    job,
    namespace_end,
    node_lifecycle,
    pod_care,
    replica_set,
    stateful_set,
    volume_binder,
)
from fairlead_sim.controllers.plan import Plan, View
from fairlead_sim.controllers.pod_care import QUARANTINE_SECONDS
from fairlead_sim.objects.conditions import conditions_of
from fairlead_sim.objects.mounts import mounted_claims
from fairlead_sim.objects.pod_counts import BURST
from fairlead_sim.objects.resources import (
    ALLUXIO_RUNTIMES,
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    CRONS,
    DAEMON_SETS,
    DATA_LOADS,
    DATASETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    JOBS,
    MPI_JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PYTORCH_JOBS,
    RAY_CLUSTERS,
    RAY_JOBS,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
    TF_JOBS,
)
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.operators import (
    cron_workload,
    fluid_alluxio,
    fluid_data_load,
    fluid_dataset,
    mpi_job,
    ray_cluster,
    ray_job,
    training_job,
)
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.selector import selects
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.orphans import Orphans, has_controller
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.time.timers import Timers

Object = dict[str, Any]
Key = tuple[ResourceKind, str, str]

REACTION_SECONDS = 0.05
# client-go's queue begins at 5 ms and doubles, too; the pauses before this one add up to as much
FIRST_RETRY_SECONDS = 1.28
LONGEST_RETRY_SECONDS = 1000.0
_CHANGEABLE = ("annotations", "labels", "ownerReferences", "finalizers")

CONTROLLERS: dict[ResourceKind, tuple[str, Callable[[Object, View], Plan]]] = {
    DEPLOYMENTS: ("deployment-controller", deployment.reconcile),
    REPLICA_SETS: ("replicaset-controller", replica_set.reconcile),
    STATEFUL_SETS: ("statefulset-controller", stateful_set.reconcile),
    DAEMON_SETS: ("daemonset-controller", daemon_set.reconcile),
    NODES: ("node-controller", node_lifecycle.reconcile),
    POD_DISRUPTION_BUDGETS: ("controllermanager", disruption_budget.reconcile),
    CRON_JOBS: ("cronjob-controller", cron_job.reconcile),
    PERSISTENT_VOLUME_CLAIMS: ("persistentvolume-controller", volume_binder.reconcile),
    PERSISTENT_VOLUMES: ("persistentvolume-controller", volume_binder.reconcile_volume),
    JOBS: ("job-controller", job.reconcile),
    MPI_JOBS: ("mpi-job-controller", mpi_job.reconcile),
    NAMESPACES: ("namespace-controller", namespace_end.reconcile),
    PODS: ("pod-garbage-collector", pod_care.reconcile),
    TF_JOBS: ("tfjob-controller", training_job.reconcile),
    PYTORCH_JOBS: ("pytorchjob-controller", training_job.reconcile),
    RAY_CLUSTERS: ("raycluster-controller", ray_cluster.reconcile),
    RAY_JOBS: ("rayjob-controller", ray_job.reconcile),
    CRONS: ("cron-controller", cron_workload.reconcile),
    SERVICES: (endpoints.COMPONENT, endpoints.reconcile),
    DATASETS: ("Dataset", fluid_dataset.reconcile),
    ALLUXIO_RUNTIMES: ("AlluxioRuntime", fluid_alluxio.reconcile),
    DATA_LOADS: ("DataLoad", fluid_data_load.reconcile),
}
_OWNED = (ENDPOINT_SLICES, CONTROLLER_REVISIONS)
_FLUID = (DATASETS, ALLUXIO_RUNTIMES, DATA_LOADS)
_NAMESAKES = {DATASETS: ALLUXIO_RUNTIMES, ALLUXIO_RUNTIMES: DATASETS}
"""Kinds whose controllers look at the object of the same name of the other kind."""
_LAST_CARE = (NAMESPACES, PODS, PERSISTENT_VOLUMES, *_FLUID)
"""Kinds whose controllers look at stopping objects, too; at pods only if no other controller does.
"""
_ADOPTERS = {PODS: (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS), REPLICA_SETS: (DEPLOYMENTS,)}

_MALFORMED = (ApiStatus, AttributeError, KeyError, TypeError, ValueError)
"""What a controller trips over when an object does not have its kind's shape: custom resources are
stored as people send them.
"""


class Controllers:
    def __init__(
        self, cluster: StoredCluster, timers: Timers, recorder: Recorder, seed: int
    ) -> None:
        self._cluster = cluster
        self._timers = timers
        self._recorder = recorder
        self._seed = seed
        self._due: dict[Key, None] = {}
        self._wakes: dict[Key, float] = {}
        self._refusals: dict[Key, int] = {}
        self._retries: set[Key] = set()
        self._created = 0
        self._orphans = Orphans(cluster)
        for ref in (*CONTROLLERS, *_OWNED):
            cluster.subscribe(ref, self._on_change)

    def _on_change(self, event: LoggedChange) -> None:
        metadata = event.object["metadata"]
        ref = self._cluster.kind_of(event.object)
        if (
            ref is NODES
            and event.previous is not None
            and event.type != DELETED
            and _node_stayed(event.previous, event.object)
        ):
            return
        if ref is PODS:
            self._care_for(event)
        elif ref in CONTROLLERS and event.type != DELETED:
            self._enqueue((ref, metadata.get("namespace", ""), metadata["name"]))
        if ref is NODES:
            self._enqueue_all(DAEMON_SETS, None)
            if event.type == DELETED:
                self._timers.after(
                    QUARANTINE_SECONDS, partial(self._enqueue_pods_on, metadata["name"])
                )
        if ref is PERSISTENT_VOLUMES:
            self._enqueue_all(PERSISTENT_VOLUME_CLAIMS, None)
        if ref is PERSISTENT_VOLUME_CLAIMS:
            self._enqueue_volumes()
        if ref is PODS:
            self._enqueue_all(POD_DISRUPTION_BUDGETS, metadata["namespace"])
            self._enqueue_services(event)
            self._enqueue_caches(event.object)
        if ref in _NAMESAKES:
            self._enqueue((_NAMESAKES[ref], metadata["namespace"], metadata["name"]))
        if ref is DEPLOYMENTS and metadata["namespace"] == FLUID_NAMESPACE:
            for kind in _FLUID:
                self._enqueue_all(kind, None)
        if (
            ref in _ADOPTERS
            and event.type != DELETED
            and not has_controller(event.object)
            and _is_to_adopt(event)
        ):
            self._enqueue_adopters(ref, event.object)
        before = (
            event.previous["metadata"].get("ownerReferences", ())
            if event.previous is not None
            else ()
        )
        owners = metadata.get("ownerReferences", ())
        for owner in owners if owners == before else (*owners, *before):
            owner_ref = self._cluster.served(owner["apiVersion"], owner["kind"])
            if owner_ref in CONTROLLERS:
                self._enqueue((owner_ref, metadata["namespace"], owner["name"]))

    def _enqueue_all(self, ref: ResourceKind, namespace: str | None) -> None:
        for obj in self._cluster.scan(ref, namespace):
            self._enqueue((ref, obj["metadata"]["namespace"], obj["metadata"]["name"]))

    def _care_for(self, event: LoggedChange) -> None:
        """Look at a pod that is bound to a missing node, and at one that its Job's finalizer holds
        although the Job is gone.
        """
        pod, before = event.object, event.previous
        if event.type == DELETED:
            return
        key, node = (
            (PODS, pod["metadata"]["namespace"], pod["metadata"]["name"]),
            pod["spec"].get("nodeName"),
        )
        if (
            node
            and (before is None or not before["spec"].get("nodeName"))
            and self._cluster.get(NODES, None, node) is None
        ):
            self._timers.after(QUARANTINE_SECONDS, partial(self._enqueue, key))
        if pod["metadata"].get("finalizers") and pod_care.is_untracked_too_late(pod, self._view()):
            self._enqueue(key)

    def _enqueue_pods_on(self, node: str) -> None:
        for pod in self._cluster.scan(PODS):
            if pod["spec"].get("nodeName") == node:
                self._enqueue((PODS, pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def _enqueue_adopters(self, ref: ResourceKind, orphan: Object) -> None:
        namespace = orphan["metadata"]["namespace"]
        for adopter in _ADOPTERS[ref]:
            for obj in self._cluster.scan(adopter, namespace):
                with suppress(*_MALFORMED):
                    if selects(obj["spec"].get("selector"))(orphan):
                        self._enqueue((adopter, namespace, obj["metadata"]["name"]))

    def _enqueue_services(self, event: LoggedChange) -> None:
        """Services whose endpoints a pod is, was or becomes."""
        pod, before = event.object, event.previous
        if (
            before is not None
            and event.type != DELETED
            and endpoints.stand(before) == endpoints.stand(pod)
        ):
            return
        for service in self._orphans.of(SERVICES.kind, pod["metadata"]["namespace"]):
            if endpoints.selects_pod(service, pod) or (
                before is not None and endpoints.selects_pod(service, before)
            ):
                self._enqueue((SERVICES, pod["metadata"]["namespace"], service["metadata"]["name"]))

    def _enqueue_caches(self, pod: Object) -> None:
        """The runtimes of Fluid whose volumes the pod mounts."""
        namespace = pod["metadata"]["namespace"]
        if self._cluster.count(ALLUXIO_RUNTIMES, namespace):
            for name in mounted_claims(pod):
                self._enqueue((ALLUXIO_RUNTIMES, namespace, name))

    def _enqueue_volumes(self) -> None:
        for volume in self._cluster.scan(PERSISTENT_VOLUMES):
            self._enqueue((PERSISTENT_VOLUMES, "", volume["metadata"]["name"]))

    def _enqueue(self, key: Key) -> None:
        if not self._due:
            self._timers.after(REACTION_SECONDS, self._run_due)
        self._due[key] = None

    def _run_due(self) -> None:
        due, self._due = self._due, {}
        self._run(list(due))

    def _run(self, due: list[Key]) -> None:
        """Reconcile these; after a burst of new objects the rest comes at the same instant, but in
        a step of its own.
        """
        before = self._created
        for number, key in enumerate(due, start=1):
            self._reconcile(key)
            if self._created - before >= BURST and number < len(due):
                self._timers.after(0.0, partial(self._run, due[number:]))
                return

    def _reconcile(self, key: Key) -> None:
        ref, namespace, name = key
        obj = self._cluster.get(ref, namespace, name)
        if obj is None or ("deletionTimestamp" in obj["metadata"] and ref not in _LAST_CARE):
            self._refusals.pop(key, None)
            return
        component, reconcile = CONTROLLERS[ref]
        try:
            plan = reconcile(obj, self._view())
        except _MALFORMED as error:
            self._recorder.warning(
                obj,
                "InvalidSpec",
                f"spec cannot be read: {type(error).__name__}: {error}",
                component,
            )
            return
        self._carry_out(key, obj, plan, component)

    def _view(self) -> View:
        cluster = self._cluster
        return View(
            self._timers.clock.now(),
            self._seed,
            cluster.dependents,
            nodes=lambda: cluster.list(NODES),
            volumes=lambda: cluster.list(PERSISTENT_VOLUMES),
            pods_in=lambda namespace: cluster.list(PODS, namespace),
            pods_on=lambda node: [
                pod for pod in cluster.scan(PODS) if pod["spec"].get("nodeName") == node
            ],
            owner=self._owner,
            orphans=self._orphans.of,
            has_node=lambda name: cluster.get(NODES, None, name) is not None,
            contents=self._contents,
            listed=self._listed,
        )

    def _contents(self, namespace: str) -> dict[str, list[Object]]:
        """The content of a namespace by resource, in its controller's words: `deployments.apps`."""
        kinds = [ref for ref in self._cluster.kinds() if ref.namespaced]
        return {
            f"{ref.plural}.{ref.group}": found
            for ref in kinds
            if (found := self._cluster.list(ref, namespace))
        }

    def _listed(self, version: str, kind: str, namespace: str) -> list[Object]:
        ref = self._cluster.served(version, kind)
        return self._cluster.list(ref, namespace) if ref else []

    def _owner(self, namespace: str, reference: Object) -> Object | None:
        ref = self._cluster.served(reference["apiVersion"], reference["kind"])
        return self._cluster.get(ref, namespace, reference["name"]) if ref else None

    def _carry_out(self, key: Key, obj: Object, plan: Plan, component: str) -> None:
        self._retry(
            key, is_refused=not all(self._create(new, obj, component) for new in plan.create)
        )
        for old, new in plan.change:
            self._change(old, new)
        for gone in plan.delete:
            self._delete(gone)
        if plan.status is not None:
            self._write_status(obj, plan.status)
        for other, status in plan.statuses:
            self._write_status(other, status)
        for gone in plan.force:
            self._delete(gone, grace_seconds=0)
        for kind, reason, message in plan.events:
            (self._recorder.normal if kind == "Normal" else self._recorder.warning)(
                obj, reason, message, component
            )
        for about, reason, message in plan.events_about_others:
            self._recorder.normal(about, reason, message, component)
        if plan.wake_at is not None:
            self._wake(key, plan.wake_at)

    def _create(self, new: Object, owner: Object, component: str) -> bool:
        """Whether it is there now; what comes after a refusal is not tried."""
        self._created += 1
        try:
            self._cluster.create(new)
        except ApiStatus as refusal:
            if refusal.reason != "AlreadyExists":
                self._recorder.warning(
                    owner, "FailedCreate", f"Error creating: {refusal.message}", component
                )
                return False
        return True

    def _retry(self, key: Key, *, is_refused: bool) -> None:
        """Look again at an object whose pods were refused, after longer and longer pauses: what
        they lack may come.
        """
        if not is_refused:
            self._refusals.pop(key, None)
        elif key not in self._retries:
            seconds = min(
                LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** self._refusals.get(key, 0)
            )
            self._refusals[key] = self._refusals.get(key, 0) + 1
            self._retries.add(key)
            self._timers.after(seconds, partial(self._try_again, key))

    def _try_again(self, key: Key) -> None:
        self._retries.discard(key)
        self._enqueue(key)

    def _change(self, old: Object, new: Object) -> None:
        """Carry over what the controller changed; what others wrote meanwhile stays."""
        before, after = old["metadata"], new["metadata"]
        moved = [key for key in _CHANGEABLE if before.get(key) != after.get(key)]
        fields = {key: new[key] for key in new if key not in ("metadata", "status")}

        def changed(now: Object) -> Object:
            metadata = {key: value for key, value in now["metadata"].items() if key not in moved}
            return {
                **now,
                **fields,
                "metadata": metadata | {key: after[key] for key in moved if after.get(key)},
            }

        self._cluster.mutate(
            self._cluster.kind_of(old), before.get("namespace"), before["name"], changed
        )

    def _write_status(self, obj: Object, status: Object) -> None:
        metadata = obj["metadata"]
        self._cluster.mutate(
            self._cluster.kind_of(obj),
            metadata.get("namespace"),
            metadata["name"],
            lambda now: {**now, "status": status} if now.get("status") != status else None,
        )

    def _delete(self, gone: Object, grace_seconds: int | None = None) -> None:
        metadata = gone["metadata"]
        ref, namespace = self._cluster.kind_of(gone), metadata.get("namespace")
        found = self._cluster.get(ref, namespace, metadata["name"])
        if found is not None and found["metadata"]["uid"] == metadata["uid"]:
            self._cluster.delete(ref, namespace, metadata["name"], grace_seconds)

    def _wake(self, key: Key, at: float) -> None:
        """Look again at `at`; one alarm per object and instant is enough."""
        if self._wakes.get(key) == at:
            return
        self._wakes[key] = at
        self._timers.at(at, lambda: self._alarm(key, at))

    def _alarm(self, key: Key, at: float) -> None:
        if self._wakes.get(key) == at:
            del self._wakes[key]
        self._enqueue(key)


def _is_to_adopt(event: LoggedChange) -> bool:
    """Whether an orphan is new, or has new labels, or lost its owner."""
    if event.previous is None:
        return True
    before, now = event.previous["metadata"], event.object["metadata"]
    return bool(
        before.get("labels") != now.get("labels")
        or before.get("ownerReferences") != now.get("ownerReferences")
    )


def _node_stayed(before: Object, now: Object) -> bool:
    """Whether nothing changed that a controller reads: most writes of a node are heartbeats."""
    states = [
        [condition["status"] for condition in conditions_of(node) if condition["type"] == "Ready"]
        for node in (before, now)
    ]
    return (
        before.get("spec") == now.get("spec")
        and before["metadata"].get("labels") == now["metadata"].get("labels")
        and states[0] == states[1]
    )
