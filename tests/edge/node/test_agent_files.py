"""The node agent's files: they are written as a whole, damaged files are not trusted, and files of
other programs are not removed.
"""

from __future__ import annotations

import os
import platform
import socket
import stat
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.programs import run_program

from fairlead.edge.node import agent_files
from fairlead.edge.node.agent_files import NodeAgentFiles, NodeFolders
from fairlead.errors import OutsideError
from fairlead.model.devices.driver import CardFault
from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kubelet import (
    CardLimit,
    ContainerEdits,
    ContainerLimits,
    GivenShare,
    Region,
)
from fairlead.model.refusal import Refusal

TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"
LIMITS = ContainerLimits((CardLimit("GPU-a", 4308),), "/run/fairlead/gpu/region")
EDITS = ContainerEdits({"A": "b"})


@pytest.fixture
def folders(tmp_path: Path) -> NodeFolders:
    made = NodeFolders(tmp_path / "plugins", tmp_path / "cdi", tmp_path / "state", tmp_path / "run")
    made.plugins.mkdir()
    return made


@pytest.fixture
def files(folders: NodeFolders) -> NodeAgentFiles:
    return NodeAgentFiles(folders)


def test_a_container_gets_a_fresh_region_and_limits_that_no_process_writes(
    files: NodeAgentFiles, folders: NodeFolders
) -> None:
    files.write_container(TOKEN, LIMITS, EDITS)
    limits, region = Path(files.limits_path(TOKEN)), Path(files.region_path(TOKEN))
    assert stat.S_IMODE(limits.stat().st_mode) == 0o444
    assert stat.S_IMODE(region.stat().st_mode) == 0o666
    with region.open("rb") as mounted:
        mounted_limits = limits.open("rb")
        files.write_container(TOKEN, LIMITS, EDITS)
        assert os.fstat(mounted.fileno()).st_ino != region.stat().st_ino, (
            "who has the old one keeps it"
        )
        assert os.fstat(mounted_limits.fileno()).st_ino != limits.stat().st_ino
        mounted_limits.close()
    assert (folders.cdi / f"fairlead.io-gpu_{TOKEN}.json").exists()
    assert not [path for path in folders.state.rglob("*") if path.name.startswith(".")], (
        "nothing half written is left"
    )


PRELOAD = "/usr/lib/fairlead/libfairlead-guard.so\n"


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """The library of this machine, as a wheel has it."""
    path = tmp_path / "guards" / platform.machine() / "libfairlead-guard.so"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"the first")
    return path


@pytest.fixture
def guarded(folders: NodeFolders, shipped: Path) -> NodeAgentFiles:
    return NodeAgentFiles(folders, shipped.parents[1])


def test_a_new_version_of_the_guard_leaves_the_old_one_to_running_containers(
    guarded: NodeAgentFiles, folders: NodeFolders, shipped: Path
) -> None:
    assert guarded.install_guard(PRELOAD) is None
    library, preload = Path(guarded.guard_path()), Path(guarded.preload_path())
    assert (library.read_bytes(), preload.read_text()) == (b"the first", PRELOAD)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (library, preload)} == {0o444}
    with library.open("rb") as mapped:
        assert guarded.install_guard(PRELOAD) is None
        assert os.fstat(mapped.fileno()).st_ino == library.stat().st_ino, "nothing has changed"
        shipped.write_bytes(b"the next")
        assert guarded.install_guard(PRELOAD) is None
        assert library.read_bytes() == b"the next"
        assert mapped.read() == b"the first"
    assert sorted(path.name for path in library.parent.iterdir()) == [
        "ld.so.preload",
        "libfairlead-guard.so",
    ]
    assert guarded.tokens() == frozenset(), "no container's files"


def test_the_guard_is_put_back_where_a_runtime_made_a_directory_of_it(
    guarded: NodeAgentFiles,
) -> None:
    Path(guarded.guard_path()).mkdir(parents=True)
    assert guarded.install_guard(PRELOAD) is None
    assert Path(guarded.guard_path()).read_bytes() == b"the first"


def test_why_a_node_cannot_have_the_guard(
    guarded: NodeAgentFiles, shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(guarded.guard_path()).parent
    (folder / "ld.so.preload" / "full").mkdir(parents=True)
    assert guarded.install_guard(PRELOAD) == Refusal(
        f"`{folder}/ld.so.preload` cannot be written: directory not empty"
    )
    (folder / "ld.so.preload" / "full").rmdir()
    flags = SimpleNamespace(f_flag=os.ST_RDONLY | os.ST_NOEXEC)
    monkeypatch.setattr("fairlead.edge.node.agent_files.os.statvfs", lambda _: flags)
    assert guarded.install_guard(PRELOAD) == Refusal(
        f"`{folder}` is mounted noexec, so no program can load a library"
    )
    shipped.unlink()
    shipped.mkdir()
    assert guarded.install_guard(PRELOAD) == Refusal(f"`{shipped}` cannot be read: is a directory")
    shipped.rmdir()
    assert guarded.install_guard(PRELOAD) == Refusal(
        f"this installation has no memory guard for {platform.machine()}"
    )


def test_a_region_has_room_for_all_its_bytes(files: NodeAgentFiles) -> None:
    files.write_container(TOKEN, LIMITS, None, Region(7))
    region = Path(files.region_path(TOKEN))
    assert stat.S_IMODE(region.stat().st_mode) == 0o666
    assert region.stat().st_blocks * 512 >= region.stat().st_size == 290816
    assert region.read_bytes()[:16] == struct.pack("=IIQ", 0x5247464C, 1, 7)
    files.write_container(TOKEN, LIMITS, None)
    assert region.stat().st_size == 0


def test_files_of_one_token_go_and_no_others(files: NodeAgentFiles, folders: NodeFolders) -> None:
    files.write_container(TOKEN, LIMITS, EDITS)
    files.write_container(OTHER, LIMITS, EDITS)
    (folders.cdi / "nvidia.yaml").write_text("mine", encoding="utf-8")
    assert files.tokens() == {TOKEN, OTHER}
    files.remove(TOKEN)
    files.remove(TOKEN)
    assert files.tokens() == {OTHER}
    assert sorted(path.name for path in folders.cdi.iterdir()) == [
        f"fairlead.io-gpu_{OTHER}.json",
        "nvidia.yaml",
    ]


def test_an_answer_that_cannot_be_read_allows_nothing(files: NodeAgentFiles) -> None:
    assert files.read_answer(TOKEN) is None
    files.write_answer(TOKEN, LIMITS)
    assert files.read_answer(TOKEN) == LIMITS
    assert " limit_bytes 0 " in Path(files.limits_path(TOKEN)).read_text()
    Path(files.limits_path(TOKEN)).with_name("answered").write_bytes(b"\xff garbage")
    damaged = files.read_answer(TOKEN)
    assert damaged is not None
    assert damaged.cards == ()


def test_a_folder_that_is_a_file_holds_no_answer(
    files: NodeAgentFiles, folders: NodeFolders
) -> None:
    """Otherwise a container without an answer would be stopped; the next write fails with the error
    of the disk.
    """
    folders.state.mkdir(exist_ok=True)
    (folders.state / "containers").write_text("a file", encoding="utf-8")
    assert files.read_answer(TOKEN) is None
    with pytest.raises(OutsideError) as caught:
        files.write_container(TOKEN, LIMITS, None)
    limits = folders.state / "containers" / TOKEN / "limits"
    assert caught.value.what == f"`{limits}` cannot be written: not a directory"


def test_what_is_kept_is_read_again_and_garbage_is_reported(
    files: NodeAgentFiles, folders: NodeFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = GivenShare("ns", "p", "u", "c", Grant("GPU-a", 0, 4, 4308), TOKEN)
    fault = CardFault("GPU-a", xid=79, is_sticky=True)
    assert (
        files.read_given() == () and files.read_faults() == () and files.read_runtime("v") is None
    )
    files.write_given([share])
    files.write_faults([fault])
    files.write_runtime("v", True)
    assert files.read_given() == (share,)
    assert files.read_faults() == (fault,)
    assert files.read_runtime("v") is True and files.read_runtime("w") is None
    boot = folders.state / "boot"
    boot.write_text("another", encoding="ascii")
    monkeypatch.setattr(agent_files, "BOOT_ID", boot)
    assert files.read_faults() == (), "a boot resets every card"
    for name in ("grants.json", "faults.json", "runtime.json"):
        (folders.state / name).write_bytes(b'[{"podUID":')
    assert isinstance(files.read_given(), Refusal)
    assert isinstance(files.read_faults(), Refusal)
    assert files.read_runtime("v") is None


def test_a_disk_that_takes_nothing_is_reported_with_its_path(
    files: NodeAgentFiles, folders: NodeFolders
) -> None:
    folders.cdi.write_text("a file in the place of a directory", encoding="utf-8")
    with pytest.raises(OutsideError, match=r"cdi/fairlead\.io-gpu_0123456789abcdef\.json`"):
        files.write_container(TOKEN, LIMITS, EDITS)
    folders.state.rename(folders.state.with_name("away"))
    folders.state.write_text("likewise", encoding="utf-8")
    with pytest.raises(OutsideError, match=r"lock`"):
        files.lock()


def test_two_agents_of_one_node(files: NodeAgentFiles, folders: NodeFolders) -> None:
    assert files.lock() and files.lock()
    message = (
        "import sys; from pathlib import Path; from fairlead.edge.node.agent_files import *; p = "
        "Path(sys.argv[1]);"
    )
    ask = [
        sys.executable,
        "-c",
        f"{message} print(NodeAgentFiles(NodeFolders(p, p, p, p)).lock())",
        str(folders.state),
    ]
    assert run_program(ask, check=True).stdout == "False\n"
    files.unlock()
    assert run_program(ask, check=True).stdout == "True\n"


def test_sockets_with_a_listener(
    files: NodeAgentFiles, folders: NodeFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders.plugins)
    (folders.plugins / "nvidia-file.sock").write_text("no socket", encoding="utf-8")
    with socket.socket(socket.AF_UNIX) as living, socket.socket(socket.AF_UNIX) as dead:
        living.bind("nvidia-gpu.sock")
        living.listen()
        dead.bind("nvidia-old.sock")
        assert files.plugin_sockets() == ("nvidia-gpu.sock",)
