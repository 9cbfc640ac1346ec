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
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
NO_CARD = ("", "void", "none")


def give(spec: dict[str, Any], driver: Path) -> None:
    """NVML with `utility`. With `compute` the load generator puts load on the cards; without CUDA
    here, it writes the values that they show.
    """
    environment = dict(word.partition("=")[::2] for word in spec["process"]["env"])
    if environment.get("NVIDIA_VISIBLE_DEVICES", "") in NO_CARD:
        return
    wanted = environment.get("NVIDIA_DRIVER_CAPABILITIES", "utility,compute").split(",")
    reported = {"FAIRLEAD_GPU_LOAD_DIR": f"{INSIDE}/loads"}
    mounts = [(driver, INSIDE, "rw")]
    if {"utility", "all"} & {*wanted}:
        reported["STUB_NVML"] = f"{INSIDE}/cards"
        mounts.append((driver / LIBRARY, f"{LIBRARIES}/{LIBRARY}", "ro"))
    if {"compute", "all"} & {*wanted}:
        reported["FAIRLEAD_GPU_LOAD_BACKEND"] = "sim"
    spec["process"]["env"] += [
        f"{name}={value}" for name, value in reported.items() if name not in environment
    ]
    spec["mounts"] += [
        {"source": str(source), "destination": target, "type": "bind", "options": ["rbind", right]}
        for source, target, right in mounts
    ]


if __name__ == "__main__":
    folder, config = map(Path, sys.argv[1:])
    found = json.loads(config.read_bytes())
    give(found, folder)
    config.write_text(json.dumps(found), encoding="utf-8")
