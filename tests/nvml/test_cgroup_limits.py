"""Limits of the driver by cgroup: what the agent hands to NVIDIA's hook, and what it reads back.

Specification: docs/spec/gpu-sharing.md#containers-limited-by-cgroup. The cgroups are folders; the
played driver keeps a cgroup's limits in its folder. The test plays the create hook of NVIDIA's
container toolkit, which sets the limits in the container's own cgroup before its program starts.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pynvml
import pytest
from tests.nvml.stub import MIB, StubState, uuid
from tests.rules.devices.cards import t4

from fairlead.edge.nvml.driver import NvmlDriver
from fairlead.errors import OutsideError
from fairlead.model.devices.driver import CgroupLimit
from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.granted import ContainerGrant
from fairlead.model.devices.kubelet import ContainerEdits
from fairlead.rules.devices.container_edits import NodeFiles, shared_edits
from fairlead.rules.devices.provider import Provider

POD = "/kubepods.slice/kubepods-pod1.slice"
LEAF = f"{POD}/cri-containerd-{'ab' * 32}.scope"
GRANT = 4308
EVERYTHING = 2**64 - 1
"""The hard limit that takes a limit away."""


class Cgroups:
    """A tree of cgroups below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for path in ("", POD, LEAF):
            self.add(path)
        (root / "cgroup.controllers").write_text("memory\n", encoding="ascii")

    def add(self, path: str) -> None:
        folder = Path(f"{self.root}{path}")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.procs").write_text("", encoding="ascii")

    def set(self, path: str, soft: int, hard: int, card: int = 0) -> None:
        """As the hook calls the driver. Raises NVMLError."""
        asked = pynvml.c_nvmlSetMemoryLimits_v1_t(
            nameSpace=f"{self.root}{path}".encode(), softLimit=soft, hardLimit=hard
        )
        pynvml.nvmlDeviceSetMemoryLimits_v1(pynvml.nvmlDeviceGetHandleByIndex(card), asked)

    def play_hook(self, environment: Mapping[str, str], cgroup: str) -> None:
        """The hook sets nothing unless the environment has both names; their unit is MiB."""
        names = ("NVIDIA_GPU_MEMORY_REQUEST", "NVIDIA_GPU_MEMORY_LIMIT")
        soft, hard = (int(environment[name]) * MIB for name in names)
        self.set(cgroup, soft, hard)


@pytest.fixture
def cgroups(tmp_path: Path) -> Cgroups:
    return Cgroups(tmp_path / "cgroup")


@pytest.fixture
def driver(driver_on: Callable[[Path], NvmlDriver], library: Path) -> Iterator[NvmlDriver]:
    made = driver_on(library)
    made.cards()
    yield made


def environment_of(mib: int) -> Mapping[str, str]:
    """What the agent gives a container with this grant."""
    given = ContainerGrant("t", 4, (Grant(t4(0).uuid, 0, 4, mib),))
    edits = shared_edits(
        given, [t4(0)], Provider.CGROUP, NodeFiles("/limits", "/region", has_device_nodes=False)
    )
    assert isinstance(edits, ContainerEdits)
    return edits.environment


def test_the_hook_sets_the_grant_in_the_containers_own_cgroup(
    cgroups: Cgroups, driver: NvmlDriver
) -> None:
    assert driver.cgroup_limit(uuid(0), LEAF) == CgroupLimit(), "before the container starts"
    cgroups.play_hook(environment_of(GRANT), LEAF)
    assert driver.cgroup_limit(uuid(0), LEAF) == CgroupLimit(GRANT * MIB)
    assert driver.cgroup_limit(uuid(1), LEAF) == CgroupLimit(), "of another card"
    assert driver.cgroup_limit(uuid(0), POD) == CgroupLimit(), "of the pod's cgroup"


def test_a_limit_goes_with_its_cgroup(cgroups: Cgroups, driver: NvmlDriver) -> None:
    cgroups.play_hook(environment_of(GRANT), LEAF)
    cgroups.set(LEAF, 0, EVERYTHING)
    assert driver.cgroup_limit(uuid(0), LEAF) == CgroupLimit()
    cgroups.play_hook(environment_of(GRANT), LEAF)
    shutil.rmtree(f"{cgroups.root}{LEAF}")
    cgroups.add(LEAF)
    assert driver.cgroup_limit(uuid(0), LEAF) == CgroupLimit()


def test_a_limit_above_the_card_is_refused_to_the_hook(
    cgroups: Cgroups, driver: NvmlDriver
) -> None:
    for soft, hard in ((2 * MIB, MIB), (MIB, 15361 * MIB)):
        with pytest.raises(pynvml.NVMLError) as caught:
            cgroups.set(LEAF, soft, hard)
        assert caught.value.value == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert driver.cgroup_limit(uuid(0), LEAF) == CgroupLimit()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (pynvml.NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"),
        (pynvml.NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"),
        (pynvml.NVML_ERROR_NOT_SUPPORTED, "Not Supported"),
        (pynvml.NVML_ERROR_OPERATING_SYSTEM, "The operating system has blocked the request."),
        (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"),
        (pynvml.NVML_ERROR_GPU_IS_LOST, "GPU is lost"),
        (999, "Unknown Error"),
    ],
)
def test_an_error_is_a_limit_that_is_not_known(
    cgroups: Cgroups, driver: NvmlDriver, state: StubState, code: int, words: str
) -> None:
    state.fail("nvmlDeviceGetMemoryLimits_v1", code)
    found = driver.cgroup_limit(uuid(0), LEAF)
    assert found == CgroupLimit(fault=f"the driver answers for {cgroups.root}{LEAF}: {words}")


def test_a_cgroup_that_is_gone_and_a_divided_card_are_not_known(
    cgroups: Cgroups, driver: NvmlDriver, state: StubState
) -> None:
    assert "operating system" in driver.cgroup_limit(uuid(0), "/gone").fault
    state.say({"0.mig": 1})
    assert "Not Supported" in driver.cgroup_limit(uuid(0), LEAF).fault
    assert driver.cgroup_limit("GPU-other", LEAF).fault == "the driver does not show this GPU"


def test_without_a_driver_there_is_no_answer(driver: NvmlDriver, state: StubState) -> None:
    state.fail("nvmlDeviceGetMemoryLimits_v1", pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    with pytest.raises(OutsideError):
        driver.cgroup_limit(uuid(0), LEAF)
