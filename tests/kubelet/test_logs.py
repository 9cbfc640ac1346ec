"""`arena logs` of containers that really run: the same bytes as kubectl's, and live lines when they
are written.
"""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kube.servers import running
from tests.kubelet.jobs import SECONDS, Arena, two_containers
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 0)

CHIEF, WORKER = "talk-chief-0", "talk-worker-1"


@pytest.fixture(scope="module")
def talk(cluster: ControlPlane) -> Arena:
    """A TFJob `talk` whose chief has printed five lines after its name."""
    arena = Arena(cluster)
    arena.submit("tf", "talk", "--chief", "--workers=2")
    arena.until_obeys(CHIEF, "talk-worker-0", WORKER)
    for number in range(5):
        arena.order(CHIEF, "print", f"line {number}")
    wait_until(
        "the chief has printed all", lambda: "line 4" in arena.kubectl("logs", CHIEF), SECONDS
    )
    return arena


@pytest.mark.parametrize(
    ("flags", "same"),
    [
        ((), ()),
        (("--tail", "2"), ("--tail=2",)),
        (("-t", "0"), ("--tail=0",)),
        (("--timestamps",), ("--timestamps",)),
        (("--since", "3h"), ("--since=3h",)),
        (("--since-time", "2026-01-05T09:30:00Z"), ("--since-time=2026-01-05T09:30:00Z",)),
        (
            ("--tail=3", "--timestamps", "--container", "tensorflow"),
            ("--tail=3", "--timestamps", "--container=tensorflow"),
        ),
    ],
)
def test_flags_mean_what_they_mean_to_kubectl(
    talk: Arena, flags: tuple[str, ...], same: tuple[str, ...]
) -> None:
    shown = talk.shown("logs", "talk", *flags)
    assert shown == talk.kubectl("logs", CHIEF, *same)
    assert shown or flags == ("-t", "0")


def test_the_chief_speaks_unless_another_is_named(talk: Arena) -> None:
    assert talk.shown("logs", "talk", "--tail=7").splitlines() == [
        f"I am {CHIEF}",
        *(f"line {number}" for number in range(5)),
    ]
    assert talk.shown("logs", "talk", "-i", WORKER) == f"I am {WORKER}\n"
    wrong = talk.run("logs", "talk", "--instance", "talk-worker-7")
    assert wrong.returncode == 1
    assert (
        "invalid instance name talk-worker-7 in job talk,please use 'arena get talk' to make sure "
        "instance name"
    ) in wrong.stderr


def test_since_begins_at_its_time(talk: Arena) -> None:
    lines = talk.shown("logs", "talk", "--timestamps").splitlines()
    third = lines[3].partition(" ")[0]
    since = talk.shown("logs", "talk", "--since-time", third, "--timestamps").splitlines()
    # the API's times are whole seconds
    assert since == [line for line in lines if line.partition(" ")[0][:19] >= third[:19]]
    wait_until(
        "all lines are older than a second",
        lambda: talk.shown("logs", "talk", "--since", "1s") == "",
        SECONDS,
    )
    assert "line 4" in talk.shown("logs", "talk", "--since", "1h")


def test_a_line_is_shown_when_it_is_written_and_the_end_ends_it(cluster: ControlPlane) -> None:
    arena = Arena(cluster)
    arena.submit("pytorch", "live")
    with arena.started("logs", "-f", "live") as following:  # before a container exists
        assert following.stdout is not None
        assert following.stdout.readline() == b"I am live-master-0\n"
        for words in ("one", "two words", "3"):
            arena.order("live-master-0", "print", words)
            assert following.stdout.readline() == f"{words}\n".encode()
        arena.order("live-master-0", "warn", "to stderr")
        assert following.stdout.readline() == b"to stderr\n"
        assert following.poll() is None
        arena.end("live-master-0", 0)
        assert following.wait(SECONDS) == 0
        assert (following.stdout.read(), following.stderr and following.stderr.read()) == (b"", b"")


def test_an_mpijob_is_followed_in_its_launcher(cluster: ControlPlane) -> None:
    arena = Arena(cluster)
    arena.submit("mpi", "ring", "--workers=2")
    with arena.started("logs", "-f", "ring") as following:
        assert following.stdout is not None
        # its host name; the pod's name has a suffix
        assert following.stdout.readline() == b"I am ring-launcher\n"
        [launcher] = [
            pod["metadata"]["name"]
            for pod in cluster.admin.get("pods", "-A")
            if "ring-launcher-" in pod["metadata"]["name"]
        ]
        for worker in ("ring-worker-0", "ring-worker-1"):
            arena.until_running(worker)
            assert arena.shown("attach", "ring", "-i", worker, "--", "hostname") == f"{worker}\n"
            assert arena.shown("logs", "ring", "-i", worker) == arena.kubectl("logs", worker)
        assert arena.shown("attach", "ring", "--", "hostname") == "ring-launcher\n"
        arena.end(launcher, 0)
        assert following.wait(SECONDS) == 0
    wait_until("the job has succeeded", lambda: "SUCCEEDED" in arena.shown("get", "ring"), SECONDS)
    assert arena.shown("logs", "ring") == "I am ring-launcher\n"


def test_following_begins_where_tail_points(talk: Arena) -> None:
    with talk.started("logs", "-f", "talk", "--tail=1", "-i", "talk-worker-0") as following:
        assert following.stdout is not None
        assert following.stdout.readline() == b"I am talk-worker-0\n"
        talk.order("talk-worker-0", "print", "more")
        assert following.stdout.readline() == b"more\n"


def test_a_pod_of_two_containers(cluster: ControlPlane) -> None:
    """The first container, unless -c names the other; for one that does not exist the message lists
    the existing ones.
    """
    arena = Arena(cluster)
    cluster.admin.create([two_containers("both")])
    arena.until_running("both-master-0")
    wait_until("the first speaks", lambda: arena.shown("logs", "both") == "from pytorch\n", SECONDS)
    wait_until(
        "the other speaks",
        lambda: arena.shown("logs", "both", "-c", "beside") == "from beside\n",
        SECONDS,
    )
    wrong = arena.run("logs", "both", "-c", "nosuch")
    assert (
        wrong.returncode == 1
        and "container nosuch is not valid for pod both-master-0" in wrong.stderr
    )
    assert "it has pytorch, beside" in wrong.stderr


def test_the_console_shows_the_same_bytes_and_new_ones_as_they_are_written(
    talk: Arena, tmp_path: Path
) -> None:
    path = "/api/v1/jobs/default/tfjob/talk/logs"
    with running(
        "console", f"--kubeconfig={talk.cluster.kubeconfig}", log=tmp_path / "console.log"
    ) as server:
        assert server.get(f"{path}?pod={CHIEF}&tail=3").decode() == talk.kubectl(
            "logs", CHIEF, "--tail=3"
        )
        address = f"{server.url}{path}?pod={WORKER}&tail=1&follow=true"
        with urllib.request.urlopen(address, timeout=SECONDS) as following:
            assert following.readline().decode() == talk.kubectl("logs", WORKER, "--tail=1")
            talk.order(WORKER, "print", "训练")
            assert following.readline().decode() == "训练\n"


def test_a_log_that_the_kubelet_begins_anew_is_followed_on_and_no_line_is_lost(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    arena, name, path = Arena(cluster), "much-master-0", "/api/v1/jobs/default/pytorchjob/much/logs"
    arena.submit("pytorch", "much")
    arena.until_obeys(name)
    with (
        running(
            "console", f"--kubeconfig={cluster.kubeconfig}", log=tmp_path / "console.log"
        ) as server,
        arena.started("logs", "-f", "much") as following,
        urllib.request.urlopen(
            f"{server.url}{path}?pod={name}&follow=true", timeout=SECONDS
        ) as streamed,
    ):
        assert following.stdout is not None
        pages = (following.stdout, streamed)
        assert [page.readline() for page in pages] == [f"I am {name}\n".encode()] * 2
        arena.order(name, "count", "4000")
        for page in pages:
            read: list[bytes] = []
            try:
                read.extend(page.readline() for _ in range(4000))
            except TimeoutError as error:
                stored = arena.kubectl("logs", name).splitlines()
                raise AssertionError(
                    f"{len(read)} lines came, the last {read[-3:]}; the kubelet has {len(stored)}, "
                    f"from {stored[:2]} to {stored[-2:]}"
                ) from error
            assert [int(line) for line in read] == list(range(1, 4001))
        wait_until(
            "the kubelet has begun the log anew",
            lambda: "\n4000\n" not in arena.kubectl("logs", name),
            SECONDS,
        )
        arena.order(name, "print", "begun", "anew")
        assert [page.readline() for page in pages] == [b"begun anew\n"] * 2
        assert (
            arena.shown("logs", "much")
            == server.get(f"{path}?pod={name}").decode()
            == arena.kubectl("logs", name)
        )
