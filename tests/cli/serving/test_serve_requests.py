"""How many requests the commands of `serve` send, and what they print when some fail. Against
scripted servers.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.api_objects import node
from tests.cli.jobs.scripted_jobs import listed, run
from tests.cli.serving_objects import deployment, service, serving_pod
from tests.edge.exec_server import ExecServer
from tests.edge.kubeconfigs import write_kubeconfig
from tests.edge.scripted import Reply, ScriptedServer, Stream, status
from tests.waiting import HANG_SECONDS

CORE, APPS = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default/deployments"
KSERVE = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices"
LABELS = "servingType"
SHARE = {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}
Script = dict[str, list[Reply | Stream]]


def script(pods: Sequence[Any] = (), **replaced: Reply) -> Script:
    """One custom job `fast`. `replaced`: other answers, by the last word of the path."""
    steps: Script = {
        "/api/v1/namespaces/default": [Reply({"metadata": {"name": "default"}})],
        APPS: [listed([deployment("fast", "v1", available=1)])],
        KSERVE: [status(404, "NotFound", "the server could not find the requested resource")],
        f"{CORE}/services": [listed([service("fast", "v1", {"http-serving": 80})])],
        f"{CORE}/pods": [listed(pods or [serving_pod("fast", "v1", "fast-1")])],
        f"{CORE}/persistentvolumeclaims": [listed([])],
        "/api/v1/nodes/n1": [Reply(node("n1", "10.0.0.1", SHARE))],
        f"{APPS}/fast-v1-x": [Reply({})],
        f"{CORE}/services/fast-v1": [Reply({})],
        f"{CORE}/pods/fast-1/log": [Reply(b"hello\n")],
    }
    return steps | {
        path: [replaced[path.rpartition("/")[2]]]
        for path in steps
        if path.rpartition("/")[2] in replaced
    }


def sent(server: ScriptedServer) -> Counter[str]:
    return Counter(f"{each.method} {each.path.rpartition('/')[2]}" for each in server.seen)


LISTS = {
    "GET default": 1,
    "GET deployments": 1,
    "GET inferenceservices": 1,
    "GET services": 1,
    "GET pods": 1,
}


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("serve list", {}),
        ("serve get fast", {}),
        ("serve logs fast", {"GET log": 1}),
        ("serve delete fast", {"DELETE fast-v1-x": 1, "DELETE fast-v1": 1, "GET configmaps": 1}),
    ],
)
def test_the_budget(line: str, more: dict[str, int], tmp_path: Path) -> None:
    """One list per kind of object, whatever the number of jobs, and one read of the namespace,
    which may isolate its users; no discovery.
    """
    with ScriptedServer(script()) as server:
        done = run(tmp_path, server, *line.split())
        assert done.returncode == 0, done.stderr
        assert sent(server) == LISTS | more
        selectors = {
            each.query.get("labelSelector")
            for each in server.seen
            if each.path in (APPS, KSERVE, f"{CORE}/pods")
        }
        name = line.split()[2] if len(line.split()) > 2 else ""
        assert selectors == {f"{LABELS},servingName={name}" if name else LABELS}


def test_data_is_one_list(tmp_path: Path) -> None:
    with ScriptedServer(script()) as server:
        assert run(tmp_path, server, "data", "list").returncode == 0
        asked = {"GET persistentvolumeclaims": 1, "GET datasets": 1, "GET default": 1}
    assert sent(server) == asked, "an empty list asks whether the namespace is there"


def test_nodes_are_read_where_cards_are_shared(tmp_path: Path) -> None:
    """One list of nodes. A user without permission to read nodes gets the table all the same."""
    pods = [
        serving_pod("fast", "v1", f"fast-{number}", limits={"aliyun.com/gpu-mem": "6"})
        for number in range(3)
    ]
    with ScriptedServer(script(pods)) as server:
        assert run(tmp_path, server, "serve", "list").stdout.splitlines()[1].split()[-1] == "1.2"
        assert sent(server) == LISTS | {"GET n1": 1}
    with ScriptedServer(script(pods, n1=status(403, "Forbidden", "no nodes"))) as server:
        done = run(tmp_path, server, "serve", "list")
        assert done.returncode == 0 and "GPU" not in done.stdout


def test_what_is_gone_already_is_no_failure(tmp_path: Path) -> None:
    gone = status(404, "NotFound", "not found")
    with ScriptedServer(script(**{"fast-v1-x": gone, "fast-v1": gone})) as server:
        assert run(tmp_path, server, "serve", "delete", "fast").returncode == 0


@pytest.mark.parametrize("code", [403, 500])
def test_one_kind_of_object_that_cannot_be_read(code: int, tmp_path: Path) -> None:
    with ScriptedServer(script(services=status(code, "X", "not today"))) as server:
        done = run(tmp_path, server, "serve", "list")
        assert done.returncode == 0 and done.stdout.splitlines()[1].split()[-2:] == ["N/A", "N/A"]
        assert done.stderr.count("skipped services: ") == 1 and "not today" in done.stderr
    with ScriptedServer(script(deployments=status(code, "X", "not today"))) as server:
        done = run(tmp_path, server, "serve", "list")
        assert (done.returncode, done.stdout) == (1, "") and "not today" in done.stderr


@pytest.mark.parametrize("body", [b"<html>", b'{"items": 3}'])
def test_garbage_is_a_sentence(body: bytes, tmp_path: Path) -> None:
    with ScriptedServer(script(deployments=Reply(body))) as server:
        done = run(tmp_path, server, "serve", "list")
        assert (
            done.returncode == 1
            and "Traceback" not in done.stderr
            and "this is a bug" not in done.stderr
        )


def test_where_people_see_their_own_jobs_only(tmp_path: Path) -> None:
    """`fast` belongs to another user: it is not listed, and a command that names it fails with the
    reason.
    """
    isolating = Reply(
        {"metadata": {"name": "default", "labels": {"arena.kubeflow.org/isolate-user": "true"}}}
    )
    me = Reply({"status": {"userInfo": {"username": "alice"}}})
    more: Script = {
        "/apis/authentication.k8s.io/v1/selfsubjectreviews": [me],
        "/api/v1/namespaces/arena-system/configmaps/arena-config": [
            status(404, "NotFound", "none")
        ],
    }
    with ScriptedServer({**script(default=isolating), **more}) as server:
        assert run(tmp_path, server, "serve", "list").stdout.count("\n") == 1
        for verb in ("get", "delete", "logs"):
            done = run(tmp_path, server, "serve", verb, "fast")
            assert done.returncode == 1 and "because the owner of job is not you" in done.stderr
        assert not [each for each in server.seen if each.method == "DELETE"]
    mine = deployment(
        "fast", "v1", **{"arena.kubeflow.org/uid": "6384e2b2184bcbf58eccf10ca7a6563c"}
    )
    with ScriptedServer(
        {**script(default=isolating, deployments=listed([mine])), **more}
    ) as server:
        assert "fast" in run(tmp_path, server, "serve", "list").stdout


def test_attach(tmp_path: Path) -> None:
    with ExecServer(script()) as server:
        config = write_kubeconfig(tmp_path / "config", cluster={"server": server.url})
        code = "from fairlead.run.programs import run_arena; run_arena()"
        words = (
            "serve",
            "attach",
            "fast",
            "--kubeconfig",
            str(config),
            "--",
            "sh",
            "-c",
            "echo hi; exit 7",
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        assert (done.returncode, done.stdout) == (7, b"hi\n"), done.stderr
        assert server.executed[-1].path == f"{CORE}/pods/fast-1/exec"
