"""The search finds a text in every field of every kind of object, names the field, and counts all
matches. An oracle looks at every field.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec import structs
from tests.console.clusters import (
    EPOCH,
    cluster,
    gpu_node,
    living_cluster,
    pod,
    reading,
    shared_node,
    training_job,
)

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.search import search, searched
from fairlead.console.pages.search import SearchHit
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source, SourceState

GPU = {"nvidia.com/gpu": 1}


def found(snapshot: ClusterSnapshot, text: str, most: int = 50, **more: Any) -> list[SearchHit]:
    seen = BoardState(snapshot, EPOCH)
    return search(
        searched(snapshot, seen.occupancy.nodes), seen.job_by_pod, text, most, **more
    ).hits


def reported(hits: list[SearchHit]) -> list[tuple[str, str, str, str, str]]:
    return [(hit.kind, hit.name, hit.field, hit.text, hit.piece) for hit in hits]


def labelled(name: str, **labels: str) -> Pod:
    return structs.replace(
        pod(name), labels={key.replace("_", "-"): value for key, value in labels.items()}
    )


def test_a_pod_is_found_by_name_uid_and_label() -> None:
    web = structs.replace(labelled("web-1", app="Web"), uid="0f3a-77bc")
    snapshot = cluster([gpu_node()], [web, pod("other")])
    assert reported(found(snapshot, "EB-1")) == [("pod", "web-1", "name", "web-1", "eb-1")]
    assert reported(found(snapshot, "a-77b")) == [("pod", "web-1", "uid", "0f3a-77bc", "a-77b")]
    assert reported(found(snapshot, "app=we")) == [("pod", "web-1", "label", "app=Web", "app=We")]
    assert reported(found(snapshot, "team-a/web")) == [
        ("pod", "web-1", "name", "team-a/web-1", "team-a/web")
    ]


def test_a_card_leads_to_its_node_and_a_job_is_found_by_its_uid() -> None:
    job = structs.replace(training_job(), uid="5d1e-aa01")
    snapshot = cluster(
        [gpu_node(), shared_node()],
        [pod("bert-worker-0", "gpu-1", GPU, job=job)],
        [job],
        [reading()],
    )
    uuid = reading().uuid
    (card,) = found(snapshot, uuid.lower())
    assert (card.kind, card.node, card.gpu_index, card.field, card.text) == (
        "gpu",
        "gpu-1",
        0,
        "uuid",
        uuid,
    )
    assert {(hit.kind, hit.node, hit.gpu_index) for hit in found(snapshot, "GPU-share")} == {
        ("gpu", "share-1", 0),
        ("gpu", "share-1", 1),
    }
    assert [(hit.kind, hit.job, hit.field) for hit in found(snapshot, "5d1e")] == [
        ("job", "pytorchjob/bert", "uid")
    ]


def test_a_pod_links_to_its_pages() -> None:
    job = training_job()
    pods = [
        pod("bert-worker-0", "gpu-1", GPU, job=job),
        pod("plain", "gpu-1"),
        pod("done", "gpu-1", GPU, phase="Succeeded"),
        pod("waits", "", GPU),
    ]
    hits = {
        hit.name: hit
        for hit in found(cluster([gpu_node()], pods, [job]), "team-a/")
        if hit.kind == "pod"
    }
    printed = {name: (hit.job, hit.node, hit.holds_gpu) for name, hit in hits.items()}
    assert printed == {
        "bert-worker-0": ("pytorchjob/bert", "gpu-1", True),
        "plain": ("", "gpu-1", False),
        "done": ("", "gpu-1", False),
        "waits": ("", "", False),
    }


def test_the_nearest_come_first_and_what_is_left_out_is_counted() -> None:
    names = ["x-web", "xweb", "web", "web-2", *(f"later-web-{n}" for n in range(40))]
    seen = BoardState(cluster([gpu_node()], [pod(name) for name in names]), EPOCH)
    answer = seen.search("web", 4)
    assert [hit.name for hit in answer.items] == ["web", "web-2", "later-web-0", "later-web-1"]
    assert (answer.total, answer.left_out) == (44, 40)


def test_a_few_letters_are_looked_for_in_no_id_and_a_label_only_where_an_equals_sign_is() -> None:
    one = structs.replace(labelled("web", app="abc"), uid="abc-def")
    snapshot = cluster([], [one])
    assert found(snapshot, "abc") == []
    assert [hit.field for hit in found(snapshot, "abc-")] == ["uid"]
    assert [hit.field for hit in found(snapshot, "=abc")] == ["label"]
    assert [hit.field for hit in found(snapshot, "app=")] == ["label"]
    assert found(snapshot, "app=b") == []


def test_a_user_that_may_see_some_namespaces_finds_pods_and_jobs_of_those_alone() -> None:
    snapshot = cluster(
        [gpu_node()],
        [pod("web-1"), pod("web-2", namespace="team-b")],
        [training_job(), training_job(namespace="team-b")],
    )
    assert {
        (hit.kind, hit.namespace) for hit in found(snapshot, "team-", namespaces={"team-a"})
    } == set()
    assert {hit.namespace for hit in found(snapshot, "web", namespaces={"team-a"})} == {"team-a"}
    assert {hit.namespace for hit in found(snapshot, "bert", namespaces={"team-a"})} == {"team-a"}
    assert {hit.namespace for hit in found(snapshot, "team-b/", namespaces={"team-a"})} == set()


def test_letters_that_grow_in_lower_case_do_not_tear_the_text() -> None:
    malformed = pod("İstanbul-web")
    assert reported(found(cluster([], [malformed]), "web")) == [
        ("pod", "İstanbul-web", "name", "İstanbul-web", "İstanbul-web")
    ]


LETTERS = "ab-1"


@pytest.mark.parametrize("seed", range(40))
def test_it_finds_what_a_look_at_every_field_finds(seed: int) -> None:
    some = random.Random(seed)

    def word(length: int) -> str:
        return "".join(some.choice(LETTERS) for _ in range(length))

    pods = [
        structs.replace(
            pod(f"{word(5)}{n}"),
            uid=f"{word(8)}-{n}",
            labels={word(2): word(3) for _ in range(some.randrange(4))},
        )
        for n in range(30)
    ]
    snapshot = cluster([], pods)
    for asked in (word(1), word(2), word(4), f"{word(1)}={word(1)}", f"{word(1)}="):
        expected = {
            each.name
            for each in pods
            if asked in each.name
            or (len(asked) > 3 and asked in each.uid)
            or (
                "=" in asked
                and any(asked in f"{key}={value}" for key, value in each.labels.items())
            )
        }
        hits = found(snapshot, asked)
        assert {hit.name for hit in hits} == expected, asked
        assert all(hit.piece == asked and asked in hit.text for hit in hits)


def test_pods_that_cannot_be_read_are_reported_and_not_a_cluster_without_pods() -> None:
    unread = Source("pods", SourceState.FORBIDDEN, "forbidden", "ask for the right")
    answer = BoardState(
        structs.replace(living_cluster(), pods=(), sources={"pods": unread}), EPOCH
    ).search("worker", 12)
    assert [(warning.code, warning.source) for warning in answer.warnings] == [
        ("forbidden", "pods")
    ]
