"""Which pods of a workload count as ready while the pods of an older spec are replaced."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlead.wire.components.seen import workload_form


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({}, 0),
        ({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, 2),
        ({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}, 1),
        # one old pod is available, too
        ({"replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}, 1),
        ({"replicas": 3, "updatedReplicas": 2, "availableReplicas": 3}, 2),
        # only old pods are available
        ({"replicas": 3, "updatedReplicas": 1, "availableReplicas": 2}, 0),
        # no new pod is there, and an old one is not available
        ({"replicas": 2, "availableReplicas": 1}, 0),
    ],
)
def test_pods_of_an_older_spec_do_not_count(status: dict[str, Any], ready: int) -> None:
    obj = {
        "metadata": {"name": "web", "namespace": "default", "generation": 2},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 2, **status},
    }
    form = workload_form("Deployment")
    workload = form.parse(msgspec.convert(obj, form.wire))
    assert (workload.wanted, workload.ready, workload.is_ready) == (2, ready, ready == 2)
