"""Which container has which card. The expectations follow the text of
docs/spec/telemetry.md#device-ids, docs/spec/telemetry.md#attribution-rules.
"""

from __future__ import annotations

import pytest
from tests.apps.fakes import device
from tests.rules.devices.pod_devices import IDS, MEMORY, WHOLE, given, held

from fairlead.model.devices.device import MigInstance
from fairlead.model.devices.driver import ProcessHome
from fairlead.model.devices.kubelet import ClaimableCard, ClaimedDevice, HeldDevices
from fairlead.model.devices.series_names import LocalPod
from fairlead.rules.devices.pod_devices import (
    NodeCards,
    device_processes,
    homeless,
    named_homes,
    node_cards,
    unnamed_cards,
)

TOTALS = {"GPU-a": (0, 15360 << 20), "GPU-b": (1, 15360 << 20)}


def test_the_card_of_shared_memory_is_the_granted_one_whatever_its_ids_name() -> None:
    found = device_processes([held(MEMORY, *IDS)], [given(core=30)], TOTALS)
    assert list(found) == ["GPU-b"]
    (process,) = found["GPU-b"]
    assert (process.namespace, process.pod, process.container, process.pod_uid) == (
        "ns",
        "p",
        "c",
        "u",
    )
    assert (process.allocate_mode, process.memory_limit_bytes, process.core_limit_ratio) == (
        "share",
        2154 << 20,
        0.3,
    )
    assert (process.memory_used_bytes, process.sm_percent, process.processes) == (
        None,
        None,
        None,
    ), "what it uses is reported elsewhere"


def test_more_resources_are_cards_when_they_are_named() -> None:
    mine = [held("nvidia.com/a100", "GPU-a::2")]
    assert device_processes(mine, [], TOTALS) == {}
    (process,) = device_processes(mine, [], TOTALS, ("nvidia.com/a100",))["GPU-a"]
    assert (process.allocate_mode, process.replica) == ("timeslice", "2")


def test_renamed_time_slices_are_cards_by_default() -> None:
    (process,) = device_processes([held("nvidia.com/gpu.shared", "GPU-a::2")], [], TOTALS)["GPU-a"]
    assert (process.allocate_mode, process.replica) == ("timeslice", "2")
    (part,) = device_processes(
        [held("nvidia.com/mig-1g.5gb.shared", "MIG-1::0")], [], {**TOTALS, "MIG-1": (-1, 1)}
    )["MIG-1"]
    assert part.replica == "0"


def test_a_card_that_an_unknown_resource_names_has_unknown_holders() -> None:
    mine = [
        held("nvidia.com/a100", "GPU-a::2"),
        held("example.com/nic", "GPU-elsewhere", "eth0"),
        held(MEMORY, "GPU-b-_-0"),
    ]
    assert unnamed_cards(mine, NodeCards(TOTALS)) == {"GPU-a": "nvidia.com/a100"}
    assert unnamed_cards(mine, NodeCards(TOTALS), ("nvidia.com/a100",)) == {}


@pytest.mark.parametrize(
    ("uuid", "mode", "instance"),
    [("GPU-a", "exclusive", ""), ("MIG-1", "mig", "MIG-1"), ("GPU-elsewhere", None, "")],
)
def test_the_card_of_a_claim_is_the_one_that_its_driver_published(
    uuid: str, mode: str | None, instance: str
) -> None:
    device = ClaimedDevice("claim-x", "ns", "gpu.nvidia.com", "n1", "gpu-0")
    claims = {
        ("gpu.nvidia.com", "n1", "gpu-0"): ClaimableCard(
            "gpu.nvidia.com", "n1", "gpu-0", uuid, "1g.5gb" if instance else ""
        )
    }
    mine = [HeldDevices("gpu.nvidia.com", ("n1/gpu-0",), "c", "ns", "p", claimed=device)]
    assert device_processes(mine, [], {**TOTALS, "MIG-1": (-1, 1)}) == {}, (
        "which card that is is unknown"
    )
    found = device_processes(mine, [], {**TOTALS, "MIG-1": (-1, 1)}, (), claims)
    if mode is None:
        assert found == {}
        return
    (process,) = found[uuid]
    assert (process.pod, process.allocate_mode) == ("p", mode)
    assert process.claim == {
        "dra_claim_name": "claim-x",
        "dra_claim_namespace": "ns",
        "dra_driver_name": "gpu.nvidia.com",
        "dra_pool_name": "n1",
        "dra_device_name": "gpu-0",
        "dra_mig_profile": "1g.5gb" if instance else "",
        "dra_mig_device_uuid": instance,
    }


def test_a_pod_that_is_not_listed_any_more_has_nothing() -> None:
    assert device_processes([], [given()], TOTALS) == {}
    assert device_processes([held(MEMORY, *IDS)], [], TOTALS) == {}


def test_a_pod_made_anew_does_not_inherit() -> None:
    other = ("GPU-a-_-2", "GPU-a-_-3")
    rows = [given("GPU-a", uid="old", ids=other), given("GPU-b", uid="new")]
    assert list(device_processes([held(MEMORY, *IDS)], rows, TOTALS)) == ["GPU-b"]


@pytest.mark.parametrize(
    ("device", "uuid", "mode"),
    [
        ("GPU-a", "GPU-a", "exclusive"),
        ("GPU-a::2", "GPU-a", "timeslice"),
        ("nvidia1", "GPU-b", "exclusive"),
        ("nvidia1/vgpu3", "GPU-b", "timeslice"),
    ],
)
def test_ids_of_whole_cards_and_slices(device: str, uuid: str, mode: str) -> None:
    found = device_processes([held(WHOLE, device)], [], TOTALS)
    assert {
        key: [(each.allocate_mode, each.memory_limit_bytes) for each in rows]
        for key, rows in found.items()
    } == {uuid: [(mode, 15360 << 20)]}


@pytest.mark.parametrize("device", ["MIG-elsewhere", "GPU-elsewhere", "nvidia7", "", "GPU-"])
def test_what_names_no_card_of_this_node_is_nobodys(device: str) -> None:
    assert device_processes([held(WHOLE, device)], [], TOTALS) == {}


def test_one_container_on_two_cards_and_two_on_one() -> None:
    found = device_processes(
        [held(WHOLE, "GPU-a", "GPU-b"), held("cpu", "GPU-a", pod="q")], [], TOTALS
    )
    assert {uuid: len(rows) for uuid, rows in found.items()} == {"GPU-a": 1, "GPU-b": 1}
    both = device_processes([held(WHOLE, "GPU-a::0"), held(WHOLE, "GPU-a::1", pod="q")], [], TOTALS)
    assert [each.pod for each in both["GPU-a"]] == ["p", "q"]


DIVIDED = node_cards(
    [
        device(
            0,
            instances=(
                MigInstance(1, 0, "3g.71gb", "MIG-a", {"DCGM_FI_DEV_FB_TOTAL_BYTES": 70 << 30}),
                MigInstance(2, 0, "1c.2g.35gb", "MIG-b", {"DCGM_FI_DEV_FB_TOTAL_BYTES": 35 << 30}),
                MigInstance(2, 1, "1c.2g.35gb", "MIG-c", {"DCGM_FI_DEV_FB_TOTAL_BYTES": 35 << 30}),
            ),
        )
    ],
    by_mps=["MIG-a", "GPU-gpu-1-0"],
)


@pytest.mark.parametrize(
    ("device_id", "uuid", "mode", "replica"),
    [
        ("MIG-GPU-gpu-1-0/2/1", "MIG-c", "mig", ""),
        ("MIG-GPU-gpu-1-0/2/0::3", "MIG-b", "timeslice", "3"),
        ("nvidia0/gi1", "MIG-a", "mig", ""),
        ("nvidia0/gi2", "MIG-b", "mig", ""),
        ("nvidia0/gi2/vgpu1", "MIG-b", "timeslice", "1"),
        ("nvidia0/gi1/vgpu0", "MIG-a", "mps", "0"),
        ("MIG-a::1", "MIG-a", "mps", "1"),
        ("GPU-gpu-1-0::1", "GPU-gpu-1-0", "mps", "1"),
        ("nvidia0/vgpu4", "GPU-gpu-1-0", "mps", "4"),
        ("nvidia0", "GPU-gpu-1-0", "exclusive", ""),
    ],
)
def test_ids_of_instances_in_their_older_forms_and_sharers_by_mps(
    device_id: str, uuid: str, mode: str, replica: str
) -> None:
    found = device_processes(
        [held("nvidia.com/mig-2g.35gb" if "gi" in device_id else WHOLE, device_id)], [], DIVIDED
    )
    assert {
        key: [(each.allocate_mode, each.replica) for each in rows] for key, rows in found.items()
    } == {uuid: [(mode, replica)]}


@pytest.mark.parametrize(
    "device_id",
    ["MIG-GPU-gpu-1-0/9/0", "MIG-GPU-elsewhere/1/0", "nvidia0/gi7", "nvidia3/gi1", "nvidia0/gi"],
)
def test_an_instance_that_is_absent_has_no_owner(device_id: str) -> None:
    assert device_processes([held(WHOLE, device_id)], [], DIVIDED) == {}


def test_the_uid_of_a_holder_is_the_api_servers_where_the_kubelet_reports_none() -> None:
    pods = {("ns", "p"): LocalPod("ns", "p", "uid-of-the-mirror", "hash-of-the-static-pod")}
    (holder,) = device_processes([held(WHOLE, "GPU-a")], [], TOTALS, pods=pods)["GPU-a"]
    assert holder.pod_uid == "hash-of-the-static-pod", "as its processes' cgroups have it"
    rows = [held(WHOLE, "GPU-a"), HeldDevices(WHOLE, ("GPU-a",), "c", pod_uid="of-the-checkpoint")]
    (known,) = device_processes(rows, [], TOTALS, pods=pods)["GPU-a"]
    assert known.pod_uid == "of-the-checkpoint"


def test_a_container_id_becomes_the_name_that_the_api_server_reports() -> None:
    pods = {("ns", "p"): LocalPod("ns", "p", "u", "u", {}, {"a" * 64: "main", "b" * 64: "side"})}
    homes = {1: ProcessHome("u", container_id="b" * 64), 2: ProcessHome("u", container_id="c" * 64)}
    assert {pid: home.container for pid, home in named_homes(homes, pods).items()} == {
        1: "side",
        2: "",
    }


def test_a_process_in_a_pod_without_a_grant_is_homeless_and_one_of_no_pod_is_not() -> None:
    (holder,) = device_processes(
        [held(WHOLE, "GPU-a")], [], TOTALS, pods={("ns", "p"): LocalPod("ns", "p", "u", "u")}
    )["GPU-a"]
    assert homeless({1: ProcessHome("u"), 2: ProcessHome("v"), 3: ProcessHome()}, [holder]) == {2}
