"""Exact integer amounts of named resources (`Amounts`), and their sums.

The unit depends on the name: `cpu` in millicores, memory-like resources in bytes, all others in
whole units. There are no floats; only `wire/kube/quantity` turns text into amounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

Amounts = Mapping[str, int]
"""Resource name -> amount. An absent key means zero. Never changed, and often shared between pods.
"""

NOTHING: Final[Amounts] = {}


class MemoryUnit(StrEnum):
    """The unit of one `aliyun.com/gpu-mem`."""

    GIB = "GiB"
    MIB = "MiB"


CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
NVIDIA_GPU: Final = "nvidia.com/gpu"
NVIDIA_GPU_SHARED: Final = "nvidia.com/gpu.shared"
"""The name that NVIDIA's device plugin gives to time slices of
GPUs with `renameByDefault: true`.
"""
ALIYUN_GPU: Final = "aliyun.com/gpu"
SHARED_GPU_PREFIX: Final = "aliyun.com/gpu-"
GPU_MEMORY: Final = "aliyun.com/gpu-mem"
GPU_CORE: Final = "aliyun.com/gpu-core.percentage"
GPU_COUNT: Final = "aliyun.com/gpu-count"
MIG_PREFIX: Final = "nvidia.com/mig-"

LARGEST_COUNTED: Final = 2**53
"""The largest amount in sums and ratios, so that user input (`1e300` GPUs) cannot overflow."""

UNLIMITED: Final = 2_147_483_647
"""The number that means "no limit" in a quota, with any suffix.

See docs/spec/quota.md#quantities-and-managed-resources.
"""


def is_byte_resource(name: str) -> bool:
    """Whether amounts of this resource are bytes.

    >>> [is_byte_resource(n) for n in ("memory", "ephemeral-storage", "hugepages-2Mi")]
    [True, True, True]
    >>> is_byte_resource("aliyun.com/gpu-mem")
    False
    """
    return name in ("memory", "ephemeral-storage", "storage") or name.startswith("hugepages-")


def is_gpu_resource(name: str) -> bool:
    """Whether the resource makes a node a GPU node (docs/spec/telemetry.md#definitions)."""
    return name in (
        NVIDIA_GPU,
        NVIDIA_GPU_SHARED,
        ALIYUN_GPU,
        GPU_MEMORY,
        GPU_COUNT,
    ) or name.startswith(MIG_PREFIX)


def counted(amounts: Amounts, name: str) -> int:
    """The amount in calculations: 0 when absent, at most `LARGEST_COUNTED`.

    >>> counted({"nvidia.com/gpu": 10**30}, "nvidia.com/gpu") == LARGEST_COUNTED
    True
    """
    amount = amounts.get(name, 0)
    return amount if amount < LARGEST_COUNTED else LARGEST_COUNTED


def nvidia_gpus(amounts: Amounts) -> int:
    """GPUs of NVIDIA's device plugin, whole ones and time slices, under both names of time slices.

    >>> nvidia_gpus({"nvidia.com/gpu": 1, "nvidia.com/gpu.shared": 4, "aliyun.com/gpu": 8})
    5
    """
    whole = counted(amounts, NVIDIA_GPU)
    if NVIDIA_GPU_SHARED in amounts:
        return whole + counted(amounts, NVIDIA_GPU_SHARED)
    return whole


def sum_of(parts: Iterable[Amounts]) -> Amounts:
    """The sums of the amounts by name.

    >>> sum_of([{"cpu": 500}, {"cpu": 250, "memory": 1}])
    {'cpu': 750, 'memory': 1}
    """
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def largest_of(parts: Iterable[Amounts]) -> Amounts:
    """The largest amounts by name (what init containers need, one after another).

    >>> largest_of([{"cpu": 500}, {"cpu": 250, "memory": 1}])
    {'cpu': 500, 'memory': 1}
    """
    largest: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            if amount > largest.get(name, 0):
                largest[name] = amount
    return largest


def amount_text(resource: str, amount: int) -> str:
    """The canonical text of an amount, as the API server would print it.

    >>> amount_text("cpu", 1500), amount_text("cpu", 2000)
    ('1500m', '2')
    >>> amount_text("memory", 16 << 30), amount_text("aliyun.com/gpu-mem", 4)
    ('16Gi', '4')
    """
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if amount and is_byte_resource(resource):
        for bits, suffix in _BINARY:
            if amount % (1 << bits) == 0:
                return f"{amount >> bits}{suffix}"
    return str(amount)


def amount_of(resource: str, text: str) -> int:
    """The amount that `amount_text` wrote. Raises ValueError for anything else.

    >>> amount_of("cpu", "1500m"), amount_of("cpu", "2"), amount_of("memory", "16Gi") >> 30
    (1500, 2000, 16)
    """
    if resource == CPU:
        return int(text.removesuffix("m")) if text.endswith("m") else int(text) * 1000
    bits = next(
        (bits for bits, suffix in _BINARY if is_byte_resource(resource) and text.endswith(suffix)),
        0,
    )
    return int(text[:-2] if bits else text) << bits


_BINARY: Final = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))
