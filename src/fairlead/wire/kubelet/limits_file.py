"""The limits file of one container (sharing contract 5.3): what it may use of its cards, for its guard.

It is the only source of limits, so whoever reads it refuses a file that says anything else than this.
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.model.devices.kept_grants import ContainerLimits, GpuLimit
from fairlead.model.refusal import Refusal

_VERSION: Final = "version 1"
_GPU: Final = re.compile(r"gpu (\S+) limit_bytes ([0-9]{1,18}) core_percent ([0-9]{1,3}) context_bytes ([0-9]{1,18})")
_REGION: Final = re.compile(r"region (/.*)")


def render_limits(limits: ContainerLimits) -> str:
    """
    >>> print(render_limits(ContainerLimits((GpuLimit("GPU-1", 4509925376),), "/run/region")), end="")
    version 1
    gpu GPU-1 limit_bytes 4509925376 core_percent 0 context_bytes 0
    region /run/region
    """
    gpus = [
        f"gpu {gpu.uuid} limit_bytes {gpu.limit_bytes} core_percent {gpu.core_percent} context_bytes {gpu.context_bytes}"
        for gpu in limits.gpus
    ]
    return "\n".join([_VERSION, *gpus, f"region {limits.region}", ""])


def parse_limits(text: str) -> ContainerLimits | Refusal:
    """The limits, or what is wrong with the file, with the number of its line.

    >>> parse_limits("version 2\\n").reason
    'line 1 of the limits file is `version 2`'
    """
    lines = text.split("\n")
    if lines[0] != _VERSION:
        return _wrong(1, lines[0])
    if len(lines) < 3 or lines[-1]:
        return Refusal("the limits file ends before its last line")
    gpus: dict[str, GpuLimit] = {}
    for number, line in enumerate(lines[1:-2], start=2):
        matched = _GPU.fullmatch(line)
        if matched is None or matched[1] in gpus or int(matched[3]) > 100:
            return _wrong(number, line)
        gpus[matched[1]] = GpuLimit(matched[1], *map(int, matched.groups()[1:]))
    region = _REGION.fullmatch(lines[-2])
    return ContainerLimits(tuple(gpus.values()), region[1]) if region else _wrong(len(lines) - 1, lines[-2])


def _wrong(number: int, line: str) -> Refusal:
    return Refusal(f"line {number} of the limits file is `{line[:100]}`")
