"""One real node for all tests of this folder, beside a real control plane with the real operators of training jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.kubelet import running_kubelet
from tests.kube.operators import running_operators


@pytest.fixture(scope="session")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as started, running_kubelet(started), running_operators(started):
        yield started
