"""Which isolation provider a node uses: the table of
docs/spec/gpu-sharing.md#isolation-providers.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec import structs

from fairlead.model.devices.driver import IsolationMeans
from fairlead.model.node import Node
from fairlead.rules.devices.provider import choose_provider
from fairlead.rules.sharing.isolation import isolation_of

ALL = IsolationMeans(driver=615, cuda=(13, 4), has_cgroup_v2=True, has_mps=True, has_guard=True)
SHARED, ON_REQUEST = {"cgpu": "true"}, {"ack.node.gpu.schedule": "mps"}


def without(**lacking: object) -> IsolationMeans:
    return structs.replace(ALL, **lacking)


@pytest.mark.parametrize(
    ("labels", "means", "provider"),
    [
        (SHARED, ALL, "cgroup"),
        (SHARED, without(driver=616, cuda=(14, 0)), "cgroup"),
        (SHARED, without(has_mig=True), "mig"),
        (SHARED, without(driver=614), "guard"),
        (SHARED, without(cuda=(13, 3)), "guard"),
        (SHARED, without(has_cgroup_v2=False), "guard"),
        (ON_REQUEST, ALL, "cgroup"),
        (ON_REQUEST, without(has_cgroup_v2=False), "mps"),
        (ON_REQUEST, without(has_cgroup_v2=False, has_mps=False), "guard"),
        (ON_REQUEST, IsolationMeans(), "none"),
        (SHARED, IsolationMeans(has_mps=True), "none"),
        ({**SHARED, "cgpu.disable.isolation": "true"}, ALL, "none"),
        ({**SHARED, "cgpu.disable.isolation": "false"}, ALL, "cgroup"),
        ({"ack.node.gpu.schedule": "share"}, ALL, "none"),
    ],
)
def test_the_first_that_the_node_supports_is_in_force(
    labels: Mapping[str, str], means: IsolationMeans, provider: str
) -> None:
    chosen = choose_provider(labels, means)
    assert chosen == provider
    assert (
        isolation_of(Node("n", labels={"fairlead.io/gpu-isolation": chosen})).provider == provider
    ), "boards know the word"
