"""Does every number follow when a pod is deleted, a node is uncordoned or cordoned, a job ends, a
pod is admitted, or a silent node reports again?

Each move changes what kubectl shows, and then all pages and the sums are compared again. The moves
follow one another on one cluster; each one may be run alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.kube.numbers.agreement import PAGES
from tests.kube.numbers.company_seen import CompanySeen
from tests.kube.numbers.mixed_jobs import conditions
from tests.kube.numbers.sums import SUMS, apart
from tests.kube.numbers.tied_pods import CORDONED, SILENT, utc
from tests.kube.numbers.truth import Truth
from tests.waiting import wait_until


def a_pod_is_deleted(seen: CompanySeen) -> None:
    """The pod had a card that did no work, and a user."""
    seen.admin.run(
        "delete",
        "pod",
        "notebook",
        "-n",
        "research",
        "--grace-period=0",
        "--force",
        "--ignore-not-found",
    )


def a_node_takes_pods_again(seen: CompanySeen) -> None:
    seen.admin.run("uncordon", CORDONED)


def another_is_closed(seen: CompanySeen) -> None:
    seen.admin.run("cordon", "share-1")


def a_job_ends(seen: CompanySeen) -> None:
    """The operator writes the job's end and deletes its pods."""
    printed = {"completionTime": utc(0), "conditions": conditions(0, "Created", "Succeeded")}
    seen.admin.patch_status("mpijobs", "bert", "research", printed)
    pods = ("bert-launcher", "bert-worker-0", "bert-worker-1")
    seen.admin.run(
        "delete",
        "pod",
        *pods,
        "-n",
        "research",
        "--grace-period=0",
        "--force",
        "--ignore-not-found",
    )


def a_pod_is_admitted(seen: CompanySeen) -> None:
    """The pod's gate is removed, and the scheduler finds it a card."""
    seen.admin.run(
        "patch",
        "pod",
        "queued-1",
        "-n",
        "vision",
        "--type=merge",
        "-p",
        ('{"spec": {"schedulingGates": null}}'),
    )

    def runs() -> bool:
        return any(
            pod["metadata"]["name"] == "queued-1" and pod["status"]["phase"] == "Running"
            for pod in seen.look().pods
        )

    wait_until("it runs", runs, 30)


def a_silent_node_reports_again(seen: CompanySeen) -> None:
    """The node reports once; half a minute later it counts as silent again."""
    printed = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": utc(0),
        "lastTransitionTime": utc(0),
    }
    patch = json.dumps({"status": {"conditions": [printed]}})
    seen.admin.run("patch", "node", SILENT, "--subresource=status", "--type=strategic", "-p", patch)
    assert seen.look().by_name[SILENT].ready == "True"


MOVES = (
    a_pod_is_deleted,
    a_node_takes_pods_again,
    another_is_closed,
    a_job_ends,
    a_pod_is_admitted,
    a_silent_node_reports_again,
)


OF_NOW = [each for each in SUMS if "over_time" not in each.expression]
"""The sums without `over_time`: after a node's status has changed, it has two series during the
window of the reference's expression.
"""


def reported(truth: Truth) -> dict[str, Any]:
    return {page: getattr(truth, page)() for page in PAGES}


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.__name__.replace("_", " "))
def test_every_number_follows(seen: CompanySeen, move: Callable[[CompanySeen], None]) -> None:
    before = reported(seen.look())
    move(seen)
    assert reported(seen.look()) != before, "nothing has happened"
    assert seen.await_agreement() == {}
    assert seen.await_none(lambda: apart(seen, OF_NOW)) == {}


def test_so_do_the_numbers_of_a_console_that_reads_prometheus(seen: CompanySeen) -> None:
    assert seen.await_agreement(source="prometheus") == {}
