"""Three real nodes with Fairlead installed on them, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.browser.conftest import browser
from tests.nodes.cluster import Cluster, running_cluster

__all__ = ["browser"]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as started:
        yield started
