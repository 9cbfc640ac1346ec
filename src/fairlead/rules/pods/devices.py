"""How many whole GPUs, units of GPU memory and MIG slices limits contain, for every page."""

from __future__ import annotations

from typing import Final

from fairlead.model.devices.gpu import GpuInstance, GpuMode
from fairlead.model.pod import Pod
from fairlead.model.resources import (
    ALIYUN_GPU,
    GPU_MEMORY,
    MIG_PREFIX,
    Amounts,
    counted,
    nvidia_gpus,
)

OLD_GPU: Final = "alpha.kubernetes.io/nvidia-gpu"
_SHARE: Final = GpuMode.SHARE
_EXCLUSIVE: Final = GpuMode.EXCLUSIVE
_MIG: Final = GpuMode.MIG
_NONE: Final = GpuMode.NONE


def whole_gpus(limits: Amounts) -> int:
    """Exclusive GPUs: `nvidia.com/gpu` (else its old alpha name) plus `aliyun.com/gpu`.

    Time slices of NVIDIA's device plugin count under both their names. GPU memory does not count as
    a GPU.

    >>> whole_gpus({"nvidia.com/gpu": 2, "aliyun.com/gpu": 1, "aliyun.com/gpu-mem": 4})
    3
    """
    if not limits:
        return 0
    whole = nvidia_gpus(limits) or counted(limits, OLD_GPU)
    return whole + counted(limits, ALIYUN_GPU) if ALIYUN_GPU in limits else whole


def memory_units(limits: Amounts) -> int:
    """Units of `aliyun.com/gpu-mem`."""
    return counted(limits, GPU_MEMORY)


def mig_slices(amounts: Amounts) -> int:
    """MIG instances of any profile.

    >>> mig_slices({"nvidia.com/mig-1g.18gb": 2, "nvidia.com/mig-3g.71gb": 1, "cpu": 1})
    3
    """
    return sum([counted(amounts, name) for name in amounts if name.startswith(MIG_PREFIX)])


def mig_compute(amounts: Amounts) -> int:
    """Compute slices of MIG instances: an instance of `3g.71gb` has three.

    >>> mig_compute({"nvidia.com/mig-1g.18gb": 2, "nvidia.com/mig-3g.71gb": 1, "cpu": 1})
    5
    """
    parts = [
        (name.removeprefix(MIG_PREFIX), counted(amounts, name))
        for name in amounts
        if name.startswith(MIG_PREFIX)
    ]
    return sum([count * GpuInstance(0, profile).compute_slices for profile, count in parts])


def has_gpu(pod: Pod) -> bool:
    """Whether the pod asks for any part of a GPU."""
    limits = pod.limits
    return bool(whole_gpus(limits) or memory_units(limits) or mig_slices(limits))


def gpu_kind(limits: Amounts) -> GpuMode:
    """How the pod holds GPUs: share, exclusive, mig, or none; the `gpu_mode` of a pod in metrics.

    >>> limits = {"aliyun.com/gpu-mem": 4}, {"nvidia.com/gpu": 1}, {"cpu": 500}
    >>> print(*map(gpu_kind, limits))
    share exclusive none
    """
    if memory_units(limits):
        return _SHARE
    if whole_gpus(limits):
        return _EXCLUSIVE
    return _MIG if mig_slices(limits) else _NONE
