"""Real kubectl on the simulated API: what users type at the
laptop's cluster, and what they read.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contracts.simulated import SimulatedServer, simulated_server
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.programs import program
from tests.waiting import HANG_SECONDS

from fairlead_sim.objects.resources import PODS
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.time.clock import SimClock
from fairlead_sim.time.timers import Timers

NOW = 1_767_600_000.0  # 2026-01-05T08:00:00Z


class FixedClock:
    """The simulated time: three days after the objects were made."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> float:
        return self.at


CLOCK = FixedClock()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    CLOCK.at = NOW
    with simulated_server(tmp_path_factory.mktemp("kubectl"), CLOCK) as running:
        running.do(_furnish)
        CLOCK.at = NOW + 3 * 86400
        yield running


@pytest.fixture(scope="module")
def kubectl(server: SimulatedServer) -> Kubectl:
    return Kubectl(program("kubectl"), server.kubeconfig, server.kubeconfig.parent)


def _furnish(cluster: StoredCluster) -> None:
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    status = {
        "capacity": {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "allocatable": {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "conditions": conditions,
        "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
        "nodeInfo": {
            "kubeletVersion": "v1.36.3",
            "osImage": "Debian",
            "kernelVersion": "6.1",
            "containerRuntimeVersion": "containerd://2.2",
        },
    }
    cluster.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1"}, "status": status}
    )
    for name, phase, gpus in (("train-a", "Running", 4), ("train-b", "Pending", 8)):
        cluster.create(_pod(name, gpus, node="gpu-1" if phase == "Running" else ""))
    running = {
        "phase": "Running",
        "podIPs": [{"ip": "10.2.0.7"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": "2026-01-05T08:00:09Z"}},
            }
        ],
    }
    cluster.merge_patch(PODS, "default", "train-a", {"status": running}, subresource="status")
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
    }
    cluster.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "sweep"},
            "spec": {"template": template},
        }
    )
    cluster.create(
        {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "tf"}, "spec": {}}
    )


def _pod(name: str, gpus: int, node: str = "") -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "train:1",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    spec = {"containers": [container], **({"nodeName": node} if node else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "train"}},
        "spec": spec,
    }


def _cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def _lines(text: str) -> list[list[str]]:
    return [_cells(line) for line in text.splitlines() if line.strip()]


def test_get_nodes_pods_and_jobs_wide(kubectl: Kubectl) -> None:
    assert _lines(kubectl.run("get", "nodes,pods,jobs", "-A", "-o", "wide")) == [
        _cells(
            "NAME  STATUS  ROLES  AGE  VERSION  INTERNAL-IP  EXTERNAL-IP  OS-IMAGE  "
            "KERNEL-VERSION  CONTAINER-RUNTIME"
        ),
        _cells(
            "node/gpu-1  Ready  <none>  3d  v1.36.3  10.1.0.1  <none>  Debian  6.1  "
            "containerd://2.2"
        ),
        _cells(
            "NAMESPACE  NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  "
            "READINESS "
            "GATES"
        ),
        _cells("default  pod/train-a  1/1  Running  0  3d  10.2.0.7  gpu-1  <none>  <none>"),
        _cells("default  pod/train-b  0/1  Pending  0  3d  <none>  <none>  <none>  <none>"),
        _cells("NAMESPACE  NAME  STATUS  COMPLETIONS  DURATION  AGE  CONTAINERS  IMAGES  SELECTOR"),
        [
            *_cells("default  job.batch/sweep  Running  0/1"),
            *_cells("3d  main  train:1"),
            _job_selector(kubectl),
        ],
    ]


def _job_selector(kubectl: Kubectl) -> str:
    uid = kubectl.run("get", "job", "sweep", "-o", "jsonpath={.metadata.uid}")
    return f"batch.kubernetes.io/controller-uid={uid}"


def test_narrow_tables_hide_what_is_wide(kubectl: Kubectl) -> None:
    assert _lines(kubectl.run("get", "pods"))[0] == _cells("NAME  READY  STATUS  RESTARTS  AGE")
    assert _lines(kubectl.run("get", "tfjobs")) == [_cells("NAME  STATE  AGE"), _cells("tf  3d")]
    assert (
        kubectl.run(
            "get",
            "pods",
            "--no-headers",
            "-l",
            "app=train",
            "--field-selector",
            "status.phase=Running",
        ).split()[0]
        == "train-a"
    )


@pytest.mark.parametrize(
    "short",
    ["po", "no", "deploy", "ns", "cm", "svc", "eqtree", "pc", "pytorchjobs.v1.kubeflow.org"],
)
def test_short_names_are_known(kubectl: Kubectl, short: str) -> None:
    kubectl.run("get", short, "-A")


def test_yaml_and_jsonpath(kubectl: Kubectl) -> None:
    shown = yaml.safe_load(kubectl.run("get", "pod", "train-a", "-o", "yaml"))
    assert shown["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert kubectl.run("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}") == "gpu-1"


def test_describe_a_node_counts_what_its_pods_ask_for(kubectl: Kubectl) -> None:
    text = kubectl.run("describe", "node", "gpu-1")
    assert re.search(r"nvidia.com/gpu +4 +4\n", text)
    assert re.search(r"Non-terminated Pods: +\(1 in total\)", text)


def test_describe_a_pod_shows_its_events(kubectl: Kubectl, server: SimulatedServer) -> None:
    uid = kubectl.run("get", "pod", "train-b", "-o", "jsonpath={.metadata.uid}")
    about = {
        "kind": "Pod",
        "namespace": "default",
        "name": "train-b",
        "uid": uid,
        "apiVersion": "v1",
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "train-b.1"},
        "involvedObject": about,
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
    }
    server.do(lambda cluster: cluster.create(event))
    text = kubectl.run("describe", "pod", "train-b")
    assert re.search(r"Status: +Pending", text)
    assert "FailedScheduling" in text and "1 Insufficient nvidia.com/gpu." in text
    assert kubectl.run("events", "--for", "pod/train-b").splitlines()[1].split()[1:3] == [
        "Warning",
        "FailedScheduling",
    ]


def test_events_of_one_second_are_shown_in_the_order_in_which_they_happened(
    kubectl: Kubectl, server: SimulatedServer
) -> None:
    words = ["Zebra", "Apple", "Mango", "Kiwi", "Berry", "Yuzu"]

    def happen(cluster: StoredCluster) -> None:
        recorder, about = (
            Recorder(cluster, Timers(SimClock(NOW))),
            cluster.get(PODS, "default", "train-a"),
        )
        assert about is not None
        for word in words:
            recorder.normal(about, word, "it happened", "test")

    server.do(happen)
    chosen = "involvedObject.name=train-a"
    assert (
        kubectl.run(
            "get", "events", f"--field-selector={chosen}", "-o", "jsonpath={.items[*].reason}"
        ).split()
        == words
    )
    described = kubectl.run("describe", "pod", "train-a").partition("Events:")[2].splitlines()[3:]
    assert [line.split()[1] for line in described] == words


def test_apply_a_plain_pod_with_validation_on(kubectl: Kubectl) -> None:
    manifest = json.dumps(_pod("plain", 1))
    assert kubectl.run("apply", "-f", "-", stdin=manifest) == "pod/plain created\n"
    assert kubectl.run("apply", "-f", "-", stdin=manifest) == "pod/plain unchanged\n"
    changed = manifest.replace("train:1", "train:2")
    assert kubectl.run("diff", "-f", "-", stdin=manifest) == ""
    assert kubectl.run("apply", "-f", "-", stdin=changed) == "pod/plain configured\n"
    assert (
        kubectl.run("get", "pod", "plain", "-o", "jsonpath={.spec.containers[0].image}")
        == "train:2"
    )
    assert kubectl.run("apply", "--server-side", "-f", "-", stdin=manifest) == (
        "pod/plain serverside-applied\n"
    )
    assert kubectl.run("delete", "pod", "plain") == 'pod "plain" deleted from default namespace\n'


def test_label_annotate_edit_and_patch(kubectl: Kubectl) -> None:
    kubectl.run("label", "pod", "train-a", "tier=gold")
    kubectl.run("annotate", "pod", "train-a", "note=a <b> c")
    kubectl.run(
        "patch",
        "pod",
        "train-a",
        "--type=json",
        "-p",
        '[{"op":"add","path":"/metadata/labels/x","value":"y"}]',
    )
    shown = kubectl.get("pods", "-l", "tier=gold,x=y")
    assert [item["metadata"]["annotations"]["note"] for item in shown] == ["a <b> c"]
    kubectl.run("label", "pod", "train-a", "tier-", "x-")
    assert kubectl.get("pods", "-l", "tier") == []


@pytest.mark.parametrize(
    ("what", "resource"),
    [
        ("namespace made", "namespace"),
        ("configmap made --from-literal=a=b", "configmap"),
        ("secret generic made --from-literal=a=b", "secret"),
        ("job made --image=train:1", "job"),
        ("cronjob made --image=train:1 --schedule=@daily", "cronjob"),
        ("deployment made --image=web:1 --replicas=0", "deployment"),
        ("service clusterip made --tcp=80:8080", "service"),
        ("role made --verb=get --resource=pods", "role"),
        ("rolebinding made --role=r --serviceaccount=default:default", "rolebinding"),
        ("poddisruptionbudget made --selector=a=b --min-available=50%", "poddisruptionbudget"),
        ("priorityclass made --value=5", "priorityclass"),
        ("serviceaccount made", "serviceaccount"),
    ],
)
def test_create(kubectl: Kubectl, what: str, resource: str) -> None:
    assert kubectl.run("create", *what.split()).endswith("made created\n")
    assert kubectl.run("get", resource, "made", "-o", "name").endswith("/made\n")
    kubectl.run("delete", resource, "made")


def test_wait(kubectl: Kubectl) -> None:
    assert kubectl.run("wait", "pod/train-a", "--for=condition=Ready", "--timeout=5s") == (
        "pod/train-a condition met\n"
    )
    assert (
        kubectl.run("wait", "pod/train-b", "--for=jsonpath={.status.phase}=Pending", "--timeout=5s")
        == "pod/train-b condition met\n"
    )
    with pytest.raises(KubectlError, match="timed out waiting for the condition on pods/train-b"):
        kubectl.run("wait", "pod/train-b", "--for=condition=Ready", "--timeout=1s")


def test_cordon_taint_and_scale(kubectl: Kubectl) -> None:
    kubectl.run("cordon", "gpu-1")
    assert _lines(kubectl.run("get", "nodes"))[1][1] == "Ready,SchedulingDisabled"
    kubectl.run("uncordon", "gpu-1")
    kubectl.run("taint", "nodes", "gpu-1", "sick=yes:NoSchedule")
    assert kubectl.get("nodes")[0]["spec"]["taints"] == [
        {"key": "sick", "value": "yes", "effect": "NoSchedule"}
    ]
    kubectl.run("taint", "nodes", "gpu-1", "sick-")
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]},
    }
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    kubectl.apply(
        [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}]
    )
    kubectl.run("scale", "deployment", "web", "--replicas=3")
    assert _lines(kubectl.run("get", "deployments"))[1][1] == "0/3"
    kubectl.run("set", "image", "deployment/web", "main=web:2")
    assert (
        kubectl.run(
            "get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}"
        )
        == "web:2"
    )
    kubectl.delete("deployment", "web")


def test_logs(kubectl: Kubectl, server: SimulatedServer) -> None:
    lines = [(CLOCK.at - 100 + index, f"step {index}") for index in range(5)]
    server.do(
        lambda cluster: server.logs.written.update({("default", "train-a", "main", False): lines})
    )
    assert kubectl.run("logs", "train-a") == "".join(f"step {index}\n" for index in range(5))
    assert kubectl.run("logs", "train-a", "--tail=2") == "step 3\nstep 4\n"
    assert kubectl.run("logs", "train-a", "--since=98s") == "step 2\nstep 3\nstep 4\n"
    assert (
        kubectl.run("logs", "train-a", "--tail=1", "--timestamps")
        == "2026-01-08T07:58:24.000000Z step 4\n"
    )
    with pytest.raises(
        KubectlError, match=('previous terminated container "main" in pod "train-a" not found')
    ):
        kubectl.run("logs", "train-a", "--previous")
    with pytest.raises(KubectlError, match="container absent is not valid for pod train-a"):
        kubectl.run("logs", "train-a", "-c", "absent")


def test_logs_follow_until_the_container_ends(kubectl: Kubectl, server: SimulatedServer) -> None:
    server.do(lambda cluster: cluster.create(_pod("short", 1, node="gpu-1")))

    def state(**state: Any) -> None:
        status = {
            "phase": "Running",
            "containerStatuses": [
                {"name": "main", "ready": True, "restartCount": 0, "state": state}
            ],
        }
        server.do(
            lambda cluster: cluster.merge_patch(
                PODS, "default", "short", {"status": status}, subresource="status"
            )
        )

    written = [(CLOCK.at, "one")]
    server.do(
        lambda cluster: server.logs.written.update({("default", "short", "main", False): written})
    )
    state(running={"startedAt": "2026-01-08T08:00:00Z"})
    following = _popen(kubectl, server, "logs", "-f", "short")
    assert following.stdout is not None and following.stdout.readline() == "one\n"
    server.do(lambda cluster: written.append((CLOCK.at, "two")))
    assert following.stdout.readline() == "two\n"
    state(terminated={"exitCode": 0, "reason": "Completed"})
    assert following.wait(timeout=HANG_SECONDS) == 0
    kubectl.run("delete", "pod", "short", "--grace-period=0", "--force")


def test_get_w_shows_pods_come_and_go(kubectl: Kubectl, server: SimulatedServer) -> None:
    watching = _popen(kubectl, server, "get", "pods", "-w", "-l", "app=train")
    assert watching.stdout is not None
    try:
        header, *there = [_cells(watching.stdout.readline()) for _ in range(3)]
        assert (header[0], [line[0] for line in there]) == ("NAME", ["train-a", "train-b"])
        server.do(lambda cluster: cluster.create(_pod("fresh", 1)))
        assert _cells(watching.stdout.readline())[:4] == ["fresh", "0/1", "Pending", "0"]
        bound = {"metadata": {"name": "fresh"}, "target": {"name": "gpu-1"}}
        server.do(lambda cluster: cluster.bind("default", "fresh", bound))
        assert _cells(watching.stdout.readline())[0] == "fresh"
        server.do(lambda cluster: cluster.delete(PODS, "default", "fresh"))
        assert _cells(watching.stdout.readline())[2] == "Terminating"
    finally:
        watching.kill()
        watching.wait()
        kubectl.run("delete", "pod", "fresh", "--grace-period=0", "--force")


def _popen(kubectl: Kubectl, server: SimulatedServer, *arguments: str) -> subprocess.Popen[str]:
    command = [str(program("kubectl")), f"--kubeconfig={server.kubeconfig}", *arguments]
    return subprocess.Popen(
        command, env={**os.environ, **kubectl.folders}, stdout=subprocess.PIPE, text=True, bufsize=1
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get", "pod", "absent"], 'Error from server (NotFound): pods "absent" not found'),
        (["get", "dragons"], 'the server doesn\'t have a resource type "dragons"'),
        (["get", "pods", "-l", "a in b"], "Error from server (BadRequest)"),
        (["delete", "pod", "absent"], 'Error from server (NotFound): pods "absent" not found'),
        (
            ["patch", "pod", "train-a", "-p", '{"spec":{"restartPolicy":"Never"}}'],
            ('The Pod "train-a" is invalid: spec: Forbidden'),
        ),
        (
            ["attach", "train-a"],
            "containers are scripts without a process or a network: no attach",
        ),
    ],
)
def test_what_cannot_be_done_is_reported(
    kubectl: Kubectl, arguments: list[str], message: str
) -> None:
    with pytest.raises(KubectlError) as caught:
        kubectl.run(*arguments)
    assert message in str(caught.value)


def test_another_token_is_not_let_in(server: SimulatedServer, tmp_path: Path) -> None:
    document = yaml.safe_load(server.kubeconfig.read_text())
    document["users"][0]["user"]["token"] = "guessed"
    (tmp_path / "config").write_text(yaml.safe_dump(document))
    stranger = Kubectl(program("kubectl"), tmp_path / "config", tmp_path)
    with pytest.raises(KubectlError, match="You must be logged in to the server"):
        stranger.run("get", "pods")


def test_version_and_api_resources(kubectl: Kubectl) -> None:
    version = json.loads(kubectl.run("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"] == "v1.36.3+fairlead"
    names = kubectl.run("api-resources", "-o", "name").split()
    assert {"pods", "mpijobs.kubeflow.org", "elasticquotatrees.scheduling.sigs.k8s.io"} <= set(
        names
    )
