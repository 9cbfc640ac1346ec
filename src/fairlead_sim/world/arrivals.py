"""When the next job of each stream comes.

Pauses are drawn from the seed, and too many waiting jobs hold it back.

So demand may exceed the cluster for ever and the queue still stays short.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fairlead_sim.controllers.job import is_finished
from fairlead_sim.objects.chance import chance
from fairlead_sim.objects.conditions import is_true
from fairlead_sim.scenario.scenario import Stream
from fairlead_sim.scenario.workloads import JOB_RESOURCES, render_job
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.time.timers import Timers

Object = dict[str, Any]

_FIRST_SECONDS = 20.0


class Arrivals:
    """One stream of jobs.

    The n-th job is the same whatever happened before it; only when it comes depends on the world.
    """

    def __init__(
        self,
        stream: Stream,
        cluster: StoredCluster,
        timers: Timers,
        seed: int,
        submitted: int | None = None,
    ) -> None:
        """`submitted`: how many jobs came in an earlier life of
        the world; None: this is its first.
        """
        self._stream = stream
        self._cluster = cluster
        self._timers = timers
        self._seed = seed
        self.number = submitted or 0
        self._pause = chance(
            seed,
            "pause",
            stream.namespace,
            stream.name,
            *([] if submitted is None else [submitted]),
        )
        for _ in range(stream.standing if submitted is None else 0):
            self._timers.after(self._pause.uniform(0, _FIRST_SECONDS), self._submit)
        self._timers.after(self._next_pause(), self._arrive)

    @property
    def key(self) -> str:
        return f"{self._stream.namespace}/{self._stream.name}"

    def _arrive(self) -> None:
        if self._has_room():
            self._submit()
        self._timers.after(self._next_pause(), self._arrive)

    def _next_pause(self) -> float:
        """Exponential, cut so that no stream stays silent for hours."""
        mean = self._stream.every.seconds
        return min(4 * mean, max(1.0, self._pause.expovariate(1 / mean)))

    def _submit(self) -> None:
        self.number += 1
        random = chance(self._seed, "job", self._stream.namespace, self._stream.name, self.number)
        # a person took the name, or the namespace is gone: the stream goes on with its next job
        with suppress(ApiStatus):
            self._cluster.create(render_job(self._stream, self.number, random))

    def _has_room(self) -> bool:
        prefix = f"{self._stream.name}-"
        mine = [
            job
            for job in self._cluster.scan(JOB_RESOURCES[self._stream.kind], self._stream.namespace)
            if job["metadata"]["name"].removeprefix(prefix).isdigit() and not _is_over(job)
        ]
        return (
            len(mine) < self._stream.max_active
            and sum(map(self._is_waiting, mine)) < self._stream.max_waiting
        )

    def _is_waiting(self, job: Object) -> bool:
        """Not (wholly) at work: no Running condition, or for a
        plain Job a pod that is not ready.
        """
        if self._stream.kind == "job":
            status = job.get("status") or {}
            return bool(status.get("ready", 0) < status.get("active", 1))
        return not is_true(job, "Running")


def _is_over(job: Object) -> bool:
    return is_finished(job) or is_true(job, "Succeeded")
