"""Hides secrets in logs and messages of programs, for files that people pass on.

Beside what `secret_words` finds by names: values that only spaces separate from a variable's name,
as tables and dumps of environments have them, and tokens that are known by their form alone. In
doubt, more is hidden. A secret in plain words ("the password is x") cannot be found.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fairlead.wire.text.secret_names import is_secret_name
from fairlead.wire.text.secret_words import HIDDEN, LONGEST_TEXT, without_secrets

_TOKEN: Final = re.compile(
    r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"  # a JSON Web Token, such as a ServiceAccount's
    r"|\b(?:gh[oprsu]_|github_pat_|gl(?:pat|rt|dt|ptt|cbt)-|hf_|npg_|npm_|pypi-Ag|sk-|[rs]k_live_"
    r"|xox[a-z]-|dckr_pat_|nvapi-|GOCSPX-|ya29\.)[\w-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bLTAI[A-Za-z0-9]{12,}|\bAIza[\w-]{30,}"
    r"|\bhv[brs]\.[\w-]{16,}"  # Vault's
    r"|\bsha256~[\w-]{32,}"  # OpenShift's
    r"|\b[a-z0-9]{6}\.[a-z0-9]{16}\b"  # a bootstrap token of a cluster
)
_VARIABLE: Final = re.compile(
    r"(?<![\w.\-])([A-Za-z][A-Za-z0-9]{0,63}+(?:_[A-Za-z0-9]{1,63}+){1,9}+)[ \t]{1,80}+[\"']?+"
)
"""A name with an underscore, and what is between it and the next word."""
_VALUE: Final = re.compile(r"(?=[^\s\"']{0,300}?(?:[0-9+/=~-]|[^\s\"']{16}))[^\s\"'<>]{8,}+")
"""A word that may be a secret: of eight characters or more, and no ordinary word."""
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_KEY_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")


def log_without_secrets(text: str) -> str:
    """The end of a log, at most `LONGEST_TEXT` characters of whole lines, with secrets hidden.

    >>> log_without_secrets("level=info token=abc\\nasked with eyJhbGciOiJI.eyJzdWIiOi.c2ln\\n")
    'level=info token=<redacted>\\nasked with <redacted>\\n'
    """
    if len(text) > LONGEST_TEXT:
        text = text[-LONGEST_TEXT:].partition("\n")[2]
    return _TOKEN.sub(HIDDEN, _without_columns(without_secrets(_without_cut_key(text))))


def document_without_secrets(value: Any, key: str = "", name: str = "") -> Any:
    """A JSON value with secrets hidden in its texts, or only in those that are called `key`.

    >>> document_without_secrets({"message": "token=abc", "node": "token=abc"}, "message")
    {'message': 'token=<redacted>', 'node': 'token=abc'}
    """
    if isinstance(value, dict):
        return {each: document_without_secrets(one, key, each) for each, one in value.items()}
    if isinstance(value, list | tuple):
        return [document_without_secrets(each, key) for each in value]
    is_meant = isinstance(value, str) and (not key or name == key)
    return log_without_secrets(value) if is_meant else value


def _without_columns(text: str) -> str:
    """The text without the words that follow a secret variable's name."""
    kept, end = [], 0
    for name in _VARIABLE.finditer(text):
        value = _VALUE.match(text, name.end()) if is_secret_name(name[1]) else None
        if value is not None:
            kept += [text[end : value.start()], HIDDEN]
            end = value.end()
    return "".join([*kept, text[end:]])


def _without_cut_key(text: str) -> str:
    """The text without the rest of a private key whose beginning was cut off."""
    end = _KEY_END.search(text)
    if end is None:
        return text
    begin = _KEY_BEGIN.search(text)
    if begin is not None and begin.start() < end.start():
        return text
    return HIDDEN + text[end.end() :]
