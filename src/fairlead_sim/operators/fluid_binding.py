"""What the controller of a runtime writes into the status of its Dataset: the phase, the runtime,
and how much of the source is in the cache.
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.controllers.plan import Plan, View
from fairlead_sim.objects.conditions import find_condition, status_of
from fairlead_sim.operators.fluid import with_fluid_condition
from fairlead_sim.operators.fluid_alluxio_parts import RPC_PORT
from fairlead_sim.operators.fluid_cache import (
    CALCULATING,
    bytes_text,
    cache_of,
    next_sync,
    source_of,
)

Object = dict[str, Any]

_SEEN = "lastUpdateTime"
_RATIOS = tuple(
    f"{part}{what}"
    for what in ("HitRatio", "ThroughputRatio")
    for part in ("cache", "local", "remote")
)


def bind(runtime: Object, dataset: Object, status: Object, view: View, plan: Plan) -> None:
    """The Dataset is Bound. `status`: of the runtime, which gets the state of the cache, too."""
    name, namespace = dataset["metadata"]["name"], dataset["metadata"]["namespace"]
    before = status_of(dataset)
    new = {**before, **_amounts(runtime, dataset, status, view, plan)}
    conditions = before.get("conditions") or []
    if before.get("phase") != "Bound":
        conditions = _ready(conditions, "True", "The ddc runtime is ready.", view)
    own = {"name": name, "namespace": namespace, "category": "Accelerate", "type": "alluxio"}
    masters = (runtime["spec"].get("master") or {}).get("replicas")
    new |= {
        "phase": "Bound",
        "conditions": conditions,
        "mounts": before.get("mounts") or dataset["spec"].get("mounts") or [],
        "runtimes": before.get("runtimes")
        or [own | ({"masterReplicas": masters} if masters else {})],
        "hcfs": before.get("hcfs")
        or {"endpoint": f"alluxio://{name}-master-0.{namespace}:{RPC_PORT}"},
    }
    plan.statuses.append((dataset, new))


def _ready(conditions: list[Object], status: str, message: str, view: View) -> list[Object]:
    return with_fluid_condition(
        conditions, "Ready", status, "DatasetReady", message, view, seen=_SEEN
    )


def report_cache(runtime: Object, dataset: Object, status: Object, view: View, plan: Plan) -> None:
    """The size of the source, which Alluxio lists once its master is ready."""
    amounts = _amounts(runtime, dataset, {**status}, view, plan)
    before = status_of(dataset)
    sizes = {key: amounts[key] for key in ("ufsTotal", "fileNum")}
    plan.statuses.append((dataset, {"conditions": [], **before, **sizes}))


def report_fault(dataset: Object, fault: str, view: View, plan: Plan) -> None:
    """A setup failed."""
    before = status_of(dataset)
    conditions = with_fluid_condition(
        before.get("conditions") or [],
        "NotReady",
        "True",
        "DatasetFailedToSetup",
        fault,
        view,
        seen=_SEEN,
    )
    plan.statuses.append((dataset, {**before, "conditions": conditions}))


def unbind(dataset: Object, view: View, plan: Plan, *, is_gone: bool = False) -> None:
    """The Dataset has Failed; `is_gone`: its runtime ended, and it is as before."""
    before = status_of(dataset)
    if is_gone:
        ended = ("ufsTotal", "fileNum", "runtimes", "hcfs", "cacheStates")
        kept = {key: each for key, each in before.items() if key not in ended}
        plan.statuses.append((dataset, {**kept, "phase": "NotBound", "conditions": []}))
        return
    message = "The ddc runtime is not ready."
    conditions = _ready(before.get("conditions") or [], "False", message, view)
    plan.statuses.append((dataset, {**before, "phase": "Failed", "conditions": conditions}))


def _amounts(runtime: Object, dataset: Object, status: Object, view: View, plan: Plan) -> Object:
    """`ufsTotal`, `fileNum` and `cacheStates` of the Dataset; the last is the runtime's, too."""
    source = source_of(dataset, view)
    listed_at = _master_ready_at(status, view) + source.list_seconds
    before = status_of(dataset).get("ufsTotal") or ""
    is_listed = before not in ("", CALCULATING) or bool(before and view.now >= listed_at)
    cache = cache_of(runtime, dataset, status["workerNumberReady"], source.size, view)
    if not is_listed:
        plan.wake(max(view.now, listed_at))
    elif cache.grows:
        plan.wake(next_sync(dataset, view.now))
    states = {
        "cached": bytes_text(cache.cached),
        "cacheCapacity": bytes_text(cache.capacity),
        "cachedPercentage": f"{100 * cache.cached / max(1, source.size):.1f}%" if is_listed else "",
        **dict.fromkeys(_RATIOS, "0.0%"),
    }
    status["cacheStates"] = states
    if before not in ("", CALCULATING):
        known = {"ufsTotal": before, "fileNum": status_of(dataset).get("fileNum", "")}
    else:
        known = {
            "ufsTotal": bytes_text(source.size) if is_listed else CALCULATING,
            "fileNum": str(source.files) if is_listed else CALCULATING,
        }
    return {**known, "cacheStates": states}


def _master_ready_at(status: Object, view: View) -> float:
    condition = find_condition(status["conditions"], "MasterReady")
    return parse_time(condition["lastTransitionTime"]) if condition else view.now
