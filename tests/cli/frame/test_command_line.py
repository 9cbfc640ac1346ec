"""Command lines: where flags may stand, which lines are refused and with which message, exit
statuses, and modules that are never imported.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.api_objects import node, pod, snapshot_of
from tests.cli.arena import environment, run_main
from tests.cli.command import run_command
from tests.programs import run_program
from tests.waiting import HANG_SECONDS

from fairlead.cli.frame.parser import split_verb
from fairlead.cli.frame.verbs import VERBS
from fairlead.errors import UserError

NODES = snapshot_of(
    [
        node("gpu-1", "10.0.0.1", {"nvidia.com/gpu": "4"}),
        node("gpu-2", "10.0.0.2", {"nvidia.com/gpu": "8"}),
        node("cpu-1", "10.0.0.3"),
    ],
    [pod("train-0", "gpu-1", {"nvidia.com/gpu": "2"})],
)
HEAVY = (
    "asyncio",
    "aiohttp",
    "rich",
    "numpy",
    "uvicorn",
    "starlette",
    "cryptography",
    "wsproto",
    "grpc",
    "google.protobuf",
    "tempfile",
    "inspect",
    "typing_extensions",
    "stringprep",
)
"""The last four belong to the standard library, except typing_extensions. Loading each of them
costs the time of a request, and none is needed.
"""


def started(program: str, line: str, home: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs the program without a kubeconfig unless `env` names one."""
    return run_main(program, line.split(), environment(home, TZ="UTC", **env))


@pytest.mark.parametrize(
    "line",
    [
        "top node -m e gpu-1",
        "-m e top node gpu-1",
        "top -m=e node gpu-1",
        "top node gpu-1 --gpu-mode=exclusive",
        "--kubeconfig none -n default top node -me gpu-1 --loglevel debug",
        "top --context x node --details=true --details=false -m e -- gpu-1",
    ],
)
def test_flags_stand_before_between_and_after_positionals(line: str) -> None:
    assert run_command(line, NODES).out.splitlines()[1].split() == [
        "gpu-1",
        "10.0.0.1",
        "<none>",
        "Ready",
        "4",
        "2",
    ]


def test_short_boolean_flags_share_one_dash_with_one_that_takes_a_value() -> None:
    assert (
        run_command("top node -dm e gpu-1", NODES).out
        == run_command("top node -d -m e gpu-1", NODES).out
    )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("top node --gpu-mod e", "unknown flag: --gpu-mod"),
        ("top node -x", "unknown shorthand flag: 'x' in -x"),
        ("top node -m", "flag needs an argument: -m"),
        (
            "top node --details=maybe",
            'invalid argument "maybe" for "--details" flag: it is true or false',
        ),
        (
            "top node -m gold",
            "unknown node type,only supports:[n(none)|e(exclusive)|t(topology)|s(share)]",
        ),
        ("top node -o xml", "unknown output format,only support:[wide|json|yaml]"),
        (
            "top node --loglevel loud",
            "failed to create arena client: unknown loglevel,only support:[info,debug,error,warn]",
        ),
        ("top node -d -r", "must specify only one node name when '-r' is enabled"),
        ("top node -n Team_A", "invalid namespace `Team_A`"),
        ("top node absent", "failed to display nodes's informations: not found nodes"),
        ("version 1", "it takes no argument `1`"),
    ],
)
def test_what_is_refused(line: str, what: str) -> None:
    with pytest.raises(UserError) as refusal:
        run_command(line, NODES)
    assert refusal.value.what == what
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("submit horovodjob --name x", "not implemented: submit horovodjob"),
        ("model analyze", "not implemented: model"),
        ("bogus", 'unknown command "bogus" for "arena"'),
        ("up", 'unknown command "up" for "arena"'),
        ("top nodes", 'unknown command "top nodes" for "arena"'),
        ("submit pytorhcjob --name x", 'unknown command "submit pytorhcjob" for "arena"'),
    ],
)
def test_commands_that_are_absent(line: str, what: str) -> None:
    with pytest.raises(UserError) as refusal:
        split_verb(line.split(), "arena")
    assert refusal.value.what == what
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("serve kf --name x", "serve kserve"),
        ("serve trt", "serve triton"),
        ("submit hj", "submit mpijob"),
    ],
)
def test_what_to_use_instead_of_what_is_not_built(line: str, instead: str) -> None:
    """The command that the hint names exists."""
    with pytest.raises(UserError) as refusal:
        split_verb(line.split(), "arena")
    assert f"`{instead}`" in refusal.value.hint
    assert split_verb(instead.split(), "arena")[0] is not None


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("submti mpi --name x", "did you mean `arena submit`?"),
        ("lst", "did you mean `arena list`?"),
        ("logss bert", "did you mean `arena logs`?"),
        ("top nodes", "did you mean `arena top node`?"),
        ("top jobs", "did you mean `arena top job`?"),
        ("submit pytorhcjob --name x", "did you mean `arena submit pytorchjob`?"),
        ("serve lst", "did you mean `arena serve list`?"),
        ("top bogus", "`arena top` has node, job"),
        ("bogus", "`arena --help` lists the commands"),
    ],
)
def test_what_was_probably_meant(line: str, hint: str) -> None:
    with pytest.raises(UserError) as refusal:
        split_verb(line.split(), "arena")
    assert refusal.value.hint == hint


@pytest.mark.parametrize("line", ["top", "top --help", "top bogus --help", "help top"])
def test_a_group_alone_shows_its_help(line: str) -> None:
    assert split_verb(line.split(), "arena")[0] is None


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("submit rayjob --workers=1", "--worker-replicas"),
        ("submit rayjob --gpus=1", "--worker-gpu"),
        ("submit volcanojob --workers 1", "--task-replicas"),
        ("submit volcanojob --image i", "--task-images"),
        ("submit sparkjob --workers 1", "--replicas"),
        ("serve custom --workers 1", "--replicas"),
        ("submit mpijob --replicas 1", "--workers"),
        ("submit mpijob --gups 1", "--gpus"),
    ],
)
def test_a_flag_that_another_kind_of_job_has(line: str, flag: str) -> None:
    with pytest.raises(UserError) as refusal:
        run_command(line, NODES)
    assert refusal.value.hint == f"did you mean `{flag}`?"


def test_every_verb_has_its_module_with_name_help_arguments_and_run() -> None:
    import importlib

    for verb in VERBS:
        module = importlib.import_module(f"fairlead.cli.{verb.module}")
        assert verb.name == module.NAME
        assert module.HELP and callable(module.add_arguments) and callable(module.run)


def test_help_of_a_verb_by_either_way(tmp_path: Path) -> None:
    for verb in ("top node", "submit mpi", "ls"):
        asked, flagged = (
            started("arena", f"help {verb}", tmp_path),
            started("arena", f"{verb} --help", tmp_path),
        )
        assert (asked.returncode, asked.stdout, asked.stderr) == (0, flagged.stdout, "")


@pytest.mark.parametrize(
    ("line", "name"),
    [("get", "job"), ("delete", "job"), ("serve get", "serving job"), ("cron get", "cron")],
)
def test_a_name_that_is_missing(line: str, name: str, tmp_path: Path) -> None:
    done = started("arena", line, tmp_path)
    assert (done.returncode, done.stdout) == (
        1,
        "",
    ) and f"not set {name} name,please set it" in done.stderr


@pytest.mark.parametrize("line", ["--help", "top node --help", "help", ""])
def test_help_goes_to_stdout_with_status_0(line: str, tmp_path: Path) -> None:
    ended = started("arena", line, tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "usage: arena" in ended.stdout


@pytest.mark.parametrize(
    ("program", "line", "status", "words"),
    [
        ("fairlead", "top node --kubeconfig missing", 1, "error: kubeconfig `missing`"),
        ("arena", "top node --kubeconfig missing", 1, 'level=error msg="kubeconfig `missing`'),
        (
            "fairlead",
            "up --bogus",
            1,
            "error: unknown flag: --bogus\nhint: `fairlead up --help` shows what it takes\n",
        ),
        (
            "fairlead",
            "up --port",
            1,
            (
                "error: flag needs an argument: --port\n"
                "hint: `fairlead up --help` shows what it takes\n"
            ),
        ),
        (
            "fairlead",
            "bogus",
            1,
            (
                'error: unknown command "bogus" for "fairlead"\n'
                "hint: `fairlead --help` lists the commands\n"
            ),
        ),
        (
            "fairlead",
            "top node --snapshot missing",
            1,
            "error: snapshot `missing` cannot be read: No such file or directory\nhint: ",
        ),
    ],
)
def test_mistakes_end_with_a_sentence_and_status_1(
    program: str, line: str, status: int, words: str, tmp_path: Path
) -> None:
    ended = started(program, line, tmp_path)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(("program", "status"), [("fairlead", 2), ("arena", 1)])
def test_an_api_server_that_refuses_is_the_outside_failing(
    program: str, status: int, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: c, "
        "context: {cluster: c}}], current-context: c}"
    )
    ended = started(program, f"top node --kubeconfig {kubeconfig}", tmp_path)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert "API server `http://127.0.0.1:1` refused the connection" in ended.stderr
    assert "check the address" in ended.stderr


def test_a_bug_ends_with_status_3_and_names_a_report_file(tmp_path: Path) -> None:
    code = (
        "import sys; import fairlead.cli.frame.version as v; v.build_lines = lambda _: 1 / 0\n"
        "from fairlead.run.main import main; sys.exit(main('fairlead', ['version', '--context', "
        "'x']))"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    ended = run_program([sys.executable, "-c", code], env=env)
    assert ended.returncode == 3
    assert ended.stderr.startswith(
        "error: this is a bug in fairlead: ZeroDivisionError: division by zero\nhint: attach `"
    )
    report = Path(ended.stderr.split("attach `")[1].split("`")[0])
    assert report.is_relative_to(tmp_path / ".local" / "state" / "fairlead" / "reports")
    assert "ZeroDivisionError" in report.read_text()
    assert "command: fairlead version --context ***\n" in report.read_text()


def test_a_closed_stdout_is_silent_and_status_0(tmp_path: Path) -> None:
    code = "import sys; from fairlead.run.main import main; sys.exit(main('arena', ['version']))"
    reader, writer = os.pipe()
    os.close(reader)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=HANG_SECONDS,
        env=env,
        check=False,
    )
    os.close(writer)
    assert ended.returncode == 0
    assert "Broken" not in ended.stderr and "Traceback" not in ended.stderr


@pytest.mark.long
def test_ctrl_c_ends_a_refreshing_command_with_130(tmp_path: Path) -> None:
    code = (
        "import sys; from fairlead.run.main import main; sys.exit(main('arena', ['top', 'node', "
        "'-r']))"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert command.stdout is not None
    command.stdout.readline()
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=HANG_SECONDS)
    assert command.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "version",
        "top node --help",
        "top node",
        "list",
        "get a",
        "top job",
        "submit mpijob --name a --image i --workers 1 run",
    ],
)
def test_nothing_heavy_is_imported(line: str, tmp_path: Path) -> None:
    """The kubeconfig names a server that does not exist, so the whole path of a live command up to
    its request is covered.
    """
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "{clusters: [{name: c, cluster: {server: 'https://localhost:1'}}], "
        "contexts: [{name: c, context: {cluster: c}}], current-context: c}"
    )
    assert heavy_modules(line, tmp_path, {"KUBECONFIG": str(kubeconfig)}) == "none"


def test_a_dry_run_that_looks_for_a_laptop_imports_nothing_heavy(tmp_path: Path) -> None:
    assert (
        heavy_modules("submit mpijob --dry-run --name a --image i --workers 1 run", tmp_path, {})
        == "none"
    )


def heavy_modules(line: str, home: Path, env: dict[str, str]) -> str:
    code = (
        "import sys; from fairlead.run.main import main; main('arena', sys.argv[1:]);"
        f"found = ','.join(name for name in {HEAVY!r} if name in sys.modules);"
        "sys.stderr.write('imported:' + (found or 'none'))"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(home), **env}
    ended = run_program([sys.executable, "-c", code, *line.split()], env=env)
    return ended.stderr.rpartition("imported:")[2]
