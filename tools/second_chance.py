"""Runs the failed cases of real components once more, alone, at the end of a run.

A case that passes then is *unsteady*: it depends on the load of the machine or on what ran beside
it. It does not make the run fail, but the run names it, because an unsteady test is a defect. A
case that fails twice has failed. Groups without real components get no second chance: their tests
depend on nothing but the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from groups import JUNIT, PYTEST, Group, Step
from junit import Tally
from progress import say
from run_group import Outcome, run_group
from toolchains import REPOSITORY

MOST_CASES = 25
"""Failed cases of one run that are run again.

More of them have one cause, which a second run would hide.
"""
UNSTEADY = REPOSITORY / "build" / "unsteady.txt"
"""The ids of the last run's unsteady cases, one a line.

The file is absent if there were none.
"""


@dataclass(frozen=True)
class SecondChance:
    """What became of the failed cases when they ran again: their ids, and the group of each."""

    unsteady: dict[str, str]
    failed: dict[str, str]


def try_again(outcomes: Sequence[Outcome]) -> SecondChance:
    """Run the failed cases of the outcomes again, by group, and correct the outcomes' tallies."""
    UNSTEADY.unlink(missing_ok=True)
    ids = {
        each.group.name: list(dict.fromkeys(each.tally.failed_ids))
        for each in outcomes
        if _may_be_unsteady(each)
    }
    total = sum(map(len, ids.values()))
    if total > MOST_CASES:
        say(f"{total} cases failed, more than the {MOST_CASES} that are run again")
        return SecondChance({}, {each: name for name, several in ids.items() for each in several})
    unsteady: dict[str, str] = {}
    failed: dict[str, str] = {}
    for outcome in outcomes:
        name = outcome.group.name
        if name in ids:
            again = run_group(_group_of(outcome.group, ids[name]))
            passed = passed_again(ids[name], again.tally)
            _correct(outcome, passed, again.seconds)
            unsteady |= dict.fromkeys(passed, name)
            failed |= dict.fromkeys((each for each in ids[name] if each not in passed), name)
    if unsteady:
        UNSTEADY.parent.mkdir(parents=True, exist_ok=True)
        UNSTEADY.write_text("".join(f"{each}\n" for each in unsteady), encoding="utf-8")
    return SecondChance(unsteady, failed)


def _may_be_unsteady(outcome: Outcome) -> bool:
    """Whether cases with ids failed, in a group that runs real
    programs (Debian's or Kubernetes).
    """
    group = outcome.group
    return bool(outcome.tally.failed_ids) and (group.needs_kube or bool(group.packages))


def _group_of(group: Group, ids: Sequence[str]) -> Group:
    """A group of nothing but these cases, with a log and a report of its own."""
    report = JUNIT / f"{group.name}-again.xml"
    step = Step("pytest", (*PYTEST, f"--junit-xml={report}", *ids), group.steps[0].folder, report)
    return replace(
        group,
        name=f"{group.name}-again",
        what=f"once more: {len(ids)} that failed",
        steps=(step,),
    )


def passed_again(ids: Sequence[str], again: Tally) -> list[str]:
    """Those that passed the second time: none unless each of them was really run again."""
    failed = set(again.failed_ids)
    ran = again.passed + len(failed)
    is_whole = ran >= len(ids) and again.skipped == 0 and len(again.failed_ids) == again.failed
    return [each for each in ids if each not in failed] if is_whole else []


def _correct(outcome: Outcome, passed: Sequence[str], seconds: float) -> None:
    tally = outcome.tally
    tally.failed -= sum(tally.failed_ids.count(each) for each in passed)
    tally.failed_ids = [each for each in tally.failed_ids if each not in passed]
    tally.passed += len(passed)
    outcome.seconds += seconds


def lines(chance: SecondChance, root: Path = REPOSITORY) -> list[str]:
    """What the last table adds: each case, and where the list of the unsteady ones is."""
    rows = [
        f"UNSTEADY  {each} ({group}): failed, and passed when it was run again, alone"
        for each, group in chance.unsteady.items()
    ]
    rows += [f"FAILED    {each} ({group})" for each, group in chance.failed.items()]
    if chance.unsteady:
        rows.append(
            f"{len(chance.unsteady)} unsteady, counted as passed; an unsteady test is a defect: "
            f"{UNSTEADY.relative_to(root)}"
        )
    return rows
