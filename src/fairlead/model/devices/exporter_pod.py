"""A pod that serves a page of GPU values: its address and ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

EXPORTER_CONTAINERS: Final = (
    "fairlead-gpu-exporter",
    "nvidia-dcgm-exporter",
    "dcgm-exporter",
    "exporter",
)
"""Container names of GPU exporters.

Fairlead's, the GPU operator's, those of dcgm-exporter's manifests.

Prometheus puts such a name on series of cards that no pod holds alone.
"""


class ExporterPod(Struct, frozen=True):
    """A pod of an exporter.

    `ports`: of its containers, by name. `is_running`: it has started, and is not being deleted.
    """

    namespace: str
    name: str
    node: str = ""
    ip: str = ""
    ports: Mapping[str, int] = {}
    is_running: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
