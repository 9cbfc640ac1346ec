"""Which resources a quota tree manages, and which the Quota board always shows."""

from __future__ import annotations

from typing import Final

from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import ALIYUN_GPU, CPU, GPU_MEMORY, MEMORY, NVIDIA_GPU

DEFAULT_RESOURCES: Final = (CPU, MEMORY, NVIDIA_GPU, GPU_MEMORY, ALIYUN_GPU)
"""What the Quota board always has a table for, in its order."""


def managed_resources(root: QuotaNode) -> tuple[str, ...]:
    """Resources the tree speaks of: the defaults it names first, then others by name.

    A tree that names none manages the defaults.

    >>> managed_resources(QuotaNode("root", "root", max={"rdma/hca": 4, "memory": 1, "cpu": 1}))
    ('cpu', 'memory', 'rdma/hca')
    """
    named = {resource for node in root.walk() for resource in node.resources}
    if not named:
        return DEFAULT_RESOURCES
    return (*(resource for resource in DEFAULT_RESOURCES if resource in named), *sorted(named - set(DEFAULT_RESOURCES)))
