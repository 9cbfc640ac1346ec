"""An OCI image layout in one tar: what `ctr images import`, podman, skopeo and Docker 25 read.

Two names stand in the index, on the same layers: `fairlead`, and `fairlead-dcgm-exporter`, whose
configuration is that of dcgm-exporter's own image.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from image.debian_root import USER
from image.layers import Layer
from image.tree import FILE_TIME

REGISTRY = "docker.io/library"
"""What a name without a registry means to containerd."""
_TYPE = "application/vnd.oci.image"
_ENVIRONMENT = ("PATH=/usr/local/bin:/usr/bin", "LANG=C.UTF-8", "HOME=/")


@dataclass(frozen=True)
class Start:
    """How a container of an image starts."""

    name: str
    user: str
    entry_point: tuple[str, ...]
    command: tuple[str, ...] = ()
    environment: tuple[str, ...] = _ENVIRONMENT


FAIRLEAD = Start("fairlead", f"{USER}:{USER}", ("fairlead",), ("version",))
DCGM_EXPORTER = Start(
    "fairlead-dcgm-exporter",
    "0:0",  # the kubelet's socket is root's
    ("dcgm-exporter",),
    environment=(
        *_ENVIRONMENT,
        # what makes NVIDIA's runtime bring the driver's library and all GPUs
        "NVIDIA_VISIBLE_DEVICES=all",
        "NVIDIA_DRIVER_CAPABILITIES=utility",
        "NVIDIA_DISABLE_REQUIRE=true",
    ),
)
STARTS = (FAIRLEAD, DCGM_EXPORTER)


@dataclass
class OciLayout:
    """The blobs of a layout by their digest, and what its index names."""

    version: str
    created: int = FILE_TIME
    """The time in the configuration, in seconds since 1970."""
    blobs: dict[str, bytes | Path] = field(default_factory=dict)
    names: list[dict[str, Any]] = field(default_factory=list)

    def add(self, start: Start, layers: Mapping[str, Sequence[Layer]]) -> str:
        """Add an image for each architecture under one name; returns the digest of its index."""
        manifests = [
            self._manifest(start, architecture, found) for architecture, found in layers.items()
        ]
        index = {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.index.v1+json",
            "manifests": manifests,
        }
        named = self._json(index, f"{_TYPE}.index.v1+json")
        named["annotations"] = {
            "io.containerd.image.name": f"{REGISTRY}/{start.name}:{self.version}",
            "org.opencontainers.image.ref.name": f"{start.name}:{self.version}",
        }
        self.names.append(named)
        return str(named["digest"])

    def _manifest(self, start: Start, architecture: str, layers: Sequence[Layer]) -> dict[str, Any]:
        config = self._json(
            _config(start, architecture, layers, self.created), f"{_TYPE}.config.v1+json"
        )
        rows = []
        for layer in layers:
            self.blobs[layer.digest] = layer.blob
            row = {"mediaType": f"{_TYPE}.layer.v1.tar+gzip", "digest": f"sha256:{layer.digest}"}
            rows.append({**row, "size": layer.size})
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.manifest.v1+json",
            "config": config,
            "layers": rows,
            "annotations": {
                "org.opencontainers.image.title": start.name,
                "org.opencontainers.image.version": self.version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        }
        descriptor = self._json(manifest, f"{_TYPE}.manifest.v1+json")
        return {**descriptor, "platform": {"architecture": architecture, "os": "linux"}}

    def _json(self, value: object, media_type: str) -> dict[str, Any]:
        """Keep the value as a blob; returns its descriptor."""
        content = _text(value)
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def write(self, archive: Path) -> None:
        """The tar, in the order of its paths."""
        index = {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.index.v1+json",
            "manifests": self.names,
        }
        files: dict[str, bytes | Path] = {
            "index.json": _text(index),
            "oci-layout": _text({"imageLayoutVersion": "1.0.0"}),
            **{f"blobs/sha256/{digest}": content for digest, content in self.blobs.items()},
        }
        with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
            for name, content in sorted(files.items()):
                whole = content.read_bytes() if isinstance(content, Path) else content
                header = tarfile.TarInfo(name)
                header.size, header.mode, header.mtime = len(whole), 0o644, FILE_TIME
                tar.addfile(header, io.BytesIO(whole))


def _config(
    start: Start, architecture: str, layers: Sequence[Layer], created: int
) -> dict[str, Any]:
    moment = datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    history = [{"created": moment, "created_by": f"make image: {each.title}"} for each in layers]
    return {
        "architecture": architecture,
        "os": "linux",
        "created": moment,
        "config": {
            "User": start.user,
            "Env": list(start.environment),
            "Entrypoint": list(start.entry_point),
            **({"Cmd": list(start.command)} if start.command else {}),
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each.diff_id}" for each in layers]},
        "history": history,
    }


def _text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
