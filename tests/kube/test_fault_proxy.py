"""Does the fault proxy pass everything on, and strike exactly once where a fault is planned?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kube.fault_proxy import (
    FaultProxy,
    running_fault_proxy,
    too_many_requests,
    with_malformed_item,
)
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.programs import program


@pytest.fixture(scope="module")
def proxy(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    with running_fault_proxy(control_plane) as running:
        yield running


@pytest.fixture
def kubectl(proxy: FaultProxy, control_plane: ControlPlane) -> Kubectl:
    return Kubectl(program("kubectl"), proxy.kubeconfig, control_plane.folder)


def test_requests_pass_through(kubectl: Kubectl, control_plane: ControlPlane) -> None:
    assert kubectl.get("namespaces") == control_plane.admin.get("namespaces")


def test_a_malformed_item_comes_once(kubectl: Kubectl, proxy: FaultProxy) -> None:
    fault = proxy.plan(with_malformed_item("configmaps"))
    first, second = (
        kubectl.run("get", "--raw", "/api/v1/configmaps").count('"spec": "nothing"')
        for _ in range(2)
    )
    assert (first, second, fault.strikes) == (1, 0, 1)


def test_a_429_is_what_the_client_meets(kubectl: Kubectl, proxy: FaultProxy) -> None:
    fault = proxy.plan(too_many_requests("secrets", seconds=1))
    kubectl.get("secrets")  # kubectl itself waits and tries again
    assert fault.strikes == 1
    with pytest.raises(KubectlError):
        kubectl.run("get", "--raw", "/api/v1/nothing")
