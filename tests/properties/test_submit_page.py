"""For random flag sets the page Submit writes the objects that the type's command prints with
`--dry-run`, and the command that the page shows prints the same.
"""

from __future__ import annotations

import shlex

from hypothesis import strategies as st
from tests.cli.submitting import KeepingCluster, create
from tests.examples import examples
from tests.properties.flag_sets import cron_flag_sets, flag_sets

from fairlead.cli.submit.forms import SubmitForms
from fairlead.console.http.writing.job_forms import WrittenJob
from fairlead.console.pages.writing.jobs import JobForm, JobSubmission
from fairlead.kinds.parts.elastic_training import SshKeys
from fairlead.kinds.submission import Served
from fairlead.wire.files.manifest_yaml import render_manifests

FORMS = SubmitForms(lambda: SshKeys("private", "public"))
FORM_OF = {form.type: form for form in FORMS.forms()}
FILES = "--config-file="
"""No page reads a file of the user's machine."""
USERS = st.sampled_from(["", "alice", "system:serviceaccount:kube-ai:b"])


def body_of(type_: str, words: list[str]) -> JobSubmission:
    """The body of these words of a command line."""
    place = words.index("--")
    form, command = FORM_OF[type_], words[place + 1 :]
    flags: dict[str, bool | str | list[str]] = {}
    name = ""
    for word in words[:place]:
        flag, has_value, value = word.removeprefix("--").partition("=")
        if flag == "name":
            name = value
        elif kind_of(form, flag) == "many":
            flags[flag] = [*_texts(flags.get(flag)), value]
        else:
            flags[flag] = value if has_value else True
    joined = shlex.join(command) if type_ == "sparkjob" else " ".join(command)
    return JobSubmission(type_, "default", name, joined, flags)


def _texts(value: object) -> list[str]:
    return value if isinstance(value, list) else []


def kind_of(form: JobForm, flag: str) -> str:
    [found] = [each.kind for each in form.flags if each.name == flag]
    return found


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
