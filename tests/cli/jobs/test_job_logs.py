"""`arena logs`: which container of which pod, from which time, and what happens with a pod that has
not started. Against a scripted server.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.arena import kubeconfig
from tests.cli.command import run_command
from tests.cli.job_objects import cluster, job, job_pod
from tests.cli.jobs.scripted_jobs import MPI, PODS, collection, listed, run, script
from tests.edge.scripted import Reply, ScriptedServer, Stream, status

from fairlead.errors import UserError
from fairlead.run.main import main

POD_LIST = "/api/v1/namespaces/default/pods"
CHIEF = "bert-launcher-x"


def log_of(pod: str) -> str:
    return f"{POD_LIST}/{pod}/log"


def with_pods(*pods: Any, **logs: list[Reply | Stream]) -> dict[str, list[Reply | Stream]]:
    """`logs` by pod name, with `_` for `-`."""
    steps: dict[str, list[Reply | Stream]] = {
        log_of(name.replace("_", "-")): steps for name, steps in logs.items()
    }
    return script() | {POD_LIST: [listed(pods or PODS)]} | steps


def test_the_chief_unless_another_is_named(tmp_path: Path) -> None:
    steps = with_pods(bert_launcher_x=[Reply(b"chief\n")], bert_worker_0=[Reply(b"worker\n")])
    with ScriptedServer(steps) as server:
        assert run(tmp_path, server, "logs", "bert").stdout == "chief\n"
        assert run(tmp_path, server, "log", "bert", "-i", "bert-worker-0").stdout == "worker\n"
        wrong = run(tmp_path, server, "logs", "bert", "-i", "x")
    assert (
        "invalid instance name x in job bert,please use 'arena get bert' to make sure instance name"
    ) in wrong.stderr


@pytest.mark.parametrize(
    ("flags", "query"),
    [
        ("", {}),
        ("--tail 5", {"tailLines": "5"}),
        ("-t -1", {}),
        ("--tail 0", {"tailLines": "0"}),
        ("--since 2m", {"sinceSeconds": "120"}),
        ("--since-time 2026-01-05T09:30:00Z", {"sinceTime": "2026-01-05T09:30:00Z"}),
        ("--timestamps", {"timestamps": "true"}),
        (
            "-f --since 1h30m --timestamps",
            {"follow": "true", "sinceSeconds": "5400", "timestamps": "true"},
        ),
    ],
)
def test_flags_reach_the_server(flags: str, query: dict[str, str], tmp_path: Path) -> None:
    with ScriptedServer(with_pods(bert_launcher_x=[Reply(b"x\n")])) as server:
        assert run(tmp_path, server, "logs", "bert", *flags.split()).stdout == "x\n"
        (asked,) = server.requests_of(log_of(CHIEF))
    assert asked.query == {"container": "main", **query}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--since 2x", "is not a length of time"),
        ("--since 0s", "--since must be more than nothing"),
        ("--since-time yesterday", "takes a time of RFC 3339, not `yesterday`"),
        ("--since-time 2026-01-05T09:30:00", "takes a time of RFC 3339"),
        (
            "--since 2m --since-time 2026-01-05T09:30:00Z",
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ("--tail=-2", "invalid value -2 for --tail"),
        ("--tail many", "invalid int value: `many`"),
    ],
)
def test_bad_flags_are_refused_before_anything_is_asked(
    flags: str, message: str, tmp_path: Path
) -> None:
    with ScriptedServer(with_pods()) as server:
        done = run(tmp_path, server, "logs", "bert", *flags.split())
        assert server.seen == []
    assert done.returncode == 1 and message in done.stderr


def test_a_log_comes_as_it_is_written_and_letters_may_be_cut(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    word = "训练\n".encode()
    stream = Stream([word[:2], word[2:], b"\xff broken\n"], pause=0.05)
    with ScriptedServer(with_pods(bert_launcher_x=[stream])) as server:
        assert (
            main(
                "arena",
                ["--kubeconfig", str(kubeconfig(tmp_path, server.url)), "logs", "bert", "-f"],
            )
            == 0
        )
    assert capfdbinary.readouterr().out == word + b"\xff broken\n"


def test_following_waits_for_the_pod_and_for_its_container(tmp_path: Path) -> None:
    waiting = job_pod(MPI, CHIEF, "launcher", on="n1", phase="Pending", owner="Job")
    steps = with_pods(bert_launcher_x=[Reply(b"at last\n")])
    # while no pod is found, pods with the labels of older versions are requested as well
    older = listed([])
    steps[POD_LIST] = [listed([]), older, listed([waiting]), listed(PODS)]
    with ScriptedServer(steps) as server:
        done = run(tmp_path, server, "logs", "bert", "-f")
        assert len(server.requests_of(POD_LIST)) == 4
    assert (done.returncode, done.stdout) == (0, "at last\n")


def test_following_what_has_not_begun_is_reported_without_follow(tmp_path: Path) -> None:
    waiting = job_pod(MPI, CHIEF, "launcher", on="n1", phase="Pending", owner="Job")
    with ScriptedServer(with_pods(waiting)) as server:
        early = run(tmp_path, server, "logs", "bert")
        server.script[POD_LIST] = [listed([])]
        earlier = run(tmp_path, server, "logs", "bert")
    assert "container main of pod bert-launcher-x has not begun: ContainerCreating" in early.stderr
    assert "not found instances of the job bert" in earlier.stderr
    assert early.returncode == earlier.returncode == 1


def initializing() -> dict[str, Any]:
    pod = job_pod(MPI, CHIEF, "launcher", on="n1", owner="Job", phase="Pending")
    pod["spec"]["initContainers"] = [{"name": "init-code"}]
    pod["spec"]["containers"].append({"name": "sidecar"})
    pod["status"]["initContainerStatuses"] = [
        {"name": "init-code", "state": {"running": {"startedAt": "2026-01-05T10:00:00Z"}}}
    ]
    return pod


def test_the_container(tmp_path: Path) -> None:
    """While the code is fetched, the container that fetches it is shown; afterwards the first
    container, or the one that the flag names.
    """
    with ScriptedServer(with_pods(initializing(), bert_launcher_x=[Reply(b"x\n")])) as server:
        assert run(tmp_path, server, "logs", "bert").returncode == 0
        wrong = run(tmp_path, server, "logs", "bert", "-c", "nope")
        asked = [each.query["container"] for each in server.requests_of(log_of(CHIEF))]
    assert asked == ["init-code"]
    assert "container nope is not valid for pod bert-launcher-x" in wrong.stderr


def test_following_goes_on_from_the_code_to_the_program(tmp_path: Path) -> None:
    fetched = initializing()
    fetched["status"]["initContainerStatuses"][0]["state"] = {
        "terminated": {"exitCode": 0, "reason": "Completed"}
    }
    fetched["status"]["containerStatuses"] = [
        {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}
    ]
    steps = with_pods(bert_launcher_x=[Reply(b"cloned\n"), Reply(b"training\n")])
    steps[POD_LIST] = [listed([initializing()]), listed([fetched]), listed([fetched]), listed(PODS)]
    with ScriptedServer(steps) as server:
        done = run(tmp_path, server, "logs", "bert", "-f")
        asked = [each.query["container"] for each in server.requests_of(log_of(CHIEF))]
    assert (done.returncode, done.stdout) == (0, "cloned\ntraining\n")
    assert asked == ["init-code", "main"]


def test_following_ends_with_a_pod_whose_code_could_not_be_fetched(tmp_path: Path) -> None:
    failed = initializing()
    failed["status"]["phase"] = "Failed"
    failed["status"]["initContainerStatuses"][0]["state"] = {
        "terminated": {"exitCode": 128, "reason": "Error"}
    }
    steps = with_pods(bert_launcher_x=[Reply(b"no such repository\n")])
    steps[POD_LIST] = [listed([initializing()]), listed([failed])]
    with ScriptedServer(steps) as server:
        done = run(tmp_path, server, "logs", "bert", "-f")
    assert (done.returncode, done.stdout) == (0, "no such repository\n")


def test_a_pod_that_ended_before_its_container_began_is_not_waited_for(tmp_path: Path) -> None:
    refused = job_pod(MPI, CHIEF, "launcher", on="n1", phase="Failed", owner="Job")
    refused["status"]["containerStatuses"] = [
        {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}
    ]
    with ScriptedServer(with_pods(refused)) as server:
        done = run(tmp_path, server, "logs", "bert", "-f")
    assert (
        done.returncode == 1
        and "container main of pod bert-launcher-x has not begun" in done.stderr
    )


def test_pods_without_a_chief_are_named(tmp_path: Path) -> None:
    with ScriptedServer(
        with_pods(*(job_pod(MPI, f"bert-worker-{number}", "worker") for number in (0, 1)))
    ) as server:
        done = run(tmp_path, server, "logs", "bert")
    assert (
        "There is 2 instances have been found:\\n\\nbert-worker-0\\nbert-worker-1\\n\\nplease use "
        "'-i' or"
    ) in done.stderr


def test_a_server_that_refuses(tmp_path: Path) -> None:
    refused = status(
        403,
        "Forbidden",
        ('pods "bert-launcher-x" is forbidden: User "eve" cannot get resource "pods/log"'),
    )
    with ScriptedServer(with_pods(bert_launcher_x=[refused])) as server:
        done = run(tmp_path, server, "logs", "bert")
    assert (done.returncode, done.stdout) == (1, "")
    assert 'cannot get resource \\"pods/log\\"' in done.stderr


def test_a_log_that_is_cut_is_an_error(tmp_path: Path) -> None:
    with ScriptedServer(with_pods(bert_launcher_x=[Stream([b"half\n"], then="cut")])) as server:
        done = run(tmp_path, server, "logs", "bert", "-f")
    assert (done.returncode, done.stdout) == (1, "half\n")
    assert "level=error" in done.stderr and "Traceback" not in done.stderr


def ended(state: str = "Succeeded") -> Any:
    return job(
        "MPIJob",
        "bert",
        {"Launcher": (1, 0), "Worker": (1, 1)},
        states=("Created", "Running", state),
        ended=60,
    )


def of_job(mpi: Any, *pods: Any) -> dict[str, list[Reply | Stream]]:
    return script() | {f"{collection('mpijobs')}/bert": [Reply(mpi)], POD_LIST: [listed(pods)]}


@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
@pytest.mark.parametrize(
    "line",
    [
        "logs bert",
        "logs bert -f",
        "logs bert -f -i bert-launcher-x",
        "attach bert",
        "attach bert -i bert-worker-0",
    ],
)
def test_a_job_that_has_ended_and_whose_pods_are_gone_is_not_waited_for(
    line: str, state: str, tmp_path: Path
) -> None:
    with ScriptedServer(of_job(ended(state))) as server:
        done = run(tmp_path, server, *line.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert "the job has ended and its pods are gone" in done.stderr


def test_a_job_that_has_ended_and_whose_chief_is_gone_names_the_pods_that_are_left(
    tmp_path: Path,
) -> None:
    with ScriptedServer(
        of_job(ended(), job_pod(MPI, "bert-worker-0", "worker", on="n1"))
    ) as server:
        done = run(tmp_path, server, "logs", "bert", "-f")
    assert done.returncode == 1
    assert (
        "There is 1 instances have been found:\\n\\nbert-worker-0\\n\\nplease use '-i' or"
    ) in done.stderr


def test_a_pod_that_never_began_is_not_waited_for_once_its_job_has_ended(tmp_path: Path) -> None:
    waiting = job_pod(MPI, CHIEF, "launcher", on="n1", phase="Pending", owner="Job")
    with ScriptedServer(of_job(ended("Failed"), waiting)) as server:
        done = run(tmp_path, server, "logs", "bert", "-f")
    assert done.returncode == 1
    assert "the job has ended: container main of pod bert-launcher-x has not begun" in done.stderr


SUSPENDED = job(
    "MPIJob", "bert", {"Launcher": (1, 0), "Worker": (1, 1)}, states=("Created", "Suspended")
)


@pytest.mark.parametrize("verb", ["logs", "attach"])
def test_a_suspended_job_is_reported(verb: str, tmp_path: Path) -> None:
    with ScriptedServer(of_job(SUSPENDED)) as server:
        done = run(tmp_path, server, verb, "bert")
    assert (
        done.returncode == 1
        and "not found instances of the job bert: the job is suspended" in done.stderr
    )


def test_following_prints_once_that_the_job_is_suspended_and_goes_on_when_it_is_resumed(
    tmp_path: Path,
) -> None:
    steps = of_job(SUSPENDED) | {log_of(CHIEF): [Reply(b"resumed\n")]}
    steps[f"{collection('mpijobs')}/bert"] = [Reply(SUSPENDED), Reply(SUSPENDED), Reply(MPI)]
    # each look also requests pods with the labels of older versions
    steps[POD_LIST] = [listed([])] * 4 + [listed(PODS)]
    with ScriptedServer(steps) as server:
        done = run(tmp_path, server, "logs", "bert", "-f")
    assert (done.returncode, done.stdout) == (0, "resumed\n")
    assert done.stderr.count("the job is suspended") == 1


def test_a_job_without_pods_shows_what_it_waits_for(tmp_path: Path) -> None:
    with ScriptedServer(of_job(MPI)) as server:
        done = run(tmp_path, server, "logs", "bert")
    assert "not found instances of the job bert: 0 of 2 pods exist" in done.stderr


def test_a_saved_cluster_does_not_change_so_nothing_in_it_is_waited_for() -> None:
    def never(_: float) -> None:
        raise AssertionError("waits in a file that does not change")

    with pytest.raises(UserError) as caught:
        run_command("logs bert -f", cluster([MPI]), sleep=never)
    assert caught.value.what == (
        "not found instances of the job bert: 0 of 2 pods exist; the job's controller has "
        "not created the others yet"
    )
