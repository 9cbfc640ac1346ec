"""How full the cache of a simulated data set is, and how large its source is. Pure functions of
objects and time.

The source has no content here: its size and its number of files depend on the seed and on its name.
The cache grows while a DataLoad runs and while pods that mount the data set run. Alluxio is asked
every 20 seconds, so amounts change only at these instants.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from fairlead.wire.data.fluid import parse_bytes
from fairlead.wire.kube.quantity import parse_quantity
from fairlead.wire.kube.time import parse_time
from fairlead_sim.controllers.plan import View
from fairlead_sim.objects.chance import between, fraction
from fairlead_sim.objects.conditions import is_true, phase_of, status_of
from fairlead_sim.operators.fluid import API_VERSION, OPERATION, mounting_pods

Object = dict[str, Any]

SYNC_SECONDS = 20.0
LOAD_RATE = 50 << 20
"""Bytes per second that a DataLoad brings into each worker."""
READ_RATE = 25 << 20
"""Bytes per second that a pod reads which were not in the cache."""
CALCULATING = "[Calculating]"
"""What Fluid writes as an amount until Alluxio has listed the source."""
LOAD_ROLES = ("dataload-job", "dataload-pod")
"""The label `role` of a DataLoad's Job; one that a CronJob makes has the label of its pod."""
LOAD_SUFFIX = "-loader"
"""The end of the name of a DataLoad's release."""
_WHOLE = "/"
_STARTS_IN_SECONDS = 5
_LIST_SECONDS = (8.0, 35.0)
_FILLED = (0.3, 0.8)
_FILE_BYTES = (64 << 10, 4 << 20)
_UNKNOWN_SIZE = 10 << 30
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_CLAIM = "pvc://"


class DataSource(NamedTuple):
    """Bytes and files of what a data set mounts; seconds that listing it takes."""

    size: int
    files: int
    list_seconds: float


def claims_of_source(dataset: Object) -> list[tuple[str, str]]:
    """The claims that the data set mounts, each with the folder below it.

    >>> claims_of_source({"spec": {"mounts": [{"mountPoint": "pvc://raw/2026/a"}]}})
    [('raw', '2026/a')]
    """
    points = [mount["mountPoint"] for mount in dataset["spec"].get("mounts") or ()]
    cut = (
        point.removeprefix(_CLAIM).partition("/") for point in points if point.startswith(_CLAIM)
    )
    return [(claim, folder) for claim, _, folder in cut]


def source_of(dataset: Object, view: View) -> DataSource:
    """Of a claim, between 30 and 80 percent of its capacity."""
    namespace = dataset["metadata"]["namespace"]
    size, names = 0, []
    for mount in dataset["spec"].get("mounts") or ():
        point = mount["mountPoint"]
        claim = point.removeprefix(_CLAIM).partition("/")[0] if point.startswith(_CLAIM) else ""
        room = _claim_size(namespace, claim, view) if claim else _UNKNOWN_SIZE
        size += int(room * between(view.seed, *_FILLED, "source", namespace, point))
        names.append(point)
    each = between(view.seed, *_FILE_BYTES, "file", namespace, *names)
    seconds = between(view.seed, *_LIST_SECONDS, "list", namespace, *names)
    return DataSource(size, max(1, int(size / each)), seconds)


def _claim_size(namespace: str, claim: str, view: View) -> int:
    found = view.find("v1", "PersistentVolumeClaim", claim, namespace)
    if found is None:
        return _UNKNOWN_SIZE
    asked = (found["spec"].get("resources") or {}).get("requests") or {}
    amount = (status_of(found).get("capacity") or {}).get("storage") or asked.get("storage")
    return parse_quantity(amount) if amount else _UNKNOWN_SIZE


def bytes_text(amount: float) -> str:
    """An amount as Fluid writes it.

    >>> bytes_text(0), bytes_text(3 << 29), bytes_text(512 << 20)
    ('0.00B', '1.50GiB', '512.00MiB')
    """
    unit = 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.2f}{_UNITS[unit]}"


def quota_of(runtime: Object) -> int:
    """Bytes of cache of one worker, over all its media."""
    return sum(_level_quota(level) for level in _levels(runtime))


def memory_quota_of(runtime: Object) -> int:
    """Bytes of its memory; Fluid asks for them on behalf of the worker's pod."""
    return sum(
        _level_quota(level) for level in _levels(runtime) if level.get("mediumtype") == "MEM"
    )


def _levels(runtime: Object) -> list[Object]:
    return list((runtime["spec"].get("tieredstore") or {}).get("levels") or ())


def _level_quota(level: Object) -> int:
    amounts = (level.get("quotaList") or "").split(",") if level.get("quotaList") else []
    amounts = amounts or ([level["quota"]] if "quota" in level else [])
    return sum(parse_quantity(str(amount)) for amount in amounts)


# --- growth ---------------------------------------------------------------------------------------


class CacheLook(NamedTuple):
    """What the cache holds at the newest instant at which Alluxio was asked, in bytes; whether it
    still grows.
    """

    cached: int
    capacity: int
    grows: bool


def cache_of(runtime: Object, dataset: Object, workers: int, total: int, view: View) -> CacheLook:
    """`workers`: those that are ready. `total`: the size of the source.

    What was read stays in the cache when its reader is gone, as far as the workers have room.
    """
    name, namespace = dataset["metadata"]["name"], dataset["metadata"]["namespace"]
    at = last_sync(dataset, view.now)
    loads = _loads(view, namespace, name)
    readers = mounting_pods(view, namespace, name)
    brought = sum(_loaded(load, workers, total, at, view) for load in loads)
    brought += sum(
        READ_RATE * max(0.0, at - begun) for begun in map(_running_since, readers) if begun
    )
    before = (status_of(runtime).get("cacheStates") or {}).get("cached") or ""
    capacity = workers * quota_of(runtime)
    limit = min(total, capacity)
    cached = min(limit, max(parse_bytes(before) or 0, int(brought)))
    is_loaded = any(not is_true(load, "Complete") and not is_true(load, "Failed") for load in loads)
    grows = cached < limit and (is_loaded or bool(readers))
    return CacheLook(cached, capacity, grows)


def last_sync(dataset: Object, now: float) -> float:
    begun = parse_time(dataset["metadata"]["creationTimestamp"])
    return begun + math.floor(max(0.0, now - begun) / SYNC_SECONDS) * SYNC_SECONDS


def next_sync(dataset: Object, now: float) -> float:
    return last_sync(dataset, now) + SYNC_SECONDS


def _loads(view: View, namespace: str, name: str) -> list[Object]:
    """The Jobs that bring the data set into the cache."""
    return [
        job
        for job in view.listed("batch/v1", "Job", namespace)
        if (labels := job["metadata"].get("labels") or {}).get("role") in LOAD_ROLES
        and labels.get("targetDataset") == name
    ]


def _loaded(job: Object, workers: int, total: int, at: float, view: View) -> float:
    name = str(job["metadata"]["labels"].get("release", "")).removesuffix(LOAD_SUFFIX)
    load = view.find(API_VERSION, OPERATION, name, job["metadata"]["namespace"])
    wanted = share_of(load, total, view.seed) if load is not None else total
    if is_true(job, "Complete"):
        return wanted
    begun = status_of(job).get("startTime")
    if not begun or not status_of(job).get("active"):
        return 0.0
    seconds = max(0.0, at - parse_time(begun) - _STARTS_IN_SECONDS)
    return min(wanted, LOAD_RATE * workers * seconds)


def _running_since(pod: Object) -> float | None:
    if phase_of(pod) != "Running":
        return None
    since = status_of(pod).get("startTime")
    return parse_time(since) if since else None


def share_of(load: Object, total: int, seed: int) -> float:
    """The bytes that a DataLoad is to bring: all, or those of the folders that it names."""
    targets = [target["path"] for target in load["spec"].get("target") or ()]
    if not targets or _WHOLE in targets:
        return total
    return total * min(1.0, sum(_folder_share(targets, seed)))


def _folder_share(paths: Iterable[str], seed: int) -> list[float]:
    return [0.1 + 0.3 * fraction(seed, "folder", path) for path in dict.fromkeys(paths)]


def load_seconds(load: Object, total: int, workers: int, seed: int) -> int:
    """How long the program of a DataLoad runs."""
    rate = LOAD_RATE * max(1, workers)
    return _STARTS_IN_SECONDS + math.ceil(share_of(load, total, seed) / rate)
