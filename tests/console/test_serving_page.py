"""The page of serving jobs: whether a job is ready or why it is not, what its pods hold, and its
addresses.
"""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.cli.serving_objects import Servings, deployment, inference_service, service, serving_pod
from tests.console.clusters import EPOCH, cluster, gpu_node

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.rows import RowSet, matching
from fairlead.console.boards.serving.rows import serving_sentence
from fairlead.console.pages.endpoints import ENDPOINTS
from fairlead.console.pages.list_query import parse_list_query
from fairlead.console.pages.serving.jobs import ServingJob
from fairlead.model.jobs.serving import ServingObjects
from fairlead.model.node import Condition

GPU = {"nvidia.com/gpu": "1"}
SERVING = next(endpoint for endpoint in ENDPOINTS if endpoint.name == "serving")
NO_NODE = Condition(
    "PodScheduled",
    "False",
    "Unschedulable",
    "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
)


def listed(*, refused: str = "", **objects: object) -> RowSet[ServingJob]:
    """`deployments`, `inference`, `services`, `pods`: objects as an API server returns them.
    `refused`: a pod that the scheduler cannot place.
    """
    servings = Servings(**objects).read_servings("").servings
    workloads = {
        each.uid: each for serving in servings for each in (serving.workload, *serving.workers)
    }
    services = {each.uid: each for serving in servings for each in serving.services}
    pods = [pod for serving in servings for pod in serving.pods]
    pods = [
        structs.replace(pod, conditions=(NO_NODE,)) if pod.name == refused else pod for pod in pods
    ]
    state = BoardState(cluster([gpu_node("n1")], pods), EPOCH)
    return state.serving_jobs(ServingObjects(tuple(workloads.values()), tuple(services.values())))


def rows(**objects: object) -> list[ServingJob]:
    return [entry.row for entry in listed(**objects).entries]  # type: ignore[arg-type]


def test_a_job_that_is_ready_shows_where_it_is_and_what_it_holds() -> None:
    (row,) = rows(
        deployments=[deployment("fast", "v1", replicas=2, available=2)],
        services=[service("fast", "v1", {"http-serving": 5000, "http-metrics": 9090})],
        pods=[serving_pod("fast", "v1", f"fast-{n}", limits=GPU, restarts=n) for n in range(2)],
    )
    assert (row.status, row.waiting, row.desired, row.available, row.gpus) == (
        "Ready",
        None,
        2,
        2,
        2,
    )
    assert (row.type, row.version, row.address, row.ports) == (
        "Custom",
        "v1",
        "10.96.0.7",
        ["RESTFUL:5000"],
    )
    assert [
        (each.name, each.status, each.node, each.ready, each.containers, each.restarts, each.gpus)
        for each in row.instances
    ] == [
        ("fast-0", "Running", "n1", 1, 1, 0, 1),
        ("fast-1", "Running", "n1", 1, 1, 1, 1),
    ]


def test_what_keeps_a_job_is_the_word_of_its_first_pod_that_waits() -> None:
    (row,) = rows(
        deployments=[deployment("fast", "v1", replicas=2, available=1)],
        pods=[
            serving_pod("fast", "v1", "fast-0", limits=GPU),
            serving_pod(
                "fast", "v1", "fast-1", on="", phase="Pending", limits={"nvidia.com/gpu": "8"}
            ),
        ],
        refused="fast-1",
    )
    assert row.status == "NotReady" and row.waiting is not None and row.waiting.sentence is not None
    assert row.waiting.reason == "Unschedulable"
    assert row.waiting.sentence.values["asked"] == 8 and row.waiting.sentence.values["best"] == "n1"


def test_pods_that_are_missing_or_start_are_counted() -> None:
    missing, starting, none = rows(
        deployments=[deployment("a", "1", replicas=3), deployment("b", "1")],
        inference=[inference_service("c", "1", "http://c.example")],
        pods=[serving_pod("b", "1", "b-0", ready=False)],
    )
    reported = [
        (row.waiting.reason, row.waiting.message)
        for row in (missing, starting, none)
        if row.waiting
    ]
    assert reported == [
        ("PodsMissing", "0 of 3 pods exist; the Deployment controller creates the rest"),
        ("Starting", "1 of 1 pods run"),
        (
            "PodsMissing",
            "no Deployment of this InferenceService exists yet; its operator creates it",
        ),
    ]
    assert (none.type, none.status, none.address, none.desired) == (
        "KServe",
        "NotReady",
        "http://c.example",
        0,
    )


def test_a_job_scaled_to_nothing_is_ready() -> None:
    (row,) = rows(deployments=[deployment("a", "1", replicas=0)])
    assert (row.status, row.waiting, row.desired) == ("Ready", None, 0)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ([("status", "NotReady")], ["m"]),
        ([("type", "tf-serving")], ["m"]),
        ([("type", "Custom")], ["fast"]),
        ([("q", "10.96.0.7")], ["fast"]),
        ([("q", "m-0")], ["m"]),
        ([("namespace", "other")], []),
        ([("sort", "-available")], ["fast", "m"]),
    ],
)
def test_filters_and_search(query: list[tuple[str, str]], found: list[str]) -> None:
    tf = {"type_": "tf-serving"}
    table = listed(
        deployments=[deployment("fast", "v1", available=1), deployment("m", "v1", **tf)],
        services=[service("fast", "v1", {"http-serving": 80})],
        pods=[serving_pod("m", "v1", "m-0", **tf)],
    )
    assert [row.name for row in matching(table, parse_list_query(query, SERVING))] == found
    assert table.facets == {
        "namespace": ["default"],
        "type": ["Custom", "Tensorflow"],
        "name": ["fast", "m"],
        "status": ["Ready", "NotReady"],
        "user": [],
    }


def test_the_sentence_counts_what_is_ready_and_held() -> None:
    found = rows(
        deployments=[deployment("a", "1", available=1), deployment("b", "1")],
        pods=[serving_pod("a", "1", "a-0", limits=GPU)],
    )
    assert serving_sentence(found).text == "1 of 2 serving jobs ready; they hold 1 GPU."
