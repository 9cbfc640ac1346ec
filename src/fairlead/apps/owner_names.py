"""Names on the series of a node's cards: labels and UIDs of pods, ids of HPC jobs.

The kubelet's names come from elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fairlead.errors import UserError
from fairlead.model.devices.series_names import PodIdentity, SeriesNames
from fairlead.ports import PodIdentities
from fairlead.rules.devices.pod_labels import COLLISION, OWNED, printed_labels

PAUSE_SECONDS: Final = 0.5
"""`PAUSE_SECONDS`: between two pages that are made because of names: pods often come in groups."""
LOGGED_MAX: Final = 256
"""`LOGGED_MAX`: keys of omitted labels that are logged.

Keys that differ by pod must not fill the log.
"""
_log: Final = logging.getLogger(__name__)
Jobs = Callable[[], Mapping[str, tuple[str, ...]]]


class OwnerNames:
    """`allowed` None: no labels of pods are printed. `jobs`: by file name, read for each page."""

    def __init__(
        self,
        identities: PodIdentities | None = None,
        allowed: Sequence[re.Pattern[str]] | None = None,
        jobs: Jobs | None = None,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._pause_seconds = pause_seconds
        self.identities = identities
        self._allowed = allowed
        self._jobs = jobs
        self._logged: set[str] = set()

    async def run(self, news: Callable[[], None]) -> None:
        """Until cancelled. `news`: pods came or went, which the next page shows; then a pause."""
        changed = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            if self.identities is not None:
                group.create_task(self.identities.run(changed.set))
            while True:
                await changed.wait()
                changed.clear()
                news()
                await asyncio.sleep(self._pause_seconds)

    def latest(self) -> SeriesNames:
        """The current names. May read files."""
        identities = {} if self.identities is None else self.identities.latest()
        jobs = {} if self._jobs is None else self._jobs()
        if self._allowed is None:
            return SeriesNames({who: PodIdentity(pod.uid) for who, pod in identities.items()}, jobs)
        pods: dict[tuple[str, str], PodIdentity] = {}
        left_out = Counter({OWNED: 0, COLLISION: 0})
        for who, pod in identities.items():
            printed = printed_labels(pod.labels, self._allowed)
            pods[who] = PodIdentity(pod.uid, printed.labels)
            for key, reason in printed.left_out.items():
                left_out[reason] += 1
                self._note(key, reason, who)
        return SeriesNames(pods, jobs, left_out)

    def _note(self, key: str, reason: str, who: tuple[str, str]) -> None:
        """Log a key that is left out, once for all pods."""
        if key in self._logged or len(self._logged) >= LOGGED_MAX:
            return
        self._logged.add(key)
        why = (
            "Prometheus, a scrape target or the exporter owns this name"
            if reason == OWNED
            else "another label has the same printed name"
        )
        _log.warning("label `%s` of pod %s/%s is not printed: %s", key, *who, why)


def label_patterns(texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Raises UserError for an invalid regular expression."""
    found = []
    for text in texts:
        try:
            found.append(re.compile(text))
        except re.error as error:
            raise UserError(
                (
                    f"`--kubernetes-pod-label-allowlist-regex` has `{text}`, which is no regular "
                    f"expression: {error}"
                ),
                "see Python's `re`",
            ) from error
    return tuple(found)
