"""Counts of passed, failed and skipped cases, read from the JUnit report that pytest and vitest write."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tally:
    """Counts of test cases, and why the skipped ones were."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    skip_reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.skip_reasons += other.skip_reasons


def read_report(report: Path) -> Tally | None:
    """The tally of a report; None where there is none or it is cut off."""
    try:
        root = ElementTree.parse(report).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    tally = Tally()
    for case in root.iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failed += 1
        elif skipped is not None:
            tally.skipped += 1
            tally.skip_reasons[skipped.get("message") or "no reason given"] += 1
        else:
            tally.passed += 1
    return tally
