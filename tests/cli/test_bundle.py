"""`fairlead bundle verify` and `extract`: whole bundles, and what can be wrong in one."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.command import Printed, run_command

from fairlead.edge.files import offline_bundle
from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire.files.bundle_file import render_bundle

FOLDER = "fairlead-0.1.0-bundle"
LONG = f"wheels/{'long' * 30}-1-py3-none-any.whl"
FILES = {
    "README.txt": b"read me\n",
    "chart/fairlead-0.1.0.tgz": b"chart" * 300,
    "wheels/a-1.whl": b"",
    "wheels/b-1.whl": bytes(range(256)) * 2,
}

Change = Callable[[dict[str, bytes]], object]


def sums(files: dict[str, bytes]) -> bytes:
    lines = [f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in files.items()]
    return "".join(lines).encode()


def member(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    header = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(header, key, value)
    header.size = len(data)
    return header, data


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for header, data in members:
            tar.addfile(header, io.BytesIO(data))
    return whole.getvalue()


def whole_members(files: dict[str, bytes] = FILES) -> list[tuple[tarfile.TarInfo, bytes]]:
    named = {**files, "SHA256SUMS": sums(files)}
    return [member(f"{FOLDER}/{path}", data) for path, data in sorted(named.items())]


def bundle(*more: tuple[tarfile.TarInfo, bytes], files: dict[str, bytes] = FILES) -> bytes:
    return packed(*whole_members(files), *more)


def typed(*words: str) -> Printed:
    return run_command(" ".join(words), ClusterSnapshot(), "fairlead")


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def both_refuse(file: Path) -> FairleadError:
    """The error of `verify`; `extract` has the same and leaves nothing."""
    before = sorted(file.parent.rglob("*"))
    with pytest.raises(FairleadError) as verified:
        typed("bundle", "verify", str(file))
    with pytest.raises(FairleadError) as extracted:
        typed("bundle", "extract", str(file), str(file.parent / "new"))
    assert str(extracted.value) == str(verified.value)
    assert verified.value.hint
    assert sorted(file.parent.rglob("*")) == before
    return verified.value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "given.tar"


def test_a_whole_bundle_is_what_gnu_tar_reads(file: Path, tmp_path: Path) -> None:
    file.write_bytes(bundle(files={**FILES, LONG: b"long"}))
    printed = typed("bundle", "verify", str(file))
    digest = subprocess.run(["sha256sum", file], capture_output=True, text=True, check=True)
    assert printed.status == 0
    assert printed.out == (
        f"{FOLDER}: 6 files, 0.0 MiB, all as listed\nSHA-256 {digest.stdout.split()[0]}\n"
    )
    for name in ("new", "empty"):
        if name == "empty":
            (tmp_path / name).mkdir()
        assert typed("bundle", "extract", str(file), str(tmp_path / name)).status == 0
    subprocess.run(["tar", "-xf", file, "-C", tmp_path], check=True)
    assert content(tmp_path / "new") == content(tmp_path / FOLDER)
    assert content(tmp_path / "empty") == content(tmp_path / FOLDER)
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(check, cwd=tmp_path / "new", check=True)


def without(path: str) -> Change:
    return lambda files: files.pop(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("wheels/b-1.whl"), "wheels/b-1.whl: missing"),
        (without("README.txt"), "README.txt: missing"),
        (
            lambda files: files.update({"wheels/a-1.whl": b"x"}),
            "wheels/a-1.whl: damaged: its SHA-256 is 2d711642b726b044",
        ),
        (
            lambda files: files.update({"chart/fairlead-0.1.0.tgz": b"chart" * 299}),
            "chart/fairlead-0.1.0.tgz: damaged",
        ),
        (
            lambda files: files.update({"more.txt": b""}),
            "more.txt: additional: not in SHA256SUMS",
        ),
        (
            lambda files: files.update({"wheels/c-1.whl": files.pop("wheels/b-1.whl")}),
            "wheels/b-1.whl: missing\nwheels/c-1.whl: additional",
        ),
    ],
)
def test_each_file_that_is_not_as_listed_is_named(file: Path, change: Change, words: str) -> None:
    named = {**FILES, "SHA256SUMS": sums(FILES)}
    change(named)
    members = [member(f"{FOLDER}/{path}", data) for path, data in sorted(named.items())]
    file.write_bytes(packed(*members))
    error = both_refuse(file)
    assert isinstance(error, UserError)
    count = words.count("\n") + 1
    assert f"{count} file" in error.what
    assert words in printed_faults(file)
    assert len(printed_faults(file).splitlines()) == count


def printed_faults(file: Path) -> str:
    report = offline_bundle.check_bundle(str(file))
    return "".join(f"{fault.path}: {fault.what}\n" for fault in report.faults)


@pytest.mark.parametrize(
    ("added", "words"),
    [
        (member("/etc/passwd", b"x"), "/etc/passwd: refused: its path leads out"),
        (member("../outside", b"x"), "../outside: refused: its path leads out"),
        (member(f"{FOLDER}/../outside", b"x"), "outside: refused: its path leads out"),
        (member(f"{FOLDER}/a/../../outside", b"x"), "outside: refused: its path leads out"),
        (member(f"{FOLDER}//etc/passwd", b"x"), "refused: its path leads out"),
        (member(f"{FOLDER}/./a", b"x"), "refused: its path leads out"),
        (member(f"{FOLDER}/.bashrc", b"x"), "refused: its path leads out"),
        (member(f"{FOLDER}/a\\b", b"x"), "refused: its path leads out"),
        (member(f"{FOLDER}/a\x1b[2J", b"x"), r"a\x1b[2J: refused: its path leads out"),
        (member("outside", b"x"), "outside: refused: its path leads out"),
        (member("other/a", b"x"), f"other/a: refused: it is not in the folder {FOLDER}"),
        (
            member(f"{FOLDER}/link", type=tarfile.SYMTYPE, linkname="/etc"),
            "link: refused: it is no regular file",
        ),
        (
            member(f"{FOLDER}/link", type=tarfile.LNKTYPE, linkname=f"{FOLDER}/README.txt"),
            "link: refused: it is no regular file",
        ),
        (member(f"{FOLDER}/pipe", type=tarfile.FIFOTYPE), "pipe: refused: it is no regular file"),
        (
            member(f"{FOLDER}/null", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
            "null: refused: it is no regular file",
        ),
        (member(f"{FOLDER}/new", type=tarfile.DIRTYPE), "new: refused: it is no regular file"),
        (member(f"{FOLDER}/README.txt", b"read me\n"), "refused: the path occurs twice"),
        (member(f"{FOLDER}/README.txt/a", b""), "refused: the path is both a file and a folder"),
        (member(f"{FOLDER}/wheels", b""), "refused: the path is both a file and a folder"),
    ],
)
def test_what_no_bundle_has_is_refused(
    file: Path, added: tuple[tarfile.TarInfo, bytes], words: str
) -> None:
    file.write_bytes(bundle(added))
    both_refuse(file)
    (fault,) = printed_faults(file).splitlines()
    assert words in fault
    file.write_bytes(packed(added, *whole_members()))
    both_refuse(file)


@pytest.mark.parametrize("type_", [tarfile.REGTYPE, b"Z"])
def test_a_negative_size_ends_the_reading(file: Path, type_: bytes) -> None:
    """A reader that goes on at the next header would read the same one for ever."""
    header = tarfile.TarInfo(f"{FOLDER}/back")
    header.type, header.size = type_, -512
    data = packed(member(f"{FOLDER}/README.txt"))[:512] + header.tobuf(tarfile.GNU_FORMAT)
    file.write_bytes(data + bytes(1024))
    assert f"damaged: the size of {FOLDER}/back is -512" in both_refuse(file).what


@pytest.mark.parametrize("format_", ["gnu", "pax"])
def test_a_sparse_file_does_not_fill_the_disk(file: Path, tmp_path: Path, format_: str) -> None:
    (tmp_path / FOLDER).mkdir()
    with (tmp_path / FOLDER / "big").open("wb") as big:
        big.truncate(1 << 40)
    argv = ["tar", f"--format={format_}", "-cSf", file, f"{FOLDER}/big"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    sparse = file.read_bytes()
    ends = sparse.rstrip(b"\0")
    sparse = ends + bytes(-len(ends) % 512)
    file.write_bytes(sparse + bundle())
    both_refuse(file)
    assert "big: refused: it is no regular file" in printed_faults(file)


def test_no_truncated_bundle_passes(file: Path, tmp_path: Path) -> None:
    data = bundle()
    size = len(data.rstrip(b"\0"))
    for length in (*range(0, size, 97), *range(512, size, 512), size, size + 512):
        file.write_bytes(data[:length])
        error = both_refuse(file)
        assert "no bundle" in error.what or "damaged" in error.what, length


def test_no_flipped_byte_changes_what_is_extracted(file: Path, tmp_path: Path) -> None:
    """Some bytes of headers mean nothing, such as the padding of a number."""
    data = bundle()
    size = len(data.rstrip(b"\0")) + 1024
    whole = {**FILES, "SHA256SUMS": sums(FILES)}
    refused = 0
    for place in range(0, size, 13):
        changed = bytearray(data)
        changed[place] ^= 0xFF if place % 2 else 0x01
        file.write_bytes(changed)
        target = tmp_path / f"new-{place}"
        try:
            typed("bundle", "extract", str(file), str(target))
        except UserError:
            refused += 1
            assert not target.exists()
        else:
            assert content(target) == whole
    assert refused > size / 26


@pytest.mark.parametrize("more", [b"x", bytes(1024) + b"x", bundle()])
def test_bytes_after_the_end_are_found(file: Path, more: bytes) -> None:
    file.write_bytes(bundle() + more)
    assert "neither a file nor the end of the tar" in both_refuse(file).what


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is no tar"),
        (b"some text" * 200, "it is no tar"),
        (b"\x1f\x8b\x08\x00" + bytes(600), "it is no tar"),
        (bytes(10240), "it has no SHA256SUMS"),
        (packed(member("a/b", b"x")), "it has no SHA256SUMS"),
        (render_bundle({}), "is a bundle of `fairlead doctor`"),
        (
            packed(member(f"{FOLDER}/SHA256SUMS", b"no sum\n")),
            "line 1 of its SHA256SUMS is 'no sum'",
        ),
        (
            packed(member(f"{FOLDER}/SHA256SUMS", b"\xff\x1b\n")),
            r"line 1 of its SHA256SUMS is '\\xff\x1b'",
        ),
        (
            packed(member(f"{FOLDER}/SHA256SUMS", sums(FILES).replace(b"\n", b"\v"))),
            "line 1 of its SHA256SUMS",
        ),
        (packed(member(f"{FOLDER}/SHA256SUMS", sums(FILES) * 2)), "line 5 of its SHA256SUMS"),
    ],
)
def test_another_file_is_no_bundle(file: Path, data: bytes, words: str) -> None:
    file.write_bytes(data)
    assert words in both_refuse(file).what


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in (
        ("absent", "no such file or directory"),
        ("pipe", "no regular file"),
        (".", "no regular file"),
    ):
        assert words in both_refuse(tmp_path / name).what


def test_a_folder_that_does_not_fit_is_refused(file: Path, tmp_path: Path) -> None:
    file.write_bytes(bundle())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept.txt").write_text("kept")
    for name, words in (
        ("full", f"folder `{tmp_path}/full` is not empty: it has kept.txt"),
        ("given.tar", f"`{tmp_path}/given.tar` cannot take the bundle: not a directory"),
        ("absent/new", f"folder `{tmp_path}/absent/new` cannot be made: no such file or directory"),
    ):
        with pytest.raises(UserError) as refused:
            typed("bundle", "extract", str(file), str(tmp_path / name))
        assert refused.value.what == words
        assert refused.value.hint
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["full", "given.tar", "kept.txt"]


@pytest.mark.parametrize(
    ("failure", "raised"),
    [(OSError(errno.ENOSPC, "No space left on device"), OutsideError), (KeyboardInterrupt(), None)],
)
@pytest.mark.parametrize("exists", [False, True])
def test_an_end_in_the_middle_leaves_nothing(
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    raised: type[Exception] | None,
    exists: bool,
) -> None:
    file.write_bytes(bundle())
    target = tmp_path / "new"
    if exists:
        target.mkdir()
    append = offline_bundle.append_piece

    def fails(path: Path, piece: bytes) -> None:
        if path.name == "b-1.whl" and piece:
            raise failure
        append(path, piece)

    monkeypatch.setattr(offline_bundle, "append_piece", fails)
    with pytest.raises(raised or KeyboardInterrupt) as ended:
        typed("bundle", "extract", str(file), str(target))
    if raised:
        assert "no space left on device" in str(ended.value)
    left = {path.name for path in tmp_path.rglob("*")}
    assert left == ({file.name, "new"} if exists else {file.name})
    monkeypatch.undo()
    assert typed("bundle", "extract", str(file), str(target)).status == 0
    assert content(target) == {**FILES, "SHA256SUMS": sums(FILES)}
