"""The node's agent where the runtime does not support CDI: it answers before it knows which
container asks (guarded mode).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kube.kubelet import RealNode
from tests.kube.node_images import BUSYBOX
from tests.kubelet import agent_cases, agent_faults
from tests.kubelet.agent import Line, running_line

pytestmark = pytest.mark.turns(4, 3)

PLAYED = (
    (*agent_cases.CASES, *agent_faults.FAULTS)
    if os.environ.get("AGENT_CASES") == "all"
    else agent_cases.GUARDED
)


@pytest.fixture(scope="module")
def one_card(node: ControlPlane, programs: RealNode) -> Iterator[Line]:
    with running_line(node, programs, "1xTesla-T4", f"--test-image={BUSYBOX}") as line:
        yield line
        line.remove_all()
        line.label(cgpu=None)


@pytest.fixture(scope="module")
def two_cards(one_card: Line) -> Line:
    return agent_cases.then_two_cards(one_card)


@pytest.fixture
def line(two_cards: Line) -> Iterator[Line]:
    """Starts without pods, whatever happened before."""
    yield two_cards
    two_cards.remove_all()


def test_document_003(one_card: Line) -> None:
    agent_cases.one_card_first(one_card, "guarded")


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.__name__)
def test_on_two_cards(line: Line, case: agent_cases.Case) -> None:
    case(line)
