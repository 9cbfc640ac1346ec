"""Where processes run, as a /proc tells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairlead.edge.node.process_homes import NodeProcesses
from fairlead.model.devices.driver import ProcessHome

TOKEN = "0123456789abcdef"
ROOT = "1 0 8:1 / / rw - overlay overlay rw\n"


@pytest.mark.parametrize("ending", ["", "//deleted"])
def test_a_container_is_known_by_its_limits_file(tmp_path: Path, ending: str) -> None:
    """The kernel names a file that was replaced since with two slashes (seen on a real node, tests/kubelet)."""
    mounted = f"2 1 8:1 /lib/fairlead/gpu/containers/{TOKEN}/limits{ending} /etc/fairlead/gpu/limits ro,nosuid - ext4 /dev/sda rw\n"
    proc(tmp_path, 7, ROOT + mounted)
    proc(tmp_path, 8, ROOT)
    proc(tmp_path, 9, ROOT + mounted.replace(TOKEN, "not-a-token-at-al"))
    homes = NodeProcesses(tmp_path).homes([7, 8, 9, 10])
    assert homes == {7: ProcessHome(token=TOKEN), 8: ProcessHome(), 9: ProcessHome()}


def test_this_process_was_given_nothing() -> None:
    assert NodeProcesses().homes([os.getpid()]) == {os.getpid(): ProcessHome()}


def proc(folder: Path, pid: int, text: str) -> None:
    (folder / str(pid)).mkdir()
    (folder / str(pid) / "mountinfo").write_text(text, encoding="utf-8")
