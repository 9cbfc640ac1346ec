"""What does a container do once it runs? Its image tells, by name and tag.

    train:10m       works for ten minutes, then exits 0        fail:3s    exits 1 after three seconds
    crash:20s       dies of a segmentation fault (139)         missing:x  can never be pulled
    cuda-malloc:3G  takes 3 GiB of GPU memory and runs on      (dies at once where its grant is smaller)

Anything else just runs. The registry and path before the name do not matter: `hub.example/team/train:10m` is `train:10m`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from msgspec import Struct

from fairlead.wire.names import PREFIX
from fairlead.wire.quantity import parse_quantity

Object = dict[str, Any]

LOAD_ANNOTATION = f"{PREFIX}sim-load"
"""On a pod: how its containers use their GPUs (a name of `sim.load.LOADS`), where the image does not tell."""

CUDA_CONTEXT_MIB = 121
"""What a CUDA context itself takes (document 001: 3 GiB allocated show as 3193 MiB used)."""

INIT_SECONDS = 3.0
"""An init container without a scripted image ends well after this long: one that just ran would block its pod for ever."""

_EXIT_CODES = {"train": 0, "fail": 1, "crash": 139}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SERVERS = ("sshd", "ray")
_TAG = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_LOAD_BY_NAME = (
    ("train", "training"),
    ("fail", "training"),
    ("crash", "training"),
    ("cuda-malloc", "inference"),
    ("notebook", "notebook"),
    ("jupyter", "notebook"),
    ("infer", "inference"),
    ("serv", "inference"),
    ("triton", "inference"),
    ("vllm", "inference"),
)


class Behaviour(Struct, frozen=True, gc=False):
    """`run_seconds` None = until somebody ends it. `load` is the default use of a held GPU; `gpu_mib` a fixed amount of its memory."""

    run_seconds: float | None = None
    exit_code: int = 0
    can_pull: bool = True
    load: str = "idle"
    gpu_mib: int | None = None


@lru_cache(maxsize=4096)
def behaviour_of(image: str, program: str = "", is_init: bool = False) -> Behaviour:
    """`program` is the first word of the container's command: an sshd or a Ray node serves for ever, whatever its image is called.

    >>> behaviour_of("hub.example/vision/train:1h30m").run_seconds, behaviour_of("fail:3s").exit_code
    (5400.0, 1)
    """
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    load = next((load for start, load in _LOAD_BY_NAME if name.startswith(start)), "idle")
    if name == "missing":
        return Behaviour(can_pull=False)
    if tag.startswith("dcgmproftester"):
        return Behaviour(load="training")
    if name == "cuda-malloc":
        return Behaviour(load=load, gpu_mib=_mib(tag))
    if name in _EXIT_CODES and _TAG.fullmatch(tag) and program.rpartition("/")[2] not in _SERVERS:
        return Behaviour(_seconds(tag), _EXIT_CODES[name], load=load)
    return Behaviour(INIT_SECONDS if is_init else None, load=load)


def _seconds(tag: str) -> float:
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"([\d.]+)([smhd])", tag))


def _mib(tag: str) -> int | None:
    """`3G`, as people write it for GPU memory, means GiB."""
    try:
        return parse_quantity(tag if tag.endswith("i") else f"{tag}i") // (1 << 20) + CUDA_CONTEXT_MIB
    except ValueError:
        return None
