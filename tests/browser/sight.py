"""What a page should show: counted from kubectl's JSON by code
that shares nothing with Fairlead's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.kube.counts import Counts, count
from tests.kube.kubectl import Kubectl, KubectlError
from tests.turns import is_module_in_turn
from tests.waiting import wait_until

JOB_KINDS = ("mpijobs", "tfjobs", "pytorchjobs")
BOARD_WORDS = {
    "Failed": "Failed",
    "Succeeded": "Succeeded",
    "Suspended": "Pending",
    "Restarting": "Running",
    "Running": "Running",
}
SETTLE_SECONDS = 60.0
PART_OF_REAL = 1
"""The part of two in which the console of a real control plane is looked at. In the other one that
control plane does not start, so a module with the mark `turns(2, 0)` has no test of it.
"""
SIGHTS = [
    name
    for name, part in (("simulated", 1 - PART_OF_REAL), ("real", PART_OF_REAL))
    if is_module_in_turn(2, part)
]
"""The clusters of this run."""


@dataclass(frozen=True)
class Sight:
    """A cluster: the console that shows it, and kubectl for the truth."""

    name: str
    url: str
    kubectl: Kubectl

    def counts(self) -> Counts:
        return count(self.kubectl)

    def node_names(self) -> set[str]:
        return {node["metadata"]["name"] for node in self.kubectl.get("nodes")}

    def jobs(self) -> dict[str, str]:
        """`namespace/type/name` -> the board's status word, by the CLI contract's order of
        conditions, with the overlay of a Pending pod.
        """
        pods = self.kubectl.get("pods")
        return {
            self._key(job): self._word(job, pods) for kind in JOB_KINDS for job in self._all(kind)
        }

    def job_counts(self) -> Counter[str]:
        return Counter(self.jobs().values())

    def _all(self, kind: str) -> list[dict[str, Any]]:
        try:
            return list(self.kubectl.get(kind))
        except KubectlError:
            return []  # a kind that this cluster does not serve

    @staticmethod
    def _key(job: dict[str, Any]) -> str:
        return f"{job['metadata']['namespace']}/{job['kind'].lower()}/{job['metadata']['name']}"

    @staticmethod
    def _word(job: dict[str, Any], pods: list[dict[str, Any]]) -> str:
        true = {
            each["type"]
            for each in job.get("status", {}).get("conditions") or []
            if each["status"] == "True"
        }
        word = next(
            (board for condition, board in BOARD_WORDS.items() if condition in true), "Pending"
        )
        metadata = job["metadata"]
        own = [
            pod
            for pod in pods
            if pod["metadata"]["namespace"] == metadata["namespace"]
            and pod["metadata"].get("labels", {}).get("training.kubeflow.org/job-name")
            == metadata["name"]
        ]
        waits = any(pod["status"]["phase"] == "Pending" for pod in own)
        return "Pending" if "Running" in true and word == "Running" and waits else word

    def used_gpus_by_namespace(self) -> Counter[str]:
        """Whole GPUs of pods that quota has admitted (without Fairlead's gate) and that have not
        ended, bound or not.
        """
        used: Counter[str] = Counter()
        for pod in self.kubectl.get("pods"):
            gates = [gate["name"] for gate in pod["spec"].get("schedulingGates", ())]
            if "fairlead.io/quota" not in gates and pod["status"]["phase"] not in (
                "Succeeded",
                "Failed",
            ):
                limits = [
                    container.get("resources", {}).get("limits", {})
                    for container in pod["spec"]["containers"]
                ]
                used[pod["metadata"]["namespace"]] += sum(
                    int(each.get("nvidia.com/gpu", 0)) for each in limits
                )
        return used


def shown(number: float) -> str:
    """A number of GPUs as the page prints it: whole, or with one decimal."""
    return f"{number:.0f}" if abs(number - round(number)) < 0.05 else f"{number:.1f}"


def soon(
    what: str, seen: Callable[[], Any], expected: Callable[[], Any], seconds: float = SETTLE_SECONDS
) -> None:
    """Wait until the page and kubectl agree at some moment: the cluster changes, so one of them may
    be a step ahead.
    """
    looks: list[tuple[Any, Any]] = []

    def agree() -> bool:
        looks.append((seen(), expected()))
        return bool(looks[-1][0] == looks[-1][1])

    wait_until(
        lambda: ("{}: the page shows {!r}, kubectl prints {!r}").format(what, *looks[-1]),
        agree,
        seconds,
        0.3,
    )
