"""Document 001 under the memory guard, on a real node whose runtime does not support CDI."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.documents.guard_story import play
from tests.kube.control_plane import ControlPlane
from tests.kube.kubelet import RealNode
from tests.kube.node_images import BUSYBOX
from tests.kubelet.agent import running_line
from tests.kubelet.guarded_node import (
    NodePlace,
    guarded_place,
    survives_restarts,
    unusual_containers_are_limited,
    users_see_it,
    without_the_guard_the_third_runs,
)

pytestmark = pytest.mark.turns(4, 1)


@pytest.fixture(scope="module")
def place(
    node: ControlPlane, programs: RealNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodePlace]:
    folder = tmp_path_factory.mktemp("images")
    with (
        running_line(node, programs, "1xTesla-V100-SXM2-16GB", f"--test-image={BUSYBOX}") as line,
        guarded_place(line, programs, folder, back_offs=1) as place,
    ):
        yield place


def test_document_001(place: NodePlace) -> None:
    play(place)
    users_see_it(place)
    survives_restarts(place)
    without_the_guard_the_third_runs(place)


def test_unusual_containers(place: NodePlace) -> None:
    unusual_containers_are_limited(place)
