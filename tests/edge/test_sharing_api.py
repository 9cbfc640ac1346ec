"""Writes of the holder of a Lease: decided within what is left of it, looked at before every sending, and honest about how they ended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator

import pytest
from tests.rules.sharing import pod

from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.sharing_api import KubeSharingApi
from fairlead.model.actions import Action, BindPod, Outcome, Result, TellEvent, TouchPod, WriteGrants
from fairlead.model.devices.gpu import Grant

from .scripted import Reply, ScriptedServer, status
from .twins import connection_to

BINDING = "/api/v1/namespaces/default/pods/p/binding"
POD = "/api/v1/namespaces/default/pods/p"
GRANTS = {"main": (Grant("GPU-n-0", 0, 4, 4301),)}
BIND = BindPod(pod(), "n", GRANTS, 15)
BUSY = status(429, "TooManyRequests", "slow down", {"Retry-After": "1"})


def applied(
    server: ScriptedServer, action: Action, left: Callable[[], float] | None, *, per_second: float = 100, burst: int = 200
) -> Outcome:
    async def whole() -> Outcome:
        async with KubeApi(connection_to(server.url), rng=random.Random(1), sleep=lambda _: asyncio.sleep(0)) as api:
            return await KubeSharingApi(api, ("ns", "lease"), per_second, burst).apply(action, left)

    return asyncio.run(whole())


def lasting(*seconds: float) -> Callable[[], float]:
    """What is left, look by look."""
    looks: Iterator[float] = iter(seconds)
    return lambda: next(looks)


def test_a_binding_carries_its_grants_and_what_is_left_of_the_lease() -> None:
    with ScriptedServer({BINDING: [Reply({})]}) as server:
        assert applied(server, BIND, lasting(2.5)) == Outcome()
        (seen,) = server.seen
    assert seen.query == {"timeout": "2.500s"}
    assert seen.json()["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] == "0"
    assert seen.json()["target"]["name"] == "n"


@pytest.mark.parametrize("action", [BIND, WriteGrants(pod(node="n"), GRANTS, 15, is_first=True)])
def test_without_the_lease_nothing_is_sent(action: Action) -> None:
    with ScriptedServer({BINDING: [Reply({})], POD: [Reply({})]}) as server:
        assert applied(server, action, lasting(0.0)) == Outcome(Result.REFUSED, "the lease has run out")
        assert server.seen == []


def test_what_was_put_off_is_not_sent_again_when_the_lease_is_lost_meanwhile() -> None:
    with ScriptedServer({BINDING: [BUSY, Reply({})]}) as server:
        assert applied(server, BIND, lasting(2.5, 0.0)).reason == "the lease has run out"
        assert len(server.seen) == 1
    with ScriptedServer({BINDING: [BUSY, Reply({})]}) as server:
        assert applied(server, BIND, lasting(2.5, 1.5)) == Outcome()
        assert [each.query["timeout"] for each in server.seen] == ["2.500s", "1.500s"]


def test_an_answer_that_does_not_come_is_unknown_soon_after_the_lease_would_have_ended() -> None:
    with ScriptedServer({BINDING: [Reply({}, delay=30.0)]}) as server:
        assert applied(server, BIND, lasting(0.3)).result is Result.UNKNOWN


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        (status(409, "Conflict", "pod p is being deleted, cannot be assigned to a host"), Result.REFUSED),
        (status(409, "Conflict", 'pod p is already assigned to node "m"'), Result.UNKNOWN),
        (status(404, "NotFound", 'pods "p" not found'), Result.REFUSED),
        (status(408, "Timeout", "too slow"), Result.UNKNOWN),
        (status(500, "InternalError", "etcdserver: request timed out"), Result.UNKNOWN),
        (status(504, "Timeout", "request did not complete within the allotted timeout"), Result.UNKNOWN),
        (Reply(b"{}", cut=0), Result.UNKNOWN),
    ],
)
def test_how_a_binding_ended(reply: Reply, result: Result) -> None:
    with ScriptedServer({BINDING: [reply]}) as server:
        assert applied(server, BIND, lasting(2.5)).result is result


@pytest.mark.parametrize(
    "answer",
    [status(404, "NotFound", "gone"), status(422, "Invalid", 'Pod "p" is invalid: metadata.uid: Invalid value: "u": field is immutable')],
)
def test_a_pod_whose_annotation_cannot_be_written_because_it_is_another_one_is_gone(answer: Reply) -> None:
    with ScriptedServer({POD: [answer]}) as server:
        assert applied(server, TouchPod(pod()), None).result is Result.GONE


def test_an_event_about_a_pod() -> None:
    with ScriptedServer({"/api/v1/namespaces/default/events": [Reply({}, status=201)]}) as server:
        assert applied(server, TellEvent(pod(), "GPUShareNoRoom", "no"), None) == Outcome()
        event = server.seen[0].json()
    assert (event["involvedObject"]["uid"], event["reason"], event["type"]) == ("uid-p", "GPUShareNoRoom", "Warning")
