"""Runs one group of tests: each step in a process that must not be silent for too long."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from console_pages import install_node_modules
from debian import why_missing
from groups import Group, Step
from junit import Tally, read_report
from kube_programs import BUILT, build_flags, missing_programs
from progress import StepFailed, run_step, say, spoken_seconds
from toolchains import REPOSITORY, find_node

LOGS = REPOSITORY / "build" / "logs"
PATIENT_NICENESS = 10
"""Of two programs that compute, the one at this priority gets a tenth of the CPU."""


@dataclass
class Outcome:
    """What became of a group.

    `why`: why it was skipped. `mend`: the command that would change that. `cpu_seconds`: the CPU
    time of its pytest steps and of the programs that they ended.
    """

    group: Group
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    why: str = ""
    mend: str = ""

    @property
    def word(self) -> str:
        if self.tally.failed:
            return "FAILED"
        return "skipped" if self.why and not self.tally.passed else "passed"


def run_group(group: Group) -> Outcome:
    """Run every step, also after one that failed: one run shows all that is wrong."""
    outcome = Outcome(group)
    if group.broken:
        outcome.why = group.broken
        outcome.tally.failed += 1
        return outcome
    absent = _why_not(group)
    if absent is not None:
        outcome.why, outcome.mend = absent
        outcome.tally.skipped += 1
        say(f"{group.name}: skipped, {outcome.why}")
        return outcome
    say(f"{group.name}: {group.what}")
    started = time.monotonic()
    for step in group.steps:
        outcome.tally.add(_run(group, step))
    outcome.seconds = time.monotonic() - started
    outcome.cpu_seconds = sum(_cpu_seconds(_log_of(group, step)) for step in group.steps)
    say(
        f"{group.name}: {outcome.word}, {outcome.tally.passed} passed, {outcome.tally.failed} "
        f"failed, {spoken_seconds(outcome.seconds)}"
    )
    return outcome


def _why_not(group: Group) -> tuple[str, str] | None:
    if group.missing:
        return group.missing, ""
    if group.needs_kube and any(
        missing_programs(family) for family in (*BUILT, *group.more_programs)
    ):
        command = ("python3", "tools/build_kube.py", *build_flags(group.more_programs))
        return "the Kubernetes programs are not built", " ".join(command)
    return why_missing(group.packages)


def _run(group: Group, step: Step) -> Tally:
    if step.junit is not None:
        step.junit.parent.mkdir(parents=True, exist_ok=True)
        step.junit.unlink(missing_ok=True)
    problem = ""
    log = _log_of(group, step)
    try:
        title = f"{group.name} ({step.title})"
        run_step(
            title,
            step.argv,
            log,
            cwd=step.folder,
            env=_environment(step),
            silence_seconds=group.silence_seconds,
            progress=_percent,
            niceness=PATIENT_NICENESS if group.is_patient else 0,
        )
    except StepFailed as failed:
        problem = failed.what
        say(problem)
    return _tally(step, problem)


def _tally(step: Step, problem: str) -> Tally:
    """The report's counts.

    A runner that failed without a failed case to show for it is a failure of its own.
    """
    if step.junit is None:
        return Tally(failed=1) if problem else Tally(passed=1)
    tally = read_report(step.junit)
    if tally is None:
        return Tally(failed=1)
    if problem and not tally.failed:
        tally.failed = 1
    if not problem and not tally.passed and not tally.skipped:
        say(f"{step.title}: no test was run")
        tally.failed = 1
    return tally


def _environment(step: Step) -> dict[str, str]:
    if not step.needs_node:
        return dict(os.environ, PYTHONUNBUFFERED="1")
    node = find_node()
    install_node_modules(node)
    return node.environment()


def _log_of(group: Group, step: Step) -> Path:
    return LOGS / f"{group.name}-{step.title.replace(' ', '-')}.log"


def _cpu_seconds(log: Path) -> float:
    """What tests/conftest.py printed last; 0 for a step that is not pytest, or that was ended."""
    found = re.findall(rb"^CPU: (\d+) s", log.read_bytes(), re.MULTILINE)
    return float(found[-1]) if found else 0.0


def _percent(log: Path) -> str:
    """How far pytest is: the last percentage that it printed, and the test it is at."""
    text = log.read_bytes().decode("utf-8", "replace")
    percents = re.findall(r"\[ *(\d+)%\]", text)
    at = re.findall(r"^\S+\.py::(\S+)", text, re.MULTILINE)
    return f"{percents[-1] if percents else 0} % of its tests, at {at[-1]}" if at else ""
