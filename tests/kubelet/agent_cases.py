"""Cases of the node's agent on a real kubelet, both with a runtime that supports CDI (deferred
mode) and with one that does not (guarded mode).

`tests/cdi` runs these cases on containerd 2. `tests/kubelet` runs those in which the two modes
differ on Debian's containerd 1.6, and with `AGENT_CASES=all` all of them. Each begins and ends
without pods.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kube.kubelet import NODE, kubelet_folder
from tests.kube.node_images import SAYS
from tests.kube.node_room import NODE_ADDRESS, end_one
from tests.kubelet.agent import CORE, MEMORY, SECONDS, WHOLE, Agent, Line, container, shared
from tests.kubelet.seen_everywhere import seen_everywhere
from tests.waiting import wait_until

Object = dict[str, Any]
SHOWS = f"{SAYS}; sleep 1000000"
DASHES = "-" * (3 * len("notebook-0\tdefault\t4\t\n") + 10)
INSPECTED = f"""\
NAME:       {NODE}
IPADDRESS:  {NODE_ADDRESS}

NAME         NAMESPACE  GPU0(Allocated)
notebook-0   default    4
notebook-1   default    4
notebook-2   default    4
Allocated :  12 (85%)
Total :      14
{DASHES}

Allocated/Total GPU Memory In Cluster:  12/14 (85%)
"""
"""docs/spec/gpu-sharing.md#inspect, from its text."""


# --- the oracle: docs/spec/gpu-sharing.md#units-and-the-proportional-grant,
# docs/spec/gpu-sharing.md#pod-annotations-labels-and-environment,
# docs/spec/gpu-sharing.md#allocation-of-the-right-container,
# docs/spec/gpu-sharing.md#what-the-container-gets, from its text
# -----------------------------------------------------------------


def agrees(line: Line, *pods: str) -> None:
    """Annotation = checkpoint = grants file = the container's own files, for each container with
    shared memory of these pods.
    """
    cards = {card["uuid"]: card for card in line.cards()}
    rows = line.agent.grants()
    for name in pods:
        pod = line.pod(name)
        placed = json.loads(pod["metadata"]["annotations"]["fairlead.io/gpu-allocation"])
        for part in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            units = int(part["resources"].get("limits", {}).get(MEMORY, 0))
            if not units:
                continue
            grants = placed[part["name"]]
            assert sum(grant["units"] for grant in grants) == units
            own = [
                row
                for row in rows
                if (row["podUID"], row["container"]) == (pod["metadata"]["uid"], part["name"])
            ]
            reported = sorted(
                (row["uuid"], row["index"], row["units"], row["mib"], row["core"]) for row in own
            )
            assert reported == sorted(
                (grant["uuid"], grant["index"], grant["units"], grant["mib"], grant["core"])
                for grant in grants
            )
            (ids,) = [
                [each for devices in entry["DeviceIDs"].values() for each in devices]
                for entry in line.agent.checkpoint()
                if (entry["PodUID"], entry["ContainerName"], entry["ResourceName"])
                == (pod["metadata"]["uid"], part["name"], MEMORY)
            ]
            assert len(ids) == units
            assert {row["token"] for row in own} == {
                hashlib.sha256("\n".join((MEMORY, *sorted(ids))).encode()).hexdigest()[:16]
            }
            inside = line.printed(name, part["name"])
            uuids = [grant["uuid"] for grant in sorted(grants, key=lambda grant: grant["index"])]
            assert f"NVIDIA_VISIBLE_DEVICES={','.join(uuids)}" in inside, (name, inside, grants)
            for grant in grants:
                card = cards[grant["uuid"]]
                assert grant["mib"] <= card["memoryMiB"] * grant["units"] // card["units"]
                limit = (
                    f"gpu {grant['uuid']} limit_bytes {grant['mib'] << 20} core_percent "
                    f"{grant['core']} context_bytes 0"
                )
                assert limit in inside, (name, inside, grants)
            assert "region" in inside


# --- cases ----------------------------------------------------------------------------------------


def document_003(line: Line) -> None:
    """From the label to three containers with 4308 MiB each, and a fourth that waits; then to the
    boards, and back.
    """
    wait_until("whole cards first", lambda: line.shown(WHOLE) == ("1", "1"), SECONDS)
    began = time.monotonic()
    line.label(cgpu="true")
    wait_until(
        "then their memory",
        lambda: (line.shown(WHOLE), line.shown(MEMORY)) == (("0", "0"), ("14", "14")),
        SECONDS,
    )
    assert time.monotonic() - began < 60, "an idle node changes within seconds"
    wait_until("and their count", lambda: line.shown("aliyun.com/gpu-count") == ("1", "1"), SECONDS)
    names = [f"notebook-{number}" for number in range(3)]
    line.create(*(shared(name, container("app", 4, SHOWS)) for name in names))
    line.runs(*names)
    line.create(shared("notebook-3", container("app", 4, SHOWS)))
    (card,) = line.cards()
    assert (card["model"], card["memoryMiB"], card["units"], card["mode"], card["health"]) == (
        "Tesla T4",
        15079,
        14,
        "shared",
        "Healthy",
    )
    for name in names:
        assert [
            text
            for text in line.printed(name)
            if not re.match(
                (
                    r"region "
                    r"\d|end"
                ),
                text,
            )
        ] == four_units_of_a_pod(card["uuid"], 14, 4308 * 1024 * 1024)
        wait_until(
            f"{name} is marked",
            lambda name=name: line.annotation(name, "ALIYUN_COM_GPU_MEM_ASSIGNED") == "true",
            SECONDS,
        )
        assert line.annotation(name, "scheduler.framework.gpushare.assigned") == "true"
        at, assumed = (
            int(line.annotation(name, f"ALIYUN_COM_GPU_MEM_{which}_TIME"))
            for which in ("ASSIGN", "ASSUME")
        )
        assert at >= assumed
    agrees(line, *names)
    assert line.inspected("-d") == INSPECTED
    need = "need 4 GiB, largest free 2 GiB"
    wait_until(
        "the fourth shows why it waits",
        lambda: any(need in each for each in line.events("notebook-3")),
        SECONDS,
    )
    seen_everywhere(line, card["uuid"], names)
    line.remove_all()
    wait_until("rows go with their pods", lambda: not line.agent.grants(), SECONDS)
    wait_until("and files", lambda: not line.agent.tokens(), SECONDS)


def many_shapes(line: Line) -> None:
    """Two containers of other sizes, an init container and a sidecar, core percent, a limit below
    the units.
    """
    line.label(cgpu=None, **{"ack.node.gpu.schedule": "core_mem"})
    wait_until("core percent too", lambda: line.shown(CORE) == ("200", "200"), SECONDS)
    init = [container("prepare", 4, SAYS), container("beside", 1, SHOWS, restartPolicy="Always")]
    line.create(
        shared("two", container("app", 2, SHOWS), container("other", 3, SHOWS)),
        shared("parts", container("app", 5, SHOWS), init=init),
        shared("cores", container("app", 6, SHOWS, core=30)),
        shared(
            "less",
            container("app", 7, SHOWS),
            annotations={"fairlead.io/gpu-mem-limit-mib": '{"app":3500}'},
        ),
    )
    line.runs("two", "parts", "cores", "less")
    agrees(line, "two", "parts", "cores", "less")
    (grant,) = json.loads(line.annotation("less", "fairlead.io/gpu-allocation"))["app"]
    assert grant["mib"] == 3500
    line.remove_all()
    line.label(**{"ack.node.gpu.schedule": None, "cgpu": "true"})
    wait_until("no core percent", lambda: line.shown(CORE)[1] == "0", SECONDS)


def equal_pods_at_once(line: Line) -> None:
    """Pods of one size on both cards, all bound as fast as possible: each has the card of its own
    placement (AGENT_ROUNDS: how often).
    """
    for _ in range(int(os.environ.get("AGENT_ROUNDS", "1"))):
        names = [f"equal-{number}" for number in range(8)]
        line.create(*(shared(name, container("app", 3, SHOWS)) for name in names))
        line.runs(*names)
        agrees(line, *names)
        placed = [
            json.loads(line.annotation(name, "fairlead.io/gpu-allocation"))["app"][0]["uuid"]
            for name in names
        ]
        assert sorted(placed.count(uuid) for uuid in set(placed)) == [4, 4]
        line.remove_all()
        wait_until("rows go with their pods", lambda: not line.agent.grants(), SECONDS)


def equal_ids(line: Line) -> None:
    """Init and app containers of one size have the same ids. The file belongs to the container that
    starts, and the smaller limit applies to both.
    """
    line.create(shared("same", container("app", 4, SHOWS), init=[container("prepare", 4, SAYS)]))
    line.runs("same")
    agrees(line, "same")
    assert line.region("same", "prepare") != line.region("same", "app"), (
        "a fresh one at every start"
    )
    line.remove_all()


def crash_loop(line: Line) -> None:
    """The container keeps its card at every start, with a fresh region."""
    line.create(
        shared("crashes", container("app", 4, f"{SAYS}; sleep 1; exit 1")),
        shared("beside", container("app", 3, SHOWS)),
    )
    line.runs("beside")
    seen: set[str] = set()

    def starts() -> int:
        status = line.pod("crashes")["status"].get("containerStatuses", [{}])[0]
        if status.get("state", {}).get("running"):
            line.printed("crashes")
            agrees(line, "crashes")
            seen.add(line.region("crashes", "app"))
        return int(status.get("restartCount", 0))

    wait_until(
        lambda: f"it was started twice again\n{line.reported('crashes')}",
        lambda: starts() >= 2 and len(seen) >= 2,
        SECONDS,
    )
    assert line.restarts("beside") == 0
    line.remove_all()


def kubelet_starts_anew(line: Line) -> None:
    """A pod whose init container had devices keeps running: the agent is back before the pod is
    admitted again.
    """
    line.create(shared("keeper", container("app", 4, SHOWS), init=[container("prepare", 2, SAYS)]))
    line.runs("keeper")
    line.printed("keeper")
    before = lives(line, "keeper")
    for _ in range(2):
        before_it = line.agent.times_registered()
        end_one(line.kubelet)
        line.kubelet.start()
        wait_until(
            "it is reported again",
            lambda before_it=before_it: line.agent.times_registered() > before_it,
            SECONDS,
        )
        wait_until(
            "the node shows its memory again",
            lambda: line.is_ready() and line.shown(MEMORY) == ("28", "28"),
            SECONDS,
        )
    time.sleep(3)  # a kubelet that ends a pod does so right after it has admitted it again
    assert line.phase("keeper") == "Running", line.reported("keeper")
    assert lives(line, "keeper") == before
    agrees(line, "keeper")
    line.remove_all()


def agent_starts_anew(line: Line) -> None:
    """Containers keep running, also when the grants file is damaged: its rows are restored. A
    container that is started meanwhile waits.
    """
    before = keeper_and_falls(line)
    line.agent.kill()
    (line.agent.state / "grants.json").write_text("garbage", encoding="utf-8")
    began = time.monotonic()
    line.agent.start()
    wait_until("the node shows its memory", lambda: line.shown(MEMORY) == ("28", "28"), SECONDS)
    took = time.monotonic() - began
    falls_again(line, line.restarts("falls"))
    wait_until(
        "the row is there",
        lambda: "keeper" in {row["pod"] for row in line.agent.grants()},
        SECONDS,
    )
    assert lives(line, "keeper") == before
    agrees(line, "keeper", "falls")
    assert took < 60
    line.remove_all()


def sockets_are_taken_away(line: Line) -> None:
    folder = kubelet_folder(line.cluster) / "device-plugins"
    for name in ("fairlead-gpu-mem.sock", "fairlead-gpu-core.sock", "fairlead-gpu.sock"):
        (folder / name).unlink()
    wait_until("they are back", lambda: (folder / "fairlead-gpu-mem.sock").exists(), SECONDS)
    line.create(shared("later", container("app", 4, SHOWS)))
    line.runs("later")
    agrees(line, "later")
    line.remove_all()


def two_agents(line: Line) -> None:
    """The second agent waits, and takes over when the first is gone."""
    second = Agent(line.cluster, line.kubelet, "2xTesla-T4", line.agent.flags, name="second-agent")
    second.component.start()
    try:
        wait_until(
            "it shows why it waits",
            lambda: "another agent of this node" in second.readiness(),
            SECONDS,
        )
        line.create(shared("first", container("app", 4, SHOWS)))
        line.runs("first")
        line.agent.kill()
        wait_until("the second has taken over", lambda: second.readiness() == "ok\n", SECONDS)
        line.create(shared("next", container("app", 4, SHOWS)))
        line.runs("next")
        agrees(line, "first", "next")
    finally:
        second.stop()
        line.remove_all()
        line.agent.start()


def ids_are_given_again(line: Line) -> None:
    """The ids go to a new pod while the object of their former pod still exists: its files are not
    the new pod's, and cleaning removes nothing that is in use.
    """
    line.create(
        shared(
            "done",
            container("app", 14, f"{SAYS}; sleep 3"),
            restart="Never",
            finalizers=["fairlead.test/keep"],
        )
    )
    try:
        line.runs("done")
        agrees(line, "done")
        (token,) = line.agent.tokens()
        wait_until(
            lambda: f"done is over\n{line.reported('done')}",
            lambda: line.phase("done") == "Succeeded",
            SECONDS,
        )
        line.create(shared("heir", container("app", 14, SHOWS)))
        line.runs("heir")
        assert line.agent.tokens() == [token], "else this is no test"
        agrees(line, "heir")
        wait_until(
            "the row of the first is gone",
            lambda: {row["pod"] for row in line.agent.grants()} == {"heir"},
            SECONDS,
        )
    finally:
        line.cluster.admin.run(
            "patch",
            "pod",
            "done",
            "-n",
            "default",
            "--type=merge",
            '-p={"metadata":{"finalizers":null}}',
        )
    line.delete("done")
    time.sleep(2)  # a wrong cleaning would have happened by now
    agrees(line, "heir")
    line.remove_all()


def modes_never_overlap(line: Line) -> None:
    """cgpu=false under a shared pod, then cgpu=true under a whole one: the card drains, and changes
    its mode when its holder is gone.
    """
    line.create(shared("shares", container("app", 4, SHOWS)))
    line.runs("shares")
    (uuid,) = [
        grant["uuid"]
        for grant in json.loads(line.annotation("shares", "fairlead.io/gpu-allocation"))["app"]
    ]
    line.label(cgpu="false")
    wait_until("the other card is whole", lambda: line.shown(WHOLE) == ("1", "1"), SECONDS)
    wait_until("its ids are not given away", lambda: line.shown(MEMORY) == ("14", "0"), SECONDS)
    wait_until("it drains", lambda: line.modes()[uuid] == "draining", SECONDS)
    line.create(plain("takes", container("app", 0, "env | grep NVIDIA; sleep 1000000", whole=1)))
    line.runs("takes")
    wait_until("it prints its card", lambda: "NVIDIA_VISIBLE" in line.log("takes"), SECONDS)
    assert uuid not in line.log("takes")
    began = time.monotonic()
    line.delete("shares")
    wait_until("both are whole", lambda: line.shown(WHOLE) == ("2", "2"), SECONDS)
    joined = time.monotonic() - began
    line.label(cgpu="true")
    wait_until(
        "the whole one drains",
        lambda: sorted(line.modes().values()) == ["draining", "shared"],
        SECONDS,
    )
    wait_until(
        "and its card is not given away",
        lambda: (line.shown(WHOLE), line.shown(MEMORY)) == (("1", "0"), ("14", "14")),
        SECONDS,
    )
    line.delete("takes")
    wait_until(
        "all memory is there",
        lambda: (line.shown(WHOLE), line.shown(MEMORY)) == (("0", "0"), ("28", "28")),
        SECONDS,
    )
    assert joined < 60, "a card joins within ten seconds of its last holder"


def exporter_names_the_pods(line: Line) -> None:
    """The page of the node's exporter shows which pod has which card, within ten seconds, and no
    longer when the pods are gone.
    """
    csv = {"metrics": "DCGM_FI_DEV_GPU_TEMP, gauge, Set by a ConfigMap."}
    meta = {"name": "counters", "namespace": "default"}
    line.cluster.admin.create(
        [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": csv}]
    )
    asked = (
        "-m=default:counters",
        "-kubernetes",
        "-kubernetes-virtual-gpus",
        "-kubernetes-enable-pod-labels",
        "-kubernetes-enable-pod-uid",
    )
    with line.exporter(f"--kubeconfig={line.cluster.kubeconfig}", *asked) as exporter:
        wait_until(
            "the ConfigMap's counter is there",
            lambda: exporter.metrics().has("DCGM_FI_DEV_GPU_TEMP"),
            SECONDS,
        )
        assert not exporter.metrics().has("DCGM_FI_DEV_SM_CLOCK"), "and no other"
        line.create(shared("seen", container("app", 4, SHOWS)))
        line.runs("seen")
        (grant,) = json.loads(line.annotation("seen", "fairlead.io/gpu-allocation"))["app"]
        limit = "fairlead_container_gpu_memory_limit_bytes"
        wait_until(
            lambda: f"it is named\n{exporter.component.log_tail()}",
            lambda: exporter.metrics().has(limit),
            SECONDS,
        )
        labels = exporter.metrics().labels(limit, pod_name="seen")
        assert (labels["uuid"], labels["container_name"], labels["allocate_mode"]) == (
            grant["uuid"],
            "app",
            "share",
        )
        assert exporter.metrics().value(limit, pod_name="seen") == grant["mib"] << 20
        assert exporter.metrics().value("fairlead_exporter_pod_map_containers") == 1
        own = exporter.metrics().labels("DCGM_FI_DEV_GPU_TEMP", pod="seen")
        assert (own["fairlead_test"], own["pod_uid"]) == (
            "node-agent",
            line.pod("seen")["metadata"]["uid"],
        )
        line.remove_all()
        wait_until("it is not named any more", lambda: not exporter.metrics().has(limit), SECONDS)
        assert exporter.metrics().has("fairlead_gpu_memory_total_bytes"), "a device's series stay"


def operator_takes_a_card_out(line: Line) -> None:
    meta = {"name": f"unhealthy-gpu-{NODE}", "namespace": "kube-system"}
    line.cluster.admin.create(
        [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"gpus": "1"}}]
    )
    wait_until("half is left", lambda: line.shown(MEMORY) == ("28", "14"), SECONDS)
    (ill,) = [card for card in line.cards() if card["health"] != "Healthy"]
    assert (ill["index"], ill["reason"]) == (1, "taken out by an operator")
    line.cluster.admin.run("delete", "configmap", meta["name"], "-n", meta["namespace"])
    wait_until("all is there again", lambda: line.shown(MEMORY) == ("28", "28"), SECONDS)


def bad_placements(line: Line) -> None:
    """The messages that a pod's owner reads."""
    uuid = next(card["uuid"] for card in line.cards() if card["index"] == 0)
    right = [{"uuid": uuid, "index": 0, "units": 4, "mib": 4308, "core": 0}]
    wrong: dict[str, tuple[list[Object] | None, str]] = {
        "above": (
            [{**right[0], "mib": 9000}],
            f"placement grants 9000 MiB, 4 units of GPU {uuid} are 4308 MiB",
        ),
        "index": (
            [{**right[0], "index": 1}],
            f"placement names GPU {uuid} as GPU 1, on this node it is GPU 0",
        ),
        "foreign": (
            [{**right[0], "uuid": "GPU-none"}],
            "placement names GPU GPU-none, which is not on this node",
        ),
    }
    line.each_refused(
        {
            name: (
                plain(name, container("app", 4, SHOWS), annotations=placed(grants), nodeName=NODE),
                reported,
            )
            for name, (grants, reported) in wrong.items()
        }
    )
    line.remove_all()


def foreign_plugin(line: Line) -> None:
    """NVIDIA's plugin on the node: the agent hands out nothing, and reports why."""
    path = kubelet_folder(line.cluster) / "device-plugins" / "nvidia-gpu.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(short(path))
        time.sleep(1)  # no process listens yet: a dead plugin's old socket changes nothing
        assert line.shown(MEMORY) == ("28", "28")
        listening.listen()
        wait_until("no memory is given away", lambda: line.shown(MEMORY)[1] == "0", SECONDS)
        wait_until(
            "it is reported",
            lambda: line.condition("GPUShareReady") == ("False", "ForeignDevicePlugin"),
            SECONDS,
        )
    path.unlink()
    wait_until("memory is there again", lambda: line.shown(MEMORY) == ("28", "28"), SECONDS)
    wait_until(
        "it is reported, too",
        lambda: line.condition("GPUShareReady") == ("True", "Serving"),
        SECONDS,
    )


# --- the order in which both folders run the cases ------------------------------------------------


def one_card_first(line: Line, identity: str) -> None:
    """The agent finds out what the runtime supports, and document 003 runs on one card."""

    def reported() -> str | None:
        annotations: dict[str, str] = line.node()["metadata"].get("annotations", {})
        return annotations.get("fairlead.io/gpu-identity")

    wait_until(f"it is found out to be {identity}", lambda: reported() == identity, SECONDS)
    document_003(line)


def then_two_cards(line: Line) -> Line:
    """The node with two cards, shared."""
    line.use("2xTesla-T4")
    line.label(cgpu="true")
    wait_until("the node shows both", lambda: line.shown(MEMORY) == ("28", "28"), SECONDS)
    return line


# --- helpers --------------------------------------------------------------------------------------


def four_units_of_a_pod(uuid: str, card_units: int, limit_bytes: int) -> list[str]:
    """What the one container of a pod with four units of GPU 0 has inside.

    See docs/spec/gpu-sharing.md#pod-annotations-labels-and-environment,
    docs/spec/gpu-sharing.md#limits-file-and-region, from its text.
    """
    return [
        "ALIYUN_COM_GPU_MEM_CONTAINER=4",
        f"ALIYUN_COM_GPU_MEM_DEV={card_units}",
        "ALIYUN_COM_GPU_MEM_IDX=0",
        "ALIYUN_COM_GPU_MEM_POD=4",
        "ALIYUN_COM_GPU_VISIBLE_DEVICES=0",
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        f"NVIDIA_VISIBLE_DEVICES={uuid}",
        "version 1",
        f"gpu {uuid} limit_bytes {limit_bytes} core_percent 0 context_bytes 0",
        "region /run/fairlead/gpu/region",
        "region",
    ]


def keeper_and_falls(line: Line) -> list[tuple[str, int, Object]]:
    """A pod that keeps running and one that crashes again and again, both started; returns the
    `lives` of the first.
    """
    line.create(
        shared("keeper", container("app", 4, SHOWS)),
        shared("falls", container("app", 3, f"{SAYS}; sleep 4; exit 1")),
    )
    line.runs("keeper")
    wait_until("falls has begun", lambda: line.log("falls"), SECONDS)
    return lives(line, "keeper")


def falls_again(line: Line, count: int) -> None:
    """Wait until the crashing container has been restarted more than `count` times."""
    wait_until(
        lambda: f"falls is started again\n{line.reported('falls')}",
        lambda: line.restarts("falls") > count,
        SECONDS,
    )


def lives(line: Line, name: str) -> list[tuple[str, int, Object]]:
    """For each container: its id, its number of restarts, and its state with the time of it."""
    return [
        (each["containerID"], each["restartCount"], each["state"])
        for each in line.pod(name)["status"]["containerStatuses"]
    ]


def plain(name: str, *containers: Object, nodeName: str = "", **metadata: Any) -> Object:
    """A pod for the default scheduler, or for none."""
    made = shared(name, *containers, **metadata)
    del made["spec"]["schedulerName"]
    return {**made, "spec": {**made["spec"], **({"nodeName": nodeName} if nodeName else {})}}


def placed(grants: list[Object] | None) -> dict[str, str]:
    return (
        {}
        if grants is None
        else {
            "fairlead.io/gpu-allocation": json.dumps({"app": grants}),
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
        }
    )


def short(path: Path) -> str:
    """A socket's path may have 107 characters, so the socket is reached through the folder's
    descriptor.
    """
    return f"/proc/self/fd/{os.open(path.parent, os.O_RDONLY)}/{path.name}"


Case = Callable[[Line], None]
CASES: tuple[Case, ...] = (
    equal_pods_at_once,
    many_shapes,
    equal_ids,
    crash_loop,
    kubelet_starts_anew,
    agent_starts_anew,
    sockets_are_taken_away,
    two_agents,
    ids_are_given_again,
    modes_never_overlap,
    exporter_names_the_pods,
    operator_takes_a_card_out,
    bad_placements,
    foreign_plugin,
)
GUARDED: tuple[Case, ...] = (
    equal_pods_at_once,
    many_shapes,
    equal_ids,
    crash_loop,
    kubelet_starts_anew,
    ids_are_given_again,
)
