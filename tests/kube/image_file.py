"""Reads a file like `deploy/Dockerfile` and computes what it adds to an image that has Python.

No container builder runs here. COPY, ENV, USER, WORKDIR, ENTRYPOINT and CMD are executed as
written; of RUN, only the commands that Fairlead's files use. Anything else is refused, so a file
that gains a new instruction fails here until this module supports it.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = "/usr/local/bin"
"""The folder where pip writes the programs of a distribution."""
_PYTHON = f"{PROGRAMS}/python3"


@dataclass(frozen=True)
class Link:
    target: str


@dataclass(frozen=True)
class Program:
    """A file that may be run."""

    text: str


@dataclass(frozen=True)
class Image:
    """What is added to the base: path -> a file of this machine, a link, or a program; and what a
    container of the image starts with.
    """

    files: Mapping[str, Path | Link | Program] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    """Folders in which Python looks for modules, beside its own."""
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    folder: str = "/"
    entry_point: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def read_images(text: str, known: Mapping[str, Image]) -> dict[str, Image]:
    """The stages of a file by name, the last one also as ""; `known`: the base images that it may
    begin with.
    """
    stages: dict[str, Image] = {}
    for stage in re.split(r"^(?=FROM )", _joined(text), flags=re.MULTILINE)[1:]:
        first, *rest = stage.splitlines()
        _, base, *name = first.replace(" AS ", " ").split()
        if base not in stages and base not in known:
            continue  # files that other tools build (the console's pages)
        image = {**known, **stages}[base]
        for line in rest:
            word, _, value = line.partition(" ")
            image = _followed(image, word, value.strip())
        stages[name[0] if name else ""] = stages[""] = image
    return stages


def _joined(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return "\n".join(lines).replace("\\\n", " ")


def _followed(image: Image, word: str, value: str) -> Image:
    match word:
        case "WORKDIR":
            return replace(image, folder=_within(image, value))
        case "ENV":
            return replace(
                image,
                environment={
                    **image.environment,
                    **dict(each.partition("=")[::2] for each in shlex.split(value)),
                },
            )
        case "USER":
            return replace(image, user=value)
        case "ENTRYPOINT":
            return replace(image, entry_point=tuple(json.loads(value)), command=())
        case "CMD":
            return replace(image, command=tuple(json.loads(value)))
        case "COPY":
            return _copied(image, value)
        case "RUN":
            for command in value.split("&&"):
                image = _ran(
                    image,
                    [
                        re.sub(
                            (
                                r"^\$\(command -v "
                                r"(\S+)\)$"
                            ),
                            rf"{PROGRAMS}/\1",
                            each,
                        )
                        for each in shlex.split(command)
                    ],
                )
            return image
    raise ValueError(f"`{word} {value}` is not understood; teach it here")


def _copied(image: Image, value: str) -> Image:
    """Modules of Python with their compiled files, as a later `compileall` would create them."""
    *sources, target = value.split()
    if sources[0].startswith("--from="):
        return image
    goal = _within(image, target)
    files = dict(image.files)
    for source in (found for pattern in sources for found in sorted(ROOT.glob(pattern))):
        if source.is_dir():
            files |= {f"{goal}/{each.relative_to(source)}": each for each in _sent(source)}
        else:
            files[f"{goal}/{source.name}" if target.endswith("/") else goal] = source
    return replace(image, files=files)


def _sent(folder: Path) -> Iterator[Path]:
    """All files except those that deploy/Dockerfile.dockerignore excludes, and except Python's
    caches.
    """
    pages = ROOT / "src" / "fairlead" / "web_dist"
    return (
        each for each in sorted(folder.rglob("*")) if each.is_file() and pages not in each.parents
    )


def _ran(image: Image, words: list[str]) -> Image:
    match words:
        case ["pip", "install", *_, "-e", "."]:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
                "project"
            ]
            programs = {
                f"{PROGRAMS}/{name}": _program(place) for name, place in project["scripts"].items()
            }
            return replace(
                image,
                files={**image.files, **programs},
                paths=(*image.paths, f"{image.folder}/src"),
            )
        case ["ln", "-s", target, link]:
            return replace(image, files={**image.files, link: Link(target)})
        case ["python", "-m", "compileall", *_] | ["mkdir", "-p", *_]:
            return image  # copies include compiled files; files bring folders
        case ["pip", "install", *_, wanted] if wanted.startswith("cupy"):
            return image  # works on a card, which is absent here
    raise ValueError(f"`RUN {shlex.join(words)}` is not understood; teach it here")


def _program(place: str) -> Program:
    """The program as pip writes it."""
    module, _, function = place.partition(":")
    return Program(
        f"#!{_PYTHON}\nimport sys\nfrom {module} import {function}\nif __name__ == "
        "'__main__':\n  "
        f"  sys.exit({function}())\n"
    )


def _within(image: Image, path: str) -> str:
    return str(PurePosixPath(image.folder, path))
