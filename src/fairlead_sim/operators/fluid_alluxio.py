"""Fluid's controller of AlluxioRuntimes: it sets up a cache for the Dataset of the same name, binds
the Dataset, and reports how full the cache is.

As in Fluid, a runtime goes after its Dataset: the Dataset is gone while the cache still stops. Left
out: changes of the mounts of a bound Dataset, several masters' journal, the API gateway.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fairlead.wire.data.fluid import CONTROLLER
from fairlead_sim.controllers.plan import Plan, View, is_going
from fairlead_sim.objects.conditions import conditions_of, find_condition, status_of
from fairlead_sim.operators.fluid import (
    RETRY_SECONDS,
    adopted,
    asked_to_end_at,
    dataset_of,
    identity,
    install_fault,
    is_running,
    mounting_pods,
    releases,
    with_fluid_condition,
    without_finalizer,
)
from fairlead_sim.operators.fluid_alluxio_parts import (
    FUSE,
    MASTER,
    WORKER,
    config_maps,
    installed_objects,
    part_name,
    source_fault,
    values_map,
    values_name,
    with_worker_memory,
    with_workers,
    worker_selector,
)
from fairlead_sim.operators.fluid_binding import bind, report_cache, report_fault, unbind
from fairlead_sim.operators.fluid_cache import memory_quota_of, quota_of
from fairlead_sim.operators.fluid_dataset import name_fault
from fairlead_sim.operators.fluid_release import installed_by
from fairlead_sim.operators.fluid_volume import own_claim, own_volume, volume_objects

Object = dict[str, Any]

FINALIZER = "alluxio-runtime-controller-finalizer"
REASON = "ErrorProcessRuntime"
WAITING_SECONDS = 5.0
"""How often it looks for a Dataset that does not exist."""
STOP_SECONDS = 3.0
"""How long it takes to clean the cache and to uninstall the release."""
_READY = ("Ready", "PartialReady")
_COUNTS = ("master", "worker", "fuse")
_SCHEDULED = tuple(
    f"{word}{part}NumberScheduled"
    for word in ("current", "desired")
    for part in ("Master", "Worker", "Fuse")
)


class _Look(NamedTuple):
    """One look at a runtime with its Dataset: `status` is what it will be."""

    obj: Object
    dataset: Object
    status: Object
    view: View
    plan: Plan

    def find(self, kind: str, part: str) -> Object | None:
        namespace = self.obj["metadata"]["namespace"]
        return self.view.find("apps/v1", kind, part_name(self.obj, part), namespace)

    def add(self, kind: str, status: str, reason: str, message: str) -> None:
        """Set a condition of the runtime."""
        self.status["conditions"] = with_fluid_condition(
            self.status["conditions"],
            kind,
            status,
            reason,
            message,
            self.view,
            seen="lastProbeTime",
        )


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    if not is_running(view, CONTROLLER):
        return plan
    if fault := name_fault(obj["metadata"]["name"]):
        plan.warning(REASON, f"Failed to create ddc engine due to error {fault}")
        return plan
    dataset = dataset_of(view, obj)
    if is_going(obj):
        _end(obj, dataset, view, plan)
    elif dataset is None:
        plan.warning(REASON, "No dataset can be bound to the runtime, waiting.")
        plan.wake(view.now + WAITING_SECONDS)
    elif (prepared := with_worker_memory(_labelled(adopted(obj, dataset, FINALIZER)))) != obj:
        plan.change += [(obj, prepared), (dataset, _labelled(dataset))]
    else:
        _live(_Look(obj, dataset, _first_status(obj), view, plan))
    return plan


def _labelled(obj: Object) -> Object:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "fluid.io/dataset-id": identity(obj)}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def _first_status(obj: Object) -> Object:
    phases = {f"{part}Phase": "" for part in _COUNTS}
    ready = {f"{part}NumberReady": 0 for part in _COUNTS}
    fixed = {**phases, **ready, **dict.fromkeys(_SCHEDULED, 0), "valueFile": "", "conditions": []}
    return {**fixed, **status_of(obj)}


# --- setup ----------------------------------------------------------------------------------------


def _live(look: _Look) -> None:
    """Set the cache up, and once the Dataset has been Ready, keep its reports fresh."""
    if find_condition(conditions_of(look.dataset), "Ready") is None:
        fault = _set_up(look)
        event, word = "Failed to setup ddc engine due to error", "NotReady"
    else:
        fault = _keep(look)
        event, word = "Failed to sync the ddc due to", ""
    if fault:
        look.plan.warning(REASON, f"{event} {fault}")
        look.plan.wake(look.view.now + RETRY_SECONDS)
        if word:
            report_fault(look.dataset, fault, look.view, look.plan)
    if look.status != _first_status(look.obj):
        look.plan.status = look.status


def _set_up(look: _Look) -> str:
    """Why it cannot go on; "" while it only waits, and when it is done."""
    master, workers = look.find("StatefulSet", MASTER), look.find("StatefulSet", WORKER)
    name, namespace = look.obj["metadata"]["name"], look.obj["metadata"]["namespace"]
    if master is None:
        if releases(look.view, namespace, name):
            look.plan.create.append(values_map(look.obj, look.dataset))
            return f'StatefulSet.apps "{part_name(look.obj, MASTER)}" not found'
        if fault := install_fault("alluxio", name) or source_fault(look.obj, look.dataset):
            look.plan.create.append(values_map(look.obj, look.dataset))
            return fault
        look.plan.create += installed_objects(look.obj, look.dataset, look.view.now)
        return ""
    _report_master(look, master)
    if look.status["masterPhase"] not in _READY:
        return ""
    if workers is None:
        return f'StatefulSet.apps "{part_name(look.obj, WORKER)}" not found'
    is_scaling = _scale(look, workers)
    if not is_scaling:
        _report_workers(look, workers)
    if look.status["workerPhase"] in _READY and not is_scaling:
        look.plan.create += _lost_volume(look)
        bind(look.obj, look.dataset, look.status, look.view, look.plan)
    else:
        report_cache(look.obj, look.dataset, look.status, look.view, look.plan)
    return ""


def _keep(look: _Look) -> str:
    """Why the cache is not healthy; "": it is."""
    master, workers = look.find("StatefulSet", MASTER), look.find("StatefulSet", WORKER)
    fuse = look.find("DaemonSet", FUSE)
    if master is None or not master["spec"].get("replicas", 1):
        missing = f'StatefulSet.apps "{part_name(look.obj, MASTER)}" not found'
        return f"the master engine does not exist: {missing if master is None else None}"
    if workers is None:
        look.status["workerPhase"] = "NotReady"
        unbind(look.dataset, look.view, look.plan)
        return "the master engine does not exist: " + (
            f'StatefulSet.apps "{part_name(look.obj, WORKER)}" not found'
        )
    look.plan.create += _lost_volume(look)
    _scale(look, workers)
    _report_master(look, master)
    _report_workers(look, workers)
    expects = "is not healthy, expect at least one replica is ready"
    for part in (MASTER, WORKER):
        if look.status[f"{part}Phase"] not in _READY:
            return f'the {part} "{part_name(look.obj, part)}" {expects}'
    _report_fuse(look, fuse)
    _label_nodes(look)
    bind(look.obj, look.dataset, look.status, look.view, look.plan)
    return ""


def _lost_volume(look: _Look) -> list[Object]:
    """The volume and the claim that do not exist. A foreign object of the name stays as it is."""
    found = look.view.find
    return [
        each
        for each in volume_objects(look.dataset)
        if found("v1", each["kind"], (meta := each["metadata"])["name"], meta.get("namespace", ""))
        is None
    ]


def _scale(look: _Look, workers: Object) -> bool:
    """Give the workers the replicas of the runtime; whether they had others."""
    new = with_workers(workers, look.obj, look.dataset)
    before, now = workers["spec"].get("replicas", 1), new["spec"]["replicas"]
    if before == now:
        return False
    look.plan.change.append((workers, new))
    if not look.status.get("workerPhase"):
        look.add(
            "WorkersInitialized", "True", "Workers are initialized", "The workers are initialized."
        )
        return True
    word = "in" if now < before else "out"
    message = f"Workers scaled {word} from {before} replicas to {now} replicas."
    look.add(f"WorkersScaled{word.title()}", "True", f"Workers scaled {word}", message)
    look.plan.normal("Succeed", f"Runtime scaled {word}")
    return True


# --- what it sees ---------------------------------------------------------------------------------


def phase_of_set(wanted: int, ready: int) -> str:
    """
    >>> [phase_of_set(2, ready) for ready in (0, 1, 2)], phase_of_set(0, 0)
    (['NotReady', 'PartialReady', 'Ready'], 'Ready')
    """
    if not wanted:
        return "Ready"
    return "NotReady" if not ready else "Ready" if ready >= wanted else "PartialReady"


def _counted(look: _Look, part: str, workload: Object) -> str:
    """Write the numbers of a StatefulSet into the status; returns its phase."""
    status, title = status_of(workload), part.title()
    wanted, ready = int(workload["spec"].get("replicas", 1)), int(status.get("readyReplicas") or 0)
    look.status[f"desired{title}NumberScheduled"] = wanted
    look.status[f"current{title}NumberScheduled"] = int(status.get("replicas") or 0)
    look.status[f"{part}NumberReady"] = ready
    look.status[f"{part}Phase"] = phase_of_set(wanted, ready)
    return str(look.status[f"{part}Phase"])


_WORDS = {"Ready": "ready", "PartialReady": "partially ready", "NotReady": "not ready"}


def _report_master(look: _Look, master: Object) -> None:
    phase = _counted(look, MASTER, master)
    look.status["selector"] = worker_selector(look.obj)
    look.status["valueFile"] = values_name(look.obj)
    look.add("MasterInitialized", "True", "Master is initialized", "The master is initialized.")
    message = f"The master is {_WORDS[phase]}."
    look.add("MasterReady", str(phase in _READY), "Master is ready", message)


def _report_workers(look: _Look, workers: Object) -> None:
    phase, status = _counted(look, WORKER, workers), status_of(workers)
    available = int(status.get("availableReplicas") or 0)
    missing = max(0, int(status.get("replicas") or 0) - available)
    _set_known(look, "workerNumberAvailable", available)
    _set_known(look, "workerNumberUnavailable", missing)
    message = f"The workers are {_WORDS[phase]}."
    look.add("WorkersReady", str(phase in _READY), "Workers are ready", message)


def _set_known(look: _Look, key: str, count: int) -> None:
    """A number that Fluid leaves out if it is 0."""
    look.status.pop(key, None)
    if count:
        look.status[key] = count


def _report_fuse(look: _Look, fuse: Object | None) -> None:
    """Fluid takes fuse for ready, whatever its pods do."""
    status = status_of(fuse) if fuse is not None else {}
    look.status["desiredFuseNumberScheduled"] = status.get("desiredNumberScheduled", 0)
    look.status["currentFuseNumberScheduled"] = status.get("currentNumberScheduled", 0)
    look.status["fuseNumberReady"] = status.get("numberReady", 0)
    _set_known(look, "fuseNumberAvailable", status.get("numberAvailable", 0))
    _set_known(look, "fuseNumberUnavailable", status.get("numberUnavailable", 0))
    look.status["fusePhase"] = "Ready"
    look.status["fuseReason"] = "Fuses are ready"
    look.add("FusesReady", "True", "Fuses are ready", "The fuses are ready.")


def _label_nodes(look: _Look) -> None:
    """Nodes with a worker, and nodes with a pod that mounts the data set, get Fluid's labels. A
    node that a worker has left loses those of the cache.
    """
    cache = _cache_labels(look.dataset, look.obj)
    metadata = look.obj["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    wanted: dict[str, dict[str, str]] = {}
    for pod in look.view.pods_in(namespace):
        labels = pod["metadata"].get("labels") or {}
        if (labels.get("release"), labels.get("role")) == (name, "alluxio-worker"):
            _want(wanted, pod, cache)
    for pod in mounting_pods(look.view, namespace, name):
        _want(wanted, pod, {identity(look.dataset, "fluid.io/f-"): "true"})
    for node in look.view.nodes() if wanted else ():
        labels = node["metadata"].get("labels") or {}
        more = wanted.get(node["metadata"]["name"], {})
        left = cache.keys() - more.keys()
        if not more.items() <= labels.items() or left & labels.keys():
            kept = {key: each for key, each in labels.items() if key not in left}
            new = {**node["metadata"], "labels": {**kept, **more}}
            look.plan.change.append((node, {**node, "metadata": new}))


def _want(wanted: dict[str, dict[str, str]], pod: Object, labels: dict[str, str]) -> None:
    if node := pod["spec"].get("nodeName"):
        wanted.setdefault(node, {}).update(labels)


def _cache_labels(dataset: Object, runtime: Object) -> dict[str, str]:
    """Of a node with a worker: that there is one, and its memory, disk and both together."""
    memory, total = memory_quota_of(runtime), quota_of(runtime)
    sizes = {"m": memory, "d": total - memory, "t": total}
    return {
        identity(dataset, "fluid.io/s-"): "true",
        identity(dataset, "fluid.io/s-alluxio-"): "true",
        **{
            identity(dataset, f"fluid.io/s-h-alluxio-{key}-"): f"{size >> 30}GiB"
            for key, size in sizes.items()
            if size
        },
    }


# --- the end --------------------------------------------------------------------------------------


def _end(obj: Object, dataset: Object | None, view: View, plan: Plan) -> None:
    """First the volume, then the release; at last the runtime's finalizer."""
    if FINALIZER not in (obj["metadata"].get("finalizers") or ()):
        return
    name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
    claim, volume = own_claim(view, obj), own_volume(view, obj)
    if claim is not None and mounting_pods(view, namespace, name):
        what = f"the PVC {name} in ns {namespace} is not cleaned up after 10-second retry"
        plan.warning(REASON, f"Failed to delete volume {what}")
        plan.wake(view.now + RETRY_SECONDS)
        return
    plan.delete += [each for each in (claim, volume) if each is not None]
    stopped_at = asked_to_end_at(obj) + STOP_SECONDS
    if view.now < stopped_at:
        plan.wake(stopped_at)
        return
    plan.delete += _parts(obj, view)
    _clear_nodes(obj, view, plan)
    if dataset is not None:
        unbind(dataset, view, plan, is_gone=True)
    plan.change.append((obj, without_finalizer(obj, FINALIZER)))


def _parts(obj: Object, view: View) -> list[Object]:
    """The release of the name, even a foreign one, and what it installed."""
    namespace, uid = obj["metadata"]["namespace"], obj["metadata"]["uid"]
    maps = [view.find("v1", "ConfigMap", name, namespace) for name in config_maps(obj)]
    found = releases(view, namespace, obj["metadata"]["name"])
    parts = [
        *found,
        *(each for release in found for each in installed_by(view, release)),
        *(each for each in view.owned(uid) if each["kind"] in ("StatefulSet", "DaemonSet")),
        *(each for each in maps if each is not None),
    ]
    return list({each["metadata"]["uid"]: each for each in parts}.values())


def _clear_nodes(obj: Object, view: View, plan: Plan) -> None:
    """Take Fluid's labels of this data set from the nodes. A uid in their place is of the Dataset,
    which may be gone: the owner reference still names it.
    """
    owner: Object = next(iter(obj["metadata"].get("ownerReferences") or ()), {})
    metadata = {**obj["metadata"], "uid": owner.get("uid", "")}
    dataset = {"metadata": metadata}
    ended = {*_cache_labels(dataset, obj), identity(dataset, "fluid.io/f-")}
    for node in view.nodes():
        labels = node["metadata"].get("labels") or {}
        if ended & labels.keys():
            kept = {key: each for key, each in labels.items() if key not in ended}
            new = {**node["metadata"], "labels": kept}
            plan.change.append((node, {**node, "metadata": new}))
