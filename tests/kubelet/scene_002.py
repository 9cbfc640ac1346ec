"""The parts of document 002 at work: cards that a library plays, their exporter's page, Prometheus,
the pods.

The oracle is the library's state, whose values the test wrote (`at_rest`), and the kubelet's own
notes of which pod has which card.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kube.kubectl import KubectlError
from tests.kube.kubelet import NODE
from tests.kube.prometheus import Prometheus, Sample
from tests.kube.reference_boards import BOARD_12239, VARIABLES_OF_12239, fill_in
from tests.kube.servers import Page
from tests.kubelet.document_002 import EXPORTER_PODS, GPU, NAMESPACE
from tests.kubelet.plugins import SimpleAnswers
from tests.nvml.stub import MIB, StubState, uuid
from tests.waiting import wait_until

Object = dict[str, Any]
SECONDS = 120.0
CARDS = 4
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"


def at_rest(card: int) -> dict[str, float]:
    """A card's values of the figures that the board shows; each card has others."""
    return {
        "temperature": 50 + card,
        "power": 300_000 + 1000 * card,
        "clock.1": 1900 + card,
        "gpu": 1 + card,
        "used": (40_000 + card) * MIB,
        "gpm.5": 10 + card,
    }


def show(state: StubState, card: int, **other: float) -> None:
    """Show the card at rest, with `other` instead of its values at rest."""
    state.say({f"{card}.{row}": f"{value:.0f}" for row, value in (at_rest(card) | other).items()})


def by_card(row: str, factor: float = 1.0) -> Callable[[list[dict[str, float]]], dict[str, float]]:
    return lambda cards: {uuid(card): factor * rows[row] for card, rows in enumerate(cards)}


def over_all(
    fold: Callable[[list[float]], float], row: str, factor: float = 1.0
) -> Callable[[list[dict[str, float]]], dict[str, float]]:
    return lambda cards: {"": fold([factor * rows[row] for rows in cards])}


ANSWERS = (
    by_card("temperature"),
    over_all(lambda values: sum(values) / len(values), "temperature"),
    by_card("power", 1e-3),
    over_all(sum, "power", 1e-3),
    by_card("clock.1", 1e6),
    by_card("gpu"),
    by_card("used", 1 / MIB),
    by_card("gpm.5", 1e-2),
)
"""The value of each expression of the board by the driver's state, in the board's order."""
UNDER_LOAD = {"gpu": 98.0, "gpm.5": 87.0}
"""Test 1004 (docs/spec/telemetry.md#load-generator)."""


class Scene:
    """The parts that run together."""

    def __init__(
        self, cluster: ControlPlane, cards: StubState, plugin: SimpleAnswers, prometheus: Prometheus
    ) -> None:
        self.cluster, self.cards, self.plugin, self.prometheus = cluster, cards, plugin, prometheus
        self.url = url_of(self.exporter())

    def pods(self, selector: str) -> dict[str, Object]:
        """Pods that run and stay, by name."""
        found = self.cluster.admin.get("pods", "-n", NAMESPACE, "-l", selector)
        running = (
            each
            for each in found
            if each["status"].get("phase") == "Running"
            and "deletionTimestamp" not in each["metadata"]
        )
        return {each["metadata"]["name"]: each for each in running}

    def pod(self, name: str) -> Object:
        found = self.cluster.admin.get(
            "pods", "-n", NAMESPACE, f"--field-selector=metadata.name={name}"
        )
        return found[0] if found else {}

    def runs(self, name: str) -> Object:
        wait_until(
            lambda: f"{name} runs: {self.pod(name)}",
            lambda: self.pod(name).get("status", {}).get("phase") == "Running",
            SECONDS,
        )
        return self.pod(name)

    def exporter(self) -> Object:
        (found,) = self.pods(EXPORTER_PODS).values()
        return found

    def page(self) -> Page:
        """The exporter's own page, as of now."""
        return page_of(self.url)

    def board(self) -> dict[str, dict[str, float]]:
        """Each expression of board 12239, filled in as Grafana does: card -> value; the key "" is
        for a value of all cards.
        """
        variables = {
            name: self.prometheus.label_values(*asked) for name, asked in VARIABLES_OF_12239.items()
        }
        answers = {
            expression: self.prometheus.query(fill_in(expression, variables))
            for expression in BOARD_12239
        }
        return {expression: by_uuid(found) for expression, found in answers.items()}

    def until_board_shows(self, loaded: Collection[str]) -> None:
        """Wait until the board shows all values of the state, with the load on these cards."""
        cards = [
            {**at_rest(card), **(UNDER_LOAD if uuid(card) in loaded else {})}
            for card in range(CARDS)
        ]
        expected = {
            expression: answer(cards)
            for expression, answer in zip(BOARD_12239, ANSWERS, strict=True)
        }
        wait_until(
            lambda: f"the board is {expected}: {self.board()}",
            lambda: (
                {name: pytest.approx(values, rel=1e-6) for name, values in expected.items()}
                == self.board()
            ),
            SECONDS,
        )

    def owners(self, label: str = "exported_pod") -> dict[str, str]:
        """The pod of each card, according to Prometheus."""
        return {
            each.labels["UUID"]: each.labels[label]
            for each in self.prometheus.query(UTILIZATION)
            if each.labels.get(label)
        }


def url_of(exporter: Object) -> str:
    return f"http://{exporter['status']['podIP']}:9400/metrics"


def page_of(url: str) -> Page:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return Page(answer.read().decode())


def by_uuid(found: list[Sample]) -> dict[str, float]:
    values = {each.labels.get("UUID", ""): each.value for each in found}
    return values if len(values) == len(found) else {"a card twice": len(found)}


@contextmanager
def applied(cluster: ControlPlane, *objects: Object) -> Iterator[None]:
    """Apply the objects for the block; afterwards they and the pods that they made are gone."""
    cluster.admin.create(objects)
    try:
        yield
    finally:
        for each in objects:
            words = ("--ignore-not-found", "--cascade=foreground", "--wait=false")
            cluster.admin.run(
                "delete", each["kind"], each["metadata"]["name"], "-n", space_of(each), *words
            )
        for each in objects:
            asked = (
                each["kind"],
                "-n",
                space_of(each),
                f"--field-selector=metadata.name={each['metadata']['name']}",
            )
            wait_until(
                f"it is gone: {asked}", lambda asked=asked: not cluster.admin.get(*asked), SECONDS
            )


def space_of(obj: Object) -> str:
    return str(obj["metadata"].get("namespace", NAMESPACE))


def shown(cluster: ControlPlane) -> str:
    (found,) = (each for each in cluster.admin.get("nodes") if each["metadata"]["name"] == NODE)
    return str(found["status"]["allocatable"].get(GPU, "0"))


def is_ready(cluster: ControlPlane, selector: str, namespace: str = NAMESPACE) -> bool:
    pods = cluster.admin.get("pods", "-n", namespace, "-l", selector)
    return any(
        each["type"] == "Ready" and each["status"] == "True"
        for pod in pods
        for each in pod["status"].get("conditions", ())
    )


def reported(cluster: ControlPlane, selector: str, namespace: str = NAMESPACE) -> str:
    """Details for the message of a failure."""
    pods = [
        str(each["status"]) for each in cluster.admin.get("pods", "-n", namespace, "-l", selector)
    ]
    try:
        logs = cluster.admin.run("logs", "-n", namespace, "-l", selector, "--tail=40")
    except KubectlError as error:
        logs = str(error)
    events = [
        f"{each['reason']}: {each['message']}"
        for each in cluster.admin.get("events", "-n", namespace)
    ]
    return "\n".join((*pods, logs, *events[-20:]))
