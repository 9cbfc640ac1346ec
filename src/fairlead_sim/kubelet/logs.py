"""The lines that a container would have written, as a function of its run.

Nothing is stored: the lines of a run are computed on request, equal for equal runs, and grow only
at their end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import exp

from fairlead.wire.kube.time import parse_time
from fairlead_sim.kubelet.cuda_malloc import NO_MEMORY, NO_MEMORY_STATUS
from fairlead_sim.kubelet.dcgm_tester import ProfTest, tester_lines
from fairlead_sim.kubelet.kubelet import NO_DEVICE, Kubelets
from fairlead_sim.kubelet.pod_status import RUNNING, ContainerRun
from fairlead_sim.objects.chance import fraction
from fairlead_sim.time.timers import Timers

Line = tuple[float, str]

_EVERY_SECONDS = {"training": 10.0, "inference": 30.0}
_MOST_LINES = 5000
_LAST_WORDS = {
    0: "finished",
    1: "error: the program gave up",
    139: "Segmentation fault (core dumped)",
    143: "received SIGTERM, stopping",
}
_NO_DEVICE = "no CUDA-capable device is detected"
_JITTERS = 97
"""Number of different seconds of a test."""


class ContainerLogs:
    """Fills the API server's port for `pods/log`."""

    def __init__(self, kubelets: Kubelets, timers: Timers, seed: int) -> None:
        self._kubelets = kubelets
        self._timers = timers
        self._seed = seed

    def lines(
        self, namespace: str, pod: str, container: str, previous: bool
    ) -> Sequence[Line] | None:
        """(epoch seconds, line), oldest first; None when there is no such run of the container."""
        run = self._kubelets.container(namespace, pod, container)
        if run is None:
            return None
        span = _previous(run) if previous else _present(run, self._timers.clock.now())
        if span is None:
            return None if previous else ()
        return self._written(run, (namespace, pod, container), *span)

    def _written(
        self,
        run: ContainerRun,
        names: tuple[str, str, str],
        start: float,
        end: float,
        exit_code: int | None,
    ) -> list[Line]:
        if run.behaviour.program is not None:
            return [
                (start + at, date_line(start + at) if text is None else text)
                for at, text in run.behaviour.program.printed(end - start)
            ]
        if run.behaviour.test is not None:
            return self._tested(run.behaviour.test, names, start, end, exit_code)
        every = _EVERY_SECONDS.get(run.behaviour.load, 60.0)
        count = min(_MOST_LINES, int(max(0.0, end - start) / every))
        body = [
            (start + step * every, self._line(run, names, step)) for step in range(1, count + 1)
        ]
        lines = [(start, f"starting {run.image}"), *body]
        if exit_code == NO_MEMORY_STATUS and run.behaviour.gpu_mib:
            return [(end, NO_MEMORY)]
        return (
            lines
            if exit_code is None
            else [*lines, (end, _LAST_WORDS.get(exit_code, f"exit status {exit_code}"))]
        )

    def _tested(
        self,
        test: ProfTest,
        names: tuple[str, str, str],
        start: float,
        end: float,
        exit_code: int | None,
    ) -> list[Line]:
        model = self._kubelets.card_model(*names[:2])
        if model is None or (exit_code == NO_DEVICE and not test.exit_code):
            return [(start, _NO_DEVICE)]
        jitters = [fraction(self._seed, "log", *names, step) for step in range(_JITTERS)]
        return [
            (start + at, text or "") for at, text in tester_lines(test, model, end - start, jitters)
        ]

    def _line(self, run: ContainerRun, names: tuple[str, str, str], step: int) -> str:
        drawn = fraction(self._seed, "log", *names, step)
        if run.behaviour.load == "training":
            return (
                f"step {50 * step} loss {0.8 + 5.4 * exp(-step / 60) + 0.1 * drawn:.4f} "
                f"({38 + 8 * drawn:.1f} samples/s)"
            )
        if run.behaviour.load == "inference":
            return f"served {round(400 + 900 * drawn)} requests, p99 {18 + 40 * drawn:.1f} ms"
        return "alive"


def date_line(at: float) -> str:
    """As the command `date` prints it.

    >>> date_line(1_767_600_000.0)
    'Mon Jan  5 08:00:00 UTC 2026'
    """
    return f"{datetime.fromtimestamp(at, UTC):%a %b %e %H:%M:%S UTC %Y}"


def _present(run: ContainerRun, now: float) -> tuple[float, float, int | None] | None:
    if run.state == RUNNING:
        return run.started_at, now, None
    if run.state == "terminated":
        return run.started_at, run.finished_at, run.exit_code
    return _previous(run)


def _previous(run: ContainerRun) -> tuple[float, float, int | None] | None:
    ended = (run.last or {}).get("terminated")
    return (
        (parse_time(ended["startedAt"]), parse_time(ended["finishedAt"]), int(ended["exitCode"]))
        if ended
        else None
    )
