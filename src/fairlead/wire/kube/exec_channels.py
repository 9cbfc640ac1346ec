"""Messages of `pods/exec`, which carry the streams of a program in a container over WebSocket.

Each message begins with the number of its channel. The end of stdin is a separate message, which
only version 5 of the protocol has. The program's exit status is a `Status` object on a separate
channel, sent after all output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

PROTOCOL: Final = "v5.channel.k8s.io"
PROTOCOL_4: Final = "v4.channel.k8s.io"
"""What Fairlead's clients do not speak, but Kubernetes' Python client and others do."""
STDIN, STDOUT, STDERR, STATUS, SIZE = range(5)
_CLOSE: Final = 255
END_OF_INPUT: Final = bytes((_CLOSE, STDIN))
_EXITED: Final = "NonZeroExitCode"
_EXIT_CODE: Final = "ExitCode"
_INTERNAL: Final = "Internal error occurred: "


class ProgramEnd(Struct, frozen=True):
    """How the program ended.

    `exit_code` is None when the program could not be run, or its end was not observed; `message`
    has the reason then.
    """

    exit_code: int | None
    message: str = ""


class _Cause(Struct):
    reason: str | None = None
    message: str | None = None


class _Details(Struct):
    causes: list[_Cause] | None = None


class _Status(Struct):
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


def exec_query(container: str, command: Sequence[str], *, is_terminal: bool) -> str:
    """The query string of the request.

    A terminal has one stream for both kinds of output, so stderr is not requested with one.

    >>> exec_query("main", ["ls", "-l"], is_terminal=True)
    'container=main&command=ls&command=-l&stdin=true&stdout=true&tty=true'
    """
    streams = ("stdin", "stdout", "tty") if is_terminal else ("stdin", "stdout", "stderr")
    return urlencode(
        [
            ("container", container),
            *(("command", word) for word in command),
            *((name, "true") for name in streams),
        ]
    )


def render_input(data: bytes) -> bytes:
    """A message that writes to the program's stdin."""
    return bytes((STDIN,)) + data


def render_size(columns: int, rows: int) -> bytes:
    """A message with the size of the user's terminal, in characters.

    >>> render_size(80, 24)
    b'\\x04{"Width":80,"Height":24}'
    """
    return bytes((SIZE,)) + msgspec.json.encode({"Width": columns, "Height": rows})


def render_output(data: bytes, *, is_error: bool = False) -> bytes:
    """A message with what the program wrote to stdout, or to stderr.

    >>> render_output(b"hi")
    b'\\x01hi'
    """
    return bytes((STDERR if is_error else STDOUT,)) + data


def render_end(end: ProgramEnd, protocol: str) -> bytes:
    """The message of the channel STATUS, as a kubelet writes it.

    Of a program that could not be run, a kubelet reports the message as an internal error, and
    once more as an internal error with version 5.

    >>> render_end(ProgramEnd(0), PROTOCOL)
    b'\\x03{"metadata":{},"status":"Success"}'
    >>> parse_end(render_end(ProgramEnd(3), PROTOCOL)[1:]).exit_code
    3
    >>> parse_end(render_end(ProgramEnd(None, "no such program"), PROTOCOL_4)[1:]).message
    'Internal error occurred: no such program'
    """
    status: dict[str, object] = {"metadata": {}, "status": "Failure"}
    if end.exit_code == 0:
        status["status"] = "Success"
    elif end.exit_code is not None:
        status |= {
            "message": (
                "command terminated with non-zero exit code: command terminated with exit code "
                f"{end.exit_code}"
            ),
            "reason": _EXITED,
            "details": {"causes": [{"reason": _EXIT_CODE, "message": str(end.exit_code)}]},
        }
    else:
        cause = end.message if protocol == PROTOCOL_4 else f"{_INTERNAL}{end.message}"
        status |= {
            "message": f"{_INTERNAL}{cause}",
            "reason": "InternalError",
            "details": {"causes": [{"message": cause}]},
            "code": 500,
        }
    return bytes((STATUS,)) + msgspec.json.encode(status)


def parse_message(message: bytes) -> tuple[int, bytes]:
    """Channel and content of a message; (-1, b"") of an empty one.

    The end of stdin is an empty message of the channel STDIN.

    >>> parse_message(render_input(b"hi")), parse_message(END_OF_INPUT)
    ((0, b'hi'), (0, b''))
    """
    if message == END_OF_INPUT:
        return STDIN, b""
    return (message[0], message[1:]) if message else (-1, b"")


def parse_end(body: bytes) -> ProgramEnd:
    """The program's end, from a message of the channel STATUS.

    Raises ValueError when it is no Status.

    >>> parse_end(b'{"status":"Success"}').exit_code
    0
    >>> parse_end(b'{"status":"Failure","message":"container not found (\\\\"x\\\\")"}')
    ProgramEnd(exit_code=None, message='container not found ("x")')
    """
    try:
        status = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    if status.status == "Success":
        return ProgramEnd(0)
    message = status.message or "no reason given"
    if status.reason == _EXITED:
        causes = (status.details and status.details.causes) or ()
        codes = [cause.message for cause in causes if cause.reason == _EXIT_CODE]
        return ProgramEnd(int(codes[0] or ""), message) if codes else ProgramEnd(None, message)
    return ProgramEnd(None, message)
