"""What the page Submit sends for a command."""

from __future__ import annotations

import shlex

from tests.apps.submit_forms import FORMS

from fairlead.console.pages.writing.jobs import JobForm, JobSubmission

FORM_OF = {form.type: form for form in FORMS.forms()}
FILES = "--config-file="
"""No page reads a file of the user's machine."""


def body_of(type_: str, words: list[str]) -> JobSubmission:
    """The body of these words of a command line: `--FLAG=VALUE … -- COMMAND`."""
    place = words.index("--")
    form, command = FORM_OF[type_], words[place + 1 :]
    flags: dict[str, bool | str | list[str]] = {}
    name = ""
    for word in words[:place]:
        flag, _, value = word.removeprefix("--").partition("=")
        if flag == "name":
            name = value
        elif kind_of(form, flag) == "many":
            flags[flag] = [*_texts(flags.get(flag)), value]
        else:
            is_truth = kind_of(form, flag) == "truth"
            flags[flag] = value != "false" if is_truth else value
    joined = shlex.join(command) if type_ == "sparkjob" else " ".join(command)
    return JobSubmission(type_, "default", name, joined, flags)


def _texts(value: object) -> list[str]:
    return value if isinstance(value, list) else []


def kind_of(form: JobForm, flag: str) -> str:
    [found] = [each.kind for each in form.flags if each.name == flag]
    return found


def joined(words: list[str], values: set[str]) -> list[str]:
    """The words with `--FLAG VALUE` in one word, and a command that a flag names at the end.

    `values`: flags that take one.
    """
    made, command = list[str](), list[str]()
    rest = iter(words)
    for word in rest:
        name = word.removeprefix("--")
        if name == "command":
            command = [next(rest)]
        else:
            made.append(f"{word}={next(rest)}" if name in values else word)
    return [*made, "--", *command]
