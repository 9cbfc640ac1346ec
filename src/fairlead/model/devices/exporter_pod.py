"""A pod that serves a page of GPU values, as far as its reader needs to know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

EXPORTER_CONTAINERS: Final = ("fairlead-gpu-exporter", "nvidia-dcgm-exporter", "dcgm-exporter", "exporter")
"""How containers of GPU exporters are called: ours, the GPU operator's, those of dcgm-exporter's manifests.

Prometheus puts such a name on series of cards that no pod has for itself.
"""


class ExporterPod(Struct, frozen=True):
    """`ports`: of its containers, by name. `is_running`: it has begun, and nobody has asked it to end."""

    namespace: str
    name: str
    node: str = ""
    ip: str = ""
    ports: Mapping[str, int] = {}
    is_running: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
