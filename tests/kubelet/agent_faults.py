"""Cases of the node's agent on a real kubelet when other parts fail (runtime, checkpoint, rights,
disk) and when the agent itself dies at any moment.

A pod whose allocation is refused has failed for good. Its controller would make another one; here a
case does. Each case begins and ends with two shared cards and no pod.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from tests.kube.deployed import rights_of_agents
from tests.kube.kubelet import kubelet_folder
from tests.kube.node_room import end_one
from tests.kubelet.agent import MEMORY, SECONDS, WHOLE, Line, container, shared
from tests.kubelet.agent_cases import SHOWS, agrees, falls_again, keeper_and_falls, lives, plain
from tests.waiting import wait_until

Object = dict[str, Any]
KILL_TRIES = 5
CLAIMS = "claims"
"""A folder of the node with one folder for each card. A container has a file there while it runs:
of two that are on one card at once, at least one sees both files.
"""


def several_cards(line: Line) -> None:
    """A share of two cards, and containers of one pod on different cards."""
    apart = {"fairlead.io/gpu-split": "per-container"}
    line.create(
        shared("wide", container("app", 6, SHOWS), labels={"aliyun.com/gpu-count": "2"}),
        shared(
            "apart", container("app", 11, SHOWS), container("other", 10, SHOWS), annotations=apart
        ),
    )
    line.runs("wide", "apart")
    agrees(line, "wide", "apart")
    assert [grant["units"] for grant in grants(line, "wide", "app")] == [3, 3]
    (one,), (other,) = grants(line, "apart", "app"), grants(line, "apart", "other")
    assert one["uuid"] != other["uuid"]
    line.remove_all()


def killed_while_pods_start(line: Line) -> None:
    """`kill -9` as soon as one container, two, … have files: all start in the end, each on its own
    card (AGENT_KILLS: how often).

    On a busy machine a kill may come before any answer has reached the kubelet. Then it is tried
    again.
    """
    for number in range(int(os.environ.get("AGENT_KILLS", "3"))):
        is_amid = any(_killed_amid(line, number) for _ in range(KILL_TRIES))
        assert is_amid, f"no kill of {KILL_TRIES} came amid starts"


def _killed_amid(line: Line, number: int) -> bool:
    """Whether some pods had started when the agent was killed with more than `number` files."""
    names = [f"starts-{each}" for each in range(6)]
    line.create(*(shared(name, container("app", 4, SHOWS)) for name in names))
    wait_until(
        "some have files",
        lambda: len(line.agent.tokens()) > number % 6,
        SECONDS,
        pause_seconds=0.005,
    )
    line.agent.kill()
    line.agent.start()
    again = all_settle(line, names)
    agrees(line, *(name for name in names if name not in again))
    line.remove_all()
    wait_until("rows go with their pods", lambda: not line.agent.grants(), SECONDS)
    wait_until("and files", lambda: not line.agent.tokens(), SECONDS)
    return len(again) < len(names)


def frozen_while_pods_start(line: Line) -> None:
    """SIGSTOP when one container has files: no container starts without an answer, and all start
    when the agent goes on.
    """
    names = [f"frozen-{each}" for each in range(4)]
    line.create(*(shared(name, container("app", 4, SHOWS)) for name in names))
    wait_until("one has files", line.agent.tokens, SECONDS, pause_seconds=0.005)
    line.agent.freeze()
    try:
        wait_until("all are bound", lambda: all(is_bound(line, name) for name in names), SECONDS)
        line.create(plain("other", container("app", 0, SHOWS)))
        line.runs("other")  # the kubelet goes on with pods without GPUs
        answered = {row["pod"] for row in line.agent.grants()}  # files are written before the row
        assert {name for name in names if line.phase(name) == "Running"} <= answered
    finally:
        line.agent.thaw()
    all_settle(line, names)
    agrees(line, *names)
    line.remove_all()


def api_server_away(line: Line) -> None:
    """Containers outlive it, and one that crashed is started again with its grant."""
    before = keeper_and_falls(line)
    count = line.restarts("falls")
    line.cluster.components["kube-apiserver"].kill()
    started = line.agent.grants()
    line.cluster.start_component("kube-apiserver")
    falls_again(line, count)
    line.create(shared("later", container("app", 5, SHOWS)))
    line.runs("later")
    assert lives(line, "keeper") == before
    assert {row["pod"] for row in started} == {"keeper", "falls"}
    agrees(line, "keeper", "later", "falls")
    line.remove_all()


def deleted_before_they_start(line: Line) -> None:
    """Pods are deleted in the moment when they are bound, and others of the same size are created:
    no pod gets what was meant for a deleted one.
    """
    names = [f"first-{number}" for number in range(8)]
    heirs = [f"heir-{number}" for number in range(4)]
    line.create(*(shared(name, container("app", 3, SHOWS)) for name in names))
    wait_until(
        "all are bound",
        lambda: all(is_bound(line, name) for name in names),
        SECONDS,
        pause_seconds=0.02,
    )
    for name in names[:4]:
        line.delete(name)
    line.create(*(shared(name, container("app", 3, SHOWS)) for name in heirs))
    line.runs(*names[4:], *heirs)
    agrees(line, *names[4:], *heirs)
    living = {*names[4:], *heirs}
    wait_until(
        lambda: f"rows of the others go: {line.agent.grants()}",
        lambda: {row["pod"] for row in line.agent.grants()} == living,
        SECONDS,
    )
    wait_until(
        "their files, too",
        lambda: {row["token"] for row in line.agent.grants()} == set(line.agent.tokens()),
        SECONDS,
    )
    line.remove_all()


def runtime_starts_anew(line: Line) -> None:
    """Containers outlive the runtime, a crashed container is
    started again, and a new pod starts.
    """
    before = keeper_and_falls(line)
    count = line.restarts("falls")
    end_one(line.containerd)
    line.containerd.start()
    line.create(shared("later", container("app", 5, SHOWS)))
    line.runs("later")
    falls_again(line, count)
    assert lives(line, "keeper") == before
    agrees(line, "keeper", "later", "falls")
    line.remove_all()


def checkpoint_of_garbage(line: Line) -> None:
    """The agent uses the kubelet's other list instead; the kubelet writes a new checkpoint with the
    next pod.
    """
    keeper_and_falls(line)
    count = line.restarts("falls")
    (kubelet_folder(line.cluster) / "device-plugins" / "kubelet_internal_checkpoint").write_text(
        "garbage", encoding="utf-8"
    )
    falls_again(line, count)
    assert {row["pod"] for row in line.agent.grants()} == {"keeper", "falls"}
    line.create(shared("later", container("app", 5, SHOWS)))
    line.runs("later")
    agrees(line, "keeper", "later", "falls")
    line.remove_all()


def without_rights(line: Line) -> None:
    """The agent reports which right it lacks, leaves containers alone, and continues when it has
    the right.
    """
    line.create(shared("keeper", container("app", 4, SHOWS)))
    line.runs("keeper")
    before = lives(line, "keeper")
    line.agent.kill()
    (binding,) = [
        each["metadata"]["name"]
        for each in rights_of_agents()
        if each["kind"] == "ClusterRoleBinding"
    ]
    line.cluster.admin.run("delete", "clusterrolebinding", binding)
    try:
        line.agent.component.start()
        reported = lambda: line.agent.component.log_tail(60)  # noqa: E731 - asked often
        wait_until(
            lambda: f"it logs what it may not\n{reported()}",
            lambda: "forbidden" in reported().lower(),
            SECONDS,
        )
        wait_until("its probe, too", lambda: "not known yet" in line.agent.readiness(), SECONDS)
    finally:
        line.cluster.admin.apply(rights_of_agents())
    wait_until("it goes on", lambda: line.agent.readiness() == "ok\n", SECONDS)
    wait_until("memory is there", lambda: line.shown(MEMORY) == ("28", "28"), SECONDS)
    assert lives(line, "keeper") == before
    agrees(line, "keeper")
    line.remove_all()


def disk_that_cannot_be_written(line: Line) -> None:
    """The pod's owner reads why. A start is tried again and succeeds later; an allocation that was
    refused has failed for good.
    """
    folder = line.agent.state / "containers"
    folder.mkdir(exist_ok=True)
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.write_text("no folder", encoding="utf-8")
    try:
        line.create(shared("waits", container("app", 4, SHOWS)))
        wait_until(
            lambda: f"its owner gets the reason\n{line.reported('waits')}",
            lambda: any("cannot be written" in each for each in line.words("waits")),
            SECONDS,
        )
    finally:
        folder.unlink()
        aside.rename(folder)
    all_settle(line, ["waits"])
    agrees(line, "waits")
    line.remove_all()


def modes_change_under_load(line: Line) -> None:
    """`cgpu` is switched while pods of both modes come and go: no container with a whole card ever
    shares it (AGENT_SWITCHES).
    """
    switches = int(os.environ.get("AGENT_SWITCHES", "4"))
    for number in range(switches):
        is_shared = bool(number % 2)
        line.label(cgpu=str(is_shared).lower())
        names = [f"meets-{number}-{each}" for each in range(3)]
        line.create(
            *(
                meets(name, is_shared=is_shared, seconds=1 + each % 2)
                for each, name in enumerate(names)
            )
        )
        one_of = lambda names=names: any(line.phase(name) != "Pending" for name in names)  # noqa: E731 - asked often
        wait_until("one of the new mode runs", one_of, SECONDS)
    all_names = {
        f"meets-{number}-{each}": bool(number % 2)
        for number in range(switches)
        for each in range(3)
    }
    for is_shared in (False, True):
        line.label(cgpu=str(is_shared).lower())
        for name in (name for name, of in all_names.items() if of is is_shared):
            wait_until(
                lambda name=name: f"{name} has ended\n{line.reported(name)}",
                lambda name=name: is_over(line, name),
                SECONDS,
            )
    ended = {name: line.pod(name)["status"] for name in all_names}
    codes = {name: exit_code(status) for name, status in ended.items()}
    assert set(codes.values()) <= {0, None}, ended
    assert {is_shared for name, is_shared in all_names.items() if codes[name] == 0} == {
        False,
        True,
    }, "pods of both modes ran"
    wait_until(
        "all memory is there",
        lambda: (line.shown(WHOLE), line.shown(MEMORY)) == (("0", "0"), ("28", "28")),
        SECONDS,
    )
    line.remove_all()


# --- helpers --------------------------------------------------------------------------------------


def grants(line: Line, pod: str, of: str) -> list[Object]:
    return list(json.loads(line.annotation(pod, "fairlead.io/gpu-allocation"))[of])


def is_bound(line: Line, name: str) -> bool:
    return bool(line.pod(name)["spec"].get("nodeName"))


def is_over(line: Line, name: str) -> bool:
    return line.phase(name) in ("Succeeded", "Failed")


def exit_code(status: Object) -> int | None:
    """The exit code; None for a pod that never ran because the kubelet refused it."""
    ended = [
        each["state"]["terminated"]["exitCode"]
        for each in status.get("containerStatuses", ())
        if "terminated" in each["state"]
    ]
    return int(ended[0]) if ended else None


def all_settle(line: Line, names: Sequence[str]) -> set[str]:
    """Wait until all run. Returns those that were refused an allocation for good and were created
    again.
    """
    again: set[str] = set()
    for name in names:
        wait_until(
            lambda name=name: f"{name} settles\n{line.reported(name)}",
            lambda name=name: line.phase(name) != "Pending",
            SECONDS,
        )
        status = line.pod(name)["status"]
        if status["phase"] == "Failed":
            assert status["reason"] == "UnexpectedAdmissionError", status
            again.add(name)
            line.delete(name)
            line.create(shared(name, container("app", 4, SHOWS)))
    line.runs(*names)
    return again


def meets(name: str, *, is_shared: bool, seconds: int) -> Object:
    """A pod that ends with status 9 if another container that must not share its card is on it
    while it runs.
    """
    mine, strangers = (f"shared-{name}", "^whole-") if is_shared else (f"whole-{name}", ".")
    program = f"""cd /claims || exit 1
mkdir -p $NVIDIA_VISIBLE_DEVICES && cd $NVIDIA_VISIBLE_DEVICES && touch {mine} || exit 1
meets() {{ ls | grep -vx {mine} | grep '{strangers}'; }}
meets && code=9; sleep {seconds}; meets && code=9; rm {mine}; exit ${{code:-0}}"""
    part = container(
        "app",
        4 if is_shared else 0,
        program,
        whole=0 if is_shared else 1,
        volumeMounts=[{"name": CLAIMS, "mountPath": "/claims"}],
    )
    made = shared(name, part, restart="Never") if is_shared else plain(name, part, restart="Never")
    path = {"path": f"/var/lib/kubelet/{CLAIMS}", "type": "DirectoryOrCreate"}
    made["spec"]["volumes"] = [{"name": CLAIMS, "hostPath": path}]
    return made


FAULTS = (
    several_cards,
    killed_while_pods_start,
    frozen_while_pods_start,
    api_server_away,
    deleted_before_they_start,
    runtime_starts_anew,
    checkpoint_of_garbage,
    without_rights,
    disk_that_cannot_be_written,
    modes_change_under_load,
)
