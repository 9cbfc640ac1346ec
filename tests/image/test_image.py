"""The image of `make image`: what is in it, that it runs, its bill of materials, its digest."""

from __future__ import annotations

import filecmp
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.image.archive import ARCHITECTURE, OTHER_MACHINE, ROOT, Archive, build
from tests.image.conftest import Containers, OtherMachine
from tests.turns import in_turn

MIB = 2**20
AIM_MIB = 75
RUN_LOCK = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
DEBIAN_LOCK = json.loads(
    Path(
        os.environ.get("FAIRLEAD_IMAGE_LOCK") or ROOT / "tools" / "image" / "debian.lock.json"
    ).read_text(encoding="utf-8")
)
IMPORT_ALL = """
import importlib, os, pkgutil, sys
import fairlead
failed, count = [], 0
def note(name): failed.append(name)
for found in pkgutil.walk_packages(fairlead.__path__, "fairlead.", note):
    count += 1
    try:
        importlib.import_module(found.name)
    except BaseException as error:
        missing = (getattr(error, "name", None) or "").partition(".")[0]
        if missing != "fairlead_sim" or not found.name.startswith("fairlead.run."):
            failed.append(f"{found.name}: {error!r}")
for name in sorted(os.listdir("/usr/lib/python3.11/lib-dynload")):
    importlib.import_module(name.partition(".")[0])
print(os.getuid(), os.getgid(), count, failed)
try:
    open("/tmp/x", "w")
except OSError as error:
    print(error.strerror)
"""


def test_it_has_two_names_with_the_same_layers_and_how_each_starts(archive: Archive) -> None:
    assert json.loads(archive.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert set(archive.names) == {"fairlead:0.1.0", "fairlead-dcgm-exporter:0.1.0"}
    first, second = (archive.manifest(name) for name in archive.names)
    assert first["layers"] == second["layers"] and len(first["layers"]) == 3
    config = archive.config("fairlead:0.1.0")["config"]
    assert (config["User"], config["Entrypoint"]) == ("65532:65532", ["fairlead"])
    config = archive.config("fairlead-dcgm-exporter:0.1.0")["config"]
    assert (config["User"], config["Entrypoint"]) == ("0:0", ["dcgm-exporter"])
    assert "NVIDIA_VISIBLE_DEVICES=all" in config["Env"]


def test_no_shell_no_pip_no_simulated_cluster_and_no_documents_are_in_it(archive: Archive) -> None:
    programs = {path for path in archive.headers if re.match(r"usr/s?bin/", path)}
    assert programs == {"usr/bin/dcgm-exporter", "usr/bin/python3", "usr/bin/python3.11"}
    wrong = re.compile(
        r"(^|/)(pip|ensurepip|fairlead_sim|test|tests|locale|man|i18n|status|__phello__)(/|$)"
        r"|(^|/)(busybox|dash|bash|sh|dpkg|apt)$|\.pyi$"
    )
    fairlead = "dist-packages/fairlead/"  # the console's catalogues, `arena`'s manual
    assert [
        path
        for path in archive.headers
        if wrong.search(path) and fairlead not in path and "site-packages" not in path
    ] == []
    documents = [path for path in archive.headers if path.startswith("usr/share/doc/")]
    assert {path.count("/") for path in documents} <= {3, 4}
    assert {path.rpartition("/")[2] for path in documents if path.count("/") == 4} == {"copyright"}


def test_it_has_the_console_and_what_dcgm_exporters_manifests_name(archive: Archive) -> None:
    site = "usr/local/lib/python3.11/dist-packages"
    assert f"{site}/fairlead/web_dist/index.html" in archive.headers
    counters = {path for path in archive.headers if path.startswith("etc/dcgm-exporter/")}
    names = {"default-counters.csv", "dcp-metrics-included.csv", "1.x-compatibility-metrics.csv"}
    assert counters == {f"etc/dcgm-exporter/{name}" for name in names}
    for path in ("usr/bin/dcgm-exporter", "usr/local/dcgm/dcgm-exporter-entrypoint.sh"):
        assert archive.headers[path].linkname == "/usr/local/bin/dcgm-exporter"
    assert archive.headers["usr/local/bin/dcgm-exporter"].mode == 0o755


def test_it_has_the_memory_guard_for_both_machines(archive: Archive) -> None:
    """A library is of the machine that its ELF header names: 62 is x86-64, 183 is AArch64."""
    folder = "usr/local/lib/python3.11/dist-packages/fairlead/guard_dist"
    for machine, number in (("x86_64", 62), ("aarch64", 183)):
        content = archive.content(f"{folder}/{machine}/libfairlead-guard.so")
        assert content[:4] == b"\x7fELF"
        assert int.from_bytes(content[18:20], "little") == number


def test_every_file_belongs_to_root_and_has_one_time_and_no_special_rights(
    archive: Archive,
) -> None:
    headers = archive.headers.values()
    assert {(header.uid, header.gid, header.mtime) for header in headers} == {(0, 0, 315532800)}
    unusual_modes = {header.name: header.mode for header in headers if header.mode & 0o7022}
    assert {name for name in unusual_modes if not archive.headers[name].issym()} == {"tmp"}


def test_it_is_small(archive: Archive) -> None:
    size = sum(layer["size"] for layer in archive.manifest("fairlead:0.1.0")["layers"])
    assert 20 * MIB < size <= AIM_MIB * MIB


def test_every_module_loads_as_user_65532_on_a_read_only_file_system(
    containers: Containers,
) -> None:
    """All but those of `run` that start the simulated cluster."""
    ended = containers.run("python3", "-c", IMPORT_ALL)
    assert ended.returncode == 0, ended.stderr
    found, writing = ended.stdout.splitlines()[-2:]
    assert writing == "Read-only file system"
    _check_all_loaded(found)


def _check_all_loaded(found: str) -> None:
    """`found`: the line of IMPORT_ALL."""
    uid, gid, count, failed = found.split(" ", 3)
    modules = len([*(ROOT / "src" / "fairlead").rglob("*.py")])
    assert (uid, gid, failed) == ("65532", "65532", "[]") and 0.8 * modules < int(count) <= modules


@pytest.mark.turns(2, 0)
def test_the_other_machines_image_runs(other_machine: OtherMachine) -> None:
    """On an emulator, because no such machine is there: every module loads, with the libraries of
    that machine, and the installation's objects are those of this one.
    """
    python = "/usr/bin/python3"
    ended = other_machine.run(python, "-c", "import platform; print(platform.machine())")
    assert ended.stdout.strip() == OTHER_MACHINE, ended.stderr
    ended = other_machine.run(python, "-c", IMPORT_ALL)
    assert ended.returncode == 0, ended.stderr
    _check_all_loaded(ended.stdout.splitlines()[0])
    words = ("install", "--dry-run", "-o", "yaml")
    ended = other_machine.run(python, "-m", "fairlead", *words)
    here = subprocess.run(
        [sys.executable, "-m", "fairlead", *words], capture_output=True, text=True, check=True
    )
    assert (ended.returncode, ended.stderr) == (0, "") and ended.stdout == here.stdout


def test_its_commands_run(containers: Containers) -> None:
    ended = containers.run("fairlead", "version")
    assert (ended.returncode, ended.stderr) == (0, "") and "0.1.0" in ended.stdout
    ended = containers.run("fairlead", "cluster-exporter", "--help")
    assert ended.returncode == 0 and ended.stdout.startswith("usage: fairlead cluster-exporter")
    ended = containers.run("sh", "-c", "true")
    assert ended.returncode != 0 and "executable file not found" in ended.stderr


def test_certificates_and_time_zones_are_found(containers: Containers) -> None:
    code = (
        "import ssl, zoneinfo; print(len(ssl.create_default_context().get_ca_certs()));"
        "print(zoneinfo.ZoneInfo('Asia/Shanghai'), zoneinfo.TZPATH)"
    )
    ended = containers.run("python3", "-c", code)
    assert ended.returncode == 0, ended.stderr
    roots, zone = ended.stdout.splitlines()
    assert int(roots) > 100 and zone.startswith("Asia/Shanghai")


def test_the_bill_of_materials_lists_every_locked_package_and_wheel(
    folder: Path, archive: Archive
) -> None:
    """The fields that CycloneDX 1.6 requires, and a purl, version and hash of each component."""
    bill = json.loads((folder / f"fairlead-0.1.0-{ARCHITECTURE}.cdx.json").read_text("utf-8"))
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    subject = bill["metadata"]["component"]
    digest = archive.names["fairlead:0.1.0"]["digest"]
    assert subject["type"] == "container" and digest.endswith(subject["hashes"][0]["content"])
    found = {}
    for each in bill["components"]:
        assert each["type"] == "library" and each["purl"] == each["bom-ref"]
        (known,) = each["hashes"]
        assert known["alg"] == "SHA-256" and re.fullmatch(r"[0-9a-f]{64}", known["content"])
        found[each["purl"].partition("/")[0], each["name"]] = each["version"], known["content"]
    debian = {
        ("pkg:deb", row["name"]): (row["version"], row["sha256"])
        for row in DEBIAN_LOCK["packages"]
        if row["architecture"] == ARCHITECTURE
    }
    pinned = dict(re.findall(r"^([\w.-]+)==([\w.]+)", RUN_LOCK, re.MULTILINE))
    wheels = {name: each for (kind, name), each in found.items() if kind == "pkg:pypi"}
    assert {key: each for key, each in found.items() if key[0] == "pkg:deb"} == debian
    assert {name: version for name, (version, _) in wheels.items()} == {
        **pinned,
        "fairlead": "0.1.0",
    }
    assert {digest for name, (_, digest) in wheels.items() if name != "fairlead"} <= set(
        re.findall(r"--hash=sha256:([0-9a-f]{64})", RUN_LOCK)
    )
    assert len({each["bom-ref"] for each in bill["components"]}) == len(bill["components"])


@pytest.mark.turns(2, 1)
def test_another_folder_umask_time_zone_and_language_give_the_same_bytes(
    folder: Path, tmp_path: Path
) -> None:
    """All layers are made anew, from the same downloads."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fairlead"
    other = tmp_path / "other cache" / "fairlead"
    (other / "image").mkdir(parents=True)
    for name in ("toolchains", "image/debian", "image/wheels"):
        (other / name).symlink_to(cache / name)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    variables = {
        "XDG_CACHE_HOME": str(other.parent),
        "TMPDIR": str(temporary),
        "TZ": "Pacific/Kiritimati",
        "LC_ALL": "C",
        "PYTHONHASHSEED": "7",
    }
    again = tmp_path / "again"
    build(again, variables, cwd=tmp_path, umask=0o077)
    assert sorted(path.name for path in again.iterdir()) == sorted(
        path.name for path in folder.iterdir()
    )
    for path in again.iterdir():
        assert filecmp.cmp(path, folder / path.name, shallow=False), path.name


@pytest.mark.parametrize("target", in_turn(["wheel", "sdist"], 2))
def test_a_distribution_is_the_same_bytes_of_another_folder(target: str, tmp_path: Path) -> None:
    from tests.image.distributions import built_here, built_in_a_copy

    here, there = built_here(target, tmp_path / "here"), built_in_a_copy(target, tmp_path)
    assert here.name == there.name and filecmp.cmp(here, there, shallow=False)
