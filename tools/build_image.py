"""Builds the image of every process of Fairlead: an OCI archive for linux/amd64 and linux/arm64.

`make image` writes build/image/fairlead-VERSION.oci.tar and, for each architecture, a bill of
materials (CycloneDX). It needs neither root, a daemon nor a container builder.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from distributions import build_distribution
from image.bill_of_materials import bill_text
from image.debian_lock import ARCHITECTURES, read_lock
from image.layers import Layer, image_layers
from image.oci_archive import FAIRLEAD, STARTS, OciLayout
from image.tree import FILE_TIME
from image.wheels import fetched_wheels
from progress import StepFailed, say, spoken_seconds
from toolchains import REPOSITORY

FOLDER = REPOSITORY / "build" / "image"


@dataclass(frozen=True)
class BuiltImage:
    archive: Path
    digest: str
    """Of the image `fairlead` for all architectures: "sha256:…"."""
    layers: Mapping[str, tuple[Layer, ...]]
    """By architecture."""


def build_image(
    folder: Path = FOLDER, architectures: tuple[str, ...] = ARCHITECTURES
) -> BuiltImage:
    """Write the archive and its bills of materials into `folder`. Raises StepFailed."""
    version, created = project_version(), _created()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fairlead-wheel-") as name:
        wheel = build_distribution("wheel", Path(name))
        layers = {each: image_layers(each, wheel) for each in architectures}
        layout = OciLayout(version, created)
        digest, *_ = [layout.add(start, layers) for start in STARTS]
        archive = folder / f"fairlead-{version}.oci.tar"
        layout.write(archive)
        for each in architectures:
            text = bill_text(
                image=FAIRLEAD.name,
                version=version,
                digest=digest,
                packages=read_lock(each),
                wheels=[*fetched_wheels(each), wheel],
                created=created,
            )
            (folder / f"fairlead-{version}-{each}.cdx.json").write_text(text, encoding="utf-8")
    return BuiltImage(archive, digest, layers)


def project_version() -> str:
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def _created() -> int:
    """SOURCE_DATE_EPOCH, as reproducible-builds.org defines it; 1980-01-01 without one."""
    text = os.environ.get("SOURCE_DATE_EPOCH", str(FILE_TIME))
    if not text.isdecimal():
        raise StepFailed(
            f"SOURCE_DATE_EPOCH is `{text}`", "give a number of seconds since 1970: `date +%s`"
        )
    return int(text)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Build Fairlead's container image.")
    parser.add_argument(
        "--architecture",
        action="append",
        choices=ARCHITECTURES,
        help="build for this architecture alone; may be given twice (default: both)",
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the files are written")
    chosen = parser.parse_args(argv)
    started = time.monotonic()
    try:
        built = build_image(chosen.folder, tuple(chosen.architecture or ARCHITECTURES))
    except StepFailed as failed:
        say(f"error: {failed.what}")
        if failed.hint:
            say(f"hint: {failed.hint}")
        return 1
    except KeyboardInterrupt:
        return 130
    for architecture, layers in built.layers.items():
        sizes = ", ".join(f"{each.title} {each.size / 2**20:.1f}" for each in layers)
        whole = sum(each.size for each in layers) / 2**20
        say(f"{architecture}: {whole:.1f} MiB compressed ({sizes})")
    say(f"wrote {built.archive} in {spoken_seconds(time.monotonic() - started)}")
    print(f"{hashlib.sha256(built.archive.read_bytes()).hexdigest()}  {built.archive.name}")
    print(f"{built.digest}  fairlead:{project_version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
