"""The words of NVIDIA's public table of XIDs, 0 to 172 (telemetry contract 1.7)."""

from __future__ import annotations

import pytest

from fairlead.model.devices.xid import xid_text

UNSAID = {141, 166}
"""No table that was at hand names these."""


def test_every_code_of_the_table_has_words() -> None:
    assert {code for code in range(173) if xid_text(code) == "Unknown Error"} == UNSAID
    assert {xid_text(code) for code in (173, 999, -1)} == {"Unknown Error"}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "No Error"),
        (13, "Graphics Engine Exception"),
        (31, "GPU memory page fault"),
        (48, "Double Bit ECC Error"),
        (79, "GPU has fallen off the bus"),
        (121, "C2C Link Error"),
        (143, "GPU Initialization Failure"),
        (149, "NVLINK: NETIR Error"),
        (154, "GPU recovery action changed"),
    ],
)
def test_words(code: int, words: str) -> None:
    assert xid_text(code) == words
