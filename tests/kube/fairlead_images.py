"""Builds Fairlead's images for the containers of a real node: those of `make image`, and the image
of docs/how-to/gpu-load.md on their layers, without the array library.

The load image also has busybox, because document 002 runs a shell in it; Fairlead's own has none.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
if str(TOOLS) not in sys.path:
    sys.path.append(str(TOOLS))

from build_image import add_images, project_version  # noqa: E402
from image.bytecode import host_architecture  # noqa: E402
from image.layers import Layer  # noqa: E402
from image.oci_archive import FAIRLEAD as FAIRLEAD_START  # noqa: E402
from image.oci_archive import STARTS, OciLayout, Start  # noqa: E402
from image.tree import File, Link, Tree, tar_bytes  # noqa: E402
from image.wheels import SITE  # noqa: E402

FAIRLEAD = "fairlead:0.1.0"
EXPORTER = "fairlead-dcgm-exporter:0.1.0"
"""For manifests of dcgm-exporter."""
LOAD = "fairlead-gpu-load:0.1.0"
"""For pods of dcgmproftester, without the array library."""
BUSYBOX = Path("/bin/busybox")
Layers = Mapping[str, tuple[Layer, ...]]
"""By architecture."""
APPLETS = ("sh", "sleep", "test", "kill", "cat", "ls", "env", "grep")


def write_fairlead_images(tar: Path) -> None:
    """An archive of all three for this machine's architecture, for `ctr images import`."""
    layout = OciLayout(project_version())
    layers = add_images(layout, (host_architecture(),))
    with tempfile.TemporaryDirectory(prefix="fairlead-shell-") as folder:
        shell = _shell(Path(folder) / "layer")
        layout.add(load_start(), {name: (*found, shell) for name, found in layers.items()})
        layout.write(tar)


def write_shipped_images(tar: Path) -> Layers:
    """An archive of the images of `make image`, for this machine's architecture alone; returns
    their layers.
    """
    layout = OciLayout(project_version())
    layers = add_images(layout, (host_architecture(),))
    layout.write(tar)
    return layers


def write_newer_images(tar: Path, layers: Layers, version: str) -> None:
    """An archive of the same images, whose Fairlead has another version."""
    package = f"{SITE}/fairlead"
    source = (ROOT / "src" / "fairlead" / "__init__.py").read_text(encoding="utf-8")
    other = source.replace(project_version(), version)
    assert other != source
    with tempfile.TemporaryDirectory(prefix="fairlead-version-") as folder:
        files = {
            f"{package}/__init__.py": File(other.encode()),
            # removes the bytecode, which Python does not compare with its source
            f"{package}/__pycache__/.wh.__init__.cpython-311.pyc": File(b""),
        }
        layer = _layer("version", files, Path(folder) / "layer")
        layout = OciLayout(version)
        for start in STARTS:
            layout.add(start, {name: (*found, layer) for name, found in layers.items()})
        layout.write(tar)


def write_program_image(tar: Path, program: Path, name: str, version: str) -> None:
    """An archive of an image `name` with tag `version`, in which only this static program is, on
    PATH as `name`.
    """
    layout = OciLayout(version)
    with tempfile.TemporaryDirectory(prefix="fairlead-program-") as folder:
        files = {f"usr/bin/{name}": File(program.read_bytes(), is_program=True)}
        layer = _layer(name, files, Path(folder) / "layer")
        start = replace(FAIRLEAD_START, name=name, entry_point=(name,), command=())
        layout.add(start, {host_architecture(): (layer,)})
        layout.write(tar)


def write_busybox_image(tar: Path, version: str) -> None:
    """An archive of an image `busybox` with a shell and the usual small programs."""
    layout = OciLayout(version)
    with tempfile.TemporaryDirectory(prefix="fairlead-busybox-") as folder:
        layer = _shell(Path(folder) / "layer")
        start = replace(FAIRLEAD_START, name="busybox", user="0:0", entry_point=(), command=("sh",))
        layout.add(start, {host_architecture(): (layer,)})
        layout.write(tar)


def load_start() -> Start:
    """How the image of gpu-load.md starts: as Fairlead's, but for the entry point."""
    page = (ROOT / "docs" / "how-to" / "gpu-load.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```dockerfile\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    assert text.count("\nFROM ") == 1 and f"\nFROM {FAIRLEAD}\n" in text, text
    name = LOAD.partition(":")[0]
    return replace(FAIRLEAD_START, name=name, entry_point=tuple(json.loads(entry)), command=())


def _shell(blob: Path) -> Layer:
    links = {f"usr/bin/{name}": Link("busybox") for name in APPLETS}
    busybox = File(BUSYBOX.read_bytes(), is_program=True)
    return _layer("busybox", {"usr/bin/busybox": busybox, **links}, blob)


def _layer(title: str, files: Tree, blob: Path) -> Layer:
    """Written to `blob`; hardly compressed, because it never leaves this machine."""
    tar = tar_bytes(files)
    content = gzip.compress(tar, 1, mtime=0)
    blob.write_bytes(content)
    digest, diff_id = (hashlib.sha256(each).hexdigest() for each in (content, tar))
    return Layer(title, blob, digest, len(content), diff_id)
