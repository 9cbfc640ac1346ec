"""Finds the instants at which queries of boards have no result. A real Prometheus has a quarter of
an hour of samples as its past.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.kube.prometheus import Prometheus

START = 1_767_600_000.0
"""When the simulated worlds begin, in epoch seconds; all other times count from here."""
STEP = 15
"""Seconds between two scrapes."""
NEVER = {
    "fairlead-cluster / Firing alerts / A": "no rules are loaded",
    "fairlead-gpu-app / Memory above the grant / A": "no node agent is scraped",
    "fairlead-gpu-app / Containers refused a device / A": "no node agent is scraped",
    **{
        f"fairlead-quota / Quota(aliyun.com/gpu) / {letter}": "no leaf of the tree names it"
        for letter in "ABC"
    },
    **{
        f"fairlead-quota / Other resources over time / {letter}": ("no node of the tree names one")
        for letter in "ABCD"
    },
}
"""Queries of Fairlead's boards that have no result in any of these worlds, and why."""


def gaps(prometheus: Prometheus, expression: str, instants: Sequence[int]) -> list[int]:
    """Seconds at which the expression has no result."""
    series = prometheus.query_range(expression, START + instants[0], START + instants[-1], STEP)
    there = {round(at - START) for values in series for at in values}
    return [seconds for seconds in instants if seconds not in there]
