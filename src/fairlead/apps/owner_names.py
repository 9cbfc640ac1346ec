"""Names on the series of a node's cards beside the kubelet's: labels and UIDs of pods, ids of HPC jobs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fairlead.errors import UserError
from fairlead.model.devices.series_names import PodIdentity, SeriesNames
from fairlead.ports import PodIdentities
from fairlead.rules.devices.pod_labels import printed_labels

PAUSE_SECONDS: Final = 0.5
"""Between two pages that are made because of names: pods come in crowds."""
Jobs = Callable[[], Mapping[str, tuple[str, ...]]]


class OwnerNames:
    """`allowed` None: no labels of pods are printed. `jobs`: by file name, read with each page."""

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

    async def run(self, news: Callable[[], None]) -> None:
        """Until cancelled. `news`: of pods that came or went, which the next page shows; then a pause."""
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
        """As they are now. May read files."""
        told = {} if self.identities is None else self.identities.latest()
        pods = {who: PodIdentity(pod.uid, self._printed(pod.labels)) for who, pod in told.items()}
        return SeriesNames(pods, {} if self._jobs is None else self._jobs())

    def _printed(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        return {} if self._allowed is None else printed_labels(labels, self._allowed)


def label_patterns(texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Raises UserError for what is no regular expression."""
    found = []
    for text in texts:
        try:
            found.append(re.compile(text))
        except re.error as error:
            raise UserError(
                f"`--kubernetes-pod-label-allowlist-regex` has `{text}`, which is no regular expression: {error}", "see Python's `re`"
            ) from error
    return tuple(found)
