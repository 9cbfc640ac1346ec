"""`fairlead why` and `fairlead place` on a small cluster: two cards of 15 GiB, holders of different
priority, one pod that waits.
"""

from __future__ import annotations

import io
import re
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml
from tests.cli.command import OneWorld, run_command
from tests.rules.sharing import container, node, placed, pod

from fairlead.errors import OutsideError, UserError
from fairlead.model.node import Condition, Node
from fairlead.model.node_choice import NodeChoice
from fairlead.model.pod import Container
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source, SourceState

REPORTED = Condition(
    "PodScheduled",
    "False",
    "Unschedulable",
    "0/2 nodes are available: 2 Insufficient aliyun.com/gpu-mem.",
)


@cache
def cluster() -> ClusterSnapshot:
    pods = [
        placed(
            pod("a", 8, priority=5, scheduler="fairlead-scheduler"),
            "gpu",
            {"main": [(0, 8)]},
            phase="Running",
        ),
        placed(pod("b", 6), "gpu", {"main": [(0, 6)]}, phase="Running"),
        placed(pod("c", 11), "gpu", {"main": [(1, 11)]}, phase="Running"),
        pod("plain", 0, phase="Pending"),
        pod(
            "nothing",
            containers=(Container("main", limits={"aliyun.com/gpu-mem": 0}),),
            node="gpu",
            phase="Running",
        ),
        pod("unplaced", 1, node="gpu"),
        pod("waits", 6, conditions=(REPORTED,), scheduler="fairlead-scheduler"),
        pod("small", 2, scheduler="fairlead-scheduler"),
        pod("uneven", 7, cards=2),
    ]
    return ClusterSnapshot(
        nodes=(Node("cpu"), node("gpu")), pods=tuple(sorted(pods, key=lambda each: each.key))
    )


def answer(line: str) -> str:
    return run_command(line, cluster(), "fairlead").out


def test_why_a_pod_waits() -> None:
    assert answer("why default/waits") == (
        "Pod:        default/waits\n"
        "Status:     Pending, priority 0, scheduler fairlead-scheduler\n"
        "Why:        needs 6 GiB on one GPU; the only node that shares GPUs, gpu, has 4 GiB "
        "left on one\n"
        "Message:    Unschedulable: 0/2 nodes are available: 2 Insufficient aliyun.com/gpu-mem.\n"
        "Needs:      6 GiB on one GPU\n"
        "Would fit:  on gpu without default/b (priority 0)\n"
        "\n"
        "NODE  LARGEST FREE  ANSWER\n"
        "cpu   -             node does not share GPUs (label cgpu=true missing)\n"
        "gpu   4 GiB         Insufficient aliyun.com/gpu-mem on one GPU: need 6 GiB, largest "
        "free 4 GiB\n"
    )


def test_what_a_person_wrote_wrong() -> None:
    text = answer("why uneven")
    assert "Needs:   gpu-mem 7 cannot be split over 2 GPUs\n" in text
    assert "Would fit" not in text


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (
            {"nvidia.com/gpu": 1, "aliyun.com/gpu-mem": 4},
            "asks for whole and shared GPUs; no node offers both",
        ),
        ({"aliyun.com/gpu-mem": 4 << 30}, "aliyun.com/gpu-mem counts GiB, not bytes: write 4"),
        (
            {"aliyun.com/gpu-mem": 4, "aliyun.com/gpu-core.percentage": 7},
            "gpu-core 7 is not a multiple of 5 from 5 to 100",
        ),
    ],
)
def test_limits_that_no_node_can_meet(limits: dict[str, int], why: str) -> None:
    """submit refuses them (`tests/cli/submit/test_submit_pod_faults.py`); another client may have
    created such a pod.
    """
    asker = pod(
        "wrong",
        containers=(Container("main", requests=limits, limits=limits),),
        conditions=(REPORTED,),
    )
    text = run_command(
        "why wrong", ClusterSnapshot(nodes=(node("gpu"),), pods=(asker,)), "fairlead"
    ).out
    (printed,) = (line for line in text.splitlines() if line.startswith("Why:"))
    assert why in printed
    assert "something else" not in text


def test_where_a_pod_sits() -> None:
    assert answer("why a -n default") == (
        "Pod:     default/a\n"
        "Status:  Running on gpu, priority 5, scheduler fairlead-scheduler\n"
        "Card:    GPU 0 GPU-gpu-0: container main has 8 of 15 GiB\n"
    )
    assert "Cards:   unknown: no annotation names them (it counts as PENDING)\n" in answer(
        "why unplaced"
    )


def test_without_a_namespace_the_pod_is_that_of_the_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(OneWorld, "namespace", lambda _: "team-one")
    with pytest.raises(UserError) as failure:
        answer("why a")
    assert failure.value.what == "pod `team-one/a` does not exist"


def test_a_user_without_the_right_to_all_pods_is_shown_another_command() -> None:
    """A researcher of docs/spec/people.md."""
    message = 'pods is forbidden: User "bob" cannot list resource "pods" at the cluster scope'
    source = Source("pods", SourceState.FORBIDDEN, message=message)
    seen = ClusterSnapshot(nodes=(node("gpu"),), sources={"pods": source})
    with pytest.raises(OutsideError) as failure:
        run_command("why first", seen, "fairlead")
    assert failure.value.what == f"pods of all namespaces cannot be read: {message}"
    assert "`arena get JOB --explain`" in failure.value.hint


def test_pods_that_wait_for_something_else() -> None:
    assert "Room:    gpu has room on its GPUs now: it waits for another reason\n" in answer(
        "why small"
    )
    assert answer("why plain").endswith("Shared GPUs:  it requests none\n")
    assert answer("why nothing").endswith("Shared GPUs:  it requests none\n")


def test_a_pod_that_is_absent() -> None:
    with pytest.raises(UserError) as refusal:
        answer("why other/waits")
    assert (refusal.value.what, refusal.value.hint) == (
        "pod `other/waits` does not exist",
        "pods of that name: default/waits",
    )


@pytest.mark.parametrize("text", ["a/b/c", "default/", "/"])
def test_what_is_no_name_of_a_pod(text: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"`{text}`")):
        answer(f"why {text}")


def test_place_one_after_another() -> None:
    printed = run_command("place --gpu-mem 2 --replicas 3", cluster(), "fairlead")
    assert printed.out == (
        "POD    NODE  GPU  MEMORY\n"
        "pod-0  gpu   1    2 GiB (2150 MiB)\n"
        "pod-1  gpu   1    2 GiB (2150 MiB)\n"
        "pod-2  -     -    no room\n"
        "\n"
        "0/2 nodes have room: 1 Insufficient aliyun.com/gpu-mem on one GPU: need 2 GiB, "
        "largest free 1 GiB, "
        "1 node does not share GPUs (label cgpu=true missing)\n"
        "pod-2 would fit on gpu without default/b (priority 0)\n"
    )
    assert printed.status == 1


def test_a_pod_that_was_only_planned_need_not_go() -> None:
    empty = ClusterSnapshot(nodes=(node("gpu"),))
    printed = run_command("place --gpu-mem 15 --replicas 3", empty, "fairlead")
    assert printed.out.splitlines()[3:] == [
        "pod-2  -     -    no room",
        "",
        (
            "0/1 nodes have room: 1 Insufficient aliyun.com/gpu-mem on one GPU: need 15 GiB, "
            "largest free 0 GiB"
        ),
    ]
    held = ClusterSnapshot(
        nodes=(node("gpu"),), pods=(placed(pod("a", 4), "gpu", {"main": [(0, 4)]}),)
    )
    assert (
        "pod-1 would fit on gpu without default/a (priority 0)\n"
        in run_command("place --gpu-mem 15 --replicas 2", held, "fairlead").out
    )


def test_place_on_several_cards() -> None:
    printed = run_command("place --gpu-mem 2 --gpu-count 2", cluster(), "fairlead")
    assert (printed.status, printed.out.splitlines()[1]) == (0, "pod  gpu   0,1  2 GiB (2150 MiB)")


def test_place_a_manifest(tmp_path: Path) -> None:
    main = {"name": "main", "resources": {"limits": {"aliyun.com/gpu-mem": 3}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [main]}}
    manifest = {
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "template": template},
    }
    path = tmp_path / "web.yaml"
    path.write_text(yaml.safe_dump(manifest))
    lines = run_command(f"place -f {path}", cluster(), "fairlead").out.splitlines()
    assert lines[1:3] == ["web-0  gpu   1    3 GiB (3226 MiB)", "web-1  -     -    no room"]


@pytest.mark.parametrize("file", ["mem_deployment.yaml", "-"])
def test_place_a_manifest_of_document_003(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest also contains a Service."""
    path = Path(__file__).parents[3] / "examples" / "mem_deployment.yaml"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    lines = run_command(
        f"place -f {path if file != '-' else file}", cluster(), "fairlead"
    ).out.splitlines()
    assert lines[1:] == ["tf-notebook  gpu   1    4 GiB (4301 MiB)"]


def test_objects_of_one_name_are_several_pods(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    one = {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "m", "resources": {"limits": {"aliyun.com/gpu-mem": 3}}}]},
    }
    path.write_text(yaml.safe_dump_all([one, one]))
    lines = run_command(f"place -f {path}", cluster(), "fairlead").out.splitlines()
    assert lines[1:3] == ["p    gpu   1    3 GiB (3226 MiB)", "p    -     -    no room"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [", "is not YAML"),
        ("just words", "contains no object"),
        ("", "contains no object"),
        ("kind: Pod\n---\njust words", "contains no object, or other data"),
        ("kind: Service\nspec: {ports: []}\n---\nkind: ConfigMap", "no object of manifest"),
        (
            (
                "kind: Pod\nspec: {containers: []}\n---\nkind: Job\nspec: {parallelism: 1000, "
                "template: {spec: {}}}"
            ),
            "1001 replicas",
        ),
        ("kind: ConfigMap\ndata: {}", "the ConfigMap has no spec"),
        ("kind: Service\nspec: {ports: []}", "the Service has no pod template"),
        (
            (
                "kind: Pod\nspec: {containers: [{name: a, resources: {limits: {aliyun.com/gpu-mem: "
                "many}}}]}"
            ),
            "the pod cannot be read",
        ),
        ("kind: Pod\nspec: {containers: [7]}", "the pod cannot be read"),
        (
            "kind: Job\nspec: {parallelism: 100000, template: {spec: {containers: []}}}",
            "100000 replicas cannot be placed",
        ),
    ],
)
def test_manifests_that_cannot_be_placed(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as refusal:
        run_command(f"place -f {path}", cluster(), "fairlead")
    assert what in refusal.value.what
    assert refusal.value.hint


def test_nothing_is_asked() -> None:
    for line in ("place", "place --gpu-mem 4 -f x"):
        with pytest.raises(UserError) as caught:
            run_command(line, cluster(), "fairlead")
        assert caught.value.what == "name the pods: either --gpu-mem or a manifest"
    for units in (0, -1):
        with pytest.raises(UserError, match=rf"(?<!\d){units} units"):
            run_command(f"place --gpu-mem {units}", cluster(), "fairlead")


def test_a_sidecar_is_named_with_its_card() -> None:
    side = pod(
        "s",
        2,
        init_containers=(container("side", 1, restartable=True),),
        node="gpu",
        phase="Running",
    )
    held = placed(side, "gpu", {"main": [(1, 2)], "side": [(1, 1)]}, phase="Running")
    snapshot = ClusterSnapshot(nodes=(node("gpu"),), pods=(held,))
    out = run_command("why s", snapshot, "fairlead").out
    assert "container main has 2 of 15 GiB" in out
    assert "container side has 1 of 15 GiB" in out


def test_nodes_that_the_pod_may_not_use_are_distinguished() -> None:
    choice = NodeChoice(selector=(("pool", "a"),))
    snapshot = ClusterSnapshot(nodes=(node("gpu"),), pods=(pod("p", 4, node_choice=choice),))
    assert run_command("why p", snapshot, "fairlead").out.endswith(
        "gpu   15 GiB        the pod's nodeSelector, affinity or tolerations rule it out\n"
    )
