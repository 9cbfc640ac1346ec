"""Is every number of the console what kubectl and the exporters show?"""

from __future__ import annotations

import pytest
from tests.kube.numbers.agreement import PAGES
from tests.kube.numbers.company_seen import CompanySeen


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("source", ["pages", "prometheus"])
def test_every_number_of_a_page_is_the_one_kubectl_prints(
    seen: CompanySeen, page: str, source: str
) -> None:
    """`source`: where the console gets the values of cards."""
    assert seen.await_agreement(page, source=source) == {}
