"""The page of one job: the steps of its life, which container has a log, a manifest without
secrets.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.console.clusters import EPOCH, GATED, pod, training_job

from fairlead.console.boards.job_files import chosen_container, instance_logs
from fairlead.console.boards.job_life import job_life
from fairlead.console.http.log_streams import parse_log_request
from fairlead.errors import UserError
from fairlead.model.event import Event
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.node import Condition
from fairlead.model.pod import Container, ContainerState, ContainerStatus, Pod
from fairlead.model.refusal import Refusal
from fairlead.wire.files.shown_manifest import shown_manifest
from fairlead.wire.kube.time import parse_time
from fairlead.wire.text.secret_words import HIDDEN

structs = msgspec.structs


def bound(name: str, at: float, started: float | None, **status: Any) -> Pod:
    state = ContainerState.WAITING if started is None else ContainerState.RUNNING
    made = pod(name, "gpu-1", {"nvidia.com/gpu": 1}, job=training_job())
    reported = ContainerStatus("main", state=state, started_at=started, **status)
    conditions = (
        Condition("PodScheduled", "True", at=at),
        Condition("fairlead.io/QuotaAdmitted", "True", at=at - 5),
    )
    return structs.replace(made, conditions=conditions, statuses=(reported,))


def steps(
    each: JobInstances, events: tuple[Event, ...] = ()
) -> list[tuple[str, float, int | None]]:
    return [
        (step.step, parse_time(step.at) - EPOCH, step.seconds)
        for step in job_life(each, events, EPOCH)
    ]


def test_a_life_is_listed_in_order_each_step_up_to_the_next_the_last_up_to_now() -> None:
    pods = (
        bound("bert-worker-0", EPOCH - 200, EPOCH - 150),
        bound("bert-worker-1", EPOCH - 180, EPOCH - 140),
    )
    pulled = tuple(
        Event(
            "team-a",
            f"e{i}",
            reason="Pulled",
            object_uid=f"uid-bert-worker-{i}",
            object_name=f"bert-worker-{i}",
            at=EPOCH - 170 + 10 * i,
        )
        for i in (0, 1)
    )
    other = Event("team-a", "f", reason="Pulled", object_uid="somebody", at=EPOCH - 290)
    assert steps(JobInstances(training_job(), pods), (*pulled, other)) == [
        ("created", -300, 115),
        ("admitted", -185, 5),
        ("scheduled", -180, 20),
        ("images", -160, 20),
        ("running", -140, 140),
    ]


def test_pods_that_start_at_different_times_are_listed_in_the_order_of_meaning() -> None:
    """One pod ran for 100 s before the last one was bound. The order follows the meaning of the
    steps, not their times.
    """
    early = bound("bert-worker-0", EPOCH - 200, EPOCH - 150)
    pulled = Event(
        "team-a",
        "e",
        reason="Pulled",
        object_uid="uid-bert-worker-0",
        object_name="bert-worker-0",
        at=EPOCH - 160,
    )
    waits, late = (
        bound("bert-worker-1", EPOCH - 50, None),
        bound("bert-worker-1", EPOCH - 50, EPOCH - 20),
    )
    assert steps(JobInstances(training_job(), (early, waits)), (pulled,))[2:] == [
        ("scheduled", -50, 0),
        ("running", -50, 50),
    ]
    assert steps(JobInstances(training_job(), (early, late)), (pulled,))[2:] == [
        ("scheduled", -50, 30),
        ("running", -20, 20),
    ]
    counts = [
        [
            (step.count, step.of)
            for step in job_life(JobInstances(training_job(), (early, last)), (), EPOCH)
            if step.step == "running"
        ]
        for last in (waits, late)
    ]
    assert counts == [[(1, 2)], [(2, 2)]]


def test_a_restart_before_the_last_pod_ran_does_not_go_back_in_time() -> None:
    again = bound(
        "bert-worker-0", EPOCH - 200, EPOCH - 100, restarts=1, last_finished_at=EPOCH - 110
    )
    for started, last in (
        (EPOCH - 20, ("running", -20, 20)),
        (EPOCH - 150, ("restarted", -110, 110)),
    ):
        other = bound("bert-worker-1", EPOCH - 180, started)
        assert steps(JobInstances(training_job(), (again, other)))[-1] == last


def made(of: Pod, ago: float) -> Pod:
    return structs.replace(of, created_at=EPOCH - ago)


def test_a_job_whose_pods_came_anew_did_not_wait_for_quota_all_that_time() -> None:
    """The job is 23 minutes old; its pods were replaced two minutes ago and waited 15 s
    for quota.
    """
    job = training_job(created_at=EPOCH - 1380)
    pods = [made(bound(f"bert-worker-{n}", EPOCH - 100, EPOCH - 60), 120) for n in range(2)]
    each = JobInstances(job, tuple(pods))
    assert steps(each) == [
        ("created", -1380, 1260),
        ("pods", -120, 15),
        ("admitted", -105, 5),
        ("scheduled", -100, 40),
        ("running", -60, 60),
    ]
    assert [(step.count, step.of) for step in job_life(each, (), EPOCH) if step.step == "pods"] == [
        (2, 2)
    ]


def test_one_pod_that_came_anew_moves_nothing_of_the_others() -> None:
    job = training_job(created_at=EPOCH - 1380)
    old = made(bound("bert-worker-0", EPOCH - 1300, EPOCH - 1200), 1379)
    late = made(pod("bert-worker-1", job=job, gates=GATED), 60)
    each = JobInstances(job, (old, late))
    assert steps(each) == [
        ("created", -1380, 80),
        ("scheduled", -1300, 100),
        ("running", -1200, 1140),
        ("pods", -60, 60),
    ]
    assert [(step.count, step.of) for step in job_life(each, (), EPOCH) if step.step == "pods"] == [
        (1, 2)
    ]


@pytest.mark.parametrize(("ago", "reported"), [(1321, False), (1320, False), (1319, True)])
def test_pods_that_a_controller_makes_within_a_minute_are_no_step(
    ago: float, reported: bool
) -> None:
    job = training_job(created_at=EPOCH - 1380)
    each = JobInstances(job, (made(bound("bert-worker-0", EPOCH - 1300, EPOCH - 1200), ago),))
    assert ("pods" in [step.step for step in job_life(each, (), EPOCH)]) is reported


def test_what_is_not_reported_is_left_out() -> None:
    job = structs.replace(training_job(state="Created"), conditions=())
    assert steps(JobInstances(job)) == [("created", -300, 300)]
    assert steps(JobInstances(structs.replace(job, created_at=None))) == []
    gated = pod("bert-worker-0", job=job, gates=GATED)
    assert [
        step
        for step, _, _ in steps(JobInstances(job, (gated, bound("bert-worker-1", EPOCH - 9, None))))
    ] == ["created", "scheduled"]


def test_of_two_pods_one_may_be_scheduled() -> None:
    waiting = pod("bert-worker-1", job=training_job())
    life = job_life(
        JobInstances(training_job(), (bound("bert-worker-0", EPOCH - 200, None), waiting)),
        (),
        EPOCH,
    )
    assert [(step.count, step.of) for step in life if step.step == "scheduled"] == [(1, 2)]


def test_a_start_after_a_restart_is_not_when_it_began_to_run() -> None:
    job = structs.replace(training_job(), conditions=())
    again = bound("bert-worker-0", EPOCH - 200, EPOCH - 20, restarts=3, last_finished_at=EPOCH - 30)
    life = job_life(JobInstances(job, (again,)), (), EPOCH)
    assert [(step.step, step.count) for step in life][-1] == ("restarted", 3)
    assert "running" not in [step.step for step in life]


def test_an_end_shows_how_and_lasts_no_time() -> None:
    ended = training_job(state="Failed", finished_at=EPOCH - 10)
    last = job_life(JobInstances(ended), (), EPOCH)[-1]
    assert (last.step, last.seconds, last.status) == ("ended", None, "Failed")


def test_only_what_began_has_a_log_and_the_others_give_the_reason() -> None:
    waits = ContainerStatus(
        "main", state=ContainerState.WAITING, reason="ImagePullBackOff", message="no such image"
    )
    late = structs.replace(bound("bert-worker-0", EPOCH, None), statuses=(waits,), phase="Pending")
    runs = bound("bert-worker-1", EPOCH, EPOCH - 1)
    first, second = instance_logs(JobInstances(training_job(), (late, runs), chief=runs))
    assert (first.pod, first.begun, first.running, first.why) == ("bert-worker-1", True, True, "")
    assert (second.begun, second.running) == (False, False)
    assert "no such image" in second.why


def test_a_pod_of_another_owner_is_refused_whatever_its_name() -> None:
    own = structs.replace(
        bound("bert-worker-0", EPOCH, EPOCH), init_containers=(Container("code"),)
    )
    each = JobInstances(training_job(), (own,))
    assert chosen_container(each, "", "") == (own, "main")
    assert chosen_container(each, "bert-worker-0", "code") == (own, "code")
    for names in (("gpt-worker-0", ""), ("bert-worker-0", "sidecar"), ("../secrets", "")):
        assert isinstance(chosen_container(each, *names), Refusal)
    none = chosen_container(JobInstances(training_job()), "", "")
    assert isinstance(none, Refusal) and "no log: 0 of " in none.reason
    over = training_job(state="Succeeded")
    gone = chosen_container(JobInstances(over), "", "")
    assert isinstance(gone, Refusal) and gone.reason.endswith(
        "the job has ended and its pods are gone"
    )


SECRET = "hunter2"


def test_no_secret_of_a_manifest_is_shown_and_each_place_is_named() -> None:
    fields = [{"manager": "kubectl", "fieldsV1": {"value": SECRET}}]
    container = {
        "env": [
            {"name": "WANDB_API_KEY", "value": SECRET},
            {"name": "hf_token", "value": SECRET},
            {"name": "DB_Password", "value": SECRET},
            {"name": "MODEL", "value": "bert"},
            {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "token"}}},
        ],
        "args": [
            "train",
            f"--api-key={SECRET}",
            "--token",
            SECRET,
            "--epochs=3",
            f"run --password {SECRET} x",
        ],
    }
    embedded = {"kind": "Secret", "stringData": {"password": SECRET}, "data": {"a": SECRET}}
    last = {
        "kubectl.kubernetes.io/last-applied-configuration": f'{{"value":"{SECRET}"}}',
        "kept": "yes",
    }
    manifest = {
        "metadata": {"managedFields": fields, "annotations": last},
        "spec": {"containers": [container], "extra": [embedded]},
    }
    shown, redacted = shown_manifest(manifest)
    assert SECRET not in repr(shown)
    assert shown["metadata"] == {"annotations": {"kept": "yes"}}
    assert shown["spec"]["containers"][0]["env"][3:] == container["env"][3:]
    args = shown["spec"]["containers"][0]["args"]
    assert args == [
        "train",
        f"--api-key={HIDDEN}",
        "--token",
        HIDDEN,
        "--epochs=3",
        f"run --password {HIDDEN} x",
    ]
    assert redacted == [
        *(f"spec.containers[0].env[{n}].value" for n in range(3)),
        *(f"spec.containers[0].args[{n}]" for n in (1, 3, 5)),
        "spec.extra[0].stringData.password",
        "spec.extra[0].data.a",
    ]
    assert SECRET in repr(manifest), "the object itself is left as it was"


@pytest.mark.parametrize(
    "asked",
    [
        {"tail": "0"},
        {"tail": "10001"},
        {"tail": "-1"},
        {"tail": "٣"},
        {"follow": "yes"},
        {"previous": "true", "follow": "true"},
    ],
)
def test_a_wish_that_cannot_be_is_refused_by_name(asked: dict[str, str]) -> None:
    with pytest.raises(UserError, match=f"`{next(iter(asked))}`"):
        parse_log_request("main", asked)


def test_a_wish_is_bounded_unless_it_is_followed() -> None:
    whole, followed = (
        parse_log_request("main", {}),
        parse_log_request("main", {"follow": "true", "tail": "10000"}),
    )
    assert (whole.tail_lines, whole.limit_bytes, whole.follow) == (500, 2 << 20, False)
    assert (followed.tail_lines, followed.limit_bytes, followed.follow) == (10_000, 0, True)
