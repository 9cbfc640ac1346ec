"""The image of this machine's architecture, built once, and a containerd that can run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.image.archive import OTHER_ARCHITECTURE, OTHER_MACHINE, Archive, build
from tests.kube.component import Component

READY_SECONDS = 60.0
EMULATOR = f"qemu-{OTHER_MACHINE}-static"
"""The program runs from the image's root, so it may need no library."""
IMAGE = "docker.io/library/fairlead:0.1.0"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the archive and the bill of materials are."""
    found = tmp_path_factory.mktemp("image")
    build(found)
    return found


@pytest.fixture(scope="session")
def archive(folder: Path) -> Archive:
    return Archive(folder / "fairlead-0.1.0.oci.tar")


@dataclass(frozen=True)
class Containers:
    """Containers of the image: user 65532, a read-only root file system, no network."""

    address: str

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        name = f"test-{os.urandom(4).hex()}"
        words = ["run", "--rm", "--snapshotter", "native", "--read-only", IMAGE, name, *argv]
        return self.ctr(*words)

    def ctr(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["ctr", "--address", self.address, *words],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


@pytest.fixture(scope="session")
def containers(archive: Archive) -> Iterator[Containers]:
    if os.geteuid() != 0 or shutil.which("containerd") is None or shutil.which("runc") is None:
        pytest.skip("containerd and runc run containers only for root")
    with tempfile.TemporaryDirectory(prefix="fairlead-ctr-") as name:  # a socket's path is short
        home = Path(name)
        config = home / "config.toml"
        config.write_text(
            'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n', encoding="utf-8"
        )
        room = ["unshare", "--fork", "--kill-child", "--pid", "--mount", "--mount-proc", "--"]
        places = ["--root", home / "root", "--state", home / "state", "--address", home / "socket"]
        containerd = Component(
            "containerd", [*room, "containerd", "--config", config, *places], home / "log"
        )
        found = Containers(str(home / "socket"))
        try:
            containerd.start()
            containerd.wait_until(lambda: found.ctr("version").returncode == 0, READY_SECONDS)
            imported = found.ctr("images", "import", "--snapshotter", "native", str(archive.path))
            assert imported.returncode == 0, imported.stderr
            yield found
        finally:
            containerd.kill()


@dataclass(frozen=True)
class OtherMachine:
    """The files of the other architecture's image, whose programs an emulator runs as user 65532.

    `root`: the image's root. Its files can be written by root alone.
    """

    root: Path

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """`argv` begins with a path in the image."""
        words = ["chroot", "--userspec=65532:65532", str(self.root), f"/{EMULATOR}", *argv]
        return subprocess.run(
            words,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


@pytest.fixture(scope="session")
def other_machine(tmp_path_factory: pytest.TempPathFactory) -> OtherMachine:
    found = shutil.which(EMULATOR)
    if os.geteuid() != 0 or found is None:
        pytest.skip(f"{EMULATOR} runs the other architecture's image only for root")
    folder, root = tmp_path_factory.mktemp("other"), tmp_path_factory.mktemp("root")
    build(folder, architecture=OTHER_ARCHITECTURE)
    Archive(folder / "fairlead-0.1.0.oci.tar", OTHER_ARCHITECTURE).unpack(root)
    shutil.copy2(found, root / EMULATOR)
    root.chmod(0o755)
    return OtherMachine(root)
