"""`make bundle`: one file with which Fairlead is installed in a cluster without internet.

build/bundle/fairlead-VERSION-bundle.tar has the image, the chart, the wheel with the wheels that it
needs, all objects as YAML, a README and the sums of all. The same artefacts give the same bytes.
`fairlead bundle verify` reads it; docs/get-started/without-internet.md shows how it is used.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from artefacts import ARTEFACTS, SUMS, Builder, sha256, sums_text
from build_image import project_version
from environment import PYTHON, make_environment
from image.debian_lock import ARCHITECTURES
from image.tree import FILE_TIME
from image.wheels import fetched_wheels
from progress import StepFailed, say, spoken_seconds
from toolchains import REPOSITORY

FOLDER = REPOSITORY / "build" / "bundle"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""Of machines that run `fairlead install`; the image has its own."""
PLACES = {".oci.tar": "image", ".cdx.json": "image", ".tgz": "chart", ".whl": "wheels"}
"""The folder of the bundle for each ending of an artefact; others are not in it."""
README, OBJECTS = "README.txt", "objects/fairlead.yaml"
_README = """\
Fairlead {version}, for a cluster without internet.

image/    the images fairlead and fairlead-dcgm-exporter for amd64 and arm64 (OCI archive), and
          their bills of materials (CycloneDX)
chart/    the Helm chart
wheels/   the commands `fairlead` and `arena` with all packages that they need: CPython
          {first} to {last} on Linux (glibc 2.34 or later), x86_64 and aarch64
objects/  all objects of an installation with its defaults, as YAML
{sums}
          the SHA-256 of each of these files

The image of kube-scheduler is not in here. Fairlead runs a kube-scheduler of its own for shared
GPUs, of your API server's minor version: copy registry.k8s.io/kube-scheduler:VERSION to your
registry where there is internet, and name it by the value kubeSchedulerImage.
With the value parts.gpuSharing=false, or scheduler=control-plane, it is not needed.

1. Check the files, in this folder:

     sha256sum --check --quiet {sums}

2. Give the image to the nodes: push it to a registry that they reach,

     fairlead-venv/bin/fairlead bundle push ../{bundle} REGISTRY

   (step 3 makes fairlead-venv; skopeo can push it, too), or import it on every node; the name is
   then fairlead:{version}, which is the default:

     ctr -n k8s.io images import image/{archive}

3. Install, with one of these:

     python3 -m venv fairlead-venv
     fairlead-venv/bin/pip install --no-index --find-links wheels fairlead
     fairlead-venv/bin/fairlead install --set image=REGISTRY/fairlead:{version} \\
       --set kubeSchedulerImage=REGISTRY/kube-scheduler:VERSION

     helm install fairlead chart/fairlead-{version}.tgz --namespace fairlead-system \\
       --create-namespace --set image=REGISTRY/fairlead:{version} \\
       --set kubeSchedulerImage=REGISTRY/kube-scheduler:VERSION

   Without Python and Helm, write both images into {objects}, then:

     kubectl apply --server-side -f {objects}
"""


def build_bundle(folder: Path) -> Path:
    """Write the bundle of the artefacts that lie in `folder` beside them; returns it.

    Raises StepFailed if one is missing.
    """
    version = project_version()
    with tempfile.TemporaryDirectory(prefix="fairlead-bundle-") as name:
        objects = Path(name) / "objects.yaml"
        write_objects(objects)
        files = bundle_files(folder, locked_wheels(), objects)
        return write_bundle(folder, version, files)


def locked_wheels() -> list[Path]:
    """The wheels of requirements/run.txt for every Python and architecture, each once."""
    found = {
        wheel.name: wheel
        for architecture in ARCHITECTURES
        for python in PYTHONS
        for wheel in fetched_wheels(architecture, python)
    }
    return [found[name] for name in sorted(found)]


def write_objects(path: Path) -> None:
    """What `fairlead install` would write without any value."""
    make_environment("run")
    argv = [str(PYTHON), "-m", "fairlead", "install", "--dry-run", "-o", "yaml"]
    done = subprocess.run(argv, capture_output=True, timeout=120, check=False)
    if done.returncode != 0:
        raise StepFailed(f"`fairlead install --dry-run -o yaml`: {done.stderr.decode().strip()}")
    path.write_bytes(done.stdout)


def bundle_files(artefacts: Path, wheels: Sequence[Path], objects: Path) -> dict[str, Path]:
    """The files of the bundle by their path in it, without README and sums. Raises StepFailed if
    the folder lacks an artefact of a kind.
    """
    found: dict[str, Path] = {OBJECTS: objects}
    for ending, place in PLACES.items():
        files = [each for each in artefacts.iterdir() if each.name.endswith(ending)]
        if not files:
            raise StepFailed(f"{artefacts} has no *{ending}", "`make bundle` builds all of it")
        found |= {f"{place}/{each.name}": each for each in files}
    return found | {f"wheels/{each.name}": each for each in wheels}


def write_bundle(folder: Path, version: str, files: dict[str, Path]) -> Path:
    """The tar of the files, with README and sums, whole or not at all; returns its path."""
    (archive,) = (Path(each).name for each in files if each.endswith(".oci.tar"))
    readme = _README.format(
        version=version,
        archive=archive,
        bundle=f"fairlead-{version}-bundle.tar",
        objects=OBJECTS,
        sums=SUMS,
        first=PYTHONS[0],
        last=PYTHONS[-1],
    )
    target = folder / f"fairlead-{version}-bundle.tar"
    with tempfile.TemporaryDirectory(dir=folder, prefix=".bundle-") as name:
        made = Path(name)
        (made / README).write_text(readme, encoding="utf-8")
        whole = {**files, README: made / README}
        (made / SUMS).write_text(sums_text(whole), encoding="utf-8")
        whole[SUMS] = made / SUMS
        with tarfile.open(made / target.name, "w", format=tarfile.GNU_FORMAT) as tar:
            for path, file in sorted(whole.items()):
                header = tarfile.TarInfo(f"{target.stem}/{path}")
                header.mode, header.mtime = 0o644, FILE_TIME
                header.size = file.stat().st_size
                with file.open("rb") as content:
                    tar.addfile(header, content)
        (made / target.name).replace(target)
    return target


def make_bundle(folder: Path, builders: Sequence[Builder]) -> Path:
    """Run the builders, the bundle's last, in a folder that does not stay, and keep the bundle in
    `folder`, which is emptied.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".artefacts-") as name:
        for build in builders:
            build(Path(name))
        (built,) = Path(name).glob("*-bundle.tar")
        return built.rename(folder / built.name)


def main() -> int:
    started = time.monotonic()
    try:
        built = make_bundle(FOLDER, (*ARTEFACTS, build_bundle))
    except StepFailed as failed:
        say(f"error: {failed.what}")
        if failed.hint:
            say(f"hint: {failed.hint}")
        return 1
    except KeyboardInterrupt:
        return 130
    size = built.stat().st_size / 2**20
    say(f"wrote {built} ({size:.0f} MiB) in {spoken_seconds(time.monotonic() - started)}")
    print(f"{sha256(built)}  {built.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
