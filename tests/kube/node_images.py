"""Images for the containers of a real kubelet, made here from Debian's static busybox; nothing is
pulled.

They differ only in the program that they run by default. All are in one tar, in the format of
`docker save`.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.programs import run_program

from fairlead_sim.kubelet.cuda_malloc import NO_MEMORY, NO_MEMORY_STATUS

BUSYBOX = "fairlead.test/busybox:1.35"
"""An image with a shell and the usual small programs."""
PAUSE = "fairlead.test/pause:1"
SIMULATED = {
    "fairlead.test/train:2s": "sleep 2",
    "fairlead.test/fail:2s": "sleep 2; exit 1",
    "fairlead.test/crash:1s": "sleep 1; exit 139",
    "fairlead.test/nginx:1": "trap 'exit 0' TERM; sleep 1000000 & wait",
}
"""Images that really do what the simulated cluster's containers do by the names of their images
(`fairlead_sim/kubelet/behaviour.py`).
"""
SAYS = """exec 2>&1; env | grep -E '^(NVIDIA|ALIYUN|CGPU)' | sort; cat /etc/fairlead/gpu/limits
test -w /run/fairlead/gpu/region && echo region
echo region $(stat -c %i /run/fairlead/gpu/region); echo end"""
"""A program that prints what its container received, and then `end`. All goes to one stream,
because the order of two streams is unknown.
"""
PRINTS = "fairlead.test/tells:1"
"""Prints the same, and runs until it is asked to end."""
TAKES_TOO_MUCH = "fairlead.test/takes-too-much:1"
"""Prints the same, and ends as the program of document 001 does that wants more memory than its
grant.
"""
_PRINTING = {
    PRINTS: f"{SAYS}; {SIMULATED['fairlead.test/nginx:1']}",
    TAKES_TOO_MUCH: f"{SAYS}; echo '{NO_MEMORY}'; exit {NO_MEMORY_STATUS}",
}
_PROGRAM = Path("/bin/busybox")
_SSHD = b"#!/bin/sh\nexec sleep 1000000\n"
"""mpi-operator's workers run an sshd. Nothing logs in here, because `mpirun` is absent."""
_PYTHON = b'#!/bin/sh\ntest "$FAIRLEAD_CDI_TEST" = yes\n'
"""The node agent's test of the runtime runs a `python3`; this image's does the same."""


def write_images(tar: Path) -> None:
    """Write a tar of all images, for `ctr images import`."""
    programs = {**SIMULATED, **_PRINTING}
    commands = {
        BUSYBOX: ["sh"],
        PAUSE: ["sleep", "1000000"],
        **{tag: ["sh", "-c", program] for tag, program in programs.items()},
    }
    _write(tar, commands, _layer({}))


def write_program_images(tar: Path, program: Path, commands: Mapping[str, list[str]]) -> None:
    """Write a tar of images with a program of this machine and the C library that it is linked
    with. `commands`: by image, what it runs by default; the program is on PATH under its own name.
    """
    linked = run_program(["ldd", program], check=True)
    libraries = re.findall(r"(?:=> |^\t)(/\S+) \(0x", linked.stdout, re.MULTILINE)
    assert any("libc.so" in each for each in libraries), linked.stdout
    paths = {f"bin/{program.name}": program, **{each[1:]: Path(each) for each in libraries}}
    _write(tar, commands, _layer({name: path.read_bytes() for name, path in paths.items()}))


def _write(tar: Path, commands: Mapping[str, list[str]], layer: bytes) -> None:
    configs = {tag: _config(layer, command) for tag, command in commands.items()}
    manifest = [
        {"Config": _config_name(config), "RepoTags": [tag], "Layers": ["layer.tar"]}
        for tag, config in configs.items()
    ]
    with tarfile.open(tar, "w") as images:
        _add(images, "layer.tar", layer)
        for config in configs.values():
            _add(images, _config_name(config), config)
        _add(images, "manifest.json", json.dumps(manifest).encode())


def _layer(programs: Mapping[str, bytes]) -> bytes:
    """The file system: busybox under its own name, a link for each of its programs, and `programs`
    by their paths.
    """
    names = run_program([_PROGRAM, "--list"], check=True).stdout.split()
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as layer:
        for folder in ("bin", "etc", "proc", "sys", "dev", "tmp"):
            _add_entry(layer, folder, tarfile.DIRTYPE)
        _add(layer, "bin/busybox", _PROGRAM.read_bytes(), mode=0o755)
        for name in names:
            if name != "busybox":
                _add_entry(layer, f"bin/{name}", tarfile.SYMTYPE, "busybox")
        for folder in ("usr", "usr/sbin"):
            _add_entry(layer, folder, tarfile.DIRTYPE)
        _add(layer, "usr/sbin/sshd", _SSHD, mode=0o755)
        _add(layer, "bin/python3", _PYTHON, mode=0o755)
        for name, content in programs.items():
            _add(layer, name, content, mode=0o755)
        _add(layer, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    return whole.getvalue()


def _config(layer: bytes, command: list[str]) -> bytes:
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    config: dict[str, Any] = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }
    return json.dumps(config).encode()


def _config_name(config: bytes) -> str:
    return f"{hashlib.sha256(config).hexdigest()}.json"


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _add_entry(tar: tarfile.TarFile, name: str, kind: bytes, target: str = "") -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, target, 0o755
    tar.addfile(entry)
