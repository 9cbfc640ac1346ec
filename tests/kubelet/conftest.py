"""One real node for all tests of this folder, beside a real control plane; and the real operators of training jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.kubelet import running_kubelet
from tests.kube.operators import running_operators


@pytest.fixture(scope="session")
def _with_kubelet() -> Iterator[tuple[ControlPlane, Component]]:
    with running_control_plane() as started, running_kubelet(started) as kubelet:
        yield started, kubelet


@pytest.fixture(scope="session")
def node(_with_kubelet: tuple[ControlPlane, Component]) -> ControlPlane:
    """A cluster whose only node is real."""
    return _with_kubelet[0]


@pytest.fixture(scope="session")
def kubelet(_with_kubelet: tuple[ControlPlane, Component]) -> Component:
    """The kubelet of that node."""
    return _with_kubelet[1]


@pytest.fixture(scope="session")
def cluster(node: ControlPlane) -> Iterator[ControlPlane]:
    """The same with operators, which make the pods of training jobs."""
    with running_operators(node):
        yield node
