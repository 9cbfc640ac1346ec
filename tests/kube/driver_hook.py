"""Does what NVIDIA's container runtime does before a container is created: a container that names
cards receives the driver.

It runs as a program of its own, with the driver's folder and the container's `config.json`.
NVIDIA_VISIBLE_DEVICES, set by an image or a device plugin, names the cards.
NVIDIA_DRIVER_CAPABILITIES chooses the parts of the driver; the default is `utility,compute`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

INSIDE = "/run/driver"
"""Where a container finds the files that stand for its cards: the values that they show, and the
commands that they receive.
"""
LIBRARY = "libnvidia-ml.so.1"
CUDA, CUDA_LIBRARY = "cuda", "libcuda.so.1"
"""The driver's folder with the libraries of a driver that has CUDA."""
TRUTH = "truth"
"""The file in which that driver counts memory."""
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
NO_CARD = ("", "void", "none")

NVML_VARIABLES = {"STUB_NVML": f"{INSIDE}/cards"}
CUDA_VARIABLES = {"FAIRLEAD_STUB_TRUTH": f"{INSIDE}/{TRUTH}", "FAIRLEAD_STUB_GPUS": "1"}
"""Where the libraries find the cards. A program that is started in a running container (`kubectl
exec`) has the variables of the pod alone, and needs these, too.
"""


def give(spec: dict[str, Any], driver: Path) -> None:
    """What the container's capabilities ask for, and every file of the driver at `INSIDE`."""
    environment = dict(word.partition("=")[::2] for word in spec["process"]["env"])
    if environment.get("NVIDIA_VISIBLE_DEVICES", "") in NO_CARD:
        return
    asked = environment.get("NVIDIA_DRIVER_CAPABILITIES", "utility,compute").split(",")
    wanted = {"compute", "utility"} if "all" in asked else {*asked}
    given = _with_cuda if (driver / CUDA).is_dir() else _without_cuda
    reported, libraries = given(driver, wanted)
    mounts = [(driver, INSIDE, "rw")]
    mounts += [(path, f"{LIBRARIES}/{path.name}", "ro") for path in libraries]
    spec["process"]["env"] += [
        f"{name}={value}" for name, value in reported.items() if name not in environment
    ]
    spec["mounts"] += [
        {"source": str(source), "destination": target, "type": "bind", "options": ["rbind", right]}
        for source, target, right in mounts
    ]


def _without_cuda(driver: Path, wanted: set[str]) -> tuple[dict[str, str], list[Path]]:
    """NVML with `utility`. With `compute` the load generator puts load on the cards; without CUDA
    here, it writes the values that they show.
    """
    reported, libraries = {"FAIRLEAD_GPU_LOAD_DIR": f"{INSIDE}/loads"}, []
    if "utility" in wanted:
        reported |= NVML_VARIABLES
        libraries.append(driver / LIBRARY)
    if "compute" in wanted:
        reported["FAIRLEAD_GPU_LOAD_BACKEND"] = "sim"
    return reported, libraries


def _with_cuda(driver: Path, wanted: set[str]) -> tuple[dict[str, str], list[Path]]:
    """CUDA with `compute`, NVML with `utility`; both count in one file, for all containers."""
    names = {"compute": CUDA_LIBRARY, "utility": LIBRARY}
    return CUDA_VARIABLES, [driver / CUDA / name for part, name in names.items() if part in wanted]


if __name__ == "__main__":
    folder, config = map(Path, sys.argv[1:])
    found = json.loads(config.read_bytes())
    give(found, folder)
    config.write_text(json.dumps(found), encoding="utf-8")
