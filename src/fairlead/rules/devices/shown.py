"""What may be shown of the devices' last snapshot, judged: what no card can have or is too old is left out.

A value is dropped when it is stale and never repeated (docs/spec/telemetry.md#sampling-and-fault-isolation);
a device stays, with `up` False, so that alerts on it can fire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, structs

from fairlead.model.devices.device import LEAST_STALE_SECONDS, DeviceSample, DeviceSnapshot
from fairlead.model.devices.plausible_values import BadLine, bad_value, sound_values
from fairlead.model.devices.readings import GpuProcess
from fairlead.rules.devices.container_use import unknown_use
from fairlead.rules.devices.health_checks import health_checks, is_healthy

_BEATS_MISSED: Final = 3.0

_LIMIT: Final = "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"
_OF_PROCESSES: Final = {"memory_bytes": "DCGM_FI_DEV_FB_USED_BYTES", "sm_percent": "DCGM_FI_DEV_GPU_UTIL"}
"""Whose bounds they have."""

Fields = Mapping[str, int | float]
Seen = tuple[GpuProcess, ...] | None


class RefusedValue(Struct, frozen=True, gc=False):
    """A value that is none. `gpu`: the card's index as text; `field`: DCGM's name, or what of a process."""

    node: str
    gpu: str
    field: str
    why: BadLine
    value: float


class ShownDevices(Struct, frozen=True):
    """`refused`: values of the cards and of their instances that are none."""

    samples: tuple[DeviceSample, ...]
    refused: tuple[RefusedValue, ...]


def stale_after(every_seconds: float) -> float:
    """How old a value may be that is read so often.

    >>> stale_after(1.0), stale_after(60.0)
    (15.0, 180.0)
    """
    return max(_BEATS_MISSED * every_seconds, LEAST_STALE_SECONDS)


def shown(snapshot: DeviceSnapshot, stale_seconds: float, now: float) -> ShownDevices:
    """The devices with the values that are fresh, all in `fields`. `stale_seconds`: of those read most often.

    `now`: the instant of the snapshot in epoch seconds.

    >>> old = DeviceSample("n", 0, 0, "GPU-a", "", "", "", True, {"DCGM_FI_DEV_GPU_UTIL": 5}, sampled_at=10.0)
    >>> (seen,) = shown(DeviceSnapshot(2, 30.0, (old,)), 15.0, 0.0).samples
    >>> seen.up, seen.fields, seen.sampled_at
    (False, {}, 10.0)
    """
    refused: list[RefusedValue] = []
    samples = []
    for sample in snapshot.devices:
        is_fresh = snapshot.at - sample.sampled_at <= stale_seconds
        told = _fresh(sample, snapshot.at) if is_fresh else {}
        fields = _sound(sample, told, refused)
        if is_fresh:
            sample = _with_sound_parts(sample, refused)
        is_up = sample.up and is_fresh
        if not is_fresh:
            sample = structs.replace(_without_use(sample), throttle_reasons=None, power_limit_watts=None)
        if fields is not sample.fields or is_up is not sample.up or sample.slower:
            sample = structs.replace(sample, fields=fields, slower=(), up=is_up)
        checks = health_checks(sample, now)
        samples.append(structs.replace(sample, health_checks=checks, healthy=is_healthy(sample, checks)))
    return ShownDevices(tuple(samples), tuple(refused))


def _sound(sample: DeviceSample, fields: Fields, refused: list[RefusedValue]) -> Fields:
    sound, bad = sound_values(fields)
    refused += [RefusedValue(sample.node, str(sample.index), name, why, fields[name]) for name, why in bad.items()]
    return sound


def _with_sound_parts(sample: DeviceSample, refused: list[RefusedValue]) -> DeviceSample:
    """What stands beside the card's own fields: its limit, its instances, the processes."""
    limit = sample.power_limit_watts
    if limit is not None and bad_value(_LIMIT, limit) is not None:
        sample = structs.replace(sample, power_limit_watts=None)  # the field itself is counted
    seen = _sound_processes(sample, sample.seen, refused)
    if seen is not sample.seen:
        sample = structs.replace(sample, seen=seen)
    if not sample.instances:
        return sample
    instances = tuple(
        structs.replace(each, fields=_sound(sample, each.fields, refused), seen=_sound_processes(sample, each.seen, refused))
        for each in sample.instances
    )
    return structs.replace(sample, instances=instances)


def _sound_processes(sample: DeviceSample, seen: Seen, refused: list[RefusedValue]) -> Seen:
    found: list[GpuProcess] = []
    for each in seen or ():
        for name, value in (("memory_bytes", each.memory_bytes), ("sm_percent", each.sm_percent)):
            if value is not None and (why := bad_value(_OF_PROCESSES[name], value)) is not None:
                refused.append(RefusedValue(sample.node, str(sample.index), f"{name} of process {each.pid}", why, value))
                each = structs.replace(each, **{name: None})
        found.append(each)
    return seen if seen is None or all(one is other for one, other in zip(found, seen, strict=True)) else tuple(found)


def _without_use(sample: DeviceSample) -> DeviceSample:
    """Who holds a card is known without its driver; what they use of it is as old as the rest."""
    instances = tuple(structs.replace(each, fields={}, seen=None, processes=unknown_use(each.processes)) for each in sample.instances)
    return structs.replace(sample, seen=None, processes=unknown_use(sample.processes), instances=instances, knows_foreign=False)


def _fresh(sample: DeviceSample, at: float) -> Fields:
    """A slower group first: what is read more often is told in its place."""
    groups = [group.fields for group in sample.slower if at - group.read_at <= stale_after(group.every_seconds)]
    if not groups or not sample.fields:
        return sample.fields
    merged: dict[str, int | float] = {}
    for fields in (*groups, sample.fields):
        merged |= fields
    return merged
