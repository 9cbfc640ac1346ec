"""`make bundle`: what is in the file, the same bytes everywhere, and how it is made."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from fairlead.edge.files.offline_bundle import check_bundle

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = {
    "fairlead-0.1.0.oci.tar": b"an image",
    "fairlead-0.1.0-amd64.cdx.json": b"{}",
    "fairlead-0.1.0.tgz": b"a chart",
    "fairlead-0.1.0-py3-none-any.whl": b"a wheel",
    "fairlead-0.1.0.tar.gz": b"an sdist",
    "RELEASE-NOTES.md": b"notes",
}
INSIDE = [
    "README.txt",
    "SHA256SUMS",
    "chart/fairlead-0.1.0.tgz",
    "image/fairlead-0.1.0-amd64.cdx.json",
    "image/fairlead-0.1.0.oci.tar",
    "objects/fairlead.yaml",
    "wheels/fairlead-0.1.0-py3-none-any.whl",
    "wheels/locked-1-py3-none-any.whl",
]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("bundle")


def write(folder: Path, files: dict[str, bytes]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in files]


def written(tool: ModuleType, folder: Path) -> Path:
    write(folder / "artefacts", ARTEFACTS)
    wheels = write(folder / "cache", {"locked-1-py3-none-any.whl": b"locked"})
    (objects,) = write(folder, {"objects.yaml": b"kind: Namespace\n"})
    files = tool.bundle_files(folder / "artefacts", wheels, objects)
    made: Path = tool.write_bundle(folder / "artefacts", "0.1.0", files)
    return made


def test_the_command_accepts_what_the_tool_writes(tool: ModuleType, tmp_path: Path) -> None:
    file = written(tool, tmp_path)
    assert file.name == "fairlead-0.1.0-bundle.tar"
    assert {path.name for path in file.parent.iterdir()} == {*ARTEFACTS, file.name}
    with tarfile.open(file) as tar:
        assert tar.getnames() == [f"fairlead-0.1.0-bundle/{path}" for path in INSIDE]
    report = check_bundle(str(file))
    assert report.faults == ()
    sums = importlib.import_module("artefacts").sums_text({"b": file, "a": file}).split("\n")
    assert [line[64:] for line in sums] == ["  a", "  b", ""]
    assert (report.folder, report.files) == ("fairlead-0.1.0-bundle", len(INSIDE))
    subprocess.run(["tar", "-xf", file, "-C", tmp_path], check=True)
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=tmp_path / "fairlead-0.1.0-bundle",
        capture_output=True,
        text=True,
        check=True,
    )
    assert checked.stdout.count(": OK") == len(INSIDE) - 1


def test_another_folder_umask_order_and_clock_give_the_same_bytes(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(tool, tmp_path / "a").read_bytes()
    before = os.umask(0o077)
    try:
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        write(tmp_path / "b" / "artefacts", dict(reversed(ARTEFACTS.items())))
        second = written(tool, tmp_path / "b")
    finally:
        os.umask(before)
    for path in (tmp_path / "a").rglob("*"):
        os.utime(path, (2_000_000_000, 2_000_000_000))
    assert second.read_bytes() == first
    assert written(tool, tmp_path / "a").read_bytes() == first
    with tarfile.open(second) as tar:
        assert {(row.mtime, row.uid, row.gid, row.uname, row.mode) for row in tar} == {
            (315532800, 0, 0, "", 0o644)
        }


@pytest.mark.parametrize("name", [each for each in ARTEFACTS if "tar.gz" not in each][:4])
def test_a_missing_artefact_is_named(tool: ModuleType, tmp_path: Path, name: str) -> None:
    write(tmp_path, {each: data for each, data in ARTEFACTS.items() if each != name})
    with pytest.raises(tool.StepFailed) as failed:
        tool.bundle_files(tmp_path, [], tmp_path / "objects.yaml")
    sentence, _, ending = failed.value.what.partition("*")
    assert sentence == f"{tmp_path} has no " and ending and name.endswith(ending)
    assert failed.value.hint


def test_the_artefacts_are_built_first_and_only_the_bundle_stays(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the steps that need a network or an environment in place of the real ones."""
    steps: list[str] = []

    def builds(*names: str) -> Callable[[Path], None]:
        def build(folder: Path) -> None:
            write(folder, {name: ARTEFACTS[name] for name in names})
            steps.extend(names)

        return build

    def objects(path: Path) -> None:
        path.write_text("kind: Namespace\n")
        steps.append("objects")

    monkeypatch.setattr(tool, "write_objects", objects)
    monkeypatch.setattr(tool, "locked_wheels", list)
    version = tool.project_version()
    target = tmp_path / "build" / "bundle"
    write(target, {"of-an-older-bundle": b""})
    names = list(ARTEFACTS)
    made = tool.make_bundle(target, (*map(builds, names), tool.build_bundle))
    assert steps == [*names, "objects"]
    assert made == target / f"fairlead-{version}-bundle.tar"
    assert [*target.iterdir()] == [made]
    assert check_bundle(str(made)).faults == ()


def test_both_targets_build_the_same_artefacts_and_then_the_bundle(tool: ModuleType) -> None:
    artefacts, release = importlib.import_module("artefacts"), importlib.import_module("release")
    assert [each.__name__ for each in release.BUILDERS] == [
        "build_image",
        "build_packages",
        "build_chart",
        "build_bundle",
    ]
    assert release.BUILDERS[:-1] == artefacts.ARTEFACTS
    assert tool.ARTEFACTS is artefacts.ARTEFACTS


def test_the_readme_names_what_is_in_the_bundle(tool: ModuleType, tmp_path: Path) -> None:
    with tarfile.open(written(tool, tmp_path)) as tar:
        readme = tar.extractfile("fairlead-0.1.0-bundle/README.txt")
        assert readme is not None
        text = readme.read().decode()
    named = set(re.findall(r"\b(?:image|chart|objects)/[\w.-]+|SHA256SUMS", text))
    assert named == {path for path in INSIDE if "wheel" not in path and "cdx" not in path} - {
        "README.txt"
    }
    assert set(re.findall(r"^([a-z]+)/ ", text, re.MULTILINE)) == {
        path.partition("/")[0] for path in INSIDE if "/" in path
    }
    assert "{" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "kubeSchedulerImage" in text


def test_every_python_and_architecture_gets_its_wheels_once(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = importlib.import_module("image.wheels")
    asked: list[list[str]] = []

    def downloads(title: str, argv: list[str], log: Path) -> None:
        asked.append(argv)
        place = Path(argv[argv.index("--dest") + 1])
        abi = argv[argv.index("--abi") + 1]
        write(place, {f"a-1-{abi}.whl": b"", "b-1-none-any.whl": b""})

    monkeypatch.setattr(wheels, "run_step", downloads)
    monkeypatch.setattr(wheels, "pip_command", lambda: ["pip"])
    monkeypatch.setattr(wheels, "cache_home", lambda: tmp_path)
    (tmp_path / "image" / "wheels").mkdir(parents=True)
    found = [each.name for each in tool.locked_wheels()]
    assert found == [
        *(f"a-1-cp{python.replace('.', '')}.whl" for python in tool.PYTHONS),
        "b-1-none-any.whl",
    ]
    assert len(asked) == 2 * len(tool.PYTHONS)
    assert all("--require-hashes" in argv and "--only-binary=:all:" in argv for argv in asked)
    tool.locked_wheels()
    assert len(asked) == 2 * len(tool.PYTHONS)
