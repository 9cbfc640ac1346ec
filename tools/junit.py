"""Counts of passed, failed and skipped cases, from JUnit reports of pytest and vitest."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from toolchains import REPOSITORY


@dataclass
class Tally:
    """Counts of test cases, and why the skipped ones were.

    A case that failed as it has to (`xfail`) passed.

    `failed_ids` are pytest's ids of the failed cases. They are fewer than `failed` where a case has
    no id: a module that could not be imported, a runner that ended badly, a case of another runner.
    `reasons`: the first line of each of these cases' failure, by id.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    skip_reasons: Counter[str] = field(default_factory=Counter)
    failed_ids: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.skip_reasons += other.skip_reasons
        self.failed_ids += other.failed_ids
        self.reasons |= other.reasons


def read_report(report: Path) -> Tally | None:
    """The tally of a report; None where there is none or it is cut off."""
    try:
        root = ElementTree.parse(report).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    tally = Tally()
    for case in root.iter("testcase"):
        skipped = case.find("skipped")
        problem = next((each for each in case if each.tag in ("failure", "error")), None)
        if problem is not None:
            ids = _case_id(case)
            tally.failed += 1
            tally.failed_ids += ids
            tally.reasons |= dict.fromkeys(ids, problem.get("message", "").partition("\n")[0])
        elif skipped is not None and skipped.get("type") != "pytest.xfail":
            tally.skipped += 1
            tally.skip_reasons[skipped.get("message") or "no reason given"] += 1
        else:
            tally.passed += 1
    return tally


def _case_id(case: ElementTree.Element) -> list[str]:
    """Its id for pytest, from `classname="tests.kube.test_x.TestY" name="test_z[1]"`.

    Empty where no file of this checkout has that name. A case stands twice in the report, with one
    id, when it failed and its teardown failed, too.
    """
    parts, name = case.get("classname", "").split("."), case.get("name", "")
    for end in range(len(parts), 0, -1):
        module = Path("/".join(parts[:end]) + ".py")
        if name and (REPOSITORY / module).is_file():
            return ["::".join([str(module), *parts[end:], name])]
    return []
