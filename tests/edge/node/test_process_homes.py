"""The pods and containers of processes, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairlead.edge.node.process_homes import NodeProcesses
from fairlead.model.devices.driver import ProcessHome
from fairlead.wire.kubelet.process_home import container_of_cgroups, pod_of_cgroups

TOKEN = "0123456789abcdef"
POD = "0b4a5f6e-1111-2222-3333-444444444444"
ROOT = "1 0 8:1 / / rw - overlay overlay rw\n"


@pytest.mark.parametrize("ending", ["", "//deleted"])
def test_a_container_is_known_by_its_limits_file(tmp_path: Path, ending: str) -> None:
    """The kernel appends `//deleted` to a file that was replaced meanwhile (seen on a real node,
    tests/kubelet).
    """
    mounted = (
        f"2 1 8:1 /lib/fairlead/gpu/containers/{TOKEN}/limits{ending} /etc/fairlead/gpu/limits "
        "ro,nosuid - ext4 /dev/sda rw\n"
    )
    proc(
        tmp_path,
        7,
        ROOT + mounted,
        f"12:cpu:/kubepods/besteffort/pod{POD}/0123\n0::/system.slice/x.service\n",
    )
    proc(tmp_path, 8, ROOT)
    proc(tmp_path, 9, ROOT + mounted.replace(TOKEN, "not-a-token-at-al"))
    homes = NodeProcesses(tmp_path).homes([7, 8, 9, 10])
    assert homes == {
        7: ProcessHome(POD, TOKEN, "train it", cgroup="/system.slice/x.service"),
        8: ProcessHome(name="train it"),
        9: ProcessHome(name="train it"),
    }


def test_this_process_was_given_nothing() -> None:
    own = Path("/proc/self/comm").read_text(encoding="utf-8").rstrip("\n")
    assert NodeProcesses().homes([os.getpid()]) == {os.getpid(): ProcessHome(name=own)}


@pytest.mark.parametrize(
    ("text", "uid"),
    [
        (f"0::/kubepods/pod{POD}/0123", POD),
        (
            (
                "0::/kubepods.slice/kubepods-burstable.slice/"
                f"kubepods-burstable-pod{POD.replace('-', '_')}.slice/crio-0123.scope"
            ),
            POD,
        ),
        (f"3:memory:/kubepods/guaranteed/pod{'0b4a5f6e' * 4}/0123", "0b4a5f6e" * 4),
        (f"0::/../../pod{POD}/0123/inner/deeper", POD),
        ("0::/user.slice/user-0.slice", ""),
        ("0::/kubepods/podnot-a-uid/0123", ""),
        ("", ""),
    ],
)
def test_the_pod_of_a_process(text: str, uid: str) -> None:
    """Both layouts of docs/spec/telemetry.md#processes; the uid of a static pod is a hash."""
    assert pod_of_cgroups(text) == uid


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (f"0::/kubepods/burstable/pod{POD}/{'ab' * 32}", "ab" * 32),
        (
            (
                f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/"
                f"cri-containerd-{'cd' * 32}.scope\n"
            ),
            "cd" * 32,
        ),
        (
            (
                f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/"
                f"crio-{'ef' * 32}.scope/inner"
            ),
            "ef" * 32,
        ),
        (f"4:cpu:/kubepods/pod{POD}/{'01' * 32}\n0::/x\n", "01" * 32),
        (f"0::/system.slice/docker-{'ab' * 32}.scope", ""),
        (f"0::/kubepods/pod{POD}/{'ab' * 31}", ""),
    ],
)
def test_the_container_of_a_process(text: str, number: str) -> None:
    assert container_of_cgroups(text) == number


def test_a_process_is_read_once_and_its_number_given_again_is_another(tmp_path: Path) -> None:
    proc(tmp_path, 7, ROOT, f"0::/kubepods/pod{POD}/{'ab' * 32}\n")
    homes = NodeProcesses(tmp_path)
    first = homes.homes([7])[7]
    assert (first.pod_uid, first.container_id) == (POD, "ab" * 32)
    (tmp_path / "7" / "cgroup").write_text("0::/\n", encoding="utf-8")
    assert homes.homes([7])[7] is first
    (tmp_path / "7" / "stat").write_text(STAT.format(start=78), encoding="utf-8")
    assert homes.homes([7])[7] == ProcessHome(name="train it")


STAT = "7 (a (strange) name) S 1 7 7 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 {start} 1000 100\n"


def proc(folder: Path, pid: int, text: str, cgroups: str = "0::/\n") -> None:
    (folder / str(pid)).mkdir()
    (folder / str(pid) / "stat").write_text(STAT.format(start=77), encoding="utf-8")
    (folder / str(pid) / "mountinfo").write_text(text, encoding="utf-8")
    (folder / str(pid) / "cgroup").write_text(cgroups, encoding="utf-8")
    (folder / str(pid) / "comm").write_bytes(b"train it\n")
