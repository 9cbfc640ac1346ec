"""How a command in a container ended, in the forms in which API servers and kubelets report it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.wire.kube.exec_channels import ProgramEnd, exec_query, parse_end

EXITED = "command terminated with non-zero exit code: exit status 3"


def status(
    reason: str | None = None, message: str | None = None, *causes: dict[str, Any], **more: Any
) -> bytes:
    details = {"causes": list(causes)} if causes else None
    return json.dumps(
        {
            "metadata": {},
            "status": "Failure",
            "reason": reason,
            "message": message,
            "details": details,
            **more,
        }
    ).encode()


@pytest.mark.parametrize(
    ("body", "end"),
    [
        (b'{"metadata":{},"status":"Success"}', ProgramEnd(0)),
        (
            status("NonZeroExitCode", EXITED, {"reason": "ExitCode", "message": "3"}),
            ProgramEnd(3, EXITED),
        ),
        (
            status(
                "NonZeroExitCode",
                EXITED,
                {"reason": "Other", "message": "7"},
                {"reason": "ExitCode", "message": "3"},
            ),
            ProgramEnd(3, EXITED),
        ),
        (status("NonZeroExitCode", EXITED), ProgramEnd(None, EXITED)),
        (
            status("InternalError", "container not found", code=500),
            ProgramEnd(None, "container not found"),
        ),
        (status(), ProgramEnd(None, "no reason given")),
        (b"{}", ProgramEnd(None, "no reason given")),
    ],
)
def test_what_a_status_contains_about_the_end(body: bytes, end: ProgramEnd) -> None:
    assert parse_end(body) == end


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"done",
        b"[]",
        b'{"status":1}',
        status("NonZeroExitCode", "", {"reason": "ExitCode", "message": "three"}),
    ],
)
def test_what_is_no_status_is_not_taken_for_one(body: bytes) -> None:
    with pytest.raises(ValueError):
        parse_end(body)


def test_each_word_of_the_command_stays_one() -> None:
    query = exec_query("main", ["sh", "-c", "a b&c=d"], is_terminal=False)
    assert query == (
        "container=main&command=sh&command=-c&command=a+b%26c%3Dd&stdin=true&stdout=true&"
        "stderr=true"
    )
