"""The mixed company and the three programs that show it: kubectl, the console, Prometheus with the
cluster exporter.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from tests.kube.control_plane import ControlPlane
from tests.kube.numbers.agreement import PAGES, differences
from tests.kube.numbers.reported_cards import Seat, seats_of
from tests.kube.numbers.shown import Shown
from tests.kube.numbers.truth import Truth
from tests.kube.prometheus import Prometheus
from tests.kube.servers import Server
from tests.waiting import wait_until

Differences = dict[str, tuple[Any, Any]]
"""(the value shown, the true value) by name."""
KINDS = "nodes,pods,mpijobs,tfjobs,elasticquotatrees"


class CompanySeen:
    """`truth` is built from kubectl's last answer. The exporters' pages follow it, because they
    name the pod on each card.
    """

    consoles: Mapping[str, Server]
    exporter: Server
    prometheus: Prometheus

    def __init__(self, cluster: ControlPlane) -> None:
        self.cluster = cluster
        self.admin = cluster.admin
        self.seats: dict[tuple[str, int], list[Seat]] = {}
        self.look()

    def watch(
        self, consoles: Mapping[str, Server], exporter: Server, prometheus: Prometheus
    ) -> None:
        """Set the programs that show the company. `consoles`: by the source of their values of
        cards; `pages` reads exporters' pages.
        """
        self.consoles, self.exporter, self.prometheus = consoles, exporter, prometheus

    @property
    def console(self) -> Server:
        return self.consoles["pages"]

    def look(self) -> Truth:
        """Read everything from kubectl again."""
        found: list[dict[str, Any]] = self.admin.get(KINDS)
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for obj in found:
            by_kind.setdefault(obj["kind"], []).append(obj)
        self.seats = seats_of(by_kind["Pod"])
        self.truth = Truth(by_kind, self.seats)
        return self.truth

    def await_agreement(self, *pages: str, source: str = "pages") -> Differences:
        """Numbers of a console that differ from the truth for longer than the console needs to read
        and receive changes.
        """
        return self.await_none(
            lambda: differences(Shown(self.consoles[source]), self.truth, pages or PAGES)
        )

    def await_none(self, differ: Callable[[], Differences], seconds: float = 30.0) -> Differences:
        """The last differences; empty as soon as there are none. kubectl is read again between two
        comparisons.
        """
        found: Differences = {}

        def is_so() -> bool:
            nonlocal found
            found = differ()
            if found:
                self.look()
            return not found

        with contextlib.suppress(TimeoutError):
            wait_until("all agree", is_so, seconds)
        return found
