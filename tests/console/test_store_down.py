"""A store that cannot be reached is 503, and the console itself goes on."""

from __future__ import annotations

from fairlead.console.http.answers import refusal_of
from fairlead.errors import OutsideError, StoreDown


def test_without_the_store_a_request_is_answered_503_with_the_reason() -> None:
    refused = refusal_of(StoreDown("`db:5432` does not answer", "start the database"))
    assert (refused.status, refused.code) == (503, "store-down")
    assert (refused.what, refused.hint) == (
        "store: `db:5432` does not answer",
        "start the database",
    )


def test_another_system_that_fails_is_still_502() -> None:
    assert refusal_of(OutsideError("kubernetes", "it does not answer")).status == 502
