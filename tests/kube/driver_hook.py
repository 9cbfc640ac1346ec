"""What NVIDIA's container runtime does to a container before it is created: who names cards gets
the driver.

Run as a program of its own, with the driver's folder and the container's `config.json`. A card is
named by NVIDIA_VISIBLE_DEVICES, as an image or a device plugin says it; NVIDIA_DRIVER_CAPABILITIES
says what of the driver is wanted, `utility,compute` where nobody says.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

INSIDE = "/run/driver"
"""Where a container finds what stands for its cards: what they
show, and what they are told to do.
"""
LIBRARY = "libnvidia-ml.so.1"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
NO_CARD = ("", "void", "none")


def give(spec: dict[str, Any], driver: Path) -> None:
    """NVML with `utility`. With `compute` the load generator works the cards; without CUDA here, it
    tells them what to show.
    """
    environment = dict(word.partition("=")[::2] for word in spec["process"]["env"])
    if environment.get("NVIDIA_VISIBLE_DEVICES", "") in NO_CARD:
        return
    wanted = environment.get("NVIDIA_DRIVER_CAPABILITIES", "utility,compute").split(",")
    told = {"FAIRLEAD_GPU_LOAD_DIR": f"{INSIDE}/loads"}
    mounts = [(driver, INSIDE, "rw")]
    if {"utility", "all"} & {*wanted}:
        told["STUB_NVML"] = f"{INSIDE}/cards"
        mounts.append((driver / LIBRARY, f"{LIBRARIES}/{LIBRARY}", "ro"))
    if {"compute", "all"} & {*wanted}:
        told["FAIRLEAD_GPU_LOAD_BACKEND"] = "sim"
    spec["process"]["env"] += [
        f"{name}={value}" for name, value in told.items() if name not in environment
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
