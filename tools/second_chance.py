"""Runs the failed cases of real components once more, alone, at the end of a run.

A case that passes then is *unsteady*: it depends on the load of the machine or on what ran beside
it. It does not make the run fail, but the run names it, because an unsteady test is a defect. A
case that fails twice has failed. Groups without real components get no second chance: their tests
depend on nothing but the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
MOST_CHARACTERS = 300
"""Of the line with the reason of a failure."""
UNSTEADY = REPOSITORY / "build" / "unsteady.txt"
"""The ids of the last run's unsteady cases, one a line.

The file is absent if there were none.
"""


@dataclass(frozen=True)
class SecondChance:
    """What became of the failed cases when they ran again: their ids, and the group of each.

    `failed` also has the cases that did not run again. `reasons`: why each failed the first time.
    """

    unsteady: dict[str, str]
    failed: dict[str, str]
    reasons: dict[str, str] = field(default_factory=dict)


def try_again(outcomes: Sequence[Outcome]) -> SecondChance:
    """Run the failed cases of the outcomes again, by group, and correct the outcomes' tallies."""
    UNSTEADY.unlink(missing_ok=True)
    chance = SecondChance({}, {})
    for outcome in outcomes:
        chance.reasons.update(outcome.tally.reasons)
        chance.failed.update(dict.fromkeys(outcome.tally.failed_ids, outcome.group.name))
    ids = {
        each.group.name: list(dict.fromkeys(each.tally.failed_ids))
        for each in outcomes
        if _may_be_unsteady(each)
    }
    total = sum(map(len, ids.values()))
    if total > MOST_CASES:
        say(f"{total} cases failed, more than the {MOST_CASES} that are run again")
        return chance
    for outcome in outcomes:
        name = outcome.group.name
        if name in ids:
            again = run_group(_group_of(outcome.group, ids[name]))
            passed = passed_again(ids[name], again.tally)
            _correct(outcome, passed, again.seconds)
            chance.unsteady.update((each, chance.failed.pop(each)) for each in passed)
    if chance.unsteady:
        UNSTEADY.parent.mkdir(parents=True, exist_ok=True)
        UNSTEADY.write_text("".join(f"{each}\n" for each in chance.unsteady), encoding="utf-8")
    return chance


def _may_be_unsteady(outcome: Outcome) -> bool:
    """Whether cases with ids failed, in a group that runs real
    programs (Debian's or Kubernetes).
    """
    group = outcome.group
    return bool(outcome.tally.failed_ids) and (group.needs_kube or bool(group.packages))


def _group_of(group: Group, ids: Sequence[str]) -> Group:
    """A group of nothing but these cases, or their modules, with a log and a report of its own."""
    report = JUNIT / f"{group.name}-again.xml"
    chosen = dict.fromkeys(each.partition("::")[0] for each in ids) if group.is_ordered else ids
    step = Step(
        "pytest", (*PYTEST, f"--junit-xml={report}", *chosen), group.steps[0].folder, report
    )
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
    """What the last table adds: each case and why it failed, and where the list of the unsteady
    ones is.
    """
    rows = []
    for each, group in chance.unsteady.items():
        rows.append(f"UNSTEADY  {each} ({group}): failed, and passed when it was run again, alone")
        rows += _reason(chance, each)
    for each, group in chance.failed.items():
        rows += [f"FAILED    {each} ({group})", *_reason(chance, each)]
    if chance.unsteady:
        rows.append(
            f"{len(chance.unsteady)} unsteady, counted as passed; an unsteady test is a defect: "
            f"{UNSTEADY.relative_to(root)}"
        )
    return rows


def _reason(chance: SecondChance, case: str) -> list[str]:
    reason = chance.reasons.get(case, "")
    return [f"{'':<10}{reason[:MOST_CHARACTERS]}"] if reason else []
