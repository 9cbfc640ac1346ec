"""Contract: the two servers differ in exactly the ways that docs/reference/differences.md lists."""

from __future__ import annotations

import pytest
from tests.contracts.api_client import ApiClient
from tests.contracts.conftest import new_space
from tests.contracts.differences import DIFFERENCES, Difference


@pytest.mark.parametrize(
    "difference", DIFFERENCES, ids=lambda difference: difference.what.replace(" ", "-")
)
def test_both_servers_do_what_the_table_states(
    both: tuple[ApiClient, ApiClient], difference: Difference
) -> None:
    simulated, real = both
    seen = [difference.look(api, new_space(api)) for api in (real, simulated)]
    assert seen == [difference.real, difference.simulated]
    assert difference.real != difference.simulated
