"""The node's agent where the runtime does no CDI: it answers before it knows who asks (guarded)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.node_images import BUSYBOX
from tests.kubelet import agent_cases
from tests.kubelet.agent import Line, running_line
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def line(node: ControlPlane, kubelet: Component) -> Iterator[Line]:
    with running_line(node, kubelet, "1xTesla-T4", f"--test-image={BUSYBOX}") as line:
        yield line
        line.label(cgpu=None)
        line.remove_all()


def test_document_003(line: Line) -> None:
    wait_until("it is found out", lambda: line.node()["metadata"].get("annotations", {}).get("fairlead.io/gpu-identity") == "guarded", 30)
    agent_cases.document_003(line)
