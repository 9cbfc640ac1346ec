"""Whether a job that is about to be submitted would start.

The answer to a researcher names nothing of another team.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.console.clusters import EPOCH
from tests.console.tenants import ANY, BOB, MARK, SAME_FIGURES, Others, snapshot
from tests.examples import examples

from fairlead.cli.submit.forms import SubmitForms
from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.restricted.board import RestrictedBoard, SharedBoard
from fairlead.console.boards.submitting.verdict import PODS_MAX, serving_verdict, submit_verdict
from fairlead.console.http.writing.job_forms import WrittenJob
from fairlead.console.pages.writing.jobs import JobSubmission, SubmitVerdict
from fairlead.kinds.parts.elastic_training import SshKeys
from fairlead.kinds.submission import Served
from fairlead.model.people.reach import reach_of
from fairlead.rules.people.restricted import restricted

FORMS = SubmitForms(lambda: SshKeys("", ""))


def verdict(board: BoardState, type_: str = "pytorchjob", **flags: Any) -> SubmitVerdict:
    """`flags`: of the command, with `_` for `-`; `namespace` is one of them."""
    place = flags.pop("namespace", "team-a")
    given = {name.replace("_", "-"): value for name, value in flags.items()}
    asked = JobSubmission(type_, place, "new", "train", {"image": "i", **given})
    job = FORMS.read(asked, is_trial=True)
    assert isinstance(job, WrittenJob), job
    kind = job.submission.kind
    objects = FORMS.objects(job, Served(kind.CREATED_VERSIONS[:1]))
    [manifest] = [each for each in objects if each["kind"] == kind.KIND]
    return submit_verdict(board, kind, manifest, "bob", 0)


def whole(others: Others) -> SharedBoard:
    return SharedBoard(snapshot(others), EPOCH)


def of_bob(board: SharedBoard) -> RestrictedBoard:
    reach = reach_of(BOB)
    assert reach is not None
    return RestrictedBoard(board, restricted(board.snapshot, reach), reach, EPOCH)


@pytest.mark.parametrize(
    ("flags", "state", "reason"),
    [
        ({}, "starts", ""),
        ({"cpu": "1", "workers": "2"}, "starts", ""),
        ({"gpus": "1"}, "starts", ""),
        ({"gpus": "8"}, "never", "NeverFits"),
        ({"cpu": "31"}, "never", "NeverFits"),
        ({"gpus": "7"}, "waits", None),
        ({"gpus": "2", "workers": "3"}, "waits", None),
        ({"gpus": "2", "workers": "4"}, "never", "NeverFits"),
        ({"selector": ["no=where"]}, "waits", "NoFitOnNodes"),
        ({"workers": str(PODS_MAX + 1)}, "unknown", ""),
    ],
)
def test_quota_and_nodes_decide(flags: dict[str, Any], state: str, reason: str | None) -> None:
    """root.a.1 may have 7 GPUs and 30 cores; gpu-1 has 8 GPUs."""
    found = verdict(whole(Others(held=0)), **flags)
    assert found.state == state, found
    assert reason is None or found.reason == reason, found
    assert bool(found.message) == (state in ("waits", "never"))


@pytest.mark.parametrize(
    ("flags", "state"),
    [
        ({"gpus": "1"}, "starts"),
        ({"gpus": "9"}, "never"),
        ({"gpus": "8"}, "waits"),
        ({"gpus": "3", "workers": "2"}, "waits"),
        ({"device": ["amd.com/gpu=1"]}, "never"),
    ],
)
def test_outside_the_tree_nodes_decide(flags: dict[str, Any], state: str) -> None:
    """Of the 8 GPUs of gpu-1 some are held."""
    found = verdict(whole(Others()), namespace="free", **flags)
    assert found.state == state, found
    assert (found.message != "") == (state != "starts")
    assert found.reason == ""


def test_one_more_than_the_nodes_hold_together_waits() -> None:
    board = whole(Others())
    free = (
        next(
            count
            for count in range(1, 10)
            if verdict(board, gpus="1", workers=str(count), namespace="free").state != "starts"
        )
        - 1
    )
    assert free > 1
    found = verdict(board, namespace="free", gpus="1", workers=str(free + 2))
    assert found.message == f"the nodes have room for {free} of its {free + 2} pods"


ASKED = (
    {"gpus": "1"},
    {"gpus": "6"},
    {"gpus": "2", "workers": "3"},
    {"cpu": "12"},
    {"cpu": "12", "workers": "2"},
    {"gpumemory": "20"},
    {"gpumemory": "4", "workers": "3"},
)


@examples(5, 60, ANY)
def test_a_researcher_reads_no_name_of_another_team(others: Others) -> None:
    board = whole(others)
    own = of_bob(board)
    for asked in ASKED:
        seen, all_of_it = verdict(own, **asked), verdict(board, **asked)
        assert MARK not in msgspec.json.encode(seen).decode()
        assert (seen.state, seen.reason) == (all_of_it.state, all_of_it.reason)


@examples(5, 60, SAME_FIGURES)
def test_the_verdict_is_the_same_whatever_others_are_called(others: Others) -> None:
    same = of_bob(whole(replace(Others(), waiting=others.waiting)))
    other = of_bob(whole(others))
    for asked in ASKED:
        assert verdict(other, **asked) == verdict(same, **asked)


@pytest.mark.parametrize(
    ("flags", "state", "reason"),
    [
        ({"gpus": "1"}, "starts", ""),
        ({"gpus": "2", "replicas": "1"}, "starts", ""),
        ({"gpus": "2", "replicas": "2"}, "waits", "OverMax"),
        ({"gpus": "8"}, "never", "NeverFits"),
    ],
)
def test_quota_decides_on_the_pods_of_a_deployment(
    flags: dict[str, Any], state: str, reason: str
) -> None:
    """Each pod is admitted by itself: the second would be over the 7 GPUs of root.a.1."""
    given = {"image": "i", "port": "80", "version": "v1", **flags}
    job = FORMS.read(JobSubmission("custom-serving", "team-a", "new", "", given), is_trial=True)
    assert isinstance(job, WrittenJob), job
    deployment, _ = FORMS.objects(job, Served(("v1",)))
    found = serving_verdict(whole(Others(held=0)), deployment, "bob")
    assert (found.state, found.reason) == (state, reason), found
