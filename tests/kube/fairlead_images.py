"""Builds Fairlead's three images, on common layers, for the containers of a real node.

They are built as `deploy/Dockerfile` and docs/how-to/gpu-load.md describe.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.kube.image_file import ROOT, Image, Link, Program, read_images
from tests.kube.python_layer import SITE, add_file, add_link, write_python

FAIRLEAD = "fairlead:0.1.0"
EXPORTER = "fairlead-dcgm-exporter:0.1.0"
"""The image for manifests of dcgm-exporter."""
LOAD = "fairlead-gpu-load:0.1.0"
"""The image for pods of dcgmproftester, without the array library."""
_REGISTRY = "docker.io/library/"
"""The registry that a node adds to a name without one."""
_USERS = Program("root:x:0:0:root:/:/bin/sh\n")


def write_fairlead_images(tar: Path) -> None:
    """Write a tar of all three images, for `ctr images import`."""
    images = fairlead_images()
    common = images[FAIRLEAD]
    below = [_layer(write_python), _layer(lambda layer: _write_files(layer, common, {}))]
    written = set[str]()
    with tarfile.open(tar, "w") as archive:

        def write(content: bytes, ending: str) -> str:
            name = f"{hashlib.sha256(content).hexdigest()}.{ending}"
            if name not in written:
                _add(archive, name, content)
            written.add(name)
            return name

        manifest = []
        for tag, image in images.items():
            layers = (
                below
                if image.files == common.files
                else [
                    *below,
                    _layer(lambda layer, image=image: _write_files(layer, image, common.files)),
                ]
            )
            names = {
                "Config": write(_config(image, layers), "json"),
                "Layers": [write(content, "tar") for content in layers],
            }
            manifest.append({**names, "RepoTags": [f"{_REGISTRY}{tag}"]})
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def fairlead_images() -> dict[str, Image]:
    python = Image(
        environment={"PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"},
        command=("python3",),
    )
    stages = read_images(
        (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8"), {"python:3.11-slim": python}
    )
    told = re.findall(
        r"^```dockerfile\n(.*?)^```",
        (ROOT / "docs" / "how-to" / "gpu-load.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    (load,) = (read_images(text, {FAIRLEAD: stages[""]})[""] for text in told)
    return {FAIRLEAD: stages[""], EXPORTER: stages["dcgm-exporter"], LOAD: load}


def _write_files(layer: tarfile.TarFile, image: Image, below: Mapping[str, object]) -> None:
    """Write the files that do not exist yet."""
    paths = Program("".join(f"{path}\n" for path in image.paths))
    files: dict[str, Path | Link | Program] = {
        **image.files,
        f"{SITE}/_fairlead.pth": paths,
        "/etc/passwd": _USERS,
    }
    for name, content in files.items():
        match content:
            case _ if name in below:
                continue
            case Path():
                add_file(layer, name, content)
            case Link(target):
                add_link(layer, name, target)
            case Program(text):
                _add(layer, name.lstrip("/"), text.encode(), 0o755)
    temporary = tarfile.TarInfo("tmp")
    temporary.type, temporary.mode = tarfile.DIRTYPE, 0o1777
    layer.addfile(temporary)


def _layer(write: Callable[[tarfile.TarFile], None]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as layer:
        write(layer)
    return whole.getvalue()


def _config(image: Image, layers: list[bytes]) -> bytes:
    started = {
        "Env": [f"{name}={value}" for name, value in image.environment.items()],
        "Entrypoint": list(image.entry_point),
        "Cmd": list(image.command),
        "User": image.user,
        "WorkingDir": image.folder,
    }
    digests = [f"sha256:{hashlib.sha256(content).hexdigest()}" for content in layers]
    return json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": started,
            "rootfs": {"type": "layers", "diff_ids": digests},
        }
    ).encode()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
