"""Contract: bad requests are refused with the real server's status, reason and words. Each case is
sent to both worlds.
"""

from __future__ import annotations

import pytest
from tests.contracts import bad_bodies, bad_objects, bad_requests
from tests.contracts.api_client import ApiClient
from tests.contracts.bad_input import Bad, answer, clean

CASES = (*bad_bodies.CASES, *bad_objects.CASES, *bad_requests.CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input(worlds: list[tuple[ApiClient, str]], case: Bad) -> None:
    answers = []
    for client, space in worlds:
        try:
            answers.append(answer(client, case, space))
        finally:
            clean(client, case, space)
    simulated, real = answers
    assert simulated == real


def test_the_server_lives_on(worlds: list[tuple[ApiClient, str]]) -> None:
    for client, space in worlds:
        assert client.get(f"/api/v1/namespaces/{space}/configmaps").status == 200
