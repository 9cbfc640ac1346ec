"""Builds missing Kubernetes programs for the tests, from pinned Go modules, into the cache.

`python3 tools/build_kube.py [--nice N] [--with FOLDER]`; a second run finds everything and ends at
once. A cold build keeps two cores busy for about ten minutes, nearly all of it kube-apiserver,
whose packages the others then share. `--with` adds programs of a group that runs by its name, such
as another version of Kubernetes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kube_programs import (
    BUILT,
    BUILT_ON_DEMAND,
    FAMILIES_DIR,
    READ,
    Edit,
    Family,
    built_path,
    family_path,
    missing_programs,
)
from locks import only_one
from progress import StepFailed, cache_home, run_step, say, spoken_seconds
from toolchains import Toolchain, find_go


def build_missing(families: tuple[Family, ...] = BUILT) -> None:
    """Build the missing programs; two runs at the same time take turns."""
    if not any(missing_programs(family) for family in families):
        return
    go = find_go()
    with only_one(cache_home() / "build.lock", "the Kubernetes programs"):
        _remove_leftovers()
        for family in families:
            names = missing_programs(family)
            if names:
                _build(family, names, go)


def download_modules() -> None:
    """Bring the modules whose YAML is read into Go's module
    cache, so that tests need no network.
    """
    for family in READ:
        module_dir(family)


def module_dir(family: Family) -> Path:
    """The folder of the family's module in Go's module cache.

    It is downloaded and checked against go.sum when needed.
    """
    go = find_go()
    argv = [str(go.program), "mod", "download", "-json", family.module]
    answer = subprocess.run(
        argv,
        cwd=FAMILIES_DIR / family.folder,
        env=_go_environment(go),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if answer.returncode != 0:
        raise StepFailed(
            f"cannot download {family.module}: {(answer.stderr or answer.stdout).strip()}"
        )
    return Path(json.loads(answer.stdout)["Dir"])


def _build(family: Family, names: list[str], go: Toolchain) -> None:
    """Compile into a folder beside the final place, then rename: no half program remains."""
    target_dir = cache_home() / "bin"
    target_dir.mkdir(parents=True, exist_ok=True)
    packages = [family.packages[name] for name in names]
    environment = _go_environment(go)
    title = f"{family.folder} {family.version}"
    say("building {}: {} (Go {})".format(title, ", ".join(names), go.version))
    with tempfile.TemporaryDirectory(prefix=".building-", dir=target_dir) as scratch:
        flags = [
            "-mod=readonly",
            "-trimpath",
            "-tags",
            family.tags,
            "-ldflags",
            family.ldflags,
            *edited_module(family, Path(scratch)),
        ]
        argv = [str(go.program), "build", "-v", *flags, "-o", scratch + os.sep, *packages]
        seconds = run_step(
            title,
            argv,
            cache_home() / "logs" / f"build-{family.folder}.log",
            cwd=FAMILIES_DIR / family.folder,
            env=environment,
            progress=_compiled_packages,
        )
        _move(family, names, Path(scratch))
    say(f"built {title} in {spoken_seconds(seconds)}")


def _move(family: Family, names: list[str], scratch: Path) -> None:
    """Move the programs to their place in the cache, under our names.

    Go names a binary after the last part of its package that is not a version: etcd's module root
    and the OpenID Connect provider become `server`.
    """
    for name in names:
        parts = [part for part in family.packages[name].split("/") if part != "v3"]
        (scratch / parts[-1]).replace(built_path(family, name))


def edited_module(family: Family, scratch: Path) -> list[str]:
    """Go's flag that builds from a copy of the module with the family's edits.

    go.sum still vouches for all else.
    """
    if not family.edits:
        return []
    copy = scratch / "module"
    shutil.copytree(module_dir(family), copy, copy_function=shutil.copyfile)
    for edit in family.edits:
        _edit(copy, edit, f"{family.folder} {family.version}")
    for name in ("go.mod", "go.sum"):
        shutil.copy(FAMILIES_DIR / family.folder / name, scratch)
    with (scratch / "go.mod").open("a", encoding="utf-8") as modules:
        modules.write(f"replace {family.module} => {copy}\n")
    return ["-modfile", str(scratch / "go.mod")]


def _edit(module: Path, edit: Edit, title: str) -> None:
    path = module / edit.file
    text = path.read_text(encoding="utf-8")
    if text.count(edit.old) != 1:
        raise StepFailed(
            f"{title}: `{edit.old}` stands {text.count(edit.old)} times in {edit.file}, not once"
        )
    path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def _compiled_packages(log: Path) -> str:
    """`go build -v` prints one line a package."""
    compiled = log.read_bytes().count(b"\n")
    return f"{compiled} packages compiled"


def _go_environment(go: Toolchain) -> dict[str, str]:
    # No cgo: the programs run on any Linux. No workspace and no flags of the person's own: the
    # wrapper
    # decides.
    return dict(
        go.environment(),
        CGO_ENABLED="0",
        GOWORK="off",
        GOFLAGS="-buildvcs=false",
        GOTOOLCHAIN="local",
    )


def _remove_leftovers() -> None:
    """Remove scratch folders of killed builds.

    The caller has the lock, so none of them is in use.
    """
    for folder in (cache_home() / "bin").glob(".building-*"):
        shutil.rmtree(folder, ignore_errors=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description="Build the Kubernetes programs that the tests run."
    )
    parser.add_argument(
        "--nice", type=int, default=0, metavar="N", help="lower the priority of the build by N"
    )
    parser.add_argument(
        "--with",
        dest="more",
        action="append",
        default=[],
        choices=sorted({family.folder for family in BUILT_ON_DEMAND}),
        help="also those of this folder of tools/kube, which only a group needs that runs by name",
    )
    parser.add_argument("--quiet", action="store_true", help="do not list the programs at the end")
    chosen = parser.parse_args(argv)
    os.nice(chosen.nice)
    try:
        named = [family for family in BUILT_ON_DEMAND if family.folder in chosen.more]
        families = (*BUILT, *named)
        build_missing(families)
        download_modules()
    except StepFailed as failed:
        say("error: " + failed.what)
        if failed.hint:
            say("hint: " + failed.hint)
        return 1
    except KeyboardInterrupt:
        return 130
    if not chosen.quiet:
        rows = [(family, name) for family in families for name in family.packages]
        say("\n".join(f"  {family_path(family, name)}" for family, name in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
