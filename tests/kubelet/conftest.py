"""One real node for all tests of this folder, beside a real control plane, and the real operators
of training jobs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.kubelet import RealNode, running_node
from tests.kube.operators import running_operators


@pytest.fixture(scope="session")
def _with_node() -> Iterator[tuple[ControlPlane, RealNode]]:
    with running_control_plane() as started, running_node(started) as programs:
        yield started, programs


@pytest.fixture(scope="session")
def node(_with_node: tuple[ControlPlane, RealNode]) -> ControlPlane:
    """A cluster whose only node is real."""
    return _with_node[0]


@pytest.fixture(scope="session")
def programs(_with_node: tuple[ControlPlane, RealNode]) -> RealNode:
    """The programs of that node."""
    return _with_node[1]


@pytest.fixture(scope="session")
def kubelet(programs: RealNode) -> Component:
    """The kubelet of that node."""
    return programs.kubelet


@pytest.fixture(scope="session")
def cluster(node: ControlPlane) -> Iterator[ControlPlane]:
    """The same cluster with operators, which create the pods of training jobs."""
    with running_operators(node):
        yield node
