"""For random flag sets the page Submit writes the objects that `arena submit --dry-run` prints, and
the command that the page shows prints the same.
"""

from __future__ import annotations

import shlex

from hypothesis import strategies as st
from tests.cli.submitting import KeepingCluster, submit
from tests.examples import examples
from tests.properties.flag_sets import flag_sets

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


def body_of(words: list[str]) -> JobSubmission:
    """The body of these words of a command line."""
    place = words.index("--")
    form, command = FORM_OF[words[0]], words[place + 1 :]
    flags: dict[str, bool | str | list[str]] = {}
    name = ""
    for word in words[1:place]:
        flag, has_value, value = word.removeprefix("--").partition("=")
        if flag == "name":
            name = value
        elif kind_of(form, flag) == "many":
            flags[flag] = [*_texts(flags.get(flag)), value]
        else:
            flags[flag] = value if has_value else True
    joined = shlex.join(command) if form.type == "sparkjob" else " ".join(command)
    return JobSubmission(form.type, "default", name, joined, flags)


def _texts(value: object) -> list[str]:
    return value if isinstance(value, list) else []


def kind_of(form: JobForm, flag: str) -> str:
    [found] = [each.kind for each in form.flags if each.name == flag]
    return found


def printed(words: list[str], user: str) -> str:
    """What the command prints, byte for byte."""
    place = words.index("--") if "--" in words else len(words)
    return submit([*words[:place], "--dry-run", *words[place:]], KeepingCluster(user=user)).out


@examples(15, 300, flag_sets(), st.sampled_from(["", "alice", "system:serviceaccount:kube-ai:b"]))
def test_the_page_writes_what_the_command_prints(words: list[str], user: str) -> None:
    words = [word for word in words if not word.startswith(FILES)]
    job = FORMS.read(body_of(words), is_trial=False)
    assert isinstance(job, WrittenJob), job
    served = Served(job.submission.kind.CREATED_VERSIONS[:1], None, user)
    written = render_manifests(FORMS.objects(job, served))
    assert written == printed(words, user)
    program, verb, *line = shlex.split(job.line)
    assert (program, verb) == ("arena", "submit")
    assert printed(line, user) == written
