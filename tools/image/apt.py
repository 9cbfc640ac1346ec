"""Debian packages of any architecture by this machine's apt, which stays as it is.

apt keeps its index and its state in a folder of the cache, so no root is needed and no foreign
architecture is added to the machine. Where packages come from is the machine's configuration.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from image.debian_lock import PACKAGES, SUITE, LockedPackage
from locks import only_one
from progress import StepFailed, cache_home, run_step, say

HOME = cache_home() / "image" / "apt"
DOWNLOADS = cache_home() / "image" / "debian"
_SUITES = (SUITE, f"{SUITE}-updates", f"{SUITE}-security")


def newest_packages(architecture: str) -> list[LockedPackage]:
    """What the index has now for PACKAGES."""
    _update(architecture)
    printed = _ask(architecture, "apt-get", "--print-uris", "download", *PACKAGES)
    rows = re.findall(r"^'\S+' (\S+) (\d+) SHA256:([0-9a-f]{64})$", printed, re.MULTILINE)
    found = [
        LockedPackage(architecture, name, version.replace("%3a", ":"), file, int(size), sha256)
        for file, size, sha256 in rows
        for name, version in [file.split("_")[:2]]
    ]
    if missing := set(PACKAGES) - {each.name for each in found}:
        raise StepFailed(f"Debian's index has no {', '.join(sorted(missing))} for {architecture}")
    return found


def fetched(packages: tuple[LockedPackage, ...]) -> list[Path]:
    """The files of the packages, from the cache or by apt, each checked against its hash."""
    missing = [each for each in packages if not _place(each).exists()]
    if missing:
        with only_one(DOWNLOADS / "lock", "Debian packages of the image"):
            _download([each for each in missing if not _place(each).exists()])
    return [_place(each) for each in packages]


def _place(package: LockedPackage) -> Path:
    return DOWNLOADS / f"{package.sha256}.deb"


def _download(packages: list[LockedPackage]) -> None:
    """By the index that is there; where it lacks a version, by a new one."""
    if not packages:
        return
    architecture = packages[0].architecture
    say(f"image: fetching {len(packages)} Debian packages for {architecture}")
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as name:
        folder = Path(name)
        wanted = [f"{each.name}={each.version}" for each in packages]
        try:
            _get(architecture, folder, wanted)
        except StepFailed:
            _update(architecture)
            try:
                _get(architecture, folder, wanted)
            except StepFailed as failed:
                hint = (
                    "if Debian has newer versions by now, `make image-lock` takes them: read the "
                    "diff of tools/image/debian.lock.json"
                )
                raise StepFailed(failed.what, hint) from None
        for package in packages:
            keep(package, folder)


def _get(architecture: str, folder: Path, wanted: list[str]) -> None:
    argv = ["apt-get", *_options(architecture), "download", *wanted]
    log = cache_home() / "logs" / f"image-debian-{architecture}.log"
    run_step("fetching Debian packages", argv, log, cwd=folder)


def keep(package: LockedPackage, folder: Path) -> None:
    """Move the package's file from `folder` into the cache; StepFailed if its hash is another."""
    file = folder / package.file
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != package.sha256:
        raise StepFailed(
            f"{package.file} has the SHA-256 {found}; the lock file requires {package.sha256}",
            "check where apt of this machine gets its packages",
        )
    file.rename(_place(package))


def _update(architecture: str) -> None:
    if shutil.which("apt-get") is None:
        raise StepFailed(
            "the image is made of Debian packages, and this machine has no `apt-get`",
            "build it on Debian or Ubuntu; root is not needed",
        )
    begin_index(HOME / architecture, _sources())
    argv = ["apt-get", *_options(architecture), "update"]
    run_step("apt-get update", argv, cache_home() / "logs" / f"image-apt-{architecture}.log")


def begin_index(home: Path, sources: str) -> None:
    """The folders and files that `index_options` names; apt fills them with `update`."""
    (home / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (home / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (home / "status").write_text("", encoding="ascii")
    (home / "sources.list").write_text(sources, encoding="utf-8")


def _sources() -> str:
    """The machine's own lines for SUITE."""
    found = [line for release, line in machine_sources() if release in _SUITES]
    if not found:
        raise StepFailed(
            f"apt of this machine has no source of the Debian suite {SUITE}",
            f"add {', '.join(_SUITES)} to its sources; packages of the machine need not change",
        )
    return "".join(f"{line}\n" for line in found)


def machine_sources() -> list[tuple[str, str]]:
    """The lines of the machine's own sources, each with its suite before it."""
    form = "$(RELEASE) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    printed = subprocess.run(
        # without the last option apt names only sources whose index this machine has fetched
        ["apt-get", "indextargets", "--format", form, "Created-By: Packages", "--no-release-info"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    ).stdout
    return sorted({line.partition(" ")[::2] for line in printed.splitlines()})


def _ask(architecture: str, program: str, *words: str) -> str:
    argv = [program, *_options(architecture), *words]
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    if answer.returncode != 0:
        raise StepFailed(f"`{program} {words[0]}` failed: {answer.stderr.strip()}")
    return answer.stdout


def _options(architecture: str) -> list[str]:
    return index_options(HOME / architecture, architecture)


def index_options(home: Path, architecture: str) -> list[str]:
    """apt's options for an index of its own in the folder `home`."""
    settings = {
        "Dir::State": home,
        "Dir::State::status": home / "status",
        "Dir::State::lists": home / "lists",
        "Dir::Cache": home / "cache",
        "Dir::Etc::sourcelist": home / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "APT::Update::Post-Invoke-Success::": "",
    }
    return ["-q", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
