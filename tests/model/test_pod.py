"""What a pod needs at its peak, and when it releases what it holds."""

from __future__ import annotations

import pytest

from fairlead.model.pod import Container, Pod
from fairlead.model.resources import NVIDIA_GPU


def gpus(count: int, *, restartable: bool = False) -> Container:
    return Container(
        "c", limits={NVIDIA_GPU: count}, requests={NVIDIA_GPU: count}, restartable=restartable
    )


@pytest.mark.parametrize(
    ("containers", "inits", "needed"),
    [
        pytest.param((gpus(1), gpus(2)), (), 3, id="containers run together, so they add up"),
        pytest.param(
            (gpus(1),), (gpus(4),), 4, id="an init container larger than the rest decides"
        ),
        pytest.param(
            (gpus(2),),
            (gpus(1), gpus(2)),
            2,
            id="init containers run one after another and do not add up",
        ),
        pytest.param(
            (gpus(2),), (gpus(1, restartable=True),), 3, id="a sidecar runs beside the containers"
        ),
        pytest.param(
            (gpus(1),),
            (gpus(1, restartable=True), gpus(3)),
            4,
            id="an init step after a sidecar needs both",
        ),
        pytest.param(
            (gpus(1),),
            (gpus(3), gpus(1, restartable=True)),
            3,
            id="an init step before a sidecar does not",
        ),
    ],
)
def test_a_pod_needs_its_peak(
    containers: tuple[Container, ...], inits: tuple[Container, ...], needed: int
) -> None:
    pod = Pod("ns", "p", containers=containers, init_containers=inits)
    assert pod.limits[NVIDIA_GPU] == needed
    assert pod.requests[NVIDIA_GPU] == needed


def test_overhead_counts_as_request_and_not_as_limit() -> None:
    pod = Pod(
        "ns",
        "p",
        containers=(Container("c", requests={"cpu": 500}, limits={"cpu": 500}),),
        overhead={"cpu": 100},
    )
    assert (pod.requests["cpu"], pod.limits["cpu"]) == (600, 500)


@pytest.mark.parametrize(
    ("node", "phase", "deleted_at", "holds"),
    [
        ("n", "Running", None, True),
        ("n", "Running", 5.0, True),
        ("n", "Pending", None, True),
        ("", "Pending", None, False),
        ("n", "Succeeded", None, False),
        ("n", "Failed", 5.0, False),
    ],
)
def test_a_pod_holds_until_it_ended_or_is_gone(
    node: str, phase: str, deleted_at: float | None, holds: bool
) -> None:
    assert Pod("ns", "p", node=node, phase=phase, deleted_at=deleted_at).is_holding is holds
