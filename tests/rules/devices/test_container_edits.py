"""Environment, files and devices that the agent adds to a container:
docs/spec/gpu-sharing.md#pod-annotations-labels-and-environment,
docs/spec/gpu-sharing.md#what-the-container-gets, and the isolation providers.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.rules.devices.cards import t4, uuid

from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.granted import ContainerGrant, DeviceRefusal
from fairlead.model.devices.kubelet import CardLimit, ContainerEdits, ContainerLimits, MountedFile
from fairlead.rules.devices.container_edits import (
    NodeFiles,
    container_limits,
    given_shares,
    shared_edits,
    whole_edits,
)
from fairlead.rules.devices.provider import Provider
from fairlead.wire.kubelet.grants_file import parse_given, render_given
from fairlead.wire.kubelet.limits_file import render_limits

CARDS = [t4(0), t4(1)]
FILES = NodeFiles(
    "/s/limits",
    "/r/region",
    "/g/guard.so",
    "/g/preload",
    {uuid(0): "/m/0", uuid(1): "/m/1"},
    "/m/shm",
)
LIMITS, REGION = (
    MountedFile("/s/limits", "/etc/fairlead/gpu/limits"),
    MountedFile("/r/region", "/run/fairlead/gpu/region", False),
)


def grant(*cards: Grant, **more: Any) -> ContainerGrant:
    cards = cards or (Grant(uuid(1), 1, 4, 4308),)
    return ContainerGrant(
        "00112233", sum(each.units for each in cards), cards, **{"pod_units": 6, **more}
    )


def edits(
    provider: Provider = Provider.NONE,
    given: ContainerGrant | None = None,
    files: NodeFiles = FILES,
) -> ContainerEdits:
    made = shared_edits(given or grant(), CARDS, provider, files)
    assert isinstance(made, ContainerEdits), made
    return made


def refused(
    provider: Provider, given: ContainerGrant, files: NodeFiles = FILES, cards: Any = CARDS
) -> str:
    made = shared_edits(given, cards, provider, files)
    assert isinstance(made, DeviceRefusal), made
    return made.reason


PLAIN = {
    "NVIDIA_VISIBLE_DEVICES": uuid(1),
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    "ALIYUN_COM_GPU_MEM_IDX": "1",
    "ALIYUN_COM_GPU_MEM_POD": "6",
    "ALIYUN_COM_GPU_MEM_CONTAINER": "4",
    "ALIYUN_COM_GPU_MEM_DEV": "14",
    "ALIYUN_COM_GPU_VISIBLE_DEVICES": "1",
}


def test_a_container_gets_its_card_and_no_other_and_its_share() -> None:
    made = edits()
    assert made.environment == {**PLAIN, "CGPU_DISABLE": "true"}
    assert made.device_nodes == (
        "/dev/nvidia5",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools",
    ), "the minor, not the index"
    assert made.mounts == (LIMITS, REGION)


def test_only_without_isolation_is_it_reported_off() -> None:
    assert [each.value for each in Provider if "CGPU_DISABLE" in edits(each).environment] == [
        "none"
    ]


def test_the_guard_comes_by_read_only_files_and_by_no_environment() -> None:
    made = edits(Provider.GUARD)
    assert made.environment == PLAIN
    assert made.mounts[2:] == (
        MountedFile("/g/guard.so", "/usr/lib/fairlead/libfairlead-guard.so"),
        MountedFile("/g/preload", "/etc/ld.so.preload"),
    )
    assert [each.container_path for each in made.mounts if not each.is_read_only] == [
        "/run/fairlead/gpu/region"
    ]


def test_mps_gets_the_limit_of_the_card_that_its_client_sees_first() -> None:
    """The format is `0=4301M`. An entry for a card that is not visible would make MPS drop all
    limits.
    """
    made = edits(Provider.MPS)
    assert made.environment == {
        **PLAIN,
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=4308M",
        "CUDA_MPS_PIPE_DIRECTORY": "/run/fairlead/mps",
    }
    assert made.mounts[2:] == (
        MountedFile("/m/1", "/run/fairlead/mps", False),
        MountedFile("/m/shm", "/dev/shm", False),
        *edits(Provider.GUARD).mounts[2:],
    )
    bare = structs.replace(FILES, guard="", preload="")
    assert edits(Provider.MPS, files=bare).mounts == made.mounts[:4], "a node without the guard"
    cored = grant(Grant(uuid(0), 0, 4, 4308, 30))
    assert edits(Provider.MPS, cored).environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "30"


def test_the_guard_only_shows_where_mps_limits() -> None:
    assert [
        each.value for each in Provider if container_limits(grant(), {}, each).is_view_only
    ] == ["mps"]


def test_mps_serves_one_card_and_only_with_its_daemon() -> None:
    two = grant(Grant(uuid(0), 0, 2, 2154), Grant(uuid(1), 1, 2, 2154))
    assert refused(Provider.MPS, two) == (
        "MPS on this node serves one GPU per container, the placement has 2"
    )
    assert refused(Provider.MPS, grant(), NodeFiles("/l", "/r")) == (
        f"no MPS daemon serves GPU {uuid(1)}"
    )


def test_the_toolkits_hook_gets_both_numbers() -> None:
    made = edits(Provider.CGROUP).environment
    assert (made["NVIDIA_GPU_MEMORY_REQUEST"], made["NVIDIA_GPU_MEMORY_LIMIT"]) == ("4308", "4308")


def test_over_two_cards_a_programs_share_of_memory_stays_right() -> None:
    """Arena's TensorFlow jobs compute their share of memory as `ALIYUN_COM_GPU_MEM_CONTAINER` /
    `ALIYUN_COM_GPU_MEM_DEV`.
    """
    made = edits(given=grant(Grant(uuid(0), 0, 7, 7539), Grant(uuid(1), 1, 7, 7539)))
    environment = made.environment
    assert environment["NVIDIA_VISIBLE_DEVICES"] == f"{uuid(0)},{uuid(1)}"
    assert (
        environment["ALIYUN_COM_GPU_MEM_IDX"]
        == environment["ALIYUN_COM_GPU_VISIBLE_DEVICES"]
        == "0,1"
    )
    assert (
        int(environment["ALIYUN_COM_GPU_MEM_CONTAINER"])
        / int(environment["ALIYUN_COM_GPU_MEM_DEV"])
        == 0.5
    )
    assert made.device_nodes[:2] == ("/dev/nvidia4", "/dev/nvidia5")


def test_what_is_unknown_is_not_reported() -> None:
    assert "ALIYUN_COM_GPU_MEM_POD" not in edits(given=grant(pod_units=None)).environment
    assert refused(Provider.NONE, grant(), cards=[t4(1, minor=-1)]) == (
        f"the driver does not report the device node of GPU {uuid(1)}"
    )


def test_simulated_cards_have_no_device_nodes() -> None:
    assert edits(files=NodeFiles("/l", "/r", has_device_nodes=False)).device_nodes == ()
    assert whole_edits(CARDS, has_device_nodes=False) == ContainerEdits(
        {"NVIDIA_VISIBLE_DEVICES": f"{uuid(0)},{uuid(1)}"}
    )


def test_a_pod_with_a_card_for_itself_gets_nothing_beside_it() -> None:
    assert whole_edits([t4(1)]) == ContainerEdits(
        {"NVIDIA_VISIBLE_DEVICES": uuid(1)},
        ("/dev/nvidia5", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"),
    )
    assert whole_edits([t4(minor=0)]).device_nodes[0] == "/dev/nvidia0"
    assert isinstance(whole_edits([t4(minor=-1)]), DeviceRefusal)


def test_the_files_contain_what_was_granted() -> None:
    """4301 MiB (document 001) are 4509925376 bytes."""
    both = grant(
        Grant(uuid(0), 0, 4, 4301, 30),
        Grant(uuid(1), 1, 4, 4308, 30),
        namespace="ns",
        pod="p",
        pod_uid="u",
        containers=("app", "init"),
    )
    limits = container_limits(both, {uuid(0): 500})
    assert limits == ContainerLimits(
        (CardLimit(uuid(0), 4301, 30, 500), CardLimit(uuid(1), 4308, 30, 0)),
        "/run/fairlead/gpu/region",
    )
    assert (
        f"gpu {uuid(0)} limit_bytes 4509925376 core_percent 30 context_bytes 524288000"
    ).encode() in render_limits(limits)
    rows = given_shares(both)
    assert [(row.container, row.grant.index) for row in rows] == [
        ("app", 0),
        ("app", 1),
        ("init", 0),
        ("init", 1),
    ]
    assert {(row.namespace, row.pod, row.pod_uid, row.token) for row in rows} == {
        ("ns", "p", "u", "00112233")
    }
    assert parse_given(render_given(rows)) == rows


@pytest.mark.parametrize("provider", Provider)
def test_no_provider_leaves_the_limits_file_out_or_writable(provider: Provider) -> None:
    assert edits(provider).mounts[:2] == (LIMITS, REGION)
