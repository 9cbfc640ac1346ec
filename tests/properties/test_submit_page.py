"""For random flag sets the page Submit writes the objects that the type's command prints with
`--dry-run`, and the command that the page shows prints the same.
"""

from __future__ import annotations

import shlex

import pytest
from hypothesis import strategies as st
from tests.apps.submit_forms import FORMS
from tests.cli.submitting import KeepingCluster, create
from tests.examples import examples
from tests.properties.flag_sets import cron_flag_sets, drawn_cron_flags, drawn_flags, flag_sets
from tests.properties.serving_flag_sets import drawn_serving_flags, serving_flag_sets
from tests.properties.submit_bodies import FILES, FORM_OF, body_of, joined

from fairlead.cli.submit.forms import TYPES
from fairlead.console.http.writing.job_forms import WrittenJob
from fairlead.kinds.submission import Served
from fairlead.wire.files.manifest_yaml import render_manifests

USERS = st.sampled_from(["", "alice", "system:serviceaccount:kube-ai:b"])


def printed(command: list[str], words: list[str], user: str) -> str:
    """What the command prints, byte for byte."""
    place = words.index("--") if "--" in words else len(words)
    line = [*command, *words[:place], "--dry-run", *words[place:]]
    return create(line, KeepingCluster(user=user), None).out


def check(type_: str, command: list[str], words: list[str], user: str) -> None:
    words = [word for word in words if not word.startswith(FILES)]
    job = FORMS.read(body_of(type_, words), is_trial=False)
    assert isinstance(job, WrittenJob), job
    served = Served(job.submission.kind.CREATED_VERSIONS[:1], None, user)
    written = render_manifests(FORMS.objects(job, served))
    assert written == printed(command, words, user)
    program, *line = shlex.split(job.line)
    assert (program, line[:2]) == ("arena", command)
    assert printed(command, line[2:], user) == written


@examples(15, 300, flag_sets(), USERS)
def test_the_page_writes_what_the_command_prints(words: list[str], user: str) -> None:
    check(words[0], ["submit", words[0]], words[1:], user)


@examples(8, 150, cron_flag_sets(), USERS)
def test_the_page_writes_the_cron_that_the_command_prints(words: list[str], user: str) -> None:
    check(f"cron-{words[0]}", ["cron", words[0]], words[1:], user)


@examples(10, 300, serving_flag_sets(), USERS)
def test_the_page_writes_the_serving_job_that_the_command_prints(
    words: list[str], user: str
) -> None:
    verb, *flags = words
    type_ = SERVED[verb]
    values = {flag.name for flag in FORM_OF[type_].flags if flag.kind != "truth"}
    check(type_, ["serve", verb], joined(flags, values), user)


SERVED = {
    "custom": "custom-serving",
    "tensorflow": "tf-serving",
    "triton": "triton-serving",
    "kserve": "kserve",
}
TRAINING = [
    "--tensorboard --logdir=/l --data=c:/l --tensorboard-image=t:1",
    "--model-name=m --model-source=pvc://c/p",
    "--sync-mode=git --sync-source=s --sync-image=g:1",
]
MEMORY_LIMITS = [f"--{role}-memory-limit=2Gi" for role in ("worker", "ps", "chief", "evaluator")]
TFJOB = [
    *TRAINING,
    f"--chief --evaluator --ps=1 {' '.join(MEMORY_LIMITS)}",
    "--ps=1 --worker-image=w --ps-image=p --starting-timeout=5m",
]
SUBPATHS = [
    "--data=c:/m --data-subpath-expr=c:x",
    "--temp-dir=t:/t --temp-dir-subpath-expr=t:$(ARENA_POD_NAME)",
]
PROBES = [
    f"--{probe}-probe-action=tcpSocket --{probe}-probe-action-option=port:1 "
    f"--{probe}-probe-option=periodSeconds:1"
    for probe in ("liveness", "startup")
]
MORE: dict[str, list[str]] = {
    **dict.fromkeys(("pytorchjob", "mpijob", "deepspeedjob", "etjob"), TRAINING),
    "rayjob": [*TRAINING, "--shutdown-after-finished=false"],
    "tfjob": TFJOB,
    "cron-tfjob": ["--logdir=/l --tensorboard-image=t:1", *TFJOB[1:]],
    "custom-serving": [*SUBPATHS, "--restful-port=8080", "--max-unavailable=0", *PROBES],
    "tf-serving": [*SUBPATHS, "--image=t:1 --port=1 --restful-port=2"],
    "triton-serving": [
        *SUBPATHS,
        "--image=t:1 --allow-metrics --metrics-port=3 --grpc-port=4 --backend=python",
    ],
    "kserve": [
        *SUBPATHS,
        "--image=i --port=1 --metrics-port=2 --affinity-policy=spread "
        "--affinity-constraint=required --enable-prometheus --container-concurrency=1",
        "--storage-uri=s3://b --protocol-version=v2 --runtime-version=1 --scale-target=5",
    ],
}
"""Flags that the random sets do not draw, because each needs others."""
NEEDED = {
    "custom-serving": "--image=i --port=7000",
    "tf-serving": "--model-name=m --model-path=/m",
    "triton-serving": "--model-repository=/m",
    "kserve": "--model-format=sklearn",
    "cron-tfjob": "--image=i --schedule=@daily",
    "rayjob": "--image=i --worker-replicas=1",
}


@pytest.mark.parametrize("type_", MORE)
def test_flags_that_need_others_are_written_as_the_command_prints_them(type_: str) -> None:
    [serve] = [[verb] for verb, type_of in SERVED.items() if type_of == type_] or [[]]
    command = ["serve", *serve] if serve else ["submit", type_]
    command = ["cron", "tfjob"] if type_ == "cron-tfjob" else command
    elastic = ["--ssh-secret=keys"] if type_ in ("deepspeedjob", "etjob") else []
    version = ["--version=v1"] if serve else []
    for more in MORE[type_]:
        flags = [*NEEDED.get(type_, "--image=i").split(), *elastic, *version, *more.split()]
        check(type_, command, ["--name=j", *flags, "--", *([] if serve else ["x"])], "alice")


@pytest.mark.parametrize("type_", TYPES)
def test_every_flag_of_a_form_is_compared(type_: str) -> None:
    serve = {type_of: verb for verb, type_of in SERVED.items()}
    if type_ in serve:
        drawn = drawn_serving_flags(serve[type_])
    else:
        drawn = drawn_cron_flags() if type_ == "cron-tfjob" else drawn_flags(type_)
    more = {
        word.removeprefix("--").partition("=")[0]
        for line in MORE.get(type_, ())
        for word in line.split()
    }
    assert {flag.name for flag in FORM_OF[type_].flags} - drawn - more == set()
