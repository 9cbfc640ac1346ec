"""What the memory guard counts, from the containers' files on this node (`ports.GuardFiles`).

Containers can write anything into their region, and make the file very long.
"""

from __future__ import annotations

from pathlib import Path

from fairlead.model.devices.kubelet import ContainerLimits, Region
from fairlead.model.refusal import Refusal
from fairlead.wire.kubelet.limits_file import parse_limits
from fairlead.wire.kubelet.region_file import BYTES, parse_region


class NodeGuardFiles:
    """`state`, `run`: the directories of the node agent, as in `edge.node.agent_files`."""

    def __init__(self, state: Path, run: Path) -> None:
        self._state = state
        self._run = run

    def read_guard(self, token: str) -> tuple[ContainerLimits, Region] | Refusal | None:
        path = self._run / token / "region"
        try:
            with path.open("rb") as file:
                data = file.read(BYTES)
            if not data:
                return None
            path = self._state / "containers" / token / "limits"
            text = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return Refusal(f"`{path}` cannot be read: {(error.strerror or str(error)).lower()}")
        limits, region = parse_limits(text), parse_region(data)
        if isinstance(region, Refusal):
            return region
        return limits if isinstance(limits, Refusal) else (limits, region)
