"""What may be shown of the devices' last snapshot, judged: values that are no number or too old are left out.

A value is dropped when it is stale and never repeated (telemetry contract 1.14); a device stays, with `up`
False, so that alerts on it can fire.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Final

from msgspec import Struct, structs

from fairlead.model.devices.device import LEAST_STALE_SECONDS, DeviceSample, DeviceSnapshot
from fairlead.rules.devices.container_use import unknown_use
from fairlead.rules.devices.health_checks import health_checks, is_healthy

_BEATS_MISSED: Final = 3.0

Fields = Mapping[str, int | float]


class ShownDevices(Struct, frozen=True):
    """`refused`: how many values of each device were no numbers, by (node, GPU's index as text)."""

    samples: tuple[DeviceSample, ...]
    refused: Mapping[tuple[str, str], int]


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
    refused: dict[tuple[str, str], int] = {}
    samples = []
    for sample in snapshot.devices:
        is_fresh = snapshot.at - sample.sampled_at <= stale_seconds
        fields = _fresh(sample, snapshot.at) if is_fresh else {}
        if not all(map(isfinite, fields.values())):
            numbers = {name: value for name, value in fields.items() if isfinite(value)}
            refused[sample.node, str(sample.index)] = len(fields) - len(numbers)
            fields = numbers
        is_up = sample.up and is_fresh
        if not is_fresh:
            sample = _without_use(sample)
        if fields is not sample.fields or is_up is not sample.up or sample.slower:
            sample = structs.replace(sample, fields=fields, slower=(), up=is_up)
        checks = health_checks(sample, now)
        samples.append(structs.replace(sample, health_checks=checks, healthy=is_healthy(sample, checks)))
    return ShownDevices(tuple(samples), refused)


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
