"""One real node with containerd 2 for all tests of this folder, beside a real control plane."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.extender import NODE_SPACE
from tests.kube.kubelet import RealNode, running_node
from tests.kube.node_images import BUSYBOX
from tests.kubelet.agent import ACCOUNT, Line, running_line


@pytest.fixture(scope="session")
def _with_node() -> Iterator[tuple[ControlPlane, RealNode]]:
    with (
        running_control_plane(audited=[f"system:serviceaccount:{NODE_SPACE}:{ACCOUNT}"]) as started,
        running_node(started, with_cdi=True) as programs,
    ):
        yield started, programs


@pytest.fixture(scope="session")
def node(_with_node: tuple[ControlPlane, RealNode]) -> ControlPlane:
    return _with_node[0]


@pytest.fixture(scope="session")
def whole_line(_with_node: tuple[ControlPlane, RealNode]) -> Iterator[Line]:
    """The node with its agent; a module chooses the cards."""
    with running_line(*_with_node, "1xTesla-T4", f"--test-image={BUSYBOX}") as line:
        yield line
