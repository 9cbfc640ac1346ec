"""Files that Fairlead's commands write never replace files that are not theirs
(`cli.own_files`).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairlead.edge.files.own_files import OwnFile
from fairlead.errors import UserError
from fairlead.run import bug_report
from fairlead.run.laptop_files import READY_FILE, STATE_FILE

READY = (
    b'{"console": "http://c/", "kubeconfig": "k", "cluster_exporter": "http://e", "gpu_exporter": '
    b'"http://g"}'
)


@pytest.mark.parametrize("kind", [READY_FILE, STATE_FILE], ids=lambda kind: kind.name)
@pytest.mark.parametrize("content", [b"my thesis", b"[]", b'{"console": "mine"}', b"\xff\x00"])
def test_a_foreign_file_is_neither_written_over_nor_taken_away(
    kind: object, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    file = OwnFile(path, kind)  # type: ignore[arg-type]
    with pytest.raises(UserError) as refused:
        file.write(READY)
    assert str(path) in refused.value.what and "move this one away" in refused.value.hint
    file.remove()
    assert path.read_bytes() == content


def test_our_own_file_and_an_empty_one_are_written_over_and_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.touch()
    file = OwnFile(path, READY_FILE, 0o644)
    for _ in range(2):
        file.write(READY)
    assert path.read_bytes() == READY and path.stat().st_mode & 0o777 == 0o644
    file.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_is_not_taken_for_fairleads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ready.json"
    path.write_bytes(READY)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(UserError) as caught:
        OwnFile(path, READY_FILE).write(READY)
    assert caught.value.what == (
        f"ready file `{tmp_path}/ready.json` cannot be written: another file stands there, and it "
        "cannot be read: permission denied"
    )


def test_a_bug_report_follows_no_link_that_waits_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bug_report.time, "strftime", lambda _: "now")
    reports = tmp_path / "fairlead" / "reports"
    reports.mkdir(parents=True)
    (tmp_path / "thesis").write_text("mine")
    (reports / f"bug-now-{os.getpid()}.txt").symlink_to(tmp_path / "thesis")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    written = bug_report.write_bug_report(
        "fairlead", ["up"], RuntimeError("x"), {"XDG_STATE_HOME": str(tmp_path)}
    )
    assert (
        written == tmp_path / f"bug-now-{os.getpid()}.txt"
        and "RuntimeError: x" in written.read_text()
    )
    assert (tmp_path / "thesis").read_text() == "mine"
