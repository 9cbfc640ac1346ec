"""A pod that serves a page of GPU values, as far as its reader needs to know it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


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
