"""The container image: how large it is, and how long a rebuild takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.support.options import options

ROOT = Path(__file__).resolve().parents[1]
MIB = 2**20


def measure_image() -> None:
    """The compressed size of the image against Python and its libraries alone, and a warm rebuild.

        python -m bench image [--architecture amd64]

    Aim: ≤ 75 MiB, ≤ 30 s. The lowest layer is Python and the libraries that Debian has of it; the
    second has the wheels. For the rebuild the wheel gets another time, so Fairlead's layer is made
    anew, as it is after a change of the sources.
    """
    parser = options(measure_image)
    parser.add_argument("--architecture", choices=("amd64", "arm64"), default="amd64")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as name:
        folder = Path(name)
        _build(folder, args.architecture, {})
        unchanged = _build(folder, args.architecture, {})
        changed = {"SOURCE_DATE_EPOCH": str(int(time.time()))}
        rebuilt = _build(folder, args.architecture, changed)
        (archive,) = folder.glob("*.oci.tar")
        python, wheels, own = (layer["size"] / MIB for layer in _layers(archive))
    whole = python + wheels + own
    print(f"{args.architecture}: MiB compressed{'against Python':>30}")
    rows = {"Python and its libraries": python, "wheels": wheels, "Fairlead": own, "image": whole}
    for title, size in rows.items():
        print(f"{title:30}{size:>8.1f}{size / python:>10.2f}")
    print(f"{'built again, no change':30}{unchanged:>8.1f} s")
    print(f"{'Fairlead changed':30}{rebuilt:>8.1f} s{rebuilt / unchanged:>8.2f} of no change")
    print(f"aims: {whole:.1f} of 75 MiB, {rebuilt:.1f} of 30 s")


def _build(folder: Path, architecture: str, variables: dict[str, str]) -> float:
    """The seconds it took."""
    argv = [sys.executable, str(ROOT / "tools" / "build_image.py"), "--folder", str(folder)]
    started = time.monotonic()
    subprocess.run(
        [*argv, "--architecture", architecture],
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.monotonic() - started


def _layers(archive: Path) -> list[dict[str, Any]]:
    """The descriptors of the layers, from the bottom up."""
    with tarfile.open(archive) as tar:

        def read(path: str) -> dict[str, Any]:
            content = tar.extractfile(path)
            assert content is not None
            found: dict[str, Any] = json.load(content)
            return found

        place = "index.json"
        for _ in range(2):
            digest = read(place)["manifests"][0]["digest"]
            place = f"blobs/sha256/{digest.removeprefix('sha256:')}"
        layers: list[dict[str, Any]] = read(place)["layers"]
        return layers
