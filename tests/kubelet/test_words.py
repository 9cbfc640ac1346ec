"""Pods that wait, crash and die on a real node: `arena get` prints kubectl's words, `--explain` the
reason, and `logs` the available lines.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kube.node_images import BUSYBOX
from tests.kubelet.jobs import OBEYS, SECONDS, Arena, pytorchjob, status_of, waiting_container
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 0)

ABSENT = "fairlead.test/absent:1"


@pytest.fixture
def arena(cluster: ControlPlane) -> Arena:
    return Arena(cluster)


def until_both_say(arena: Arena, job: str, word: str) -> None:
    """Wait until `arena get` and kubectl, run one after the other, show this status of the job's
    only pod.
    """
    pod = f"{job}-master-0"
    message = ("", "")

    def do_both() -> bool:
        nonlocal message
        message = (
            status_of(arena.shown("get", job), pod),
            status_of(arena.kubectl("get", "pods", "--no-headers"), pod),
        )
        return message == (word, word)

    try:
        wait_until(f"{pod} is {word} to arena and kubectl", do_both, SECONDS)
    except TimeoutError as error:
        raise TimeoutError(
            f"{error}; arena and kubectl print {message}\n{arena.kubectl('get', 'pods,events')}"
        ) from error


def test_a_container_that_crashes_again_and_again(arena: Arena) -> None:
    arena.submit(
        "pytorch",
        "crash",
        "--restart-policy=OnFailure",
        "--retry=50",
        program_text="echo last words; exit 3",
    )
    until_both_say(arena, "crash", "CrashLoopBackOff")
    wait_until(
        "`--explain` reports the pause",
        lambda: "back-off" in arena.shown("get", "crash", "--explain"),
        SECONDS,
    )
    wait_until(
        "its last words are shown",
        lambda: arena.run("logs", "crash").stdout == "last words\n",
        SECONDS,
    )
    arena.shown("delete", "crash")


def test_a_pod_in_init_shows_the_container_that_fetches_the_code(arena: Arena) -> None:
    """And when that container has ended, the program's own container."""
    fetching = waiting_container("init-code") | {"command": ["sh", "-c", OBEYS]}
    arena.cluster.admin.create(
        [
            pytorchjob(
                "fetch",
                {"initContainers": [fetching], "containers": [waiting_container("pytorch")]},
            )
        ]
    )
    until_both_say(arena, "fetch", "Init:0/1")
    wait_until("it obeys", lambda: "I am" in arena.run("logs", "fetch").stdout, SECONDS)
    assert (
        arena.shown("logs", "fetch")
        == arena.kubectl("logs", "fetch-master-0", "-c", "init-code")
        == "I am fetch-master-0\n"
    )
    waiting = arena.run("logs", "fetch", "-c", "pytorch")
    assert (waiting.returncode, waiting.stdout) == (1, "") and (
        "container pytorch of pod fetch-master-0 has not begun"
    ) in waiting.stderr
    outside = arena.run("attach", "fetch", "-c", "pytorch")
    assert (
        outside.returncode != 0
        and "container not found" in outside.stderr
        and "1.30" not in outside.stderr
    )
    inside = arena.run("attach", "fetch", "--", "sh", "-c", "echo $NAME; echo end 0 > /tmp/orders")
    assert (inside.returncode, inside.stdout) == (0, "init-code\n")
    until_both_say(arena, "fetch", "Running")
    wait_until(
        "the program has begun",
        lambda: arena.run("logs", "fetch").stdout == "from pytorch\n",
        SECONDS,
    )


def test_an_init_container_that_fails(arena: Arena) -> None:
    failing = waiting_container("init-code") | {"command": ["sh", "-c", "echo no network; exit 7"]}
    arena.cluster.admin.create(
        [
            pytorchjob(
                "nofetch",
                {"initContainers": [failing], "containers": [waiting_container("pytorch")]},
            )
        ]
    )
    until_both_say(arena, "nofetch", "Init:Error")
    wait_until(
        "it prints the reason",
        lambda: arena.run("logs", "nofetch").stdout == "no network\n",
        SECONDS,
    )


def test_an_image_that_is_absent_and_may_not_be_pulled(arena: Arena) -> None:
    arena.shown(
        "submit",
        "pytorch",
        "--name=noimage",
        f"--image={ABSENT}",
        "--image-pull-policy=Never",
        "true",
    )
    until_both_say(arena, "noimage", "ErrImageNeverPull")
    assert (f'Container image "{ABSENT}" is not present with pull policy of Never') in arena.shown(
        "get", "noimage", "--explain"
    )
    waiting = arena.run("logs", "noimage")
    assert (waiting.returncode, waiting.stdout) == (1, "") and (
        "is not present with pull policy of Never"
    ) in waiting.stderr


def test_a_program_that_is_absent(arena: Arena) -> None:
    """The kubelet reports a start in 1970."""
    arena.cluster.admin.create(
        [
            pytorchjob(
                "noprogram",
                {"containers": [waiting_container("pytorch") | {"command": ["/nothing"]}]},
            )
        ]
    )
    until_both_say(arena, "noprogram", "StartError")
    line = next(
        line
        for line in arena.shown("get", "noprogram").splitlines()
        if "noprogram-master-0" in line
    )
    assert line.split()[2].endswith("s"), line


@pytest.mark.parametrize(
    ("name", "flags", "program", "word", "code"),
    [
        ("oom", ("--memory=20Mi",), "x=0123456789; while :; do x=$x$x; done", "OOMKilled", 137),
        ("fails", (), "echo before; exit 3", "Error", 3),
        ("ends", (), "echo before", "Completed", 0),
    ],
)
def test_how_a_program_ended(
    arena: Arena, name: str, flags: tuple[str, ...], program: str, word: str, code: int
) -> None:
    pod = {"containers": [container_of(program, flags)]}
    arena.cluster.admin.create([pytorchjob(name, pod)])
    until_both_say(arena, name, word)
    wait_until(
        "its pod has ended",
        lambda: arena.phase(f"{name}-master-0") in ("Succeeded", "Failed"),
        SECONDS,
    )
    ended = arena.pod(f"{name}-master-0")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == (word, code)
    assert arena.shown("logs", "-f", name) == arena.kubectl("logs", f"{name}-master-0")


def container_of(program: str, flags: tuple[str, ...]) -> dict[str, Any]:
    limits = {flag.removeprefix("--").partition("=")[0]: flag.partition("=")[2] for flag in flags}
    return {
        "name": "pytorch",
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", program],
        "resources": {"limits": limits},
    }
