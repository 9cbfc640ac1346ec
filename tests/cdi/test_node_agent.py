"""The node's agent where the runtime supports CDI: what a container gets is decided when it starts
(deferred mode).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.extender import NODE_SPACE
from tests.kube.used_rights import unused
from tests.kubelet import agent_cases, agent_faults
from tests.kubelet.agent import ACCOUNT, Line

pytestmark = pytest.mark.turns(2, 0)


@pytest.fixture(scope="module")
def one_card(whole_line: Line) -> Line:
    whole_line.use("1xTesla-T4")
    return whole_line


@pytest.fixture(scope="module")
def two_cards(one_card: Line) -> Line:
    return agent_cases.then_two_cards(one_card)


@pytest.fixture
def line(two_cards: Line) -> Iterator[Line]:
    """Starts without pods, whatever happened before."""
    yield two_cards
    two_cards.remove_all()


def test_document_003(one_card: Line) -> None:
    agent_cases.one_card_first(one_card, "deferred")


@pytest.mark.parametrize(
    "case", (*agent_cases.CASES, *agent_faults.FAULTS), ids=lambda case: case.__name__
)
def test_on_two_cards(line: Line, case: agent_cases.Case) -> None:
    case(line)


def test_each_right_of_its_account_was_used(two_cards: Line) -> None:
    """Runs after the cases above, whose requests are in the audit log."""
    granted, not_used = unused(two_cards.cluster, ACCOUNT, NODE_SPACE)
    assert len(granted) > 10
    assert not_used == set()
