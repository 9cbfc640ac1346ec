"""A scripted API server of a cluster with an MPIJob and a TFJob."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.cli.arena import arena, kubeconfig
from tests.cli.job_objects import job, job_pod
from tests.edge.scripted import Reply, ScriptedServer, Stream

SERVED = {
    "mpijobs": ("v2beta1", "MPIJob"),
    "tfjobs": ("v1", "TFJob"),
    "pytorchjobs": ("v1", "PyTorchJob"),
}
MPI = job("MPIJob", "bert", {"Launcher": (1, 0), "Worker": (1, 1)})
TF = job("TFJob", "mnist", {"Worker": (2, 1)}, created=-60)
PODS = [
    job_pod(MPI, "bert-launcher-x", "launcher", on="n1", ip="10.0.0.1", owner="Job"),
    job_pod(MPI, "bert-worker-0", "worker", gpus=1, on="n1", ip="10.0.0.1"),
    job_pod(TF, "mnist-worker-0", "worker", gpus=1, on="n1", ip="10.0.0.1"),
]


def listed(objects: Sequence[Any]) -> Reply:
    return Reply({"metadata": {"resourceVersion": "1"}, "items": list(objects)})


def discovery(*plurals: str, verbs: Sequence[str] = ("list",)) -> Reply:
    def version(plural: str) -> dict[str, Any]:
        served, kind = SERVED[plural]
        resource = {
            "resource": plural,
            "responseKind": {"kind": kind},
            "scope": "Namespaced",
            "verbs": list(verbs),
        }
        return {"version": served, "resources": [resource]}

    items = [
        {"metadata": {"name": "kubeflow.org"}, "versions": [version(plural) for plural in plurals]}
    ]
    headers = {
        "Content-Type": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    }
    return Reply({"kind": "APIGroupDiscoveryList", "items": items}, headers=headers)


def collection(plural: str, namespace: str = "default") -> str:
    return f"/apis/kubeflow.org/{SERVED[plural][0]}/namespaces/{namespace}/{plural}"


def script(**replaced: list[Reply | Stream]) -> dict[str, list[Reply | Stream]]:
    """A cluster with an MPIJob and a TFJob; `replaced`: other answers, by plural or by path."""
    steps: dict[str, list[Reply | Stream]] = {
        "/apis": [discovery(*SERVED)],
        collection("mpijobs"): [listed([MPI])],
        collection("tfjobs"): [listed([TF])],
        collection("pytorchjobs"): [listed([])],
        f"{collection('mpijobs')}/bert": [Reply(MPI)],
        f"{collection('tfjobs')}/mnist": [Reply(TF)],
        "/api/v1/namespaces/default/pods": [listed(PODS)],
    }
    for name, reply in replaced.items():
        steps[collection(name) if name in SERVED else name] = reply
    return steps


def run(
    folder: Path, server: ScriptedServer, *words: str, **env: str
) -> subprocess.CompletedProcess[str]:
    return arena(folder, "--kubeconfig", str(kubeconfig(folder, server.url)), *words, **env)
