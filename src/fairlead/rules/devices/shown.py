"""The last snapshot's values that may be shown: impossible and stale ones are dropped.

A stale value is dropped, never repeated (docs/spec/telemetry.md#sampling-and-fault-isolation); its
device stays, with `up` False, so that alerts on it can fire.
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
_OF_PROCESSES: Final = {
    "memory_bytes": "DCGM_FI_DEV_FB_USED_BYTES",
    "sm_percent": "DCGM_FI_DEV_GPU_UTIL",
}
"""Fields whose bounds apply to values of processes."""

Fields = Mapping[str, int | float]
GpuProcesses = tuple[GpuProcess, ...] | None


class RefusedValue(Struct, frozen=True, gc=False):
    """An impossible value.

    `gpu`: the card's index as text; `field`: DCGM's name, or the value of a process.
    """

    node: str
    gpu: str
    field: str
    why: BadLine
    value: float


class ShownDevices(Struct, frozen=True):
    """`refused`: impossible values of the cards and of their instances."""

    samples: tuple[DeviceSample, ...]
    refused: tuple[RefusedValue, ...]


def stale_after(every_seconds: float) -> float:
    """How old a value may be that is read every `every_seconds`.

    >>> stale_after(1.0), stale_after(60.0)
    (15.0, 180.0)
    """
    return max(_BEATS_MISSED * every_seconds, LEAST_STALE_SECONDS)


def shown(snapshot: DeviceSnapshot, stale_seconds: float, now: float) -> ShownDevices:
    """The devices with their fresh values, all in `fields`.

    `stale_seconds`: for the values read most often.

    `now`: the time of the snapshot in epoch seconds.

    >>> values = {"DCGM_FI_DEV_GPU_UTIL": 5}
    >>> old = DeviceSample("n", 0, 0, "GPU-a", "", "", "", True, values, sampled_at=10.0)
    >>> (seen,) = shown(DeviceSnapshot(2, 30.0, (old,)), 15.0, 0.0).samples
    >>> seen.up, seen.fields, seen.sampled_at
    (False, {}, 10.0)
    """
    refused: list[RefusedValue] = []
    samples = []
    for sample in snapshot.devices:
        is_fresh = snapshot.at - sample.sampled_at <= stale_seconds
        fresh = _fresh(sample, snapshot.at) if is_fresh else {}
        fields = _sound(sample, fresh, refused)
        if is_fresh:
            sample = _with_sound_parts(sample, refused)
        is_up = sample.up and is_fresh
        if not is_fresh:
            sample = structs.replace(
                _without_use(sample), throttle_reasons=None, power_limit_watts=None
            )
        if fields is not sample.fields or is_up is not sample.up or sample.slower:
            sample = structs.replace(sample, fields=fields, slower=(), up=is_up)
        checks = health_checks(sample, now)
        samples.append(
            structs.replace(sample, health_checks=checks, healthy=is_healthy(sample, checks))
        )
    return ShownDevices(tuple(samples), tuple(refused))


def _sound(sample: DeviceSample, fields: Fields, refused: list[RefusedValue]) -> Fields:
    sound, bad = sound_values(fields)
    refused += [
        RefusedValue(sample.node, str(sample.index), name, why, fields[name])
        for name, why in bad.items()
    ]
    return sound


def _with_sound_parts(sample: DeviceSample, refused: list[RefusedValue]) -> DeviceSample:
    """Checks what is stored beside the card's own fields: its
    limit, its instances, the processes.
    """
    limit = sample.power_limit_watts
    if limit is not None and bad_value(_LIMIT, limit) is not None:
        sample = structs.replace(sample, power_limit_watts=None)  # the field is counted as refused
    seen = _sound_processes(sample, sample.seen, refused)
    if seen is not sample.seen:
        sample = structs.replace(sample, seen=seen)
    if not sample.instances:
        return sample
    instances = tuple(
        structs.replace(
            each,
            fields=_sound(sample, each.fields, refused),
            seen=_sound_processes(sample, each.seen, refused),
        )
        for each in sample.instances
    )
    return structs.replace(sample, instances=instances)


def _sound_processes(
    sample: DeviceSample, seen: GpuProcesses, refused: list[RefusedValue]
) -> GpuProcesses:
    found: list[GpuProcess] = []
    for each in seen or ():
        for name, value in (("memory_bytes", each.memory_bytes), ("sm_percent", each.sm_percent)):
            if value is not None and (why := bad_value(_OF_PROCESSES[name], value)) is not None:
                refused.append(
                    RefusedValue(
                        sample.node,
                        str(sample.index),
                        f"{name} of process {each.pid}",
                        why,
                        value,
                    )
                )
                each = structs.replace(each, **{name: None})
        found.append(each)
    return (
        seen
        if seen is None or all(one is other for one, other in zip(found, seen, strict=True))
        else tuple(found)
    )


def _without_use(sample: DeviceSample) -> DeviceSample:
    """The holders of a card, known without its driver.

    What they use is as old as the other values.
    """
    instances = tuple(
        structs.replace(each, fields={}, seen=None, processes=unknown_use(each.processes))
        for each in sample.instances
    )
    return structs.replace(
        sample,
        seen=None,
        processes=unknown_use(sample.processes),
        instances=instances,
        knows_foreign=False,
    )


def _fresh(sample: DeviceSample, at: float) -> Fields:
    """Slower groups come first: what is read more often replaces them."""
    groups = [
        group.fields
        for group in sample.slower
        if at - group.read_at <= stale_after(group.every_seconds)
    ]
    if not groups or not sample.fields:
        return sample.fields
    merged: dict[str, int | float] = {}
    for fields in (*groups, sample.fields):
        merged |= fields
    return merged
