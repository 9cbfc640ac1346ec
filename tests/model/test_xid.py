"""The words of NVIDIA's public table of XIDs, 0 to 172 (docs/spec/telemetry.md#xid-errors)."""

from __future__ import annotations

import pytest

from fairlead.model.devices.xid import xid_text


def test_every_code_of_the_table_has_words() -> None:
    assert {code for code in range(173) if xid_text(code) == "Unknown Error"} == set()
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
        (128, "CE12: Unknown Error"),
        (139, "OFA1 Error"),
        (141, "CUDA fast path error"),
        (143, "GPU Initialization Failure"),
        (149, "NVLINK: NETIR Error"),
        (154, "GPU recovery action changed"),
        (166, "NVLINK: traffic before encryption was set up"),
    ],
)
def test_words(code: int, words: str) -> None:
    assert xid_text(code) == words
