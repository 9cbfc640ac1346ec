"""The forms of the page Submit: every flag of the command that needs no file, and all faults of a
body at once.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.submitting import create, submit

from fairlead.cli.frame.parser import HelpRequested
from fairlead.cli.frame.verbs import verbs_of
from fairlead.cli.submit.forms import LEFT_OUT, TYPES, SubmitForms
from fairlead.console.http.writing.job_forms import WrittenJob
from fairlead.console.pages.writing.jobs import JobSubmission
from fairlead.errors import UserError
from fairlead.kinds.parts.elastic_training import SshKeys
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.registry import KINDS
from fairlead.kinds.serving.spec import ServingSpec

FORMS = SubmitForms(lambda: SshKeys("", ""))


def body(flags: dict[str, Any] | None = None, **more: Any) -> JobSubmission:
    values = {"type": "pytorchjob", "namespace": "team-a", "name": "bert", "command": "train"}
    return JobSubmission(**{**values, **more}, flags={"image": "i", **(flags or {})})


def faults(asked: JobSubmission) -> dict[str, str]:
    found = FORMS.read(asked, is_trial=True)
    assert isinstance(found, list), found
    assert len({fault.path for fault in found}) == len(found)
    return {fault.path: fault.rule for fault in found}


COMMANDS = {
    **{kind.TYPE: f"submit {kind.TYPE}" for kind in KINDS},
    "custom-serving": "serve custom",
    "tf-serving": "serve tensorflow",
    "triton-serving": "serve triton",
    "kserve": "serve kserve",
    "cron-tfjob": "cron tfjob",
}
"""What each form does, as words after `arena`."""


def test_every_command_that_creates_has_a_form() -> None:
    assert set(TYPES) == COMMANDS.keys()
    assert [form.type for form in FORMS.forms()] == list(TYPES)
    words = (" ".join(verb.words) for verb in verbs_of("arena"))
    creating = {each for each in words if each.partition(" ")[0] in ("submit", "serve", "cron")}
    short = {"serve tf"}
    assert creating - OTHERS - short == set(COMMANDS.values())


OTHERS = {
    *(f"cron {verb}" for verb in ("list", "get", "delete", "suspend", "resume")),
    *(f"serve {verb}" for verb in ("list", "get", "delete", "logs", "attach")),
}


def test_a_form_names_the_kind_of_its_object() -> None:
    titles = {
        "custom-serving": ("Custom", "Deployment"),
        "tf-serving": ("Tensorflow", "Deployment"),
        "triton-serving": ("Triton", "Deployment"),
        "kserve": ("KServe", "InferenceService"),
    }
    for form in FORMS.forms():
        kind = FORMS.kind_of(form.type)
        assert kind is not None
        assert (form.kind, kind.KIND) == titles.get(form.type, (form.kind, form.kind))
    assert FORMS.kind_of("cron") is None and FORMS.kind_of("horovodjob") is None


@pytest.mark.parametrize("type_", TYPES)
def test_a_form_has_every_flag_of_the_commands_help_but_those_of_files(type_: str) -> None:
    with pytest.raises(HelpRequested) as help_:
        create([*COMMANDS[type_].split(), "--help"], None, None)
    own = help_.value.text.partition("global flags:")[0]
    named = {
        word.rstrip(",").removeprefix("--")
        for line in own.splitlines()
        if line.startswith("  -")
        for word in line.split()
        if word.startswith("--")
    }
    [form] = [each for each in FORMS.forms() if each.type == type_]
    shown = {flag.name for flag in form.flags}
    assert shown == named - LEFT_OUT - {"help"}


def test_all_faults_of_a_body_come_at_once_each_at_its_field() -> None:
    wrong = {"gpus": "-2", "cpu": "4x", "env": ["=b"], "gang": "yes", "tail": "1", "image": ""}
    asked = body(wrong, name="9x", namespace="Team", command=" ")
    assert faults(asked) == {
        "flags.gang": "type",
        "flags.tail": "unknown-field",
        "namespace": "value",
        "command": "required",
        "flags.image": "required",
        "name": "value",
        "flags.env": "value",
        "flags.gpus": "value",
        "flags.cpu": "value",
    }


def test_what_is_missing_is_required() -> None:
    missing = JobSubmission("rayjob", "team-a", "", "")
    assert faults(missing) == {
        "name": "required",
        "command": "required",
        "flags.worker-replicas": "required",
        "flags.image": "required",
    }


def test_faults_of_a_schedule_stand_at_their_fields() -> None:
    missing = JobSubmission("cron-tfjob", "team-a", "nightly", "train")
    assert faults(missing) == {"flags.schedule": "required", "flags.image": "required"}
    wrong = {"schedule": "0 0 31 2 *", "deadline": "soon", "history-limit": "-1", "gpus": "x"}
    assert faults(body({**wrong, "tensorboard": True}, type="cron-tfjob")) == {
        f"flags.{name}": "value" for name in (*wrong, "tensorboard")
    }
    asked = body({"concurrency-policy": "Sometimes", "schedule": "@daily"}, type="cron-tfjob")
    assert faults(asked) == {"flags.concurrency-policy": "value"}


@pytest.mark.parametrize(
    ("type_", "flags", "expected"),
    [
        ("custom-serving", {}, {"image": "required", "port": "required"}),
        ("custom-serving", {"image": "i", "port": "http"}, {"port": "value"}),
        ("custom-serving", {"image": "i", "port": "80", "version": "V"}, {"version": "value"}),
        (
            "custom-serving",
            {"image": "i", "port": "80", "gpus": "-1", "startup-probe-option": ["x"]},
            {"gpus": "value", "startup-probe-action": "required"},
        ),
        ("tf-serving", {}, {"model-name": "required", "model-path": "required"}),
        ("tf-serving", {"model-name": "a b", "model-path": "/m"}, {"model-name": "value"}),
        (
            "triton-serving",
            {"http-port": "0"},
            {"http-port": "value", "model-repository": "required"},
        ),
        ("triton-serving", {}, {"model-repository": "required"}),
        ("kserve", {}, {"model-format": "required"}),
        ("kserve", {"image": "i", "max-replicas": "0"}, {"max-replicas": "value"}),
        ("kserve", {"image": "i", "command": "x"}, {"command": "unknown-field"}),
    ],
)
def test_faults_of_a_serving_job_stand_at_their_fields(
    type_: str, flags: dict[str, Any], expected: dict[str, str]
) -> None:
    found = faults(JobSubmission(type_, "team-a", "bert", "", flags))
    assert found == {f"flags.{name}": rule for name, rule in expected.items()}


def test_a_serving_job_without_a_version_gets_the_time_in_its_command_too() -> None:
    times = iter((0.0, 60.0))
    forms = SubmitForms(lambda: SshKeys("", ""), lambda: next(times))
    asked = JobSubmission("custom-serving", "team-a", "bert", "", {"image": "i", "port": "80"})
    jobs = [forms.read(asked, is_trial=True) for _ in range(2)]
    versions = [job.line.partition("--version=")[2][:12] for job in jobs]  # type: ignore[union-attr]
    assert versions[0] != versions[1] and all(map(str.isdigit, versions))
    for job, version in zip(jobs, versions, strict=True):
        assert isinstance(job, WrittenJob) and isinstance(job.spec, ServingSpec)
        assert job.spec.version == version


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        ({"config-file": ["/etc/passwd"]}, "flags.config-file"),
        ({"file": "/etc/passwd"}, "flags.file"),
        ({"namespace": "kube-system"}, "flags.namespace"),
        ({"kubeconfig": "x"}, "flags.kubeconfig"),
        ({"name": "other"}, "flags.name"),
    ],
)
def test_no_flag_leads_out_of_the_form(flags: dict[str, Any], field: str) -> None:
    assert faults(body(flags)) == {field: "unknown-field"}


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_command_line_can_have_is_refused(text: str) -> None:
    assert list(faults(body({"image": text}))) in (["flags.image"], [""])
    assert list(faults(body(command=text))) in (["command"], [""])
    assert FORMS.read(body(name=text), is_trial=True)


def test_a_type_that_does_not_exist_is_named() -> None:
    assert faults(body(type="horovodjob")) == {"type": "value"}


def test_flags_that_exclude_each_other_are_refused_at_a_field() -> None:
    asked = {"worker-replicas": "1", "suspend": True, "shutdown-after-finished": False}
    assert faults(body(asked, type="rayjob")) == {"flags.suspend": "value"}


def test_the_machine_of_the_server_is_not_asked() -> None:
    """No settings of arena's config file, and no file."""
    with pytest.raises(UserError):
        submit(["pytorchjob", "--name=j", "--image=i", "--config-file=/nowhere", "true"])
    found = FORMS.read(body({"sync-mode": "git", "sync-source": "h"}), is_trial=True)
    assert not isinstance(found, list)
    assert isinstance(found.spec, JobSpec)
    assert found.spec.config_files == () and found.spec.pull_secrets == ()
