"""Contract: what is wrong is refused with the real server's status, reason and words. Each case is asked of both worlds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contracts import bad_bodies, bad_objects, bad_requests
from tests.contracts.api_client import ApiClient
from tests.contracts.bad_input import Bad, answer, clean
from tests.contracts.conftest import new_space
from tests.contracts.simulated import SimulatedServer

CASES = (*bad_bodies.CASES, *bad_objects.CASES, *bad_requests.CASES)


@pytest.fixture(scope="module")
def worlds(simulated: SimulatedServer, request: pytest.FixtureRequest) -> Iterator[dict[str, tuple[ApiClient, str]]]:
    """The real and the simulated server, and in each a namespace that all cases share."""
    kubeconfigs = {"real": request.getfixturevalue("control_plane").kubeconfig, "simulated": simulated.kubeconfig}
    clients = {name: ApiClient(name, kubeconfig) for name, kubeconfig in kubeconfigs.items()}
    found = {name: (client, new_space(client)) for name, client in clients.items()}
    yield found
    for client, space in found.values():
        client.delete(f"/api/v1/namespaces/{space}")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input(worlds: dict[str, tuple[ApiClient, str]], case: Bad) -> None:
    answers = {}
    for name, (client, space) in worlds.items():
        try:
            answers[name] = answer(client, case, space)
        finally:
            clean(client, case, space)
    assert answers["simulated"] == answers["real"]


def test_the_server_lives_on(worlds: dict[str, tuple[ApiClient, str]]) -> None:
    for client, space in worlds.values():
        assert client.get(f"/api/v1/namespaces/{space}/configmaps").status == 200
