"""A disk that is soon full."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.stores.database_servers import give_away


class SmallDisk:
    """A file system in memory of 24 MiB, and room for more."""

    def __init__(self) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="fairlead-small-"))
        self._mount("size=24m,mode=0755")
        self.folder = self._place / "data"
        self.folder.mkdir()
        give_away(self.folder)

    def grow(self) -> None:
        self._mount("remount,size=96m")

    def end(self) -> None:
        subprocess.run(["umount", "--lazy", str(self._place)], check=True)
        self._place.rmdir()

    def _mount(self, options: str) -> None:
        argv = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self._place)]
        subprocess.run(argv, check=True, capture_output=True)
