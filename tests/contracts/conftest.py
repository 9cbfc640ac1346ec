"""Fixtures: both worlds behind one client. Every test of this folder runs against the simulated and
against the real API server.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.api_client import MERGE, ApiClient, until
from tests.contracts.data_objects import DEFINITIONS, FLUID, DataSpace
from tests.contracts.gadgets import DEFINITION, GADGETS, GROUP, LATER
from tests.contracts.simulated import SimulatedServer, simulated_server
from tests.kube.crds import fluid_definitions, install_fluid


class WallClock:
    """The machine's time: ages and timestamps are compared with the real server's."""

    def now(self) -> float:
        return time.time()


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    with simulated_server(tmp_path_factory.mktemp("simulated"), WallClock()) as server:
        yield server


@pytest.fixture(params=["simulated", "real"])
def api(request: pytest.FixtureRequest) -> ApiClient:
    """An API server; the real one starts only when a test needs it."""
    fixture = "simulated" if request.param == "simulated" else "control_plane"
    return _client(request.param, request.getfixturevalue(fixture).kubeconfig)


@functools.cache
def _client(name: str, kubeconfig: Path) -> ApiClient:
    return ApiClient(name, kubeconfig, keeps_connections=True)


@pytest.fixture
def both(simulated: SimulatedServer, request: pytest.FixtureRequest) -> tuple[ApiClient, ApiClient]:
    """(simulated, real), for tests that compare answers instead of asserting them twice."""
    return _client("simulated", simulated.kubeconfig), _client(
        "real", request.getfixturevalue("control_plane").kubeconfig
    )


@pytest.fixture(scope="module")
def worlds(
    simulated: SimulatedServer, request: pytest.FixtureRequest
) -> Iterator[list[tuple[ApiClient, str]]]:
    """The simulated and the real server, and in each a namespace for all cases of a module."""
    kubeconfigs = {
        "simulated": simulated.kubeconfig,
        "real": request.getfixturevalue("control_plane").kubeconfig,
    }
    clients = [_client(name, kubeconfig) for name, kubeconfig in kubeconfigs.items()]
    found = [(client, new_space(client)) for client in clients]
    yield found
    for client, space in found:
        client.delete(f"/api/v1/namespaces/{space}")


@pytest.fixture(params=["simulated", "real"])
def fluid_world(request: pytest.FixtureRequest) -> Iterator[tuple[ApiClient, Path]]:
    """An API server that serves Fluid's kinds, and its kubeconfig."""
    is_real = request.param == "real"
    server: Any = request.getfixturevalue("control_plane" if is_real else "simulated")
    api = ApiClient(request.param, server.kubeconfig, keeps_connections=True)
    if is_real:
        install_fluid(server.admin)
        yield api, server.kubeconfig
        return
    made = [each for each in fluid_definitions() if api.post(DEFINITIONS, each).status == 201]
    until("Fluid's kinds are served", lambda: api.get(f"{FLUID}/datasets").status == 200)
    yield api, server.kubeconfig
    for each in api.get(f"{FLUID}/datasets").body["items"]:
        if each["metadata"].get("finalizers"):  # no controller removes them
            place = f"{FLUID}/namespaces/{each['metadata']['namespace']}/datasets"
            patch = {"metadata": {"finalizers": None}}
            api.patch(f"{place}/{each['metadata']['name']}", patch, MERGE)
    for each in made:
        api.delete(f"{DEFINITIONS}/{each['metadata']['name']}")
    until("Fluid's kinds are gone", lambda: api.get(f"{FLUID}/datasets").status == 404)


@pytest.fixture
def data_space(fluid_world: tuple[ApiClient, Path]) -> DataSpace:
    """A namespace of the test's own on such a server."""
    api, kubeconfig = fluid_world
    return DataSpace(api, kubeconfig, new_space(api))


@pytest.fixture(scope="module")
def simulated_data(simulated: SimulatedServer) -> DataSpace:
    """A namespace on the simulated server, for input that is refused before Fluid is asked."""
    api = _client("simulated", simulated.kubeconfig)
    return DataSpace(api, simulated.kubeconfig, new_space(api))


_numbers = itertools.count(1)


@pytest.fixture
def space(api: ApiClient) -> str:
    """A namespace of the test's own, in which pods can be created. It ends with the server: to end
    a namespace costs a real one a list and a deletion of each kind.
    """
    return new_space(api)


def new_space(api: ApiClient) -> str:
    """A fresh namespace with its default service account, which a real server demands before the
    first pod.
    """
    name = f"contract-{next(_numbers)}-{time.time_ns() % 1_000_000:06d}"
    assert api.post("/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    api.post(accounts, {"metadata": {"name": "default"}})
    until("the service account is there", lambda: api.get(f"{accounts}/default").status == 200)
    return name


@pytest.fixture(scope="module")
def gadgets(worlds: list[tuple[ApiClient, str]]) -> Iterator[list[tuple[ApiClient, str]]]:
    """Both worlds, which serve the kind."""
    for api, space in worlds:
        assert api.post(DEFINITIONS, DEFINITION).status == 201
        for path in (GADGETS, LATER):
            at = path.replace("{s}", space)
            until("the kind is served", lambda api=api, at=at: api.get(at).status == 200)
    yield worlds
    target = f"{DEFINITIONS}/gadgets.{GROUP}"
    for api, _ in worlds:
        api.delete(target)
        until("the kind is gone", lambda api=api: api.get(target).status == 404)
