"""The exporter's process prints what the memory guard counts in files of the node agent."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.edge.kubelet.pod_resources import container, devices
from tests.edge.kubelet.wire_bytes import packed
from tests.nvml.exporting import exporting
from tests.nvml.stub import MIB, StubState, uuid
from tests.nvml.test_dcgm_pages import kubelet

from fairlead.edge.node.agent_files import NodeAgentFiles, NodeFolders
from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kubelet import CardLimit, ContainerLimits, GivenShare, Region
from fairlead.rules.devices.ids import token

HOLDERS = ("with", "without")
MEMORY = "aliyun.com/gpu-mem"
FIRST_CARD = 64
"""Offset of the first GPU in a region: docs/spec/gpu-sharing.md#limits-file-and-region."""


def test_the_page_has_the_counters_of_containers_with_the_guard(
    library: Path, state: StubState, tmp_path: Path
) -> None:
    state.show_cards(1)
    files = NodeAgentFiles(NodeFolders(*(tmp_path / each for each in ("p", "c", "kept", "run"))))
    ids = {
        name: tuple(f"{uuid(0)}-_-{at}{name}" for at in range(4)) for name in ("with", "without")
    }
    grant = Grant(uuid(0), 0, 4, 4301)
    limits = ContainerLimits((CardLimit(uuid(0), 4301),), "/run/fairlead/gpu/region")
    names = {name: token(MEMORY, each) for name, each in ids.items()}
    files.write_given(
        GivenShare("ns", name, f"uid-{name}", "app", grant, each) for name, each in names.items()
    )
    files.write_container(names["with"], limits, None, Region(7))
    files.write_container(names["without"], limits, None)
    with Path(files.region_path(names["with"])).open("r+b") as region:
        region.seek(FIRST_CARD)
        region.write(struct.pack("=4Q", 3193 * MIB, 3200 * MIB, 5, 0))
    pods = [
        packed((1, name), (2, "ns"), (3, container("app", devices(MEMORY, *each))))
        for name, each in ids.items()
    ]
    flags = (f"--grants-file={tmp_path}/kept/grants.json", f"--run-dir={tmp_path}/run")
    prefix = "fairlead_container_gpu_"
    with (
        kubelet(tmp_path, packed(*((1, each) for each in pods))),
        exporting(library, state, tmp_path, *flags) as exporter,
    ):
        limit = dict.fromkeys(ids, 4301.0 * MIB)
        exporter.until("pods are known", f"{prefix}memory_limit_bytes", limit, label="pod_name")
        for name, value in (
            ("memory_accounted_bytes", 3193.0 * MIB),
            ("allocations_denied_total", 5.0),
        ):
            assert exporter.values(prefix + name, "pod_name") == {"with": value}
