"""The three layers of an image, each kept in the cache under a hash of what it is made of.

A change of Fairlead's sources makes the last layer anew; it is the same for both architectures.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from image import apt
from image.bytecode import compiled, host_architecture, unpacked_interpreter
from image.debian_lock import read_lock
from image.debian_root import debian_tree
from image.tree import File, Folder, Link, Tree, tar_bytes
from image.wheels import PROGRAMS, SITE, fetched_wheels, wheel_tree
from locks import only_one
from progress import cache_home, say

GZIP_LEVEL = 9
_LAYERS = cache_home() / "image" / "layers"
SIMULATION = "fairlead_sim"
_COUNTERS = f"{SITE}/fairlead/wire/metrics/"


@dataclass(frozen=True, slots=True)
class Layer:
    """A compressed tar in the cache; digests are in hexadecimal, sizes in bytes."""

    title: str
    blob: Path
    digest: str
    size: int
    diff_id: str
    """The digest of the tar before compression."""


def image_layers(architecture: str, wheel: Path) -> tuple[Layer, Layer, Layer]:
    """Debian, wheels, Fairlead: from the bottom up. Raises StepFailed."""
    return _debian(architecture), _wheels(architecture), _fairlead(wheel)


@cache
def _debian(architecture: str) -> Layer:
    def tree() -> Tree:
        found = _debian_tree(architecture)
        return found | compiled(found, _interpreter())

    return _kept(f"debian-{architecture}", _debian_key(architecture), tree)


@cache
def _wheels(architecture: str) -> Layer:
    wheels = fetched_wheels(architecture)

    def tree() -> Tree:
        found: dict[str, File | Link | Folder] = {}
        for wheel in wheels:
            found |= wheel_tree(wheel.read_bytes(), wheel.name)
        return found | compiled(found, _interpreter())

    names = "\n".join(f"{wheel.name} {_digest(wheel.read_bytes())}" for wheel in wheels)
    return _kept(f"wheels-{architecture}", names, tree)


def _fairlead(wheel: Path) -> Layer:
    content = wheel.read_bytes()

    def tree() -> Tree:
        found = fairlead_tree(content, wheel.name)
        return found | compiled(found, _interpreter())

    return _kept("fairlead", _digest(content), tree)


def fairlead_tree(wheel: bytes, name: str) -> dict[str, File | Link | Folder]:
    """Fairlead without the simulated cluster, and the paths of dcgm-exporter's manifests."""
    found = {
        path: entry
        for path, entry in wheel_tree(wheel, name).items()
        if not path.startswith(f"{SITE}/{SIMULATION}/")
    }
    counters = {
        f"etc/dcgm-exporter/{path.removeprefix(_COUNTERS)}": entry
        for path, entry in found.items()
        if path.startswith(_COUNTERS) and path.endswith(".csv")
    }
    program = f"/{PROGRAMS}/dcgm-exporter"
    return {
        **found,
        **counters,
        "usr/bin/dcgm-exporter": Link(program),
        "usr/local/dcgm/dcgm-exporter-entrypoint.sh": Link(program),
    }


def _kept(title: str, made_of: str, tree: Callable[[], Tree]) -> Layer:
    """The layer from the cache; made where the cache has none."""
    inputs = f"{title}\n{_builder_key()}\n{_debian_key(host_architecture())}\n{made_of}"
    folder = _LAYERS / f"{title}-{_digest(inputs.encode())[:16]}"
    record = folder / "layer.json"
    with only_one(_LAYERS / f"{title}.lock", f"the layer {title}"):
        if not record.exists():
            say(f"image: making the layer {title}")
            _write(title, folder, tar_bytes(tree()))
    return Layer(**{**json.loads(record.read_text(encoding="utf-8")), "blob": folder / "layer"})


def _write(title: str, folder: Path, tar: bytes) -> None:
    """The record last: a run that is killed before leaves no layer."""
    folder.mkdir(parents=True, exist_ok=True)
    blob = gzip.compress(tar, GZIP_LEVEL, mtime=0)
    (folder / "layer").write_bytes(blob)
    layer = Layer(title, Path("layer"), _digest(blob), len(blob), _digest(tar))
    text = json.dumps({**asdict(layer), "blob": "layer"})
    (folder / "layer.json").write_text(text, encoding="utf-8")


def _interpreter() -> Path:
    architecture = host_architecture()
    key = _digest(f"{_debian_key(architecture)} {_builder_key()}".encode())
    return unpacked_interpreter(_debian_tree(architecture), key)


@cache
def _debian_tree(architecture: str) -> dict[str, File | Link | Folder]:
    return debian_tree(apt.fetched(read_lock(architecture)))


def _debian_key(architecture: str) -> str:
    return " ".join(each.sha256 for each in read_lock(architecture))


@cache
def _builder_key() -> str:
    """A hash of this folder's modules."""
    key = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        key.update(path.read_bytes())
    return key.hexdigest()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
