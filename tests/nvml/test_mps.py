"""A node whose cards have MPS daemons: the played control program, and the played driver.

Specification: docs/spec/gpu-sharing.md#clients-of-mps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pynvml
import pytest
from tests.nvml.played_mps import NAME, ask_mps, daemon, play_mps
from tests.nvml.stub import StubState, uuid

from fairlead.edge.nvml.driver import NvmlDriver
from fairlead.edge.nvml.mps import MpsPlaces
from fairlead.model.devices.driver import MpsLimit

EXCLUSIVE, DEFAULT = (
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
    pynvml.NVML_COMPUTEMODE_DEFAULT,
)
LIMITS = (MpsLimit(uuid(0), 4301), MpsLimit(uuid(1)))


class Node:
    """The pipe directories of a node, and programs on it as MPS would treat them."""

    def __init__(self, folder: Path, state: StubState) -> None:
        self.pipes = folder / "mps"
        self.program = play_mps(folder)
        self.places = MpsPlaces(self.pipes, control=str(self.program))
        self.state = state
        self._ending = ExitStack()
        state.say({f"{card}.compute-mode": DEFAULT for card in (0, 1)})

    def start(self, card: int, **knobs: str) -> None:
        self._ending.enter_context(daemon(self.program, self.pipes / uuid(card), **knobs))

    def close(self) -> None:
        self._ending.close()

    def ask(self, command: str) -> str:
        return ask_mps(self.program, self.pipes / uuid(0), command)

    def client(self, own: str, pipes: Path | None = None) -> str:
        """The memory of a new client with these limits of its own, on card 0. Without a daemon in
        its pipe directory a program runs outside MPS, and the driver refuses it a context where
        the daemon has the card for itself.
        """
        if pipes is None:
            return self.ask(f"connect 0 {own}")
        assert not (pipes / "control").exists()
        modes = [call for call in self.state.calls() if call.startswith("compute mode 0 ")]
        return "refused" if modes[-1:] == [f"compute mode 0 {EXCLUSIVE}"] else "unlimited"


@pytest.fixture
def node(state: StubState, tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path, state)
    yield made
    made.close()


@pytest.fixture
def driver(node: Node, library: Path) -> Iterator[NvmlDriver]:
    made = NvmlDriver(str(library), places=node.places)
    yield made
    made.close()


def test_mps_needs_a_running_daemon_for_every_card(node: Node, driver: NvmlDriver) -> None:
    assert not driver.means().has_mps
    node.start(0)
    assert not driver.means().has_mps, "one card has none"
    node.start(1)
    assert driver.means().has_mps
    node.close()
    assert not driver.means().has_mps, "their files remain"
    (node.pipes / uuid(0) / f"{NAME}.pid").write_text("../self\n", encoding="ascii")
    assert not driver.means().has_mps


def test_a_clients_own_limits_hold_and_can_only_lower_it(node: Node, driver: NvmlDriver) -> None:
    node.start(0)
    assert driver.bound_mps(LIMITS) == ""
    assert node.client("0=2154M") == "2154"
    assert node.client("0=16G") == "4301"


def test_the_known_ways_out_of_mps_are_open_without_the_agent(node: Node) -> None:
    """The negative control of the next test."""
    node.start(0)
    assert node.client("0=2154M,7=1M") == "unlimited"
    assert node.client("0=2154M", node.pipes / "elsewhere") == "unlimited"


def test_the_known_ways_out_of_mps_are_closed(node: Node, driver: NvmlDriver) -> None:
    """An entry for a card that is not visible drops the client's limits, not the daemon's; a wrong
    pipe directory leads to a card that only the daemon may use.
    """
    node.start(0)
    assert driver.bound_mps(LIMITS) == ""
    assert node.client("0=2154M,7=1M") == "4301"
    assert node.client("0=2154M", node.pipes / "elsewhere") == "refused"


def test_servers_that_run_get_the_new_limit_for_their_next_clients(
    node: Node, driver: NvmlDriver
) -> None:
    """A later container of another size, and a container that has ended."""
    node.start(0)
    assert node.client("-") == "unlimited", "its server runs from now on"
    for limit in (4301, 2150, 8602):
        assert driver.bound_mps((MpsLimit(uuid(0), limit), LIMITS[1])) == ""
        assert node.client("-") == str(limit)


@pytest.mark.parametrize("limit", [4301, 1023, 4096])
def test_a_limit_may_be_reported_in_whole_gib(node: Node, driver: NvmlDriver, limit: int) -> None:
    node.start(0, PLAYED_MPS_FLOOR="1")
    assert driver.bound_mps((MpsLimit(uuid(0), limit),)) == ""


def test_a_daemon_that_does_not_keep_its_limit_is_a_fault(node: Node, driver: NvmlDriver) -> None:
    node.start(0, PLAYED_MPS_FORGETS="1")
    assert driver.bound_mps(LIMITS) == (
        f"the MPS daemon of GPU {uuid(0)} was given the limit 4301M and reports ``"
    )


def test_a_daemon_that_is_gone_is_a_fault(node: Node, driver: NvmlDriver) -> None:
    (node.pipes / uuid(0)).mkdir(parents=True)
    assert driver.bound_mps(LIMITS) == (
        f"the MPS daemon of GPU {uuid(0)} refuses "
        f"`set_default_device_pinned_mem_limit {uuid(0)} 4301M`: "
        "Cannot find MPS control daemon process"
    )


def test_a_control_program_that_is_missing_is_a_fault(node: Node, driver: NvmlDriver) -> None:
    node.start(0)
    node.program.unlink()
    assert driver.bound_mps(LIMITS) == (
        f"`{node.program}` cannot be started: no such file or directory"
    )


def test_a_mode_that_may_not_be_set_is_a_fault(
    node: Node, driver: NvmlDriver, state: StubState
) -> None:
    node.start(0)
    state.fail("nvmlDeviceSetComputeMode", pynvml.NVML_ERROR_NO_PERMISSION, 0)
    fault = driver.bound_mps(LIMITS)
    assert fault.startswith(f"GPU {uuid(0)} is not in compute mode EXCLUSIVE_PROCESS: "), fault
    state.say({"0.compute-mode": EXCLUSIVE})
    assert driver.bound_mps(LIMITS) == "", "an administrator has set it"


def modes(state: StubState) -> list[str]:
    return [call for call in state.calls() if call.startswith("compute mode")]


def test_a_card_without_mps_is_free_again_for_all_programs(
    node: Node, driver: NvmlDriver, state: StubState
) -> None:
    node.start(0)
    state.say({"1.compute-mode": EXCLUSIVE})
    driver.bound_mps(LIMITS)
    driver.bound_mps(LIMITS)
    assert modes(state) == [f"compute mode 0 {EXCLUSIVE}"]
    driver.bound_mps(())
    driver.bound_mps(())
    assert modes(state)[1:] == [f"compute mode 0 {DEFAULT}"], "card 1 was exclusive before"


def test_an_agent_that_starts_anew_frees_what_the_one_before_it_took(
    node: Node, driver: NvmlDriver, state: StubState, library: Path
) -> None:
    node.start(0)
    driver.bound_mps(LIMITS)
    driver.close()
    state.say({"0.compute-mode": EXCLUSIVE})
    later = NvmlDriver(str(library), places=node.places)
    try:
        assert later.bound_mps(()) == ""
    finally:
        later.close()
    assert modes(state)[-1] == f"compute mode 0 {DEFAULT}"
