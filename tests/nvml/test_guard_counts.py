"""The exporter's process prints what the memory guard counts in files of the node agent."""

from __future__ import annotations

import struct
from contextlib import AbstractContextManager
from pathlib import Path

from tests.edge.kubelet.pod_resources import container, devices
from tests.edge.kubelet.wire_bytes import packed
from tests.native.driver import Machine
from tests.nvml.exporting import exporting
from tests.nvml.pod_resources import kubelet
from tests.nvml.stub import MIB, StubState, uuid
from tests.waiting import HANG_SECONDS

from fairlead.edge.node.agent_files import NodeAgentFiles, NodeFolders
from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kubelet import CardLimit, ContainerLimits, GivenShare, Region
from fairlead.rules.devices.ids import token

HOLDERS = ("with", "without")
MEMORY = "aliyun.com/gpu-mem"
FIRST_CARD = 64
"""Offset of the first GPU in a region: docs/spec/gpu-sharing.md#limits-file-and-region."""


IDS = {name: tuple(f"{uuid(0)}-_-{at}{name}" for at in range(4)) for name in HOLDERS}
PREFIX = "fairlead_container_gpu_"


def given(home: Path) -> tuple[NodeAgentFiles, dict[str, str]]:
    """The node agent's files of two containers with 4301 MiB each; tokens by the pod's name."""
    files = NodeAgentFiles(NodeFolders(*(home / each for each in ("p", "c", "kept", "run"))))
    grant = Grant(uuid(0), 0, 4, 4301)
    limits = ContainerLimits((CardLimit(uuid(0), 4301),), "/run/fairlead/gpu/region")
    names = {name: token(MEMORY, each) for name, each in IDS.items()}
    files.write_given(
        GivenShare("ns", name, f"uid-{name}", "app", grant, each) for name, each in names.items()
    )
    files.write_container(names["with"], limits, None, Region(7))
    files.write_container(names["without"], limits, None)
    return files, names


def holding(home: Path) -> AbstractContextManager[object]:
    """A kubelet that lists both containers with their devices."""
    pods = [
        packed((1, name), (2, "ns"), (3, container("app", devices(MEMORY, *each))))
        for name, each in IDS.items()
    ]
    return kubelet(home, packed(*((1, each) for each in pods)))


def flags(home: Path) -> tuple[str, str]:
    return f"--grants-file={home}/kept/grants.json", f"--run-dir={home}/run"


def test_the_page_has_the_counters_of_containers_with_the_guard(
    library: Path, state: StubState, tmp_path: Path
) -> None:
    state.show_cards(1)
    files, names = given(tmp_path)
    with Path(files.region_path(names["with"])).open("r+b") as region:
        region.seek(FIRST_CARD)
        region.write(struct.pack("=4Q", 3193 * MIB, 3200 * MIB, 5, 3))
    with holding(tmp_path), exporting(library, state, tmp_path, *flags(tmp_path)) as exporter:
        limit = dict.fromkeys(HOLDERS, 4301.0 * MIB)
        exporter.until("pods are known", f"{PREFIX}memory_limit_bytes", limit, label="pod_name")
        for name, value in (
            ("memory_accounted_bytes", 3193.0 * MIB),
            ("allocations_denied_total", 5.0),
            ("unknown_allocators_total", 3.0),
        ):
            assert exporter.values(PREFIX + name, "pod_name") == {"with": value}


def test_what_the_guard_itself_counts_is_on_the_page(
    library: Path, state: StubState, tmp_path: Path
) -> None:
    """Programs on the stub of the driver, whose guard has the agent's region of the container."""
    state.show_cards(1)
    files, names = given(tmp_path)
    machine = Machine(Path(files.region_path(names["with"])).parent, limit=4301 * MIB)

    def counters() -> list[dict[str, float]]:
        return [
            exporter.values(f"{PREFIX}{each}_total", "pod_name")
            for each in ("allocations_denied", "unknown_allocators")
        ]

    with holding(tmp_path), exporting(library, state, tmp_path, *flags(tmp_path)) as exporter:
        accounted = f"{PREFIX}memory_accounted_bytes"
        exporter.until("nothing has run", accounted, {"with": 0.0}, label="pod_name")
        assert counters() == [{"with": 0.0}] * 2
        machine.run("dlsym", "find", stdin="cuMemStrangeAlloc,13050,0\n" * 2)
        unknown = f"{PREFIX}unknown_allocators_total"
        exporter.until("two look-ups", unknown, {"with": 2.0}, label="pod_name")
        with machine.start("dlsym", "hold", 3193 * MIB) as program:
            exporter.until("a program runs", accounted, {"with": 3193.0 * MIB}, label="pod_name")
            machine.run("dlsym", "fill", "cuMemAlloc_v2", 2048 * MIB, 1)
            exporter.until(
                "another is refused",
                f"{PREFIX}allocations_denied_total",
                {"with": 1.0},
                label="pod_name",
            )
            program.communicate(timeout=HANG_SECONDS)
        granted = machine.run("dlsym", "fill", "cuMemAlloc_v2", 2048 * MIB, 1)
        assert granted[0].startswith("cuMemAlloc_v2 granted 1 ")
        exporter.until("all have ended", accounted, {"with": 0.0}, label="pod_name")
        assert counters() == [{"with": 1.0}, {"with": 2.0}]
