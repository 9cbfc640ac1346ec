"""The node's agent where the runtime does CDI: what a container gets is said when it starts (deferred)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.control_plane import running_control_plane
from tests.kube.kubelet import running_kubelet
from tests.kube.node_images import BUSYBOX
from tests.kubelet import agent_cases
from tests.kubelet.agent import MEMORY, SECONDS, Line, running_line
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def one_card() -> Iterator[Line]:
    with (
        running_control_plane() as cluster,
        running_kubelet(cluster, with_cdi=True) as kubelet,
        running_line(cluster, kubelet, "1xTesla-T4", f"--test-image={BUSYBOX}") as line,
    ):
        yield line


@pytest.fixture(scope="module")
def two_cards(one_card: Line) -> Line:
    """The node with another card, shared."""
    one_card.use("2xTesla-T4")
    one_card.label(cgpu="true")
    wait_until("the node shows both", lambda: one_card.shown(MEMORY) == ("28", "28"), SECONDS)
    return one_card


@pytest.fixture
def line(two_cards: Line) -> Iterator[Line]:
    """Whatever happened before, no pod is there."""
    yield two_cards
    two_cards.remove_all()


def test_document_003(one_card: Line) -> None:
    told = lambda: one_card.node()["metadata"].get("annotations", {}).get("fairlead.io/gpu-identity")  # noqa: E731 - asked often
    wait_until("it is found out", lambda: told() == "deferred", SECONDS)
    agent_cases.document_003(one_card)


@pytest.mark.parametrize("case", agent_cases.CASES, ids=lambda case: case.__name__)
def test_on_two_cards(line: Line, case: agent_cases.Case) -> None:
    case(line)
