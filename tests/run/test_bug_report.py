"""What a bug report may contain: users attach it to public issues."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fairlead.run.bug_report import bug_report, write_bug_report

SECRET = "s3cr3t-marker"
COMMANDS = {
    "-e, its value apart": (
        f"submit tfjob --name n -e KEY={SECRET} x",
        "submit tfjob --name *** -e *** ***",
    ),
    "-e, its value joined": (f"submit tfjob -eKEY={SECRET} x", "submit tfjob -e*** ***"),
    "--env, its value apart": (f"submit tfjob --env KEY={SECRET} x", "submit tfjob --env *** ***"),
    "--env=": (f"submit tfjob --env=KEY={SECRET} x", "submit tfjob --env=*** ***"),
    "a URL of a flag": (
        f"submit tfjob --sync-source=http://u:{SECRET}@git x",
        "submit tfjob --sync-source=*** ***",
    ),
    "a URL of a global flag": (
        f"top node --kubeconfig http://u:{SECRET}@p",
        "top node --kubeconfig ***",
    ),
    "the user's command after `--`": (
        f"submit tfjob --gpus=1 -- run --token={SECRET} {SECRET}",
        "submit tfjob --gpus=*** -- *** *** ***",
    ),
    "a flag of the user's command": (
        f"submit tf run --{SECRET} -t{SECRET}",
        "submit tfjob *** *** ***",
    ),
    "a token where no such flag is": (f"list --password {SECRET}", "list *** ***"),
    "no verb": (f"sumbit {SECRET} --token={SECRET}", "*** *** ***"),
    "a verb after a global flag": (
        f"-n {SECRET} list --all-namespaces=true",
        "list -n *** --all-namespaces=true",
    ),
    "a value of an output": ("list -o json -A", "list -o *** -A"),
}


@pytest.mark.parametrize(("words", "shown"), COMMANDS.values(), ids=list(COMMANDS))
def test_a_report_shows_the_verb_and_its_flags_and_no_value_of_them(words: str, shown: str) -> None:
    report = bug_report(
        "arena", words.split(), RuntimeError("dictionary changed size during iteration")
    )
    assert SECRET not in report
    assert f"command: arena {shown}\n" in report
    assert "RuntimeError: dictionary changed size during iteration" in report


def test_a_value_out_of_a_fixed_choice_is_shown() -> None:
    report = bug_report(
        "fairlead",
        ["device-plugin", "--backend=sim", "--memory-unit", "MiB", "--memory-unit", SECRET],
        IndexError(),
    )
    assert (
        "command: fairlead device-plugin --backend=sim --memory-unit MiB --memory-unit ***\n"
    ) in report


def _raised(make: object) -> BaseException:
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as cause:
            raise make from cause  # type: ignore[misc]
    except BaseException as error:  # noqa: BLE001 - with its traceback
        return error


ERRORS = {
    "a value": ValueError(f"invalid literal for int(): '{SECRET}'"),
    "a line of a file": UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, "invalid"),
    "a name of a file": FileNotFoundError(2, "No such file or directory", f"/home/{SECRET}"),
    "a URL": RuntimeError(f"http://u:{SECRET}@proxy:3128 is shut"),
    "members of a group": ExceptionGroup(SECRET, [ValueError(SECRET), KeyError(SECRET)]),
    "a class of its own": type("Odd", (RuntimeError,), {})(SECRET),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=list(ERRORS))
def test_a_report_holds_the_places_and_classes_of_errors_but_no_value(error: Exception) -> None:
    error.add_note(SECRET)
    report = bug_report("arena", ["list"], _raised(error))
    assert SECRET not in report
    assert type(error).__name__ in report and "KeyError" in report
    assert 'test_bug_report.py", line ' in report


def test_the_file_of_a_report_is_its_owners_alone_from_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    real_open = os.open

    def noting(path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = real_open(path, flags, mode)
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(os, "open", noting)
    umask = os.umask(0)
    try:
        path = write_bug_report(
            "arena", ["list"], RuntimeError("x"), {"XDG_STATE_HOME": str(tmp_path / "state")}
        )
    finally:
        os.umask(umask)
    assert path is not None and path.is_relative_to(tmp_path)
    assert modes == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [
        stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)
    ] == [0o700, 0o700]
