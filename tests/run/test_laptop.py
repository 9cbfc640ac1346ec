"""`fairlead up` as a user starts it: addresses, files, ports, the end. All tests share one laptop,
unless they start their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from tests.cli.arena import arena, arena_process, environment, run_main
from tests.examples import long_case
from tests.run.laptop import (
    BARE,
    PORTS,
    START_SECONDS,
    Laptop,
    get,
    kubeconfig_of,
    post,
    young_scenario,
)
from tests.waiting import HANG_SECONDS, check_prompt, wait_until

from fairlead.edge.files.laptop_state import laptop_home, running_laptop

PRODUCTION = """# of ann
clusters:
- cluster: {server: 'https://127.0.0.1:1'}
  name: prod
contexts:
- context: {cluster: prod}
  name: prod
current-context: prod
"""


def with_production(folder: Path) -> Path:
    """A kubeconfig of a user, whose current context is a real cluster."""
    path = folder / "config"
    path.write_text(PRODUCTION)
    return path


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    folder = tmp_path_factory.mktemp("laptop")
    running = Laptop(
        folder,
        *PORTS,
        "--seed",
        "7",
        "--scenario",
        young_scenario(folder),
        "--kubeconfig",
        str(with_production(folder)),
    )
    try:
        running.wait_ready()
        yield running
    finally:
        running.close()


def fairlead(laptop: Laptop, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a `fairlead` command with the laptop's home directory, in the test's process."""
    return run_main("fairlead", words, environment(laptop.home))


def test_the_ready_file_names_servers_that_answer_already(laptop: Laptop) -> None:
    ready = laptop.wait_ready()
    assert set(ready) == {"console", "kubeconfig", "cluster_exporter", "gpu_exporter"}
    overview = json.loads(get(ready["console"] + "api/v1/overview"))
    assert overview["gpus"]["total"] == 32
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(ready["console"] + "api/v1/users")
    hint = json.load(refused.value)["hint"]
    assert hint == "start it with `fairlead up`, without --sign-in=false"
    assert "\narena_total_gpus_of_cluster 32\n" in get(ready["cluster_exporter"])
    # a card may have fallen off the bus
    assert get(ready["gpu_exporter"]).count("\nDCGM_FI_DEV_FB_USED{") >= 31


def test_the_page_of_a_job_that_runs_well_has_its_events(laptop: Laptop) -> None:
    api = laptop.wait_ready()["console"] + "api/v1/jobs"
    running = json.loads(get(f"{api}?job_status=Running"))["items"]
    reported = [
        json.loads(get(f"{api}/{row['namespace']}/{row['type']}/{row['name']}")) for row in running
    ]
    assert {"Scheduled", "Pulled", "Started"} <= {
        event["reason"] for each in reported for event in each["events"]
    }
    assert "images" in {step["step"] for each in reported for step in each["life"]}


def test_the_kubeconfig_is_the_owners_alone(laptop: Laptop) -> None:
    path = Path(laptop.wait_ready()["kubeconfig"])
    assert path == laptop.home / ".local/state/fairlead/laptop/kubeconfig"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_kubeconfig_with_production_in_it_gets_a_context_more_and_keeps_its_own(
    laptop: Laptop,
) -> None:
    laptop.wait_ready()
    path = laptop.home / "config"
    document = yaml.safe_load(path.read_text())
    assert (
        document["current-context"] == "prod"
        and {"name": "prod", "context": {"cluster": "prod"}} in document["contexts"]
    )
    assert path.read_text().startswith("# of ann\n")
    ended = arena(laptop.home, "whoami", "--context=fairlead", f"--kubeconfig={path}")
    assert "fairlead-admin" in ended.stdout, ended.stderr
    assert f"context:           fairlead in {path}\n" in laptop.output()


def test_commands_without_a_kubeconfig_find_the_laptop(laptop: Laptop) -> None:
    ended = arena_process(laptop.home, "top", "node")
    assert ended.returncode == 0, ended.stderr
    overview = json.loads(get(laptop.wait_ready()["console"] + "api/v1/overview"))
    assert f"/{overview['gpus']['total']} (" in ended.stdout
    assert f"the laptop's simulated cluster (process {laptop.process.pid})" in ended.stderr


def test_the_doctor_of_quota_finds_the_laptop_well(laptop: Laptop) -> None:
    """Every check has a result, and the dry run has created no pod."""
    laptop.wait_ready()
    ended = fairlead(laptop, "quota", "doctor")
    states = {
        line.split()[1]: line.split()[0]
        for line in ended.stdout.partition("\n\n")[0].splitlines()[1:]
    }
    wanted = (
        "definition",
        "max",
        "tree",
        "labels",
        "injector",
        "guard",
        "controller",
        "lease",
        "rights",
    )
    assert (ended.returncode, states) == (0, dict.fromkeys(wanted, "ok")), (
        ended.stdout + ended.stderr
    )
    namespace = ended.stdout.split("a new pod in ")[1].split()[0]
    assert (
        "no pod and no job"
        in fairlead(laptop, "quota", "why", f"{namespace}/fairlead-quota-doctor").stderr
    )


def test_the_doctor_finds_the_laptop_well(laptop: Laptop) -> None:
    """Nothing is BAD before an installation: the Leases of simulated nodes are of the present."""
    laptop.wait_ready()
    ended = fairlead(laptop, "doctor")
    lines = [line.split()[:2] for line in ended.stdout.partition("\n\n")[0].splitlines()[1:]]
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ["ok", "node-clocks"] in lines
    assert {state for state, _ in lines} <= {"ok", "warn"}, ended.stdout


def test_the_users_of_the_teams_have_rights_in_the_leaves_of_their_groups(
    laptop: Laptop, tmp_path: Path
) -> None:
    """The people controller gives them, as on any cluster."""

    def states() -> dict[str, tuple[str, str]]:
        listed = json.loads(fairlead(laptop, "user", "list", "-o", "json").stdout)
        rows = listed["items"] if isinstance(listed, dict) else listed
        return {
            each["metadata"]["name"]: (
                each["spec"]["apiRoles"][0],
                (each.get("status", {}).get("conditions") or [{}])[0].get("reason", ""),
            )
            for each in rows
        }

    team = ("anna", "li-wei", "chen-yu", "tomas", "wang-fang", "maria")
    bound = {"admin": ("admin", "Bound"), **dict.fromkeys(team, ("researcher", "Bound"))}
    wait_until("all users have their rights", lambda: states() == bound, 60)
    issued = fairlead(laptop, "kubeconfig", "create", "anna")
    path = tmp_path / "anna.kubeconfig"
    path.write_text(issued.stdout)
    own = arena(laptop.home, "list", "-n", "vision", KUBECONFIG=str(path))
    assert own.returncode == 0, own.stderr
    other = arena(laptop.home, "list", "-n", "language", KUBECONFIG=str(path))
    assert other.returncode == 1
    assert "system:serviceaccount:kube-ai:anna" in other.stderr


def test_no_user_gets_a_shell_in_a_simulated_pod_and_the_reason_is_printed(
    laptop: Laptop,
) -> None:
    running = [
        line.split()[:2]
        for line in arena(laptop.home, "list", "-A").stdout.splitlines()
        if " RUNNING " in line
    ]
    tries = [arena(laptop.home, "attach", "-n", namespace, job) for namespace, job in running[:3]]
    # a job may end meanwhile
    printed = [done for done in tries if "in a completed Instance" not in done.stderr]
    assert printed and all(done.returncode == 1 and done.stdout == "" for done in tries)
    assert all(
        "runs in a simulated cluster, where containers have no shell: execute one program"
        in done.stderr
        for done in printed
    )


def test_a_snapshot_of_the_laptop_answers_like_the_laptop(laptop: Laptop, tmp_path: Path) -> None:
    assert fairlead(laptop, "snapshot", "save", str(tmp_path / "s")).returncode == 0
    shown = fairlead(laptop, "snapshot", "show", str(tmp_path / "s"))
    assert re.search(
        (
            r"^Nodes: +9 \(4 exclusive, 3 "
            r"none, 2 share\)$"
        ),
        shown.stdout,
        re.MULTILINE,
    ), shown.stderr
    assert re.search(r"^GPUs: +32, 32 with readings$", shown.stdout, re.MULTILINE)
    table = fairlead(laptop, "top", "node", f"--snapshot={tmp_path / 's'}")
    assert table.stdout.startswith(
        "NAME          IPADDRESS     ROLE           STATUS  GPU(Total)  GPU(Allocated)  GPU(Mode)"
    )


def test_a_user_that_may_read_nothing_saves_no_snapshot_over_a_good_one(
    laptop: Laptop, tmp_path: Path
) -> None:
    config = kubeconfig_of(laptop.wait_ready())
    config["users"][0]["user"]["as"] = "stranger"
    (tmp_path / "config").write_text(json.dumps(config))
    (tmp_path / "s").write_bytes(b"")
    save = ("snapshot", "save", f"--kubeconfig={tmp_path / 'config'}", str(tmp_path / "s"))
    refused = fairlead(laptop, *save)
    assert (refused.returncode, refused.stdout, (tmp_path / "s").read_bytes()) == (2, "", b""), (
        refused.stderr
    )
    (error,) = (line for line in refused.stderr.splitlines() if line.startswith("error: "))
    for name in (
        "nodes",
        "pods",
        "events",
        "elasticquotatrees",
        "mpijobs",
        "deployments.apps",
        "poddisruptionbudgets.policy",
    ):
        assert re.search(rf"[ :]{re.escape(name)}[, ]", error), name
    assert (
        refused.stderr.count('nodes is forbidden: User "stranger" cannot list resource "nodes"')
        == 1
    )
    assert "next try" not in refused.stderr, "a command tries once"
    partial = fairlead(laptop, *save, "--partial")
    assert partial.returncode == 0, partial.stderr
    assert (
        partial.stdout.startswith("saved 0 nodes, 0 pods and 0 jobs of ")
        and ", without " in partial.stdout
    )


def test_a_port_that_was_asked_for_and_is_taken_ends_with_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = run_main(
            "fairlead", ["up", *PORTS[2:], "--port", str(port)], environment(tmp_path)
        )
    assert refused.returncode == 1
    assert (
        f"error: cannot listen on `127.0.0.1:{port}`: the port is taken\nhint: "
    ) in refused.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        long_case(("--scenario", "absent"), "absent"),
        (("--scenario", "/absent.toml"), "scenario file `/absent.toml` cannot be read"),
        long_case(("--speed", "0"), "`0` is not a speed from 0.01 to 100000"),
        long_case(
            ("--kubeconfig", "/proc/kubeconfig"),
            "kubeconfig `/proc/kubeconfig` cannot be written",
        ),
        long_case(("--ready-file", "/proc/ready"), "ready file `/proc/ready` cannot be written"),
        long_case(("--from-snapshot", "absent"), "snapshot `absent` cannot be read"),
        long_case(
            ("--from-snapshot", "s", "--scenario", "empty"),
            "a world begins with scenario `empty` or with snapshot `s`, not with both",
        ),
        (
            ("--state-dir", "/proc/fairlead"),
            "world file `/proc/fairlead/world.sqlite` cannot be opened",
        ),
        long_case(("--state-dir", ""), "argument --state-dir: the name is empty"),
        long_case(("--use-context",), "--use-context has no effect without --kubeconfig"),
        long_case(("--kubeconfig=",), "argument --kubeconfig: the name is empty"),
        (
            ("--ready-file", "THESIS"),
            "/thesis` cannot be written: another file stands there, which is no ready file",
        ),
        (
            ("--kubeconfig", "THESIS"),
            "/thesis` is a str, not a mapping with clusters, users and contexts",
        ),
    ],
)
def test_what_a_person_asked_for_and_cannot_have_ends_with_status_1(
    flags: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    """The error comes before any message about ports, which are in use. Existing files stay."""
    thesis = tmp_path / "thesis"
    thesis.write_text("my thesis")
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # another process uses it already
            taken.bind(("127.0.0.1", 8080))
            taken.listen()
        ready = ("--ready-file", str(tmp_path / "ready.json"))
        words_of_up = ["up", *ready, *(flag.replace("THESIS", str(thesis)) for flag in flags)]
        refused = run_main("fairlead", words_of_up, environment(tmp_path))
    output = refused.stdout + refused.stderr
    assert refused.returncode == 1, output
    assert words in output and " is taken" not in output
    assert "hint: " in output and "Traceback" not in output
    assert thesis.read_text() == "my thesis"


@pytest.mark.parametrize(
    "number", [signal.SIGINT, long_case(signal.SIGHUP)], ids=["Ctrl-C", "the terminal is closed"]
)
def test_a_signal_ends_all_within_five_seconds_and_takes_the_files_away(
    number: signal.Signals, tmp_path: Path
) -> None:
    check_prompt(5, partial(_ended_by, number, tmp_path))


def _ended_by(number: signal.Signals, tmp_path: Path) -> float:
    laptop = Laptop(tmp_path, *BARE, "--kubeconfig", str(with_production(tmp_path)))
    state = tmp_path / ".local/state/fairlead/laptop"
    ready = laptop.wait_ready()
    assert Path(ready["kubeconfig"]) == state / "kubeconfig"
    seconds = laptop.end(number)
    assert laptop.process.returncode == 0, laptop.output()
    assert not laptop.ready_file.exists() and list(state.iterdir()) == []
    assert (tmp_path / "config").read_text() == PRODUCTION
    assert "Traceback" not in laptop.output()
    assert laptop.output().endswith("stopped\n")
    laptop.close()
    return seconds


@pytest.mark.long
def test_ctrl_c_while_a_large_world_is_made_ends_at_once_and_spoils_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    first = Laptop(tmp_path, *PORTS, "--scenario", "large", "--state-dir", str(state))
    first.wait_for(state / "world.sqlite")
    time.sleep(0.3)  # while it makes its world, of which nothing is printed
    first.end(signal.SIGINT)
    assert first.process.returncode == 130, first.output()
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert used < 10, "it went on with its world, which takes four times as long"
    assert "Traceback" not in first.output()
    first.close()
    second = Laptop(tmp_path, *BARE, "--state-dir", str(state))
    second.wait_ready()
    second.end()
    second.close()


@pytest.mark.long
def test_without_a_stdout_the_laptop_runs_all_the_same(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    script = 'exec "$0" -m fairlead up --ready-file "$@" <&- >&-'
    argv = ["sh", "-c", script, sys.executable, str(ready), *BARE]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, env=environment(tmp_path), text=True)
    try:
        wait_until(
            "it is ready",
            lambda: ready.exists() or process.poll() is not None,
            START_SECONDS,
            0.05,
        )
        process.send_signal(signal.SIGTERM)
        _, printed = process.communicate(timeout=HANG_SECONDS)
        assert (process.returncode, "Traceback" in printed) == (0, False), printed
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_a_state_directory_that_cannot_be_written_costs_a_warning_when_it_is_the_default(
    tmp_path: Path,
) -> None:
    laptop = Laptop(tmp_path, *BARE, home=Path("/proc"))
    ready = laptop.wait_ready()
    kubeconfig = Path(ready["kubeconfig"])
    assert kubeconfig.exists()
    assert (
        "warning: kubeconfig `/proc/.local/state/fairlead/laptop/kubeconfig` cannot be written: "
    ) in laptop.output()
    laptop.end()
    assert (laptop.process.returncode, kubeconfig.parent.exists()) == (0, False)
    laptop.close()


def test_a_second_laptop_leaves_the_first_ones_files_alone(laptop: Laptop, tmp_path: Path) -> None:
    first = Path(laptop.wait_ready()["kubeconfig"])
    before = first.read_text()
    second = Laptop(tmp_path, *BARE, home=laptop.home)
    kubeconfig = Path(second.wait_ready()["kubeconfig"])
    assert kubeconfig == first.parent / str(second.process.pid) / "kubeconfig"
    assert f"another laptop (process {laptop.process.pid}) keeps its files in" in second.output()
    (typed,) = re.findall(r'eval "\$\(fairlead (env --state-dir \S+)\)"', second.output())
    asked = fairlead(laptop, *shlex.split(typed))
    assert asked.stdout == f"export KUBECONFIG={kubeconfig}\n", asked.stderr
    second.end()
    second.close()
    assert first.read_text() == before
    assert not kubeconfig.parent.exists()


@pytest.mark.long
def test_a_kept_world_goes_on_after_a_kill_under_the_same_kubeconfig(tmp_path: Path) -> None:
    kept = ("--state-dir", os.path.relpath(tmp_path / "state"), "--seed", "7")
    first = Laptop(tmp_path, *BARE, *kept)
    ready = first.wait_ready()
    (reported,) = re.findall(r"^kubeconfig: +(.+)$", first.output(), re.MULTILINE)
    assert reported.startswith("/") and Path(reported).samefile(
        tmp_path / "state" / "kubeconfig"
    ), "the reader of the address may be elsewhere"
    token = kubeconfig_of(ready)["users"][0]["user"]["token"]
    post(ready, "/api/v1/namespaces", {"metadata": {"name": "mine"}})
    found = running_laptop({"HOME": str(first.home)})
    assert (
        found is not None
        and found.pid == first.process.pid
        and Path(found.kubeconfig).samefile(reported)
    ), "no user has to name its directory"
    first.end(signal.SIGKILL)
    first.close()
    first.ready_file.unlink()
    second = Laptop(tmp_path, *PORTS, *kept)
    ready = second.wait_ready()
    assert [path.name for path in laptop_home({"HOME": str(second.home)}).iterdir()] == [
        str(second.process.pid)
    ]
    assert kubeconfig_of(ready)["users"][0]["user"]["token"] == token
    with pytest.raises(urllib.error.HTTPError, match="409"):
        post(ready, "/api/v1/namespaces", {"metadata": {"name": "mine"}})
    assert f"info: the world of scenario empty in `{kept[1]}` goes on" in second.output()
    second.end()
    assert second.process.returncode == 0, second.output()
    names = {path.name for path in (tmp_path / "state").iterdir()}
    assert names == {"world.sqlite", *(f"store.sqlite{part}" for part in ("", ".lock", ".console"))}
    assert not list(laptop_home({"HOME": str(second.home)}).iterdir())
    second.close()
