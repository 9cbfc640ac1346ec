"""Hides the values of secrets in people's texts: commands, scripts, arguments, headers, addresses.

Secrets are found by their names (`--token x`, `NAME=x`, `name: x`), and without a name: what
precedes the `@` of an address, what follows `Bearer`, and private keys in PEM. A value ends where a
shell, YAML or JSON would end it; in doubt, more is hidden. The text is read once from left to right
without backtracking, so the time is linear in its length. A text that is too long is not shown at
all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.wire.text.secret_names import is_secret_name

HIDDEN: Final = "<redacted>"
LONGEST_TEXT: Final = 64 << 10
"""Characters of the longest text that is shown; far more than a script in a manifest has."""

NO_SECRETS: Final = frozenset(("", "true", "false", "yes", "no", "on", "off", "none", "null", "~"))
"""Values that are shown under any name, in lower case."""

_NEAR: Final = 200
_NAME: Final = re.compile(r"[\w.\-/]++")
_SIGN: Final = re.compile(
    r"(\\?+[\"'\]]{0,2}+)([ \t]{0,80}+)(:=|=>|==?|:(?!//)|(?<=[\"']),(?=[ \t]{0,80}[\"'\\]))[ "
    r"\t]{0,80}+"
)
_GAP: Final = re.compile(r"(\\?+[\"']?+),?+()(?:[ \t]|\\\r?\n)++(?=[^\s;|&<>])")
_PLAIN: Final = re.compile(r"[^\w.\-/\"'\\]++")
_DOUBLE: Final = re.compile(r'"(?:[^"\\]|\\.|\\\n)*+(?:"|\\?+\Z)')
_SINGLE: Final = re.compile(r"'[^']*+(?:'|\Z)")
_ESCAPED: Final = re.compile(r"""\\(["'])(?:[^\\]|\\(?!\1).)*+(?:\\\1|\\?+\Z)""", re.DOTALL)
_SUBSHELL: Final = r"\$\([^)]*+(?:\)|\Z)|`[^`]*+(?:`|\Z)"
_SHELL_WORDS: Final = {
    "": re.compile(
        rf"""(?:{_SUBSHELL}|{_DOUBLE.pattern}|{_SINGLE.pattern}|\\(?:.|\n|\Z)|[^\s"'`\\;|&<>])++"""
    ),
    '"': re.compile(rf"""(?:{_SUBSHELL}|{_SINGLE.pattern}|\\(?:[^"]|\Z)|[^\s"'`\\;|&<>])++"""),
    "'": re.compile(rf"""(?:{_DOUBLE.pattern}|[^\s"';|&<>])++"""),
}
"""A word of a shell, by the quotes around the whole script."""

_LINE_ENDS: Final = {
    "": re.compile(r"[^\r\n]++"),
    '"': re.compile(r'(?:[^"\r\n\\]|\\[^\r\n])++'),
    "'": re.compile(r"[^'\r\n]++"),
}
_QUOTED: Final = {
    "": _LINE_ENDS[""],
    '"': re.compile(r'(?:[^"\\]|\\.|\\\n)++'),
    "'": re.compile(r"[^']++"),
}
_FLOW: Final = re.compile(r"[^\r\n,}\]]++")
_BLOCK: Final = re.compile(r"[|>][-+0-9]{0,3}[ \t]*+(?:#[^\n]*+)?+\r?\n")
_LINE: Final = re.compile(r"([ \t]*+)([^\n]*+)(\n|\Z)")
_BEARER: Final = re.compile(r"[ \t]++(?=[\w.~+/=-]{6})[\w.~+/=-]++")
_AUTHORITY: Final = re.compile(r"[^\s/?#\"'<>`]*+")
_UNUSUAL_AUTHORITY: Final = re.compile(r"[^\s<>`,]{0,512}+")
_HOST_AND_PORT: Final = re.compile(r"(?:\[[^\]]*+\]|[^:]*+)(?::[0-9]{0,5})?+")
_ACCOUNTS: Final = frozenset(("ssh", "git+ssh", "sftp", "abfs", "abfss", "wasb", "wasbs"))
"""Schemes whose userinfo is an account or a container, which is no secret without a password."""
_USERS: Final = frozenset(("-u", "--user", "--proxy-user"))
"""Flags of curl and others whose value is `user:password`."""
_VARIABLE: Final = re.compile(r"\"?\$(?:\w++|\{\w++\}|\(\w++\))\"?")
_FILLED_IN: Final = re.compile(r"\$\([-._a-zA-Z][-._a-zA-Z0-9]*+\)")
_KEY_BEGINS: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_KEY_ENDS: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_SCRIPT_FLAG: Final = re.compile(r"-[a-z]{0,8}c")


def without_secrets(text: str) -> str:
    """The text of a script, file or message with its secrets hidden.

    >>> without_secrets("export HF_TOKEN='a b'; run --password x --lr 0.1")
    'export HF_TOKEN=<redacted>; run --password <redacted> --lr 0.1'
    >>> without_secrets("git clone https://ann:x@git.example/a")
    'git clone https://<redacted>@git.example/a'
    """
    return (
        too_long(text)
        if len(text) > LONGEST_TEXT
        else _Reader(_without_keys(text), is_word=False).read()
    )


def words_without_secrets(words: Sequence[str]) -> list[str]:
    """The words of a command, as the program receives them, with their secrets hidden.

    A secret flag hides the word after it. A word that begins with a secret's name and `=` or `:` is
    hidden from there on, because no shell ends the value.

    >>> words_without_secrets(["run", "--token", "a b", "DB_PASSWORD=a b", "--lr=1"])
    ['run', '--token', '<redacted>', 'DB_PASSWORD=<redacted>', '--lr=1']
    """
    return list(_shown(words))


def too_long(text: str) -> str:
    """The placeholder for a text that is too long."""
    return f"<redacted: {len(text)} characters>"


def _shown(words: Sequence[str]) -> Iterator[str]:
    before = ""
    for word in words:
        if len(word) > LONGEST_TEXT:
            yield too_long(word)
        elif _asks_next(before) and not _asks_next(word):
            yield word if word.lower() in NO_SECRETS or _FILLED_IN.fullmatch(word) else HIDDEN
        elif before in _USERS and (hidden := _without_password(word)):
            yield hidden
        else:
            yield _Reader(_without_keys(word), is_word=not _SCRIPT_FLAG.fullmatch(before)).read()
        before = word


def _asks_next(word: str) -> bool:
    """Whether the word is a flag whose secret value is the next word."""
    return (
        word[:1] == "-"
        and len(word) <= LONGEST_TEXT
        and _NAME.fullmatch(word) is not None
        and is_secret_name(word)
    )


def _without_password(value: str) -> str:
    """`user:<redacted>`; "" when there is no password, as in `1000:1000`."""
    user, colon, password = value.partition(":")
    return f"{user}:{HIDDEN}" if colon and not (user.isdigit() and password.isdigit()) else ""


def _without_keys(text: str) -> str:
    """The text without private keys in PEM. A key without an end
    is hidden to the end of the text.
    """
    if "PRIVATE KEY" not in text:
        return text
    kept, end = [], 0
    while begins := _KEY_BEGINS.search(text, end):
        ends = _KEY_ENDS.search(text, begins.end())
        kept += [text[end : begins.start()], HIDDEN]
        end = ends.end() if ends else len(text)
    return "".join([*kept, text[end:]])


class _Reader:
    """Reads one text. `is_word`: it is one word as a program receives it, not a script."""

    def __init__(self, text: str, *, is_word: bool) -> None:
        self._text = text
        self._at = 0
        self._out: list[str] = []
        self._quote = ""
        self._quoted_from = -1
        """Position of the character after the opening quote; -1 = no quote is open."""
        self._is_head = is_word
        """Whether only names and signs have been read of the present word."""
        self._is_word = is_word

    def read(self) -> str:
        while self._at < len(self._text):
            if name := _NAME.match(self._text, self._at):
                self._name(name)
            else:
                self._is_head &= self._text[self._at] == "+"
                self._sign()
        return "".join(self._out)

    def _keep(self, end: int) -> None:
        self._out.append(self._text[self._at : end])
        self._at = end

    def _hide(self, end: int) -> None:
        """Hides the text up to `end`, unless it is no secret."""
        value = self._text[self._at : end]
        bare = value.strip("\"'").lower()
        variable = _FILLED_IN if self._is_word else _VARIABLE
        self._out.append(
            value if bare in NO_SECRETS or bare == HIDDEN or variable.fullmatch(value) else HIDDEN
        )
        self._at = end

    def _sign(self) -> None:
        """Reads a quote, an escaped character, or punctuation between names."""
        letter = self._text[self._at]
        if letter == "\\":
            return self._keep(min(self._at + (1 if self._quote == "'" else 2), len(self._text)))
        if letter in "\"'":
            self._pass_quotes(letter)
            return self._keep(self._at + 1)
        found = _PLAIN.match(self._text, self._at)
        return self._keep(found.end() if found else self._at + 1)

    def _pass_quotes(self, text: str) -> None:
        for letter in text:
            if letter in "\"'" and self._quote in ("", letter):
                self._quote = "" if self._quote else letter
                self._quoted_from = self._at + len(text) if self._quote else -1

    def _name(self, name: re.Match[str]) -> None:
        start, text = name.start(), name[0]
        self._keep(name.end())
        if self._text.startswith("://", self._at):
            self._is_head = False
            return self._address(text)
        if text.lower() == "bearer" and (found := _BEARER.match(self._text, self._at)):
            self._out.append(" ")
            self._at += 1
            return self._hide(found.end())
        sign = _SIGN.match(self._text, self._at)
        gap = None if sign or text[0] != "-" else _GAP.match(self._text, self._at)
        if text in _USERS and (found := sign or gap):
            return self._user(found)
        if sign and is_secret_name(text) and not (sign[3] == ":" and text in ("key", "keys")):
            return self._value(sign, start, text)
        if gap and is_secret_name(text):
            return self._next_word(gap)
        self._is_head &= sign is not None
        if self._is_head and sign:
            self._keep(sign.end())
        return None

    def _user(self, found: re.Match[str]) -> None:
        self._begin_value(found)
        value = _SHELL_WORDS[self._quote].match(self._text, self._at)
        if value and (hidden := _without_password(value[0])):
            self._out.append(hidden)
            self._at = value.end()

    def _next_word(self, gap: re.Match[str]) -> None:
        """Hides the value of a flag.

        A secret flag in place of the value stays, and its own value is hidden.
        """
        self._begin_value(gap)
        following = _NAME.match(self._text, self._at)
        if not (following and _asks_next(following[0][:_NEAR])):
            self._shell_value()

    def _begin_value(self, sign: re.Match[str]) -> None:
        if not sign[1].startswith("\\"):
            self._pass_quotes(sign[1])
        self._keep(sign.end())

    def _value(self, sign: re.Match[str], start: int, name: str) -> None:
        self._begin_value(sign)
        if self._at == len(self._text):
            return None
        if self._is_head:
            return self._hide(len(self._text))
        if start == self._quoted_from and not sign[1]:
            return self._match(_QUOTED[self._quote])
        if sign[3] == ":":
            return self._yaml_value(start)
        is_property = bool(sign[2]) or ("." in name and name[0] != "-")
        if is_property and not self._is_quoted() and self._begins_line(start):
            return self._match(_LINE_ENDS[""])
        return self._shell_value()

    def _is_quoted(self) -> bool:
        return self._text[self._at] in "\"'" or self._text.startswith(('\\"', "\\'"), self._at)

    def _shell_value(self) -> None:
        if not self._quoted_value():
            return self._match(_SHELL_WORDS[self._quote])
        return self._match(_SHELL_WORDS[self._quote], is_more=True)

    def _yaml_value(self, start: int) -> None:
        if block := _BLOCK.match(self._text, self._at):
            return self._block(block.end(), start)
        if self._quoted_value():
            return None
        if self._begins_line(start):
            return self._match(_LINE_ENDS[""])
        return self._match(_LINE_ENDS[self._quote] if self._quote else _FLOW)

    def _quoted_value(self) -> bool:
        """Whether the value is quoted; if so it is hidden up to the closing quote."""
        letter, after = self._text[self._at], self._text[self._at + 1 : self._at + 2]
        if letter not in "\"'\\" or (
            letter == self._quote and (not after or after in " \t\r\n;,)}]&|")
        ):
            return False
        found = (_ESCAPED if letter == "\\" else _DOUBLE if letter == '"' else _SINGLE).match(
            self._text, self._at
        )
        if found is None:
            return False
        self._hide(found.end())
        return True

    def _match(self, pattern: re.Pattern[str], *, is_more: bool = False) -> None:
        """Hides what matches. `is_more`: it belongs to the value that was hidden before."""
        if found := pattern.match(self._text, self._at):
            if is_more:
                self._at, self._out[-1] = found.end(), HIDDEN
            else:
                self._hide(found.end())

    def _block(self, begins: int, start: int) -> None:
        """Hides the lines of a YAML block (`|` or `>`): those indented more than the name."""
        at, indent = (
            begins,
            start - (self._text.rfind("\n", 0, start) + 1 if self._begins_line(start) else start),
        )
        while at < len(self._text) and (line := _LINE.match(self._text, at)):
            if line[2].strip() and len(line[1]) <= indent - self._dashes(start, indent):
                break
            at = line.end()
        self._out.append(f"{HIDDEN}\n")
        self._at = at

    def _dashes(self, start: int, indent: int) -> int:
        """The width of a list's `- ` within the indentation."""
        return indent - len(self._text[start - indent : start].rstrip("\"'- "))

    def _begins_line(self, start: int) -> bool:
        """Whether only spaces, dash, comment sign or quote precede the position on its line."""
        before = self._text[max(0, start - _NEAR) : start]
        line = before.rpartition("\n")
        return (bool(line[1]) or start <= _NEAR) and not line[2].strip(" \t-#\"'")

    def _address(self, scheme: str) -> None:
        self._keep(self._at + 3)
        found = _AUTHORITY.match(self._text, self._at)
        authority = found[0] if found else ""
        user, at, _ = authority.rpartition("@")
        if (
            not at
            and not _HOST_AND_PORT.fullmatch(authority)
            and (unusual := _UNUSUAL_AUTHORITY.match(self._text, self._at))
        ):
            # a `/` in a password, which should be written as %2F
            user, at, _ = unusual[0].rpartition("@")
        if at and (":" in user or scheme.lower().rpartition("/")[2] not in _ACCOUNTS):
            self._out.append(HIDDEN)
            self._at += len(user)
            self._keep(self._at + 1)
