"""The node's agent where the runtime does CDI: what a container gets is said when it starts (deferred)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.control_plane import running_control_plane
from tests.kube.kubelet import running_kubelet
from tests.kube.node_images import BUSYBOX
from tests.kubelet import agent_cases
from tests.kubelet.agent import Line, running_line
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    with (
        running_control_plane() as cluster,
        running_kubelet(cluster, with_cdi=True) as kubelet,
        running_line(cluster, kubelet, "1xTesla-T4", f"--test-image={BUSYBOX}") as line,
    ):
        yield line


def test_document_003(line: Line) -> None:
    wait_until("it is found out", lambda: line.node()["metadata"].get("annotations", {}).get("fairlead.io/gpu-identity") == "deferred", 30)
    agent_cases.document_003(line)
