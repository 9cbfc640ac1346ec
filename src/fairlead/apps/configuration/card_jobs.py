"""The folder in which a scheduler of HPC jobs records the job of each card.

Its flag is `--hpc-job-mapping-dir`.

A file is named `<gpu>` or `<gpu>.<GPU instance>` and has one job id per line, as dcgm-exporter
reads it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fairlead.apps.configuration.regular_file import read_regular_file
from fairlead.errors import UserError

BYTES_MAX: Final = 64 << 10
FILES_MAX: Final = 1024
JOBS_MAX: Final = 64
_NAME: Final = re.compile(r"\d{1,4}(\.\d{1,4})?", re.ASCII)
_log = logging.getLogger(__name__)


class CardJobs:
    """Read for each page, in a thread.

    A file that cannot be read is logged once and names no job.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._logged: set[str] = set()

    def jobs(self) -> Mapping[str, tuple[str, ...]]:
        """Ids by the file's name, each once and sorted; at most `JOBS_MAX` per card."""
        found: dict[str, tuple[str, ...]] = {}
        try:
            names = sorted(
                each.name for each in self._folder.iterdir() if _NAME.fullmatch(each.name)
            )
        except OSError as error:
            self._log_once(
                f"`{self._folder}` cannot be read: {(error.strerror or str(error)).lower()}"
            )
            return found
        for name in names[:FILES_MAX]:
            try:
                text = read_regular_file(self._folder / name, BYTES_MAX, "job file", "").decode(
                    "utf-8"
                )
            except (UserError, UnicodeDecodeError) as error:
                self._log_once(
                    getattr(error, "what", f"job file `{self._folder / name}` is no UTF-8 text")
                )
                continue
            ids = sorted({line.strip() for line in text.splitlines()} - {""})
            found[name] = tuple(ids[:JOBS_MAX])
        return found

    def _log_once(self, trouble: str) -> None:
        if trouble not in self._logged and len(self._logged) < FILES_MAX:
            self._logged.add(trouble)
            _log.warning("jobs of cards are not known: %s", trouble)
