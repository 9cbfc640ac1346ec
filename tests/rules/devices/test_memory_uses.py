"""How much memory each container uses of each card, beside its grant. This is the watchdog's input.

See docs/spec/gpu-sharing.md#watchdog.
"""

from __future__ import annotations

from fairlead.model.devices.driver import ProcessHome, ProcessMemory
from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kubelet import GivenShare
from fairlead.model.pod import Pod
from fairlead.rules.devices.watchdog import MemoryUse, memory_uses

TOKEN = "0123456789abcdef"
SHARE = GivenShare("ns", "p", "u", "app", Grant("GPU-a", 0, 4, 4308), TOKEN)
PODS = [Pod("ns", "p", uid="u"), Pod("ns", "q", uid="v")]


def test_processes_of_one_container_count_together_and_by_card() -> None:
    processes = [
        ProcessMemory(1, "GPU-a", 100.0),
        ProcessMemory(2, "GPU-a", 50.0),
        ProcessMemory(2, "GPU-b", 7.0),
    ]
    homes = dict.fromkeys((1, 2), ProcessHome("u", TOKEN))
    assert memory_uses(processes, homes, [SHARE], PODS, {}) == [
        MemoryUse("ns", "p", "u", "app", "GPU-a", 150.0, 4308.0, processes=2),
        MemoryUse("ns", "p", "u", "app", "GPU-b", 7.0, 0.0),
    ]


def test_a_container_over_two_cards_has_a_grant_on_each() -> None:
    other = GivenShare("ns", "p", "u", "app", Grant("GPU-b", 1, 4, 4000), TOKEN)
    processes = [ProcessMemory(1, "GPU-a", 1.0), ProcessMemory(1, "GPU-b", 2.0)]
    found = memory_uses(processes, {1: ProcessHome(token=TOKEN)}, [SHARE, other], PODS, {})
    assert [(each.uuid, each.granted_mib) for each in found] == [
        ("GPU-a", 4308.0),
        ("GPU-b", 4000.0),
    ]


def test_init_and_app_with_the_same_ids_have_their_grant_once() -> None:
    init = GivenShare("ns", "p", "u", "prepare", SHARE.grant, TOKEN)
    (found,) = memory_uses(
        [ProcessMemory(1, "GPU-a", 1.0)], {1: ProcessHome(token=TOKEN)}, [SHARE, init], PODS, {}
    )
    assert (found.container, found.granted_mib) == ("app", 4308.0)


def test_a_pod_that_was_granted_nothing_has_a_grant_of_nothing() -> None:
    (found,) = memory_uses(
        [ProcessMemory(1, "GPU-a", 9.0)], {1: ProcessHome("v")}, [SHARE], PODS, {}
    )
    assert found == MemoryUse("ns", "q", "v", "", "GPU-a", 9.0, 0.0)


def test_a_process_with_a_card_for_itself_or_in_no_pod_is_not_checked() -> None:
    processes = [
        ProcessMemory(1, "GPU-a", 9.0),
        ProcessMemory(2, "GPU-a", 9.0),
        ProcessMemory(3, "GPU-a", 9.0),
    ]
    homes = {1: ProcessHome("v"), 2: ProcessHome()}
    assert memory_uses(processes, homes, [], PODS, {"GPU-a": {"v"}}) == []


def test_a_token_counts_only_in_the_pod_that_it_was_given_to() -> None:
    """A pod may mount its own file under a path that looks like the limits file of another pod."""
    (found,) = memory_uses(
        [ProcessMemory(1, "GPU-a", 9000.0)], {1: ProcessHome("v", TOKEN)}, [SHARE], PODS, {}
    )
    assert (found.pod, found.granted_mib) == ("q", 0.0)
