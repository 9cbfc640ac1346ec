"""What annotations say a pod holds on its node's GPUs, by GPU index: units of `aliyun.com/gpu-mem`, core percent, topology groups."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class PodShare(Struct, frozen=True, gc=False):
    """`units_by_gpu` is empty when nothing usable is written: the pod is on the node but on no known GPU.

    `group`: GPU indexes of `topology.kubernetes.io/gpu-group`; `visible`: of `…/gpu-visible`.
    """

    units_by_gpu: Mapping[int, int] = {}
    core_by_gpu: Mapping[int, int] = {}
    group: tuple[int, ...] = ()
    visible: tuple[int, ...] = ()


NO_SHARE = PodShare()
