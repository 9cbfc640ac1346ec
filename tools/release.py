"""`make release VERSION=x.y.z`: everything of one version, in build/release.

It changes nothing in the checkout: the version and the changelog are committed before, and it
refuses what is not ready. `make release-notes VERSION=x.y.z` writes the changelog's section from
the news fragments and dates it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from artefacts import ARTEFACTS, SUMS, Builder, sums_text
from bundle import build_bundle
from environment import PYTHON, make_environment
from progress import StepFailed, say, spoken_seconds
from toolchains import REPOSITORY

FOLDER = REPOSITORY / "build" / "release"
CHANGELOG, FRAGMENTS = "CHANGELOG.md", "newsfragments"
NOT_FRAGMENTS = ("README.md", "template.md.jinja")
NOTES = "RELEASE-NOTES.md"
UNRELEASED = "unreleased"
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_HEADING = re.compile(r"^## (\d+\.\d+\.\d+) \((.*)\)\n", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")

BUILDERS: tuple[Builder, ...] = (*ARTEFACTS, build_bundle)
"""All artefacts, then the bundle that is made of them."""


def sections(changelog: str) -> dict[str, tuple[str, str]]:
    """The date, or the word between the parentheses, and the text of each version's section.

    >>> sections("## 0.2.0 (unreleased)\\n\\n- a\\n\\n## 0.1.0 (2030-01-02)\\n\\n- b\\n")
    {'0.2.0': ('unreleased', '- a'), '0.1.0': ('2030-01-02', '- b')}
    """
    parts = _HEADING.split(changelog)[1:]
    return {
        version: (word, text.strip())
        for version, word, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def refusals(version: str, root: Path) -> Iterator[StepFailed]:
    """Why the checkout `root` cannot be released as `version`, each with what mends it."""
    if not _VERSION.fullmatch(version):
        yield StepFailed(
            f"VERSION is `{version}`", "give three numbers: make release VERSION=0.2.0"
        )
        return
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        shown = ", ".join(line[3:] for line in changed[:3])
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        yield StepFailed(
            f"the checkout has changes that are not committed: {shown}{more}",
            "a release is made of one commit: commit them, or `git stash -u`",
        )
    for file, found in _written_versions(root).items():
        if found != version:
            yield StepFailed(
                f"{file} has version {found}, not {version}",
                f"write {version} there, run `make test` for the generated files, and commit",
            )
    released = [tag.removeprefix("v") for tag in _git(root, "tag", "--list", "v*").split()]
    newest = max((each for each in released if _VERSION.fullmatch(each)), key=_key, default="")
    if newest and _key(version) <= _key(newest):
        yield StepFailed(
            f"{version} is not newer than {newest}, the newest tag", f"`git tag -l v{newest}`"
        )
    fragments = unbuilt_fragments(root)
    if fragments:
        yield StepFailed(
            f"{len(fragments)} news fragments are not in {CHANGELOG}: {fragments[0]}, …",
            f"`make release-notes VERSION={version}`, read the section, and commit",
        )
    word, text = sections((root / CHANGELOG).read_text(encoding="utf-8")).get(version, ("", ""))
    if not _DATE.fullmatch(word) or not text:
        yield StepFailed(
            f"{CHANGELOG} has no section `## {version} (DATE)` with a text",
            f"`make release-notes VERSION={version}` writes it",
        )


def _git(root: Path, *arguments: str) -> str:
    answer = subprocess.run(
        ["git", "-C", str(root), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if answer.returncode != 0:
        raise StepFailed(f"`git {arguments[0]}`: {answer.stderr.strip()}", "run it in a clone")
    return answer.stdout


def _written_versions(root: Path) -> dict[str, str]:
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    module = root / "src" / "fairlead" / "__init__.py"
    written = re.search(r'__version__ = "([^"]*)"', module.read_text(encoding="utf-8"))
    return {
        "pyproject.toml": str(tomllib.loads(project)["project"]["version"]),
        str(module.relative_to(root)): written[1] if written else "none",
    }


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def unbuilt_fragments(root: Path) -> list[str]:
    """The names of the news fragments that no release has joined yet."""
    names = (path.name for path in (root / FRAGMENTS).iterdir())
    return sorted(name for name in names if name not in NOT_FRAGMENTS)


def release(
    version: str, folder: Path, builders: Sequence[Builder], root: Path = REPOSITORY
) -> list[Path]:
    """Write artefacts, notes and sums of `version` into the folder, which is emptied.

    Raises StepFailed with all refusals, before anything is built.
    """
    refused = list(refusals(version, root))
    if refused:
        raise StepFailed(
            "; ".join(each.what for each in refused),
            "\nhint: ".join(each.hint for each in refused),
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for build in builders:
        build(folder)
    _, text = sections((root / CHANGELOG).read_text(encoding="utf-8"))[version]
    (folder / NOTES).write_text(f"# Fairlead {version}\n\n{text}\n", encoding="utf-8")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = sums_text({str(path.relative_to(folder)): path for path in files})
    (folder / SUMS).write_text(sums, encoding="utf-8")
    return [*files, folder / SUMS]


def write_notes(version: str, root: Path = REPOSITORY, today: str = "") -> None:
    """Join the fragments into the changelog as the section of `version`, dated `today`.

    What the section of `version` already has, while it is unreleased, stays below them.
    """
    if not _VERSION.fullmatch(version):
        raise StepFailed(f"VERSION is `{version}`", "give three numbers: VERSION=0.2.0")
    changelog = root / CHANGELOG
    known = sections(changelog.read_text(encoding="utf-8"))
    if known.get(version, (UNRELEASED, ""))[0] != UNRELEASED:
        raise StepFailed(
            f"{CHANGELOG} has a dated section {version} already", "name a newer version"
        )
    date = today or time.strftime("%Y-%m-%d", time.gmtime())
    heading = f"## {version} ({date})\n"
    if unbuilt_fragments(root):
        make_environment("dev")
        argv = [str(PYTHON), "-m", "towncrier", "build", "--yes"]
        argv += ["--version", version, "--date", date]
        done = subprocess.run(
            argv, cwd=root, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode != 0:
            raise StepFailed(
                f"`towncrier build` failed:\n{done.stderr.strip()}", "mend the fragment"
            )
        without = changelog.read_text(encoding="utf-8").replace(
            f"## {version} ({UNRELEASED})\n\n", ""
        )
        changelog.write_text(without, encoding="utf-8")
    elif version in known:
        text = changelog.read_text(encoding="utf-8")
        changelog.write_text(
            text.replace(f"## {version} ({UNRELEASED})\n", heading), encoding="utf-8"
        )
    else:
        raise StepFailed(f"there is nothing new for {version}", f"write a file in {FRAGMENTS}/")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Make the files of a release of Fairlead.")
    parser.add_argument("version", help="three numbers, such as 0.2.0")
    parser.add_argument(
        "--notes", action="store_true", help="only write the changelog's section, to be committed"
    )
    chosen = parser.parse_args(argv)
    started = time.monotonic()
    try:
        if chosen.notes:
            write_notes(chosen.version)
            say(f"wrote the section {chosen.version} of {CHANGELOG}; read it and commit it")
            return 0
        written = release(chosen.version, FOLDER, BUILDERS)
    except StepFailed as failed:
        say(f"error: {failed.what}")
        if failed.hint:
            say(f"hint: {failed.hint}")
        return 1
    except KeyboardInterrupt:
        return 130
    for path in written:
        say(f"  {path.relative_to(FOLDER)}  {path.stat().st_size / 2**20:.1f} MiB")
    say(f"wrote {FOLDER.relative_to(REPOSITORY)} in {spoken_seconds(time.monotonic() - started)}")
    say(f"to mark the commit: git tag -a v{chosen.version} -m 'Fairlead {chosen.version}'")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
