"""What the exporter reads of the memory guard's files, which a container's programs may spoil."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairlead.edge.node.agent_files import NodeAgentFiles, NodeFolders
from fairlead.edge.node.guard_files import NodeGuardFiles
from fairlead.model.devices.kubelet import CardLimit, ContainerLimits, Region
from fairlead.model.refusal import Refusal

TOKEN = "0123456789abcdef"
LIMITS = ContainerLimits((CardLimit("GPU-a", 4308),), "/run/fairlead/gpu/region")


@pytest.fixture
def files(tmp_path: Path) -> NodeAgentFiles:
    return NodeAgentFiles(NodeFolders(*(tmp_path / each for each in ("p", "c", "state", "run"))))


@pytest.fixture
def reader(tmp_path: Path) -> NodeGuardFiles:
    return NodeGuardFiles(tmp_path / "state", tmp_path / "run")


def test_a_container_without_the_guard_has_no_counters(
    files: NodeAgentFiles, reader: NodeGuardFiles
) -> None:
    assert reader.read_guard(TOKEN) is None
    files.write_container(TOKEN, LIMITS, None)
    assert reader.read_guard(TOKEN) is None
    files.write_container(TOKEN, LIMITS, None, Region(7))
    read = reader.read_guard(TOKEN)
    assert isinstance(read, tuple)
    assert (read[0], read[1].generation) == (LIMITS, 7)
    files.remove(TOKEN)
    assert reader.read_guard(TOKEN) is None


def test_files_that_are_spoiled_are_refused(files: NodeAgentFiles, reader: NodeGuardFiles) -> None:
    files.write_container(TOKEN, LIMITS, None, Region(7))
    region, limits = Path(files.region_path(TOKEN)), Path(files.limits_path(TOKEN))
    whole = region.read_bytes()
    region.write_bytes(whole[:100])
    assert reader.read_guard(TOKEN) == Refusal("the region file has 100 bytes, a region has 290816")
    region.write_bytes(whole)
    limits.chmod(0o644)
    limits.write_text("version 2\n", encoding="utf-8")
    assert reader.read_guard(TOKEN) == Refusal(
        "the limits file begins with `version 2`, not with `version 1`"
    )
    limits.unlink()
    limits.mkdir()
    assert reader.read_guard(TOKEN) == Refusal(f"`{limits}` cannot be read: is a directory")


def test_a_region_that_a_program_made_very_long_is_read_to_its_end(
    files: NodeAgentFiles, reader: NodeGuardFiles
) -> None:
    files.write_container(TOKEN, LIMITS, None, Region(7))
    os.truncate(files.region_path(TOKEN), 1 << 40)
    assert isinstance(reader.read_guard(TOKEN), tuple)
