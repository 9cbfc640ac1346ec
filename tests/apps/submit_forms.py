"""The forms of the page Submit, with SSH keys that are known."""

from __future__ import annotations

from fairlead.cli.submit.forms import SubmitForms
from fairlead.kinds.parts.elastic_training import SshKeys

FORMS = SubmitForms(lambda: SshKeys("private", "public"))
