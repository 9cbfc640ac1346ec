"""The mixed company and the three who look at it: kubectl, the console, Prometheus with the cluster
exporter.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from tests.kube.control_plane import ControlPlane
from tests.kube.numbers.agreement import PAGES, differences
from tests.kube.numbers.shown import Shown
from tests.kube.numbers.told_cards import Seat, seats_of
from tests.kube.numbers.truth import Truth
from tests.kube.prometheus import Prometheus
from tests.kube.servers import Server
from tests.waiting import wait_until

Differences = dict[str, tuple[Any, Any]]
"""What is said, and what is so."""
KINDS = "nodes,pods,mpijobs,tfjobs,elasticquotatrees"


class CompanySeen:
    """`truth` is what kubectl said last; exporters' pages follow
    it, for they tell who sits where.
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
        """`consoles` by where they have the values of cards from, the first of them reads
        exporters' pages.
        """
        self.consoles, self.exporter, self.prometheus = consoles, exporter, prometheus

    @property
    def console(self) -> Server:
        return self.consoles["pages"]

    def look(self) -> Truth:
        """Ask kubectl anew."""
        found: list[dict[str, Any]] = self.admin.get(KINDS)
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for obj in found:
            by_kind.setdefault(obj["kind"], []).append(obj)
        self.seats = seats_of(by_kind["Pod"])
        self.truth = Truth(by_kind, self.seats)
        return self.truth

    def await_agreement(self, *pages: str, source: str = "pages") -> Differences:
        """Where a console says something else than what is so, for longer than it takes to read and
        to be told.
        """
        return self.await_none(
            lambda: differences(Shown(self.consoles[source]), self.truth, pages or PAGES)
        )

    def await_none(self, differ: Callable[[], Differences], seconds: float = 30.0) -> Differences:
        """What differs in the end; nothing as soon as nothing does. Between two looks at it kubectl
        is asked anew.
        """
        found: Differences = {}

        def is_so() -> bool:
            nonlocal found
            found = differ()
            if found:
                self.look()
            return not found

        with contextlib.suppress(TimeoutError):
            wait_until("all say the same", is_so, seconds)
        return found
