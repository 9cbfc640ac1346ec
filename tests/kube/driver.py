"""Gives a real node NVIDIA cards without hardware. A library plays the driver, and the container
runtime mounts it into containers as NVIDIA's runtime does.

Every container of the node starts through `write_runtime`'s program. While no driver is installed,
that program is plain runc. Once a driver is installed, a container that names cards receives it
(`driver_hook.py`); the pod itself stays unchanged.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kube import driver_hook
from tests.kube.component import Component
from tests.kube.node_room import beside
from tests.native.driver import TRUTH_BYTES
from tests.nvml.stub import StubState, build_stub

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from tests.waiting import HANG_SECONDS

import build_native

_NAME = "driver"
_FOLDER = f"/var/lib/{_NAME}"
"""The folder as the node sees it."""
_RUNTIME = f"""#!/bin/sh
if [ -d {_FOLDER} ]; then
  for word; do
    if [ "$before" = --bundle ] && grep -q NVIDIA_VISIBLE_DEVICES "$word/config.json"; then
      '{sys.executable}' -IS '{driver_hook.__file__}' {_FOLDER} "$word/config.json" || exit 1
    fi
    before=$word
  done
fi
exec runc "$@"
"""
_OWN_DEVICES = """mount -t tmpfs tmpfs /mnt && cp -a --one-file-system /dev/. /mnt/ &&
for name in pts shm; do mount --rbind "/dev/$name" "/mnt/$name" || exit 1; done &&
for name; do mknod -m 666 "/mnt/$name" c 195 "$((number = number + 1))" || exit 1; done &&
mount --move /mnt /dev"""


def write_runtime(folder: Path) -> Path:
    """The program that containerd runs instead of runc."""
    path = folder / "runtime"
    path.write_text(_RUNTIME, encoding="utf-8")
    path.chmod(0o755)
    return path


@contextmanager
def installed_driver(disk: Path, cards: int, *, has_cuda: bool = False) -> Iterator[StubState]:
    """A driver on the node for the block, for containers that start meanwhile. The test chooses
    what its cards show. `disk`: the node's /var/lib.

    `has_cuda`: containers get the stub of `native/stub` (CUDA and NVML) instead. It counts what all
    of them take of one card in the file `driver/truth`.
    """
    folder = disk / _NAME
    made = folder.with_name(f"{_NAME}.new")
    for name in ("cards", "loads"):
        (made / name).mkdir(parents=True)
    (made / "loads").chmod(0o1777)  # programs of any user may use a card
    build_stub(made)
    if has_cuda:
        (made / driver_hook.CUDA).mkdir()
        for name in (driver_hook.CUDA_LIBRARY, driver_hook.LIBRARY):
            shutil.copy(build_native.build_stub() / name, made / driver_hook.CUDA)
        truth = made / driver_hook.TRUTH
        truth.write_bytes(bytes(TRUTH_BYTES))
        truth.chmod(0o666)
    made.rename(folder)
    try:
        yield StubState(folder / "cards", cards)
    finally:
        folder.rename(made)
        shutil.rmtree(made)


def make_device_files(room: Component, cards: int) -> None:
    """Give the node a /dev of its own, in which the files of a driver exist. No program opens them;
    the container runtime gives them to containers.
    """
    files = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"]
    files += [f"nvidia{card}" for card in range(cards)]
    _run(room, "sh", "-c", _OWN_DEVICES, "devices", *files)


def remove_device_files(room: Component) -> None:
    """Give the node the machine's /dev again. Programs that run keep what they have opened."""
    _run(room, "umount", "--recursive", "--lazy", "/dev")


def _run(room: Component, *argv: str) -> None:
    subprocess.run(beside(room, *argv), check=True, capture_output=True, timeout=HANG_SECONDS)
