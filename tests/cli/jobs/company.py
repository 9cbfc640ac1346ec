"""The jobs of a small company."""

from __future__ import annotations

from typing import Any

from tests.cli.job_objects import cluster, job, job_pod

from fairlead.model.snapshot import ClusterSnapshot

BERT = job("MPIJob", "bert", {"Launcher": (1, 0), "Worker": (2, 4)}, created=-100, started=-90)
MNIST = job(
    "TFJob",
    "mnist",
    {"Chief": (1, 1), "PS": (2, 0), "Worker": (3, 1), "Evaluator": (1, 1)},
    created=-50,
    started=-50,
)
OVER = job(
    "PyTorchJob",
    "over",
    {"Master": (1, 1)},
    states=["Running", "Failed"],
    created=-7200,
    started=-7200,
    ended=-3500,
)
ASIDE = job(
    "PyTorchJob", "aside", {"Master": (1, 2)}, states=["Suspended"], started=None, created=-20
)
OTHER = job("MPIJob", "bert", {"Worker": (1, 1)}, namespace="other", created=-10)
MASTER = job_pod(ASIDE, "aside-master-0", "master")
BERT_PODS = [
    job_pod(BERT, "bert-launcher-z", "launcher", on="n1", ip="10.0.0.1", owner="Job"),
    job_pod(BERT, "bert-worker-10", "worker", gpus=4, on="n1", ip="10.0.0.1"),
    job_pod(BERT, "bert-worker-9", "worker", gpus=4, on="n2", ip="10.0.0.2"),
]


def company(**more: Any) -> ClusterSnapshot:
    return cluster([BERT, MNIST, OVER, ASIDE, OTHER], [*BERT_PODS, MASTER], **more)
