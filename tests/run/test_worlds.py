"""Which cluster a command talks to, and what it prints about it (`fairlead.run.worlds`)."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.api_objects import node, pod
from tests.cli.arena import arena, kubeconfig
from tests.edge.scripted import Reply, ScriptedServer
from tests.programs import run_program

from fairlead.cli.frame.verbs import verbs_of
from fairlead.edge.files.arena_config import read_arena_config
from fairlead.errors import UserError

NODES = {
    "metadata": {"resourceVersion": "1"},
    "items": [node("real-1", "10.0.0.1", {"nvidia.com/gpu": "4"})],
}
PODS = {
    "metadata": {"resourceVersion": "1"},
    "items": [pod("p", "real-1", {"nvidia.com/gpu": "1"})],
}


def test_without_any_cluster_the_embedded_one_answers_and_prints_it_once(tmp_path: Path) -> None:
    first = arena(tmp_path, "top", "node", "-d")
    assert first.returncode == 0 and "Name:    gpu-a100-1\n" in first.stdout
    assert first.stderr.count("simulated cluster (scenario default, seed 0)") == 1
    assert "level=info" in first.stderr


def test_what_is_named_is_never_replaced_by_the_simulated_cluster(tmp_path: Path) -> None:
    ended = arena(tmp_path, "top", "node", KUBECONFIG=str(tmp_path / "absent"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "`KUBECONFIG` names no file that exists" in ended.stderr


def test_a_flag_comes_before_the_variable_and_the_variable_before_a_stale_laptop(
    tmp_path: Path,
) -> None:
    state = tmp_path / ".local" / "state" / "fairlead" / "laptop"
    state.mkdir(parents=True)
    (state / "laptop.json").write_text(
        json.dumps({"pid": os.getpid(), "kubeconfig": str(state / "k"), "gpu_exporter": "http://x"})
    )
    (state / "k").write_text("{}")
    with ScriptedServer({"/api/v1/nodes": [Reply(NODES)], "/api/v1/pods": [Reply(PODS)]}) as server:
        named = kubeconfig(tmp_path, server.url)
        for arguments, env in (
            (["--kubeconfig", str(named)], {"KUBECONFIG": "/absent"}),
            ([], {"KUBECONFIG": str(named)}),
        ):
            ended = arena(tmp_path, "top", "node", *arguments, **env)
            assert ended.returncode == 0, ended.stderr
            assert ended.stdout.splitlines()[1].split() == [
                "real-1",
                "10.0.0.1",
                "<none>",
                "Ready",
                "4",
                "1",
            ]
            assert ended.stderr == ""


@pytest.mark.long
def test_a_laptop_that_was_killed_is_not_believed(tmp_path: Path) -> None:
    state = tmp_path / ".local" / "state" / "fairlead" / "laptop"
    state.mkdir(parents=True)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (state / "laptop.json").write_text(
        json.dumps({"pid": ended.pid, "kubeconfig": str(state / "k"), "gpu_exporter": "http://x"})
    )
    (state / "k").write_text("{}")
    assert "there is no kubeconfig and no running laptop" in arena(tmp_path, "top", "node").stderr


def test_a_named_prometheus_gives_gpu_values_and_its_absence_costs_one_warning(
    tmp_path: Path,
) -> None:
    labels = {
        "__name__": "nvidia_gpu_duty_cycle",
        "node_name": "real-1",
        "minor_number": "0",
        "uuid": "GPU-1",
        "namespace_name": "default",
    }
    metric = {**labels, "pod_name": "p", "allocate_mode": "exclusive"}
    found = {
        "status": "success",
        "data": {"resultType": "vector", "result": [{"metric": metric, "value": [1.0, "71"]}]},
    }
    script = {
        "/api/v1/nodes": [Reply(NODES)],
        "/api/v1/pods": [Reply(PODS)],
        "/api/v1/query": [Reply(found)],
    }
    with ScriptedServer(script) as server:
        named = [
            "--kubeconfig",
            str(kubeconfig(tmp_path, server.url)),
            "top",
            "node",
            "-d",
            "--metric",
        ]
        shown = arena(tmp_path, *named, PROMETHEUS_ADDRESS=server.url)
        assert "  default    p     Running  1               gpu0\n" in shown.stdout, shown.stderr
        assert "71.0%" in shown.stdout
        config = tmp_path / "arena.config"
        config.write_text(f"prometheus_address={server.url}\nprometheus_token=secret\n")
        assert "71.0%" in arena(tmp_path, *named, ARENA_CONFIG=str(config)).stdout
        assert server.requests_of("/api/v1/query")[-1].headers["authorization"] == "Bearer secret"
        without = arena(tmp_path, *named, PROMETHEUS_ADDRESS="http://127.0.0.1:1")
    assert without.returncode == 0
    assert (
        without.stderr.count(
            "GPU metrics unavailable: Prometheus `http://127.0.0.1:1` refused the connection"
        )
        == 1
    )
    assert "DUTY_CYCLE" not in without.stdout


def test_a_forbidden_list_is_the_servers_sentence(tmp_path: Path) -> None:
    message = (
        'nodes is forbidden: User "ann" cannot list resource "nodes" in API group "" at the '
        "cluster scope"
    )
    status = {
        "kind": "Status",
        "status": "Failure",
        "reason": "Forbidden",
        "message": message,
        "code": 403,
    }
    with ScriptedServer({"/api/v1/nodes": [Reply(status, 403)]}) as server:
        ended = arena(
            tmp_path, "top", "node", "--kubeconfig", str(kubeconfig(tmp_path, server.url))
        )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert 'cannot list resource \\"nodes\\"' in ended.stderr


def test_an_arena_config_that_is_named_must_be_readable(tmp_path: Path) -> None:
    assert read_arena_config({"HOME": str(tmp_path)}) == {}
    with pytest.raises(UserError) as refusal:
        read_arena_config({"HOME": str(tmp_path), "ARENA_CONFIG": str(tmp_path / "absent")})
    assert "absent` cannot be read: No such file or directory" in refusal.value.what


# --- while a laptop runs and no cluster is named --------------------------------------------------


def running_laptop_of(home: Path) -> Path:
    """Writes the files of a laptop whose process is this one; returns the path of its
    kubeconfig.
    """
    state = home / ".local" / "state" / "fairlead" / "laptop"
    state.mkdir(parents=True)
    (state / "kubeconfig").write_text("{}")
    reported = {
        "pid": os.getpid(),
        "kubeconfig": str(state / "kubeconfig"),
        "gpu_exporter": "http://x",
        "console": "http://127.0.0.1:1",
    }
    (state / "laptop.json").write_text(json.dumps(reported))
    return state / "kubeconfig"


def test_a_command_that_writes_names_its_cluster_and_one_that_reads_prints_nothing(
    tmp_path: Path,
) -> None:
    laptop = running_laptop_of(tmp_path)
    (tmp_path / ".kube").mkdir()
    with ScriptedServer({"/api/v1/nodes": [Reply(NODES)], "/api/v1/pods": [Reply(PODS)]}) as server:
        default = kubeconfig(tmp_path / ".kube", server.url)
        reading = arena(tmp_path, "top", "node")
        assert "real-1" in reading.stdout and reading.stderr == ""
        writing = arena(tmp_path, "delete", "first")
        (printed,) = (line for line in writing.stderr.splitlines() if "this goes to" in line)
        assert (
            f"this goes to `{server.url}`, context `c` of `{default}`; the laptop (process "
            f"{os.getpid()})"
        ) in printed
        assert 'eval \\"$(fairlead env)\\"' in printed and f"--kubeconfig {laptop}" in printed
        for named in (["--kubeconfig", str(default)], ["--context", "c"]):
            assert "this goes to" not in arena(tmp_path, "delete", "first", *named).stderr
        assert (
            "this goes to" not in arena(tmp_path, "delete", "first", KUBECONFIG=str(default)).stderr
        )
        assert "this goes to" not in arena(tmp_path, "prune", "--since=1h", "--dry-run").stderr
        laptop.unlink()
        assert "this goes to" not in arena(tmp_path, "delete", "first").stderr, (
            "no laptop, no doubt"
        )


def test_a_laptop_that_keeps_its_files_elsewhere_counts_too(tmp_path: Path) -> None:
    """A laptop with --state-dir writes to a folder of the default directory, named by its process
    number, that it runs. A second laptop does the same.
    """
    laptop = running_laptop_of(tmp_path)
    state = laptop.parent / "laptop.json"
    (laptop.parent / "17").mkdir()
    state.rename(laptop.parent / "17" / "laptop.json")
    (tmp_path / ".kube").mkdir()
    with ScriptedServer({"/api/v1/nodes": [Reply(NODES)], "/api/v1/pods": [Reply(PODS)]}) as server:
        kubeconfig(tmp_path / ".kube", server.url)
        assert f"the laptop (process {os.getpid()})" in arena(tmp_path, "delete", "first").stderr


def test_every_verb_of_arena_is_known_to_write_or_to_read() -> None:
    """For each new command a developer must decide here whether it writes."""
    reading = {verb.name for verb in verbs_of("arena") if not verb.is_writing}
    assert reading == {
        *(
            "list",
            "get",
            "top node",
            "top job",
            "logs",
            "logviewer",
            "data list",
            "whoami",
            "completion",
            "version",
        ),
        *("serve list", "serve get", "serve logs", "cron list", "cron get"),
    }
    writing = {verb.name for verb in verbs_of("fairlead") if verb.is_writing and not verb.is_arenas}
    assert writing == {
        *("dataset accelerate", "dataset add", "dataset preheat"),
        *("dataset scale", "dataset unaccelerate"),
        *("operation resume", "operation cancel"),
        *("component deploy", "component upgrade", "component remove"),
        *("install", "upgrade", "uninstall"),
        *("user create", "user update", "user delete", "user import"),
        *("group create", "group update", "group delete"),
        *("kubeconfig create", "kubeconfig delete"),
        *("prices add", "prices end"),
    }


def test_the_environment_of_the_running_laptop_is_what_a_shell_takes(tmp_path: Path) -> None:
    home = tmp_path / "ann's home"
    laptop = running_laptop_of(home)
    code = "from fairlead.run.programs import run_fairlead; run_fairlead()"
    program = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} env"
    script = f'eval "$({program})" && printf %s "$KUBECONFIG"'
    clean = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    done = run_program(["sh", "-c", script], env=clean)
    assert (done.stdout, done.stderr) == (str(laptop), "")
    named = run_program(
        ["sh", "-c", f"{program} --shell fish --state-dir {shlex.quote(str(laptop.parent))}"],
        env={**clean, "HOME": str(tmp_path)},
    )
    assert named.stdout == "set -gx KUBECONFIG '" + str(laptop).replace("'", "\\'") + "'\n"
    laptop.unlink()
    none = run_program(["sh", "-c", program], env=clean)
    assert (none.returncode, none.stdout) == (1, "") and (
        "start one with `fairlead up`"
    ) in none.stderr
