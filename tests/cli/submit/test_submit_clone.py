"""A job that exists as a body of the page Submit: the same job again, or what is lost is named."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apps.submit_forms import FORMS
from tests.examples import examples
from tests.properties.flag_sets import flag_sets
from tests.properties.submit_bodies import FILES, body_of

from fairlead.console.http.writing.job_forms import WrittenJob
from fairlead.console.pages.writing.jobs import JobClone, JobSubmission
from fairlead.kinds.submission import Served
from fairlead.model.actions import Manifest
from fairlead.wire.files.shown_manifest import shown_manifest

USER = "system:serviceaccount:kube-ai:bob"


def job_of(asked: JobSubmission) -> Manifest:
    job = FORMS.read(asked, is_trial=True)
    assert isinstance(job, WrittenJob), job
    kind = job.submission.kind
    objects = FORMS.objects(job, Served(kind.CREATED_VERSIONS[:1], None, USER))
    [found] = [each for each in objects if each["kind"] == kind.KIND]
    return found


def again(type_: str, clone: JobClone, name: str) -> Manifest:
    """What the clone makes, under the first name."""
    asked = clone.submission
    return job_of(JobSubmission(type_, asked.namespace, name, asked.command, asked.flags))


CASES: list[tuple[str, dict[str, Any]]] = [
    ("pytorchjob", {"gpus": "2", "workers": "4", "cpu": "4", "memory": "8Gi", "gang": True}),
    ("pytorchjob", {"env": ["A=b", "C=d e"], "env-from-secret": ["S=secret:k"]}),
    ("pytorchjob", {"data": ["c:/d"], "data-dir": ["/a:/b"], "share-memory": "4Gi"}),
    ("pytorchjob", {"selector": ["a=b"], "toleration": ["all", "k=v:NoSchedule,Equal"]}),
    ("pytorchjob", {"priority": "high", "running-timeout": "3600s", "retry": "3"}),
    ("pytorchjob", {"sync-mode": "git", "sync-source": "https://h/r.git", "queue": True}),
    ("pytorchjob", {"tensorboard": True, "data": ["c:/training_logs"], "gpumemory": "4"}),
    ("mpijob", {"workers": "3", "gpus": "1", "mounts-on-launcher": True, "shell": "bash"}),
    ("tfjob", {"workers": "2", "ps": "1", "chief": True, "worker-cpu": "2", "ps-memory": "3Gi"}),
    ("rayjob", {"worker-replicas": "2", "worker-gpu": "1", "head-cpu": "2"}),
    ("etjob", {"workers": "2", "max-workers": "5", "ssh-secret": "keys"}),
    ("deepspeedjob", {"workers": "2", "gpus": "1", "launcher-selector": ["a=b"]}),
    ("volcanojob", {"task-replicas": "2", "min-available": "1", "task-gpus": "1"}),
    ("sparkjob", {"replicas": "3", "main-class": "a.B", "executor-memory-request": "2g"}),
]


@pytest.mark.parametrize(("type_", "flags"), CASES)
def test_a_clone_makes_the_same_job_under_another_name(type_: str, flags: dict[str, Any]) -> None:
    image = {"task-images": ["i,j"]} if type_ == "volcanojob" else {"image": "i"}
    job = job_of(JobSubmission(type_, "a-ns", "bert", "python t.py --x 'a b'", {**image, **flags}))
    clone = FORMS.cloned(type_, job)
    assert clone.lost == []
    assert clone.submission.name == "bert-2"
    assert again(type_, clone, "bert") == job


@examples(3, 120, flag_sets())
def test_what_a_clone_does_not_carry_over_is_named(words: list[str]) -> None:
    flags = words[: words.index("--")] if "--" in words else words
    once = [*dict.fromkeys(flags), *words[len(flags) :]]  # a Secret that is named twice is one
    asked = body_of(once[0], [word for word in once[1:] if not word.startswith(FILES)])
    job = job_of(asked)
    clone = FORMS.cloned(asked.type, job)
    assert bool(clone.lost) == (_plain(again(asked.type, clone, asked.name)) != _plain(job))


def _plain(value: Any) -> Any:
    """Without empty values, and without the fields of a job that begins suspended."""
    if isinstance(value, dict):
        found = {key: _plain(each) for key, each in value.items() if key != "suspend"}
        return {key: each for key, each in found.items() if each not in (None, "", {}, [], 0)}
    if isinstance(value, list):
        return sorted(map(_plain, value), key=str)
    return str(value) if value else value


def test_a_default_that_is_absent_from_the_job_is_named() -> None:
    flags = {"image": "i", "worker-replicas": "1", "pre-stop-command": ""}
    job = job_of(JobSubmission("rayjob", "a-ns", "j", "x", flags))
    lost = FORMS.cloned("rayjob", job).lost
    assert lost and all("lifecycle" in path for path in lost), lost


def test_no_secret_value_comes_with_a_clone() -> None:
    secret = JobSubmission("pytorchjob", "a-ns", "j", "x", {"image": "i", "env": ["HF_TOKEN=abc"]})
    clone = FORMS.cloned("pytorchjob", shown_manifest(job_of(secret))[0])
    assert "env" not in clone.submission.flags
    assert any("HF_TOKEN" in path for path in clone.lost)


def test_what_others_wrote_is_named_and_what_controllers_wrote_is_not() -> None:
    job = job_of(JobSubmission("mpijob", "a-ns", "j", "x", {"image": "i"}))
    job["metadata"]["labels"]["arena.kubeflow.org/console-user"] = "bob"
    job["metadata"]["annotations"]["fairlead.io/suspended-for"] = "x/y"
    job["metadata"]["uid"] = "1"
    job["status"] = {"conditions": []}
    job["spec"]["runPolicy"]["suspend"] = True
    assert FORMS.cloned("mpijob", job).lost == []
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["dnsPolicy"] = "None"
    assert FORMS.cloned("mpijob", job).lost == [
        "spec.mpiReplicaSpecs.Worker.template.spec.dnsPolicy"
    ]
