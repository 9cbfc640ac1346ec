"""Gives a real node NVIDIA cards without hardware. A library plays the driver, and the container
runtime mounts it into containers as NVIDIA's runtime does.

Every container of the node starts through `write_runtime`'s program. While no driver is installed,
that program is plain runc. Once a driver is installed, a container that names cards receives it
(`driver_hook.py`); the pod itself stays unchanged.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kube import driver_hook
from tests.nvml.stub import StubState, build_stub

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


def write_runtime(folder: Path) -> Path:
    """The program that containerd runs instead of runc."""
    path = folder / "runtime"
    path.write_text(_RUNTIME, encoding="utf-8")
    path.chmod(0o755)
    return path


@contextmanager
def installed_driver(disk: Path, cards: int) -> Iterator[StubState]:
    """A driver on the node for the block, for containers that start meanwhile. The test chooses
    what its cards show. `disk`: the node's /var/lib.
    """
    folder = disk / _NAME
    made = folder.with_name(f"{_NAME}.new")
    for name in ("cards", "loads"):
        (made / name).mkdir(parents=True)
    (made / "loads").chmod(0o1777)  # programs of any user may use a card
    build_stub(made)
    made.rename(folder)
    try:
        yield StubState(folder / "cards", cards)
    finally:
        folder.rename(made)
        shutil.rmtree(made)
