"""Document 001 under the memory guard, on a real node whose runtime supports CDI."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.documents.guard_story import play
from tests.kube.control_plane import ControlPlane
from tests.kube.kubelet import RealNode
from tests.kubelet.agent import Line
from tests.kubelet.guarded_node import (
    NodePlace,
    guarded_place,
    survives_restarts,
    unusual_containers_are_limited,
    users_see_it,
    without_the_guard_the_third_runs,
)

pytestmark = pytest.mark.turns(2, 1)


@pytest.fixture(scope="module")
def place(
    whole_line: Line,
    _with_node: tuple[ControlPlane, RealNode],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NodePlace]:
    folder = tmp_path_factory.mktemp("images")
    with guarded_place(whole_line, _with_node[1], folder, back_offs=3) as place:
        yield place


def test_document_001(place: NodePlace) -> None:
    play(place)
    users_see_it(place)
    survives_restarts(place)
    without_the_guard_the_third_runs(place)


def test_unusual_containers(place: NodePlace) -> None:
    unusual_containers_are_limited(place)
