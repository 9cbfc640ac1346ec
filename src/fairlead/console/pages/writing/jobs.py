"""Bodies and answers of submitting a job, a serving job or a cron, and the form of each type."""

from __future__ import annotations

from typing import Literal

from fairlead.console.pages.envelope import FieldFault, Json, Sentence
from fairlead.console.pages.writing.preview import Effect

Family = Literal["train", "serve", "cron"]
"""What a form makes: a training job, a serving job, or a schedule of jobs."""


class JobFlag(Json, frozen=True):
    """One flag of the type's command, without its dashes. `kind`: a text, many texts, or a truth.
    `standard`: the value without the flag (`true` or `false` of a truth). `placeholder`, `help`: in
    English, as the command's own help has them.
    """

    name: str
    kind: Literal["text", "many", "truth"]
    standard: str
    placeholder: str
    help: str


class JobForm(Json, frozen=True):
    """What a type takes: a type of `arena submit`, one of serving jobs, or `cron-tfjob`. `kind`: of
    the object; of a serving job the title of its type. `is_served`: whether the cluster serves the
    object. `command`: what the command is, in English; `needs_command`: it must be given.
    """

    type: str
    family: Family
    kind: str
    is_served: bool
    needs_command: bool
    command: str
    flags: list[JobFlag]


class JobFormList(Json, frozen=True):
    """`namespaces`: those in which the subject may submit."""

    items: list[JobForm]
    namespaces: list[str]


class JobSubmission(Json, frozen=True):
    """What to submit. `type`: of a form.

    `flags`: those of the type's command without their dashes: a text, a list of texts, or true or
    false. Files of the user's machine (`config-file`, `file`) are none of them.
    """

    type: str
    namespace: str
    name: str
    command: str = ""
    flags: dict[str, bool | str | list[str]] = {}


class JobClone(Json, frozen=True):
    """The body that submits a job like an existing one, under another name. `lost`: paths in the
    existing object of what the body does not carry over.
    """

    submission: JobSubmission
    lost: list[str]


class SubmitVerdict(Json, frozen=True):
    """Whether the job starts, from the cluster as it is now.

    `state`: `starts`, `waits`, `never` (it can never run here as it is written) or `unknown`.
    `reason`: of quota, as the board has it, "" = another. `message`: the sentence, `clauses`: its
    parts for translation.
    """

    state: Literal["starts", "waits", "never", "unknown"]
    reason: str
    message: str
    sentence: Sentence
    clauses: list[Sentence]


class SubmitPreview(Json, frozen=True):
    """The answer to `dryRun=true`: nothing was created. `fields`, `effects`: as in `Preview`.
    `line`: the equal command line; `manifests`: the objects as YAML, without secret values; ""
    where the body is not complete. `notes`: what is not written as asked, in English. `verdict`:
    None also for a cron, whose jobs are created later, and where an operator determines the pods.
    """

    valid: bool
    fields: list[FieldFault]
    effects: list[Effect]
    line: str = ""
    manifests: str = ""
    notes: list[str] = []
    verdict: SubmitVerdict | None = None


class JobSubmitted(Json, frozen=True):
    """`created`: the objects, in order. `type`: of the job that was created, which another kind may
    replace; `cron` of a cron.
    """

    namespace: str
    type: str
    name: str
    line: str
    created: list[Effect]
