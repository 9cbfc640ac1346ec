"""Every help of a form of the page Submit has a Chinese translation, by its English words: a new
or changed help fails here until it is translated, and so does a translation that is left over.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from fairlead.cli.submit.forms import SubmitForms
from fairlead.console.pages.writing.jobs import JobForm
from fairlead.kinds.parts.elastic_training import SshKeys

FILE: Final = Path(__file__).parents[2] / "web" / "src" / "i18n" / "flag-helps.ts"
CHINESE: Final = dict(
    re.findall(r'^  "([^"]+)": "([^"]+)",$', FILE.read_text(encoding="utf-8"), re.M)
)
FORMS: Final = SubmitForms(lambda: SshKeys("", "")).forms()
TYPED: Final = re.compile(r"`[^`]+`|--[a-z-]+|[-\w.:/]*[\d/](?:[-\w./]|:\w)*|\b[A-Z][a-z]+[A-Z]\w*")
"""Parts of a help that a user types: quoted, flags, numbers, paths and names such as OnFailure."""


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.type)
def test_every_help_of_a_form_is_translated(form: JobForm) -> None:
    helps = [form.command, *(flag.help for flag in form.flags)]
    assert len(helps) > 10
    assert [each for each in helps if each not in CHINESE] == [], (
        "web/src/i18n/flag-helps.ts has no words for them"
    )


def test_no_translation_is_left_over() -> None:
    helps = {form.command for form in FORMS} | {flag.help for form in FORMS for flag in form.flags}
    assert sorted(CHINESE.keys() - helps) == []


def test_what_a_user_types_stays_as_it_is() -> None:
    assert [each for each in CHINESE.values() if not re.search("[一-鿿]", each)] == []
    wrong = {
        english: missing
        for english, chinese in CHINESE.items()
        if (missing := [each for each in TYPED.findall(english) if each not in chinese])
    }
    assert wrong == {}
