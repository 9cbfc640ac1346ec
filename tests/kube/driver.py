"""How does a real node come to NVIDIA cards? A library plays the driver, and the runtime brings it
to containers as NVIDIA's would.

Every container of the node starts through `write_runtime`'s program. While no driver is installed
it is runc alone; once one is, who names cards gets it (`driver_hook.py`), and nothing is written
into a pod for that.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kube import driver_hook
from tests.kube.control_plane import ControlPlane
from tests.nvml.stub import StubState, build_stub

_NAME = "driver"
_FOLDER = f"/var/lib/{_NAME}"
"""As the node sees it."""
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
    """The program that containerd runs in the place of runc."""
    path = folder / "runtime"
    path.write_text(_RUNTIME, encoding="utf-8")
    path.chmod(0o755)
    return path


@contextmanager
def installed_driver(cluster: ControlPlane, cards: int) -> Iterator[StubState]:
    """A driver on the node while the block lasts, for containers that start meanwhile; what its
    cards show is the test's to say.
    """
    folder = cluster.folder / "node" / "disk" / _NAME
    made = folder.with_name(f"{_NAME}.new")
    for name in ("cards", "loads"):
        (made / name).mkdir(parents=True)
    (made / "loads").chmod(0o1777)  # programs of any user work on a card
    build_stub(made)
    made.rename(folder)
    try:
        yield StubState(folder / "cards", cards)
    finally:
        folder.rename(made)
        shutil.rmtree(made)
