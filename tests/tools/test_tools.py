"""The tools that build and run the tests report correct counts, locks, limits, and places of
programs.
"""

from __future__ import annotations

import dataclasses
import importlib
import select
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from subprocess import PIPE
from types import ModuleType
from typing import Any

import pytest
from tests.programs import run_program
from tests.waiting import HANG_SECONDS, wait_until

SLEEP = "time.sleep(600)"
TOOLS = Path(__file__).resolve().parents[2] / "tools"
REPORT = """<testsuites><testsuite name="pytest" tests="4">
<testcase name="a"/><testcase name="b"><failure message="no"/></testcase>
<testcase name="c"><error message="setup"/></testcase>
<testcase name="d"><skipped message="no prometheus"/></testcase>
<testcase name="e"><skipped type="pytest.xfail" message="goes around it"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture(autouse=True)
def tools_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))


def _tool(name: str) -> ModuleType:
    return importlib.import_module(name)


def test_a_report_is_counted_case_by_case(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    tally = _tool("junit").read_report(report)
    assert (tally.passed, tally.failed, tally.skipped, dict(tally.skip_reasons)) == (
        2,
        2,
        1,
        {"no prometheus": 1},
    )


@pytest.mark.parametrize("text", ["", "<testsuites><testsuite"], ids=["empty", "cut off"])
def test_a_broken_report_is_no_report(tmp_path: Path, text: str) -> None:
    report = tmp_path / "report.xml"
    report.write_text(text)
    assert _tool("junit").read_report(report) is None


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("open(report, 'w').write(good)", (1, 0)),
        ("open(report, 'w').write(good); sys.exit(3)", (1, 1)),
        ("sys.exit(0)", (0, 1)),
        ("open(report, 'w').write('<testsuites/>')", (0, 1)),
    ],
    ids=[
        "a good run",
        "a runner that breaks after its last case",
        "a runner without report",
        "a runner that runs no case",
    ],
)
def test_a_group_passes_only_with_a_report_and_a_good_status(
    tmp_path: Path, script: str, expected: tuple[int, int]
) -> None:
    groups, run_group = _tool("groups"), _tool("run_group")
    report = tmp_path / "r.xml"
    code = (
        f"import sys; report={str(report)!r}; good='<testsuite><testcase/></testsuite>'; {script}"
    )
    step = groups.Step("tool-test", (sys.executable, "-c", code), tmp_path, report)
    outcome = run_group.run_group(groups.Group("tool-test", "a group of the test", (step,)))
    assert (outcome.tally.passed, outcome.tally.failed) == expected


def test_a_step_that_passes_its_limit_is_ended_and_named(tmp_path: Path) -> None:
    progress = _tool("progress")
    started = time.monotonic()
    with pytest.raises(progress.StepFailed) as caught:
        progress.run_step(
            "sleeper",
            [sys.executable, "-c", "import time; time.sleep(600)"],
            tmp_path / "log",
            limit_seconds=0.3,
        )
    assert caught.value.what == "sleeper: no end after 0.3 s\n"
    assert time.monotonic() - started < HANG_SECONDS


def test_a_step_that_falls_silent_is_ended_and_one_that_prints_goes_on(tmp_path: Path) -> None:
    progress = _tool("progress")
    silent = "print('begun', flush=True); import time; time.sleep(600)"
    with pytest.raises(progress.StepFailed) as caught:
        progress.run_step(
            "silent", [sys.executable, "-u", "-c", silent], tmp_path / "log", silence_seconds=0.5
        )
    assert caught.value.what == "silent: no output for 0.5 s\n    begun"
    printing = "import time\nfor _ in range(40): print('on', flush=True); time.sleep(0.1)"
    assert (
        progress.run_step(
            "printing", [sys.executable, "-c", printing], tmp_path / "log", silence_seconds=2.0
        )
        > 2.0
    )


def test_a_failed_step_shows_the_end_of_its_log(tmp_path: Path) -> None:
    progress = _tool("progress")
    with pytest.raises(progress.StepFailed) as failure:
        progress.run_step(
            "loud",
            [sys.executable, "-c", "print('the reason'); raise SystemExit(7)"],
            tmp_path / "log",
        )
    assert "status 7" in failure.value.what
    assert "the reason" in failure.value.what


def test_two_runs_take_turns(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(TOOLS)!r}); from locks import only_one\nfrom "
        "pathlib import Path\n"
    )
    code += (
        f"over = Path({str(tmp_path / 'over')!r})\nwith "
        f"only_one(Path({str(tmp_path / 'lock')!r}), 'it'):\n"
    )
    code += "    print(over.exists(), flush=True)\n    sys.stdin.read()\n    over.touch()\n"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True
        )
        for _ in range(2)
    ]
    first, second = (
        runs
        if select.select([each.stdout for each in runs], [], [], 30)[0] == [runs[0].stdout]
        else runs[::-1]
    )
    assert second.stderr is not None
    assert f"waiting: process {first.pid} is at work on it" in second.stderr.readline()
    assert (first.communicate(timeout=HANG_SECONDS)[0], first.returncode) == ("False\n", 0)
    assert (second.communicate(timeout=HANG_SECONDS)[0], second.returncode) == ("True\n", 0)


def test_envtest_assets_win_over_built_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = _tool("kube_programs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert (
        programs.program_path("etcd")
        == tmp_path / "cache" / "fairlead" / "bin" / f"etcd-{programs.ETCD.version}"
    )
    etcd = tmp_path / "etcd"
    etcd.write_text("#!/bin/sh\n")
    etcd.chmod(0o755)
    assert programs.program_path("etcd") == etcd
    assert programs.missing_programs(programs.ETCD) == []
    assert programs.missing_programs(programs.KWOK) == ["kwok"]


@pytest.mark.parametrize("minor", ["1.34", "1.35", "", "1.37"])
def test_every_staging_module_is_pinned_to_the_release_of_kubernetes(minor: str) -> None:
    programs = _tool("kube_programs")
    family = programs.OTHER_KUBERNETES[minor] if minor else programs.KUBERNETES
    assert family.version.startswith(f"{minor or '1.36'}.")
    lines = (programs.FAMILIES_DIR / family.folder / "go.mod").read_text().splitlines()
    replaced = [line.split()[-1] for line in lines if " => " in line]
    assert len(replaced) >= 31
    assert set(replaced) == {"v0." + family.version.removeprefix("1.")}


def test_another_kubernetes_is_never_that_of_envtest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = _tool("kube_programs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assets = tmp_path / "kube-apiserver"
    assets.write_text("#!/bin/sh\n")
    assets.chmod(0o755)
    other = programs.OTHER_KUBERNETES["1.34"]
    assert programs.family_path(programs.KUBERNETES, "kube-apiserver") == assets
    built = tmp_path / "cache" / "fairlead" / "bin" / f"kube-apiserver-{other.version}"
    assert programs.family_path(other, "kube-apiserver") == built
    assert programs.missing_programs(other) == [*other.packages]


def test_programs_of_a_group_that_runs_by_name_are_built_by_their_folder() -> None:
    programs, groups = _tool("kube_programs"), _tool("groups")
    (played,) = [each for each in groups.on_demand_groups() if each.name == "compatibility"]
    assert programs.build_flags(played.more_programs) == [
        "--with=kubernetes-1.34",
        "--with=kubernetes-1.35",
        "--with=kubernetes-1.37",
    ]
    named = [each for group in groups.real_groups() for each in group.more_programs]
    assert named == [programs.FLUID_CONTROLLERS], "a run of all builds no other one of them"


def test_a_failed_pytest_is_distinguished_from_its_failures_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    passed = "".join(f"test_{number} PASSED\n" for number in range(60))
    log.write_text(f"{passed}==== FAILURES ====\nwhat went wrong\n" + "detail\n" * 60)
    reported = _tool("progress").tail(log)
    assert reported.splitlines()[1].strip() == "what went wrong"
    assert "PASSED" not in reported


def test_an_edited_program_is_built_from_a_copy_and_kept_apart_from_the_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, build = _tool("kube_programs"), _tool("build_kube")
    edit = programs.Edit("server.go", "port = 8080", "port = 0")
    family = dataclasses.replace(programs.MPI_OPERATOR, edits=(edit,))
    assert (family.edition, dataclasses.replace(family, edits=()).edition) == (
        f"{family.version}-edited",
        family.version,
    )
    module, scratch = tmp_path / "module", tmp_path / "scratch"
    module.mkdir()
    scratch.mkdir()
    (module / "server.go").write_text("const port = 8080\n")
    monkeypatch.setattr(build, "module_dir", lambda _: module)
    assert build.edited_module(family, scratch) == ["-modfile", str(scratch / "go.mod")]
    assert (scratch / "module" / "server.go").read_text() == "const port = 0\n"
    assert (module / "server.go").read_text() == "const port = 8080\n"
    assert (
        (scratch / "go.mod")
        .read_text()
        .endswith(f"replace {family.module} => {scratch / 'module'}\n")
    )
    (module / "server.go").write_text("const port = 0\n")
    with pytest.raises(_tool("progress").StepFailed) as caught:
        build.edited_module(family, tmp_path / "again")
    assert (
        caught.value.what == "operators 0.6.0: `port = 8080` stands 0 times in server.go, not once"
    )


@pytest.mark.parametrize(
    ("only", "missing", "seconds", "message"),
    [
        (["check"], [], 239.0, " (check: 4 min 0 s at most)"),
        (["check"], [], 241.0, " (check: 4 min 0 s at most, OVER BUDGET)"),
        ([], [], 1799.0, " (warm: 30 min 0 s at most)"),
        ([], ["etcd"], 1801.0, " (cold: 60 min 0 s at most)"),
        (["unit"], [], 9999.0, ""),
    ],
)
def test_a_run_gets_its_budget(
    only: list[str],
    missing: list[str],
    seconds: float,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_tests = _tool("run_tests")
    monkeypatch.setattr(run_tests, "missing_programs", lambda family: missing)
    assert run_tests.against(run_tests.budget_of(only), seconds) == message


def test_a_patient_group_begins_with_the_last_other_and_the_heavy_one_after_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups, run_tests, run_group = _tool("groups"), _tool("run_tests"), _tool("run_group")
    heavy_began, ended, others = threading.Event(), list[str](), 6

    def run(group: Any) -> Any:
        if group.is_patient:
            assert len(ended) >= others - run_tests.REALS_AT_ONCE, "the last one has begun"
            assert heavy_began.wait(HANG_SECONDS), (
                "the heavy group does not wait for the patient one"
            )
        if group.is_heavy:
            heavy_began.set()
        else:
            ended.append(group.name)
        return run_group.Outcome(group)

    monkeypatch.setattr(run_tests, "run_group", run)
    named = [
        groups.Group("patient", "", (), is_patient=True),
        groups.Group("heavy", "", (), is_heavy=True),
        *(groups.Group(f"other-{number}", "", ()) for number in range(others)),
    ]
    outcomes = run_tests.run_real(named)
    assert [outcome.group for outcome in outcomes] == named
    assert ended[-1] == "patient" and len(ended) == 1 + others
    others = 0
    ended.clear()
    assert len(run_tests.run_real(named[:2])) == 2, "without others it begins at once"


def test_only_groups_with_the_console_wait_for_its_build(monkeypatch: pytest.MonkeyPatch) -> None:
    groups, run_tests, run_group = _tool("groups"), _tool("run_tests"), _tool("run_group")
    console: Future[str] = Future()
    other_began, broken = threading.Event(), dict[str, str]()

    def run(group: Any) -> Any:
        broken[group.name] = group.broken
        if group.name == "other":
            other_began.set()
        return run_group.Outcome(group)

    def build() -> None:
        console.set_result("no Node" if other_began.wait(HANG_SECONDS) else "the other group waits")

    monkeypatch.setattr(run_tests, "run_group", run)
    named = [groups.Group("pages", "", (), needs_console=True), groups.Group("other", "", ())]
    builder = threading.Thread(target=build)
    builder.start()
    run_tests.run_side_by_side(named, (), 2, console)
    builder.join()
    assert broken == {"pages": "no Node", "other": ""}


def test_each_module_of_the_consoles_server_is_in_one_group() -> None:
    groups = _tool("groups")
    named = {each.name: set(each.steps[0].argv) for each in groups.check_groups()}
    pages, writes = (
        {word for word in named[name] if word.startswith("tests/")} for name in ("pages", "writes")
    )
    modules = {
        str(path.relative_to(groups.REPOSITORY))
        for each in groups.PAGES
        for path in groups.REPOSITORY.glob(each)
    }
    assert pages | writes == modules
    assert pages and writes and not pages & writes
    assert set(_tool("run_tests").CHECK_FIRST) <= named.keys()


def test_a_patient_step_has_a_lower_priority(tmp_path: Path) -> None:
    code, log = "import os; print(os.nice(0))", tmp_path / "log"
    found = []
    for niceness in (0, 5):
        _tool("progress").run_step("it", [sys.executable, "-c", code], log, niceness=niceness)
        found.append(int(log.read_text()))
    assert found[1] == min(19, found[0] + 5)


def test_contributing_promises_the_budget_that_the_runner_keeps() -> None:
    minutes = {name: seconds // 60 for name, seconds in _tool("run_tests").BUDGET_SECONDS.items()}
    text = (TOOLS.parent / "CONTRIBUTING.md").read_text()
    assert (
        "`make test` ≤ {check} minutes, `make test-all` ≤ {warm} minutes warm and ≤ {cold} cold"
    ).format(**minutes) in text


def test_a_run_in_the_background_receives_signals_all_the_same() -> None:
    code = (
        "import subprocess, sys, run_tests; run_tests.restore_signals(); "
        "subprocess.run([sys.executable, '-c', sys.argv[1]])"
    )
    message = (
        "import signal; print(*(signal.getsignal(getattr(signal, name)) != signal.SIG_IGN for "
        "name in ('SIGINT', 'SIGHUP', 'SIGQUIT')))"
    )
    script = 'trap "" INT HUP QUIT; exec "$0" -c "$1" "$2"'
    done = run_program(["sh", "-c", script, sys.executable, code, message], cwd=TOOLS, check=True)
    assert done.stdout == "True True True\n"


@pytest.mark.parametrize(
    ("first", "sleep", "begun"),
    [
        ("", "", ["--nice"]),
        ("", SLEEP, ["--nice", "again"]),
        ("signal.signal(signal.SIGINT, signal.SIG_IGN)", SLEEP, ["--nice", "again"]),
    ],
    ids=["quick", "slow", "deaf"],
)
def test_a_build_is_patient_only_while_others_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, sleep: str, begun: list[str]
) -> None:
    run_tests, reported, checked = _tool("run_tests"), tmp_path / "told", threading.Event()
    monkeypatch.setattr(run_tests, "BUILDER_GRACE", 1.0)
    code = f"""
import pathlib, signal, sys, time
{first}
is_patient = "--nice" in sys.argv
with open({str(reported)!r}, "a") as file:
    file.write("--nice\\n" if is_patient else "again\\n")
if is_patient:
    {sleep}
    pathlib.Path({str(tmp_path / "ended")!r}).touch()
"""
    building = threading.Thread(
        target=run_tests.build_beside, args=([sys.executable, "-c", code], checked), daemon=True
    )
    building.start()
    wait_until("it was begun", lambda: reported.exists() and reported.read_text(), 60, 0.01)
    if sleep:
        checked.set()
    building.join(timeout=HANG_SECONDS)
    assert not building.is_alive()
    assert reported.read_text().split() == begun
    assert (tmp_path / "ended").exists() is (not sleep)


def _node(folder: Path, version: str) -> None:
    folder.mkdir(parents=True)
    for name in ("node", "npm"):
        (folder / name).write_text(f"#!/bin/sh\necho v{version}\n")
        (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("machine", "taken"),
    [
        ("20.20.2", "the pin"),
        ("22.0.1", "the pin"),
        ("26.1.0", "the pin"),
        ("", "the pin"),
        ("24.1.0", ""),
    ],
)
def test_the_pinned_node_is_taken_where_the_machine_has_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, taken: str
) -> None:
    toolchains = _tool("toolchains")
    pinned = ".".join(map(str, toolchains.pinned_version("node")))
    _node(tmp_path / "fairlead" / "toolchains" / f"node-{pinned}" / "bin", pinned)
    if machine:
        _node(tmp_path / "bin", machine)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin" if machine else str(tmp_path / "bin"))
    found = toolchains.find_node()
    assert found.version == (pinned if taken else machine)
