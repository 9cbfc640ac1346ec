"""What documents 000 and 003 type after `arena`, and what those commands need, on a real control
plane: it prints what they print.

The nodes are the documents' own, played by KWOK; mpi-operator, the scheduler extender and the
admission policies are real.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.documents.document_commands import COMMANDS, EXAMPLES, SCRIPTS, differences
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import POLICIES
from tests.kube.extender import extended_scheduler
from tests.kube.objects import Object, cpu_node, gpu_node, share_node
from tests.kube.operators import running_operators
from tests.kube.servers import environment
from tests.programs import run_program
from tests.waiting import wait_until

MASTER = {"node-role.kubernetes.io/master": ""}
FIRST_LOOK = """\
NAME                          IPADDRESS      ROLE    STATUS  GPU(Total)  GPU(Allocated)  \
GPU(Shareable)
cn-zhangjiakou.192.168.0.138  192.168.0.138  master  ready   0           0               No
cn-zhangjiakou.192.168.1.112  192.168.1.112  master  ready   0           0               No
cn-zhangjiakou.192.168.1.113  192.168.1.113  <none>  ready   0           0               No
cn-zhangjiakou.192.168.3.115  192.168.3.115  master  ready   0           0               No
cn-zhangjiakou.192.168.3.184  192.168.3.184  <none>  ready   1           0               Yes
------------------------------------------------------------------------------------------------
Allocated/Total GPUs In Cluster:
0/1 (0%)
"""
"""Document 003's `arena top node`, all of it: here the cluster is in the state of that moment."""


def named(node: Object, labels: Mapping[str, str] | None = None) -> Object:
    """The node with the address that its name contains. KWOK sets pods' host IPs only where the
    node has both kinds of addresses.
    """
    name = node["metadata"]["name"]
    node["status"]["addresses"] = [
        {"type": "InternalIP", "address": name.partition(".")[2]},
        {"type": "Hostname", "address": name},
    ]
    node["metadata"]["labels"] |= labels or {}
    return node


def make_nodes(cluster: ControlPlane, *nodes: Object) -> None:
    cluster.admin.create(nodes)
    wait_until(
        "the nodes are Ready",
        lambda: cluster.admin.run("get", "nodes", "--no-headers").count(" Ready ") == len(nodes),
    )


@pytest.fixture(scope="module")
def zhangjiakou() -> Iterator[ControlPlane]:
    """Document 003's cluster, when its fifth node has begun to share its T4; deploy/ has been
    applied to it.
    """
    with running_control_plane() as cluster:
        cluster.admin.run("apply", "--server-side", "-f", str(POLICIES))
        masters = [
            f"cn-zhangjiakou.{address}"
            for address in ("192.168.0.138", "192.168.1.112", "192.168.3.115")
        ]
        plain = cpu_node("cn-zhangjiakou.192.168.1.113")
        make_nodes(
            cluster,
            *(named(cpu_node(name), MASTER) for name in masters),
            named(plain),
            named(share_node("cn-zhangjiakou.192.168.3.184", 1, 14)),
        )
        with extended_scheduler(cluster):
            wait_until(
                "shared GPUs have a scheduler of their own",
                lambda: _scheduler_of_a_notebook(cluster) == "fairlead-scheduler",
            )
            yield cluster


def _scheduler_of_a_notebook(cluster: ControlPlane) -> str:
    """Wait for the policy: an API server applies it some time after it was written."""
    container = {"name": "c", "image": "x", "resources": {"limits": {"aliyun.com/gpu-mem": "1"}}}
    asked = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks", "namespace": "default"},
        "spec": {"containers": [container]},
    }
    made = json.loads(
        cluster.admin.run(
            "create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(asked)
        )
    )
    return str(made["spec"]["schedulerName"])


@pytest.fixture(scope="module")
def beijing() -> Iterator[ControlPlane]:
    """Document 000's cluster, with the one GPU node on which its job runs, and mpi-operator."""
    with running_control_plane() as cluster, running_operators(cluster):
        make_nodes(
            cluster,
            named(
                gpu_node(
                    "cn-beijing.192.168.1.151", 1, model="Tesla-V100-SXM2-16GB", memory_mib=16384
                )
            ),
        )
        yield cluster


def with_names_of(printed: str, pods: list[str]) -> str:
    """The document's `-s -d` with this cluster's pods: the column of names is as wide as the
    longest name, and the dashes have the length of all columns.
    """
    head = re.search(r"^NAME +(?=NAMESPACE)", printed, re.MULTILINE)
    if head is None:
        return printed
    old, new, letters, lines = len(head[0]), max(map(len, pods)) + 2, 0, []
    for line in printed.splitlines():
        left, right = line[:old].rstrip(), line[old:]
        mine = next(
            (name for name in pods if name.rsplit("-", 2)[0] == left.rsplit("-", 2)[0]), left
        )
        letters += len(mine) - len(left)
        if line.startswith("---"):
            lines.append("-" * (len(line) + letters))
        else:
            lines.append(
                f"{mine:<{new}}{right}"
                if right and left in ("NAME", "Allocated :", "Total :", *_documents_pods(left))
                else line
            )
    return "\n".join(lines) + "\n"


def _documents_pods(name: str) -> list[str]:
    return [name] if re.fullmatch(r"[a-z0-9-]+-[a-z0-9]+-[a-z0-9]+", name) else []


def test_shorter_names_are_shorter_columns_and_dashes() -> None:
    printed = "NAME     NAMESPACE\na-11-xx  default\nTotal :  14\n------\n"
    assert with_names_of(printed, ["a-2-yy"]) == (
        "NAME    NAMESPACE\na-2-yy  default\nTotal : 14\n-----\n"
    )
    assert with_names_of(printed, ["a-222-yy"]) == (
        "NAME      NAMESPACE\na-222-yy  default\nTotal :   14\n-------\n"
    )


def of_document(number: str) -> list[dict[str, Any]]:
    """The document's lines with `arena`, and those that apply what the reader has created."""
    mine = [each for each in COMMANDS if each["document"] == number]
    return [each for each in mine if each["line"].startswith(("arena ", "kubectl apply -f mem_"))]


def typed(cluster: ControlPlane, command: dict[str, Any]) -> list[str]:
    """The differences between the command's output and the document, without the endings of pods'
    names.
    """
    if "exact" in command and (
        pods := [pod["metadata"]["name"] for pod in cluster.admin.get("pods", "-n", "default")]
    ):
        command = {**command, "exact": with_names_of(command["exact"], pods)}
    arguments = shlex.split(command["line"])
    typed_in = {
        **environment(),
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{SCRIPTS}:{os.environ['PATH']}",
        **command.get("environment", {}),
    }
    if arguments[0] == "kubectl":
        return differences(
            command, cluster.admin.run(*arguments[1:3], str(EXAMPLES / arguments[3]))
        )
    done = run_program(arguments, env=typed_in)
    return (
        [f"{done.returncode}: {done.stderr}"]
        if done.returncode
        else differences(command, done.stdout)
    )


def type_all(cluster: ControlPlane, commands: list[dict[str, Any]]) -> None:
    """Type the commands in order. What a document shows at once may take the cluster a moment."""
    assert commands
    for command in commands:
        if command["line"].startswith(("kubectl", "arena submit")):
            assert typed(cluster, command) == []
            continue
        reported: list[str] = []

        def is_as_printed(
            command: dict[str, Any] = command, reported: list[str] = reported
        ) -> bool:
            reported[:] = typed(cluster, command)
            return not reported

        try:
            wait_until(command["line"], is_as_printed)
        except TimeoutError as error:
            raise AssertionError(f"$ {command['line']}\n" + "\n".join(reported)) from error


def test_document_000(beijing: ControlPlane) -> None:
    """Everything but how long the job has run: this cluster's time cannot be moved."""
    type_all(beijing, [{**each, "ignore": ["DURATION"]} for each in of_document("000")])


def test_document_003(zhangjiakou: ControlPlane) -> None:
    commands = of_document("003")
    assert [each["line"] for each in commands if each["line"].startswith("arena")][:2] == [
        "arena top node",
        "arena top node -s",
    ]
    first = {key: value for key, value in commands[0].items() if key != "holds"}
    type_all(zhangjiakou, [{**first, "exact": FIRST_LOOK}, *commands[1:]])
