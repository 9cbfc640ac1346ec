"""Runs every group of tests, makes what they need, and ends with one table and one line.

The Kubernetes programs are built at low priority while the groups run that need none of them, and
then at their own. With CI=true a skipped test is a failure: there, nothing may be missing.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import debian
from bytecode_cache import compile_shared, keep_bytecode
from console_pages import build_console
from environment import make_environment
from groups import Group, check_groups, on_demand_groups, real_groups
from image import apt
from image.bytecode import host_architecture
from image.debian_lock import LOCK_VARIABLE, lock_text, read_lock
from junit import Tally
from kube_programs import BUILT, build_flags, missing_programs
from locks import only_one
from progress import StepFailed, say, spoken_seconds
from run_group import Outcome, run_group
from second_chance import SecondChance, lines, try_again
from toolchains import REPOSITORY

BUILD_NICENESS = 10
BUILDER_GRACE = 20.0  # seconds
CHECK_FIRST = (
    *("unit", "run", "edge", "rules", "sim", "cli", "types", "apps"),
    *("pages", "writes", "boards"),
)
REAL_FIRST = ("kube", "installed", "browser", "kubelet", "quota", "worlds", "fluid")
"""The longest groups begin first, so that no long one is left alone at the end.

Only one group at a time has the real node: `kubelet` begins early in the run, `cdi` late.
"""
CHECKS_AT_ONCE, REALS_AT_ONCE, PATIENTS_AT_ONCE = 8, 4, 2
"""Groups that run at a time on two cores. One of real components works for half of its time, and
waits for the other half.
"""
NEWER_LOCK = REPOSITORY / "build" / "debian.lock.json"
BUDGET_SECONDS = {"check": 4 * 60, "warm": 30 * 60, "cold": 60 * 60}
"""How long a run may take on two free cores.

`cold` also builds the Kubernetes programs, which takes twelve free minutes of it.
"""


def run_tests(only: Sequence[str]) -> int:
    """Run the groups; returns the exit status.

    All, or those named; `check` names all that need no real component.
    """
    started = time.monotonic()
    budget = budget_of(only)
    turn = _chosen_turn()
    checks, reals = _chosen(check_groups(), only, "check"), _chosen(real_groups(), only, "real")
    reals += [group for group in on_demand_groups() if group.name in only]
    make_environment("dev")
    keep_bytecode()
    compile_shared()
    checked = threading.Event()
    preparation = threading.Thread(target=_prepare_real, args=(reals, checked))
    preparation.start()
    outcomes: list[Outcome] = []
    needs_console = any(group.needs_console for group in (*checks, *reals))
    with ThreadPoolExecutor(1) as beside:
        console = beside.submit(_build_console if needs_console else str)
        try:
            outcomes += run_side_by_side(checks, CHECK_FIRST, CHECKS_AT_ONCE, console)
        finally:
            checked.set()
            preparation.join()
    reals = [_broken_by(console.result(), group) for group in reals]
    real_outcomes = run_real(reals)
    chance = try_again([*outcomes, *real_outcomes])
    print(f"part of the divided tests: FAIRLEAD_TURN={turn}")
    return _report([*outcomes, *real_outcomes], chance, time.monotonic() - started, budget)


def _chosen_turn() -> str:
    """Which part of the divided tests all groups try. Raises StepFailed for what is no turn."""
    if str(REPOSITORY) not in sys.path:
        sys.path.append(str(REPOSITORY))
    from tests.turns import chosen_turn

    try:
        return chosen_turn()
    except ValueError as error:
        raise StepFailed(str(error)) from None


def budget_of(only: Sequence[str]) -> str:
    """A key of BUDGET_SECONDS, before anything is built; "" for a choice of groups."""
    if only:
        return "check" if set(only) == {"check"} else ""
    return "cold" if any(missing_programs(family) for family in BUILT) else "warm"


def _chosen(groups: tuple[Group, ...], only: Sequence[str], together: str) -> list[Group]:
    return [group for group in groups if not only or group.name in only or together in only]


def run_real(groups: list[Group]) -> list[Outcome]:
    """The outcomes, in their order: the heavy groups run after the others. The patient ones begin
    when the last of the others has begun, because the heavy one leaves most of two cores idle.
    """
    heavy = [group for group in groups if group.is_heavy]
    patient = [group for group in groups if group.is_patient]
    others = [group for group in groups if not group.is_heavy and not group.is_patient]
    all_began = threading.Event()

    def wait_and_run() -> list[Outcome]:
        all_began.wait()
        return run_side_by_side(patient, (), PATIENTS_AT_ONCE)

    with ThreadPoolExecutor(1) as beside:
        waited = beside.submit(wait_and_run)
        try:
            done = run_side_by_side(others, REAL_FIRST, REALS_AT_ONCE, all_began=all_began)
            done += run_side_by_side(heavy, (), 1)
        finally:
            all_began.set()
        done += waited.result()
    return sorted(done, key=lambda outcome: groups.index(outcome.group))


def run_side_by_side(
    groups: list[Group],
    first: Sequence[str],
    at_once: int,
    console: Future[str] | None = None,
    all_began: threading.Event | None = None,
) -> list[Outcome]:
    """The outcomes of the groups, in their order. Those named `first` begin first, in its order.
    A group that needs the console waits until `console` has the result of its build. `all_began` is
    set when the last one begins, or if there is none.
    """
    ranks = {name: rank for rank, name in enumerate(first)}
    queue = sorted(groups, key=lambda group: ranks.get(group.name, len(first)))

    if all_began is not None and not queue:
        all_began.set()

    def run(group: Group) -> Outcome:
        if all_began is not None and group is queue[-1]:
            all_began.set()
        problem = console.result() if console and group.needs_console else ""
        return run_group(_broken_by(problem, group))

    with ThreadPoolExecutor(at_once) as pool:
        done = dict(zip((group.name for group in queue), pool.map(run, queue), strict=True))
    return [done[group.name] for group in groups]


def _build_console() -> str:
    """Empty, or why there is no console: the groups without it run all the same."""
    try:
        build_console()
    except StepFailed as failed:
        say(f"error: {failed.what}")
        return "the console could not be built, see above"
    return ""


def _broken_by(problem: str, group: Group) -> Group:
    return replace(group, broken=problem) if problem and group.needs_console else group


def _prepare_real(groups: list[Group], checked: threading.Event) -> None:
    """Packages first (seconds), then the programs (minutes)."""
    packages = tuple(package for group in groups for package in group.packages)
    try:
        debian.install_missing(packages)
    except StepFailed as failed:
        say(f"warning: {failed.what}")
    if any(group.needs_image for group in groups):
        _prepare_image()
    if any(group.needs_kube for group in groups):
        families = [family for group in groups for family in group.more_programs]
        builder = str(Path(__file__).with_name("build_kube.py"))
        build_beside([sys.executable, builder, "--quiet", *build_flags(families)], checked)


def _prepare_image() -> None:
    """Fetch the image's Debian packages. Debian removes a version when it has a newer one; tests
    then use the newer one, so that they do not fail on the day of a security update.
    """
    architecture = host_architecture()
    try:
        apt.fetched(read_lock(architecture))
    except StepFailed as failed:
        say(f"warning: {failed.what}")
        try:
            newest = apt.newest_packages(architecture)
            NEWER_LOCK.write_text(lock_text(newest), encoding="utf-8")
            os.environ[LOCK_VARIABLE] = str(NEWER_LOCK)
            apt.fetched(tuple(newest))
        except StepFailed as again:
            say(f"warning: {again.what}")
        else:
            say("warning: the image's tests use newer packages; run `make image-lock`")


def build_beside(builder: Sequence[str], checked: threading.Event) -> None:
    """Run the builder at low priority until `checked` is set, and then like everything else.

    Beside other work it would hardly get on. Only root may raise a process again, so it is ended
    and begun anew; Go keeps what is compiled.
    """
    with subprocess.Popen(
        [*builder, "--nice", str(BUILD_NICENESS)], stdin=subprocess.DEVNULL
    ) as patient:
        while patient.poll() is None and not checked.wait(0.2):
            pass
        if patient.poll() is not None:
            return
        _end(patient)
    subprocess.run(builder, stdin=subprocess.DEVNULL, check=False)


def _end(builder: subprocess.Popen[bytes]) -> None:
    """SIGINT first, so that the builder ends its compilers.

    Python drops the exception of a SIGINT that arrives in a destructor, and a child of a background
    job of a shell ignores the signal: what goes on is killed.
    """
    builder.send_signal(signal.SIGINT)
    try:
        builder.wait(BUILDER_GRACE)
    except subprocess.TimeoutExpired:
        builder.kill()


def _report(outcomes: list[Outcome], chance: SecondChance, seconds: float, budget: str) -> int:
    total = Tally()
    for outcome in outcomes:
        total.add(outcome.tally)
    print("\n" + "\n".join([*_table(outcomes), *lines(chance)]), flush=True)
    is_strict = os.environ.get("CI") == "true"
    bad = total.failed > 0 or (is_strict and total.skipped > 0)
    if is_strict and total.skipped:
        print(f"CI=true: the {total.skipped} skipped above count as failures")
    print(
        f"all in {spoken_seconds(seconds)}{against(budget, seconds)}; logs in "
        f"{(REPOSITORY / 'build' / 'logs').relative_to(REPOSITORY)}"
    )
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"{total.passed} passed, {total.failed} failed{skipped}", flush=True)
    return 1 if bad else 0


def against(budget: str, seconds: float) -> str:
    """The time limit of a run, printed beside the time that it took.

    A busy machine is no failure, so a run over its limit is only reported.
    """
    if not budget:
        return ""
    allowed = spoken_seconds(BUDGET_SECONDS[budget])
    return (
        f" ({budget}: {allowed} at most, OVER BUDGET)"
        if seconds > BUDGET_SECONDS[budget]
        else f" ({budget}: {allowed} at most)"
    )


def _table(outcomes: list[Outcome]) -> list[str]:
    lines = [
        f"{'GROUP':<11}{'RESULT':<9}{'PASSED':>7}{'FAILED':>8}{'SKIPPED':>9}{'TIME':>14}{'CPU':>14}"
        "  WHY"
    ]
    for outcome in outcomes:
        tally = outcome.tally
        counts = f"{tally.passed:>7}{tally.failed:>8}{tally.skipped:>9}"
        times = f"{spoken_seconds(outcome.seconds):>14}{spoken_seconds(outcome.cpu_seconds):>14}"
        names = f"{outcome.group.name:<11}{outcome.word:<9}"
        lines.append(f"{names}{counts}{times}  {outcome.why}".rstrip())
        if outcome.mend:
            lines.append(f"{'':<11}to run it: `{outcome.mend}`")
        lines += [
            f"{'':<11}skipped {times}: {reason}"
            for reason, times in sorted(tally.skip_reasons.items())
        ]
    return lines


def restore_signals() -> None:
    """Restore the signals that `make test &` or `nohup` made this run ignore.

    Otherwise the run, and all that it starts, would ignore Ctrl-C and hang-ups, which tests send.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_DFL)


def main(argv: list[str]) -> int:
    names = [group.name for group in (*check_groups(), *real_groups(), *on_demand_groups())]
    parser = argparse.ArgumentParser(description="Run the tests of this checkout.")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=["check", "real", *names],
        metavar="GROUP",
        help=", ".join(names),
    )
    only = parser.parse_args(argv).only
    restore_signals()
    try:
        with only_one(REPOSITORY / "build" / "tests.lock", "the tests"):
            return run_tests(only)
    except StepFailed as failed:
        say(f"error: {failed.what}")
        if failed.hint:
            say(f"hint: {failed.hint}")
        print("0 passed, 1 failed")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
