"""Builds an archive as `make image` does, and reads it with nothing of the builder's code."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
ARCHITECTURE = _NAMES[platform.machine()]
OTHER_MACHINE, OTHER_ARCHITECTURE = next(
    (machine, name) for machine, name in _NAMES.items() if name != ARCHITECTURE
)
"""Of the machines for which there is an image, the one that this is not."""


def build(
    folder: Path,
    variables: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    umask: int = 0o022,
    architecture: str = ARCHITECTURE,
) -> None:
    argv = [sys.executable, str(ROOT / "tools" / "build_image.py"), "--folder", str(folder)]
    built = subprocess.run(
        [*argv, "--architecture", architecture],
        env={**os.environ, **(variables or {})},
        cwd=cwd,
        umask=umask,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert built.returncode == 0, built.stderr


class Archive:
    """An OCI image layout in a tar."""

    def __init__(self, path: Path, architecture: str = ARCHITECTURE) -> None:
        self.path = path
        self.architecture = architecture
        with tarfile.open(path) as tar:
            self.files = {
                header.name: content.read()
                for header in tar
                if (content := tar.extractfile(header)) is not None
            }

    def blob(self, digest: str) -> bytes:
        content = self.files[f"blobs/sha256/{digest.removeprefix('sha256:')}"]
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == digest
        return content

    @property
    def names(self) -> dict[str, dict[str, Any]]:
        """The descriptors of the index by reference."""
        rows = json.loads(self.files["index.json"])["manifests"]
        return {row["annotations"]["org.opencontainers.image.ref.name"]: row for row in rows}

    def manifest(self, name: str) -> dict[str, Any]:
        """Of the only architecture."""
        (row,) = json.loads(self.blob(self.names[name]["digest"]))["manifests"]
        assert row["platform"] == {"architecture": self.architecture, "os": "linux"}
        found: dict[str, Any] = json.loads(self.blob(row["digest"]))
        return found

    def config(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.blob(self.manifest(name)["config"]["digest"]))
        return found

    @functools.cached_property
    def headers(self) -> dict[str, tarfile.TarInfo]:
        """Every path of the image `fairlead`; an upper layer's wins."""
        found: dict[str, tarfile.TarInfo] = {}
        manifest, config = self.manifest("fairlead:0.1.0"), self.config("fairlead:0.1.0")
        for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
            content = gzip.decompress(self.blob(layer["digest"]))
            assert f"sha256:{hashlib.sha256(content).hexdigest()}" == diff_id
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                found |= {header.name: header for header in tar}
        return found

    def unpack(self, folder: Path) -> None:
        """Every file of the image `fairlead`, as its containers find it."""
        for layer in self.manifest("fairlead:0.1.0")["layers"]:
            content = io.BytesIO(gzip.decompress(self.blob(layer["digest"])))
            with tarfile.open(fileobj=content) as tar:
                tar.extractall(folder)

    def content(self, path: str) -> bytes:
        """The file in the uppermost layer of the image `fairlead`, which has Fairlead itself."""
        blob = self.blob(self.manifest("fairlead:0.1.0")["layers"][-1]["digest"])
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob))) as tar:
            found = tar.extractfile(path)
            assert found is not None, path
            return found.read()
