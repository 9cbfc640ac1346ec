"""Writes of a Lease holder: limited to what is left of the Lease, which is checked before every
request, with a true outcome.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.edge import scripted
from tests.edge.pki import Authority
from tests.edge.scripted import Reply, ScriptedServer, Stream, bookmark, event, page, status
from tests.edge.twins import connection_to
from tests.rules.sharing import pod
from tests.waiting import until

from fairlead.edge.connection.credentials import ClientCertificate, Credentials, IssuedCredentials
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.sharing_api import KubeSharingApi
from fairlead.model.actions import (
    Action,
    BindPod,
    Outcome,
    RecordEvent,
    Result,
    TouchPod,
    WriteGrants,
)
from fairlead.model.changes import Changes
from fairlead.model.devices.gpu import Grant
from fairlead.model.resources import SHARED_GPU_PREFIX
from fairlead.model.sharing import MANAGED
from fairlead.ports import LeaseRecord
from fairlead.rules.sharing.feed import LedgerFeed
from fairlead.rules.sharing.placement import DEFAULT_POLICIES

BINDING = "/api/v1/namespaces/default/pods/p/binding"
POD = "/api/v1/namespaces/default/pods/p"
GRANTS = {"main": (Grant("GPU-n-0", 0, 4, 4301),)}
BIND = BindPod(pod(), "n", GRANTS, 15)
BUSY = status(429, "TooManyRequests", "slow down", {"Retry-After": "1"})


def applied(
    server: ScriptedServer,
    action: Action,
    left: Callable[[], float] | None,
    *,
    per_second: float = 100,
    burst: int = 200,
    **connection: Any,
) -> Outcome:
    async def whole() -> Outcome:
        async with KubeApi(
            connection_to(server.url, **connection),
            rng=random.Random(1),
            sleep=lambda _: asyncio.sleep(0),
        ) as api:
            return await KubeSharingApi(api, ("ns", "lease"), per_second, burst).apply(action, left)

    return asyncio.run(whole())


def lasting(*seconds: float) -> Callable[[], float]:
    """What is left of the Lease, one value per look."""
    looks: Iterator[float] = iter(seconds)
    return lambda: next(looks)


def test_a_binding_carries_its_grants_and_what_is_left_of_the_lease() -> None:
    with ScriptedServer({BINDING: [Reply({})]}) as server:
        assert applied(server, BIND, lasting(2.5)) == Outcome()
        (seen,) = server.seen
    assert seen.query == {"timeout": "2.500s"}
    assert seen.json()["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] == "0"
    assert seen.json()["target"]["name"] == "n"


def test_a_write_names_the_term_in_which_it_was_decided() -> None:
    """A process that only asks for the Lease does not enter the term of its holder."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"

    def lease(holder: str, transitions: int) -> Reply:
        spec = {"holderIdentity": holder, "leaseTransitions": transitions, "renewTime": "t"}
        return Reply({"metadata": {"resourceVersion": "1", "uid": "a-1"}, "spec": spec})

    async def managers(server: ScriptedServer) -> list[str | None]:
        adopted = WriteGrants(pod(node="n"), GRANTS, 15, is_first=True)
        async with KubeApi(connection_to(server.url)) as api:
            sharing = KubeSharingApi(api, ("ns", "lease"))
            await sharing.apply(BIND)
            await sharing.put_lease(LeaseRecord("me", 4, transitions=6, version="1"))
            await sharing.apply(BIND)
            await sharing.put_lease(
                LeaseRecord("other", 4, "t", wanted_by="me", transitions=7, version="1")
            )
            await sharing.apply(adopted)
            await sharing.put_lease(LeaseRecord("me", 4, transitions=8, version="1"))
            await sharing.apply(TouchPod(pod()))
            await sharing.apply(adopted)
        return [
            seen.query.get("fieldManager")
            for seen in server.seen
            if not seen.path.startswith(leases)
        ]

    replies = [lease("me", 6), lease("other", 7), lease("me", 8)]
    with ScriptedServer(
        {BINDING: [Reply({})], POD: [Reply({})], f"{leases}/lease": replies}
    ) as server:
        assert asyncio.run(managers(server)) == [
            None,
            "lease-6-a-1",
            "lease-6-a-1",
            "fairlead",
            "lease-8-a-1",
        ]


@pytest.mark.parametrize("action", [BIND, WriteGrants(pod(node="n"), GRANTS, 15, is_first=True)])
def test_without_the_lease_nothing_is_sent(action: Action) -> None:
    with ScriptedServer({BINDING: [Reply({})], POD: [Reply({})]}) as server:
        assert applied(server, action, lasting(0.0)) == Outcome(
            Result.REFUSED, "the lease has run out"
        )
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
        (
            status(409, "Conflict", "pod p is being deleted, cannot be assigned to a host"),
            Result.REFUSED,
        ),
        (status(409, "Conflict", 'pod p is already assigned to node "m"'), Result.UNKNOWN),
        (status(404, "NotFound", 'pods "p" not found'), Result.REFUSED),
        (status(408, "Timeout", "too slow"), Result.UNKNOWN),
        (status(500, "InternalError", "etcdserver: request timed out"), Result.UNKNOWN),
        (
            status(504, "Timeout", "request did not complete within the allotted timeout"),
            Result.UNKNOWN,
        ),
        (Reply(b"{}", cut=0), Result.UNKNOWN),
    ],
)
def test_how_a_binding_ended(reply: Reply, result: Result) -> None:
    with ScriptedServer({BINDING: [reply]}) as server:
        assert applied(server, BIND, lasting(2.5)).result is result


@pytest.mark.parametrize(
    "answer",
    [
        status(404, "NotFound", "gone"),
        status(
            422,
            "Invalid",
            ('Pod "p" is invalid: metadata.uid: Invalid value: "u": field is immutable'),
        ),
    ],
)
def test_a_pod_whose_annotation_cannot_be_written_because_it_is_another_one_is_gone(
    answer: Reply,
) -> None:
    with ScriptedServer({POD: [answer]}) as server:
        assert applied(server, TouchPod(pod()), None).result is Result.GONE


def test_a_binding_that_was_not_answered_is_not_sent_again() -> None:
    with ScriptedServer({BINDING: [Reply(b"{}", cut=0), Reply({})]}) as server:
        assert applied(server, BIND, lasting(2.5)).result is Result.UNKNOWN
        assert len(server.seen) == 1


def test_a_server_that_cannot_be_reached() -> None:
    with ScriptedServer({}) as server:
        pass
    outcome = applied(server, BIND, lasting(2.5))
    assert (outcome.result, "refused the connection" in outcome.reason) == (Result.UNKNOWN, True)


def test_with_a_client_certificate_and_a_token_that_is_renewed() -> None:
    """The Lease is checked again before the second try."""
    authority = Authority()
    certificate = ClientCertificate(*authority.issue("fairlead"))
    tokens = iter(["Bearer old", "Bearer new"])
    credentials = Credentials(
        lambda: IssuedCredentials(next(tokens), certificate), is_renewable=True
    )
    replies: list[Reply | Stream] = [status(401, "Unauthorized", "no"), Reply({})]
    with ScriptedServer(
        {BINDING: replies}, authority.issue("server"), client_ca=authority.pem
    ) as server:
        assert (
            applied(server, BIND, lasting(2.5, 1.5), credentials=credentials, ca_pem=authority.pem)
            == Outcome()
        )
        seen = [
            (each.headers["authorization"], each.peer, each.query["timeout"])
            for each in server.seen
        ]
    assert seen == [("Bearer old", "fairlead", "2.500s"), ("Bearer new", "fairlead", "1.500s")]


def test_through_a_proxy() -> None:
    with ScriptedServer({BINDING: [Reply({})]}) as proxy:
        outcome = applied(proxy, BIND, lasting(2.5), proxy_url=proxy.url)
        assert (outcome, proxy.seen[0].query) == (Outcome(), {"timeout": "2.500s"})


def shared(name: str, version: int, *, asks: bool = True) -> dict[str, Any]:
    made = scripted.pod(name, version)
    if asks:
        made["spec"]["containers"][0]["resources"]["limits"] = {"aliyun.com/gpu-mem": "4"}
    return made


def test_of_pods_that_share_no_gpu_only_the_key_is_read_and_of_others_nothing_is_lost() -> None:
    """The pod `odd` has an amount that cannot be parsed, and is not read further. `ours` loses its
    limit, which no real pod does.
    """
    assert all(name.startswith(SHARED_GPU_PREFIX) for name in MANAGED)
    malformed = json.loads(json.dumps(scripted.pod("odd", 13)).replace('"cpu": "1"', '"cpu": "x"'))
    news = [
        event("ADDED", shared("ours", 11)),
        event("MODIFIED", shared("ours", 12, asks=False)),
        event("ADDED", malformed),
    ]
    more = [
        event("ADDED", shared("theirs", 14)),
        event("DELETED", malformed),
        event("MODIFIED", shared("ours", 15, asks=False)),
    ]
    last = [event("DELETED", shared("theirs", 16, asks=False)), bookmark(17)]
    reported: list[tuple[str, str]] = []
    feed = LedgerFeed(DEFAULT_POLICIES, lambda: None)

    def observe(changes: Changes[Any]) -> None:
        if changes.kind == "pods" and not changes.is_list:
            reported.extend(
                (uid, "removed" if row is None else row.name) for uid, row in changes.rows.items()
            )
        feed.observe(changes)

    pods = "/api/v1/pods"
    empty = {
        path: [page([])]
        for path in ("/api/v1/nodes", pods, "/api/v1/namespaces/kube-system/configmaps")
    }
    watches: list[Reply | Stream] = [
        Stream([b"".join(Stream(news).pieces())]),
        Stream([*more, *last]),
        Stream(then="hold"),
    ]

    def watched() -> list[str]:
        return [
            each.query["resourceVersion"]
            for each in server.requests_of(pods)
            if "watch" in each.query
        ]

    async def whole() -> list[str]:
        async with KubeApi(connection_to(server.url)) as api:
            following = asyncio.ensure_future(
                KubeSharingApi(api, ("ns", "lease")).follow(observe, feed.is_known)
            )
            await until(lambda: len(watched()) >= 3, 10, pause_seconds=0.002)
            following.cancel()
            await asyncio.wait([following])
            return watched()

    with ScriptedServer({**empty, f"watch {pods}": watches}) as server:
        assert asyncio.run(whole()) == ["10", "13", "17"]
    own, theirs, gone = (f"uid-default-{name}" for name in ("ours", "theirs", "odd"))
    assert reported == [(own, "ours")] * 2 + [
        (theirs, "theirs"),
        (gone, "removed"),
        (own, "ours"),
        (theirs, "removed"),
    ]
    assert not feed.pods[own].limits


def test_an_event_about_a_pod() -> None:
    with ScriptedServer({"/api/v1/namespaces/default/events": [Reply({}, status=201)]}) as server:
        assert applied(server, RecordEvent(pod(), "GPUShareNoRoom", "no"), None) == Outcome()
        event = server.seen[0].json()
    assert (event["involvedObject"]["uid"], event["reason"], event["type"]) == (
        "uid-p",
        "GPUShareNoRoom",
        "Warning",
    )
