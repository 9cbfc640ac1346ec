"""A recording rule and an alert, independent of the format in which they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PREFIX: Final = "Fairlead"
Severity = Literal["critical", "warning", "info"]


@dataclass(frozen=True)
class Recording:
    """`name` = `level:what:how`, as Prometheus's own advice on names has it."""

    name: str
    expr: str
    means: str


@dataclass(frozen=True)
class Alert:
    """One alert, and its section of the runbook.

    `name` without its prefix. `expr`: what is wrong. `but_not`: what reports the same fault better,
    each a whole `unless …`; a lost card is one alert. `hold`: for how long it is so before the
    alert fires, as Prometheus writes times. `see`: lines of a shell that begin with `$ `, and
    PromQL. `steps`: what to do.
    """

    name: str
    expr: str
    severity: Severity
    summary: str
    description: str
    means: str
    see: tuple[str, ...]
    steps: str
    hold: str = "0s"
    but_not: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        return PREFIX + self.name

    @property
    def whole_expr(self) -> str:
        """The expression with its exclusions.

        Set operators of one rank associate to the left: each exclusion takes from what the ones
        before left.
        """
        return " ".join((self.expr, *self.but_not))


@dataclass(frozen=True)
class Group:
    """Rules that are evaluated one after the other: those that others read come first."""

    name: str
    title: str
    recordings: tuple[Recording, ...]
    alerts: tuple[Alert, ...]


@dataclass(frozen=True)
class Inhibition:
    """While one of `sources` fires, alerts of `targets` with equal labels are not sent.

    Names are without prefix.
    """

    why: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    equal: tuple[str, ...]
