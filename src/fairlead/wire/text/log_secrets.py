"""Hides secrets in logs and messages of programs, for files that people pass on.

Beside what `secret_words` finds by names: tokens that are known by their form alone. In doubt, more
is hidden. A secret in plain words ("the password is x") cannot be found.
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.wire.text.secret_words import HIDDEN, LONGEST_TEXT, without_secrets

_TOKEN: Final = re.compile(
    r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"  # a JSON Web Token, such as a ServiceAccount's
    r"|\b(?:gh[oprsu]_|github_pat_|glpat-|hf_|npg_|sk-|xox[a-z]-|dckr_pat_|nvapi-)[\w-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bLTAI[A-Za-z0-9]{12,}"
    r"|\b[a-z0-9]{6}\.[a-z0-9]{16}\b"  # a bootstrap token of a cluster
)
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_KEY_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")


def log_without_secrets(text: str) -> str:
    """The end of a log, at most `LONGEST_TEXT` characters of whole lines, with secrets hidden.

    >>> log_without_secrets("level=info token=abc\\nasked with eyJhbGciOiJI.eyJzdWIiOi.c2ln\\n")
    'level=info token=<redacted>\\nasked with <redacted>\\n'
    """
    if len(text) > LONGEST_TEXT:
        text = text[-LONGEST_TEXT:].partition("\n")[2]
    return _TOKEN.sub(HIDDEN, without_secrets(_without_cut_key(text)))


def _without_cut_key(text: str) -> str:
    """The text without the rest of a private key whose beginning was cut off."""
    end = _KEY_END.search(text)
    if end is None:
        return text
    begin = _KEY_BEGIN.search(text)
    if begin is not None and begin.start() < end.start():
        return text
    return HIDDEN + text[end.end() :]
