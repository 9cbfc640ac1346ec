"""The scheduler extender over HTTP: wire formats, errors, permissions of clients, and invalid input
of every kind.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import strategies as st
from tests.apps.share_fakes import FakeServer, FakeSharingApi
from tests.edge.pki import Authority
from tests.examples import examples
from tests.rules.sharing import node
from tests.rules.sharing import pod as pod_row
from tests.waiting import until

from fairlead.apps import question_protocol, scheduler_extender
from fairlead.apps.extender import Extender
from fairlead.apps.question_protocol import BODY_BYTES_MAX, Question
from fairlead.apps.scheduler_extender import PREFIX, SchedulerExtender
from fairlead.apps.server import bind_socket, serve
from fairlead.model.actions import Outcome, Result
from fairlead.model.changes import KIND_NODES, KIND_PODS, listed
from fairlead.ports import LeaseRecord

Object = dict[str, Any]
HEADERS = {"Content-Type": "application/json"}


class Asked:
    """A running extender and a client of it."""

    def __init__(
        self, url: str, session: aiohttp.ClientSession, server: FakeServer, driver: Extender
    ) -> None:
        self.url = url
        self.session = session
        self.server = server
        self.driver = driver

    async def post(self, verb: str, body: bytes | Object | None, **headers: str) -> tuple[int, str]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(
            f"{self.url}{PREFIX}/{verb}", data=data, headers={**HEADERS, **headers}
        ) as answer:
            return answer.status, await answer.text()

    async def ask(self, verb: str, body: Object) -> Any:
        status, text = await self.post(verb, body)
        assert status == 200, text
        return json.loads(text)

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session.get(f"{self.url}{path}") as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def extender(
    *, is_ready: bool = True, tls: ssl.SSLContext | None = None, trust: ssl.SSLContext | None = None
) -> AsyncIterator[Asked]:
    server = FakeServer(
        random.Random(1),
        {
            name: msgspec.structs.replace(node(name, units), uid=name)
            for name, units in (("n1", (15, 15)), ("n2", (8,)))
        },
    )
    driver = Extender(FakeSharingApi(server, random.Random(1)), "me", lease_name="ns/lease")
    sock = bind_socket("127.0.0.1", 0)
    url = f"http{'s' if tls else ''}://127.0.0.1:{sock.getsockname()[1]}"
    if not is_ready:
        server.down_until = float("inf")
    running = [
        asyncio.ensure_future(driver.run()),
        asyncio.ensure_future(serve(SchedulerExtender(driver), sock=sock, ssl=tls)),
    ]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust or False)) as session:
        try:
            asked = Asked(url, session, server, driver)
            if is_ready:
                await until(lambda: _is_true(lambda: driver.trouble == ""))
            yield asked
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def _is_true(condition: Callable[[], bool]) -> bool:
    return condition()


def pod(name: str = "p", units: object = 4, **metadata: Any) -> Object:
    limits = {"aliyun.com/gpu-mem": units}
    spec = {"containers": [{"name": "main", "resources": {"limits": limits, "requests": limits}}]}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata},
        "spec": spec,
    }


def bind(name: str = "p", node: str = "n1", uid: str = "") -> Object:
    return {
        "PodName": name,
        "PodNamespace": "default",
        "PodUID": uid or f"uid-{name}",
        "Node": node,
    }


async def test_names_for_names() -> None:
    async with extender() as asked:
        answer = await asked.ask(
            "filter", {"Pod": pod(units=10), "Nodes": None, "NodeNames": ["n2", "n1", "strange"]}
        )
        assert answer == {
            "Nodes": None,
            "NodeNames": ["n1"],
            "FailedNodes": {"strange": "node not yet known to the GPU share scheduler"},
            "FailedAndUnresolvableNodes": {"n2": "need 10 GiB on one GPU, largest has 8 GiB"},
            "Error": "",
        }
        assert await asked.ask("prioritize", {"Pod": pod(), "NodeNames": ["n1"]}) == [
            {"Host": "n1", "Score": 0}
        ]


async def test_whole_nodes_for_whole_nodes_and_keys_in_any_case() -> None:
    items = [
        {"metadata": {"name": name, "labels": {"kept": "as it was"}}, "spec": {"anything": 1}}
        for name in ("n1", "n2")
    ]
    async with extender() as asked:
        answer = await asked.ask(
            "filter",
            {"POD": pod(units=10), "nodes": {"Items": items}, "nodeNames": None, "unknown": 1},
        )
        assert (answer["Nodes"]["items"], answer["NodeNames"]) == (items[:1], None)


async def test_null_lists() -> None:
    async with extender() as asked:
        answer = await asked.ask("filter", {"Pod": pod(), "Nodes": None, "NodeNames": None})
        assert (answer["Nodes"], answer["NodeNames"], answer["Error"]) == (None, None, "")
        assert await asked.ask("preempt", {"Pod": pod(), "NodeNameToVictims": None}) == {
            "NodeNameToMetaVictims": {}
        }
        victims = {"n1": None, "n2": {"Pods": None, "NumPDBViolations": 1}}
        assert await asked.ask("preempt", {"Pod": pod(), "NodeNameToMetaVictims": victims}) == {
            "NodeNameToMetaVictims": {}
        }


async def test_bind_is_one_call_and_may_be_repeated() -> None:
    async with extender() as asked:
        asked.server.write(pod_row())
        assert (
            await asyncio.gather(*(asked.ask("bind", bind()) for _ in range(5)))
            == [{"Error": ""}] * 5
        )
        assert asked.server.bindings == {"uid-p": 1}
        assert "already" in (await asked.ask("bind", bind(node="n2")))["Error"]
        assert (await asked.ask("bind", bind(uid="other")))[
            "Error"
        ] == "pod default/p has uid uid-p, and asked was pod default/p with uid other"
        assert (await asked.ask("bind", bind("gone")))["Error"] == 'pods "gone" not found'
        page = (await asked.get("/metrics"))[1]
        assert 'fairlead_gpushare_bind_total{result="bound"} 1' in page
        assert 'fairlead_gpushare_extender_seconds_count{verb="bind"} 8.0' in page


async def test_a_pod_that_asks_for_nothing_of_shared_gpus_is_not_bound() -> None:
    async with extender() as asked:
        asked.server.write(pod_row(units=0))
        answer = (await asked.ask("bind", bind()))["Error"]
        assert answer == (
            "pod default/p asks for nothing of shared GPUs: its scheduler binds it itself"
        )
        assert asked.server.bindings == {}


@pytest.mark.parametrize("where", ["PodNamespace", "PodName", "PodUID", "Node"])
@pytest.mark.parametrize("name", ["a\nb", "A", "a b", "x" * 300, "\x1b[31m", "../p", "a\u2028b"])
async def test_what_is_no_name_of_kubernetes_is_refused_in_one_short_line(
    where: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with extender() as asked:
        status, reported = await asked.post("bind", {**bind(), where: name})
    assert (status, f"{where} is '" in reported, "which is no name of Kubernetes" in reported) == (
        400,
        True,
        True,
    )
    assert len(reported.splitlines()) == 1 and len(reported) < 200
    assert all(name not in record.getMessage() for record in caplog.records if len(name) > 3)


async def test_a_binding_that_ends_in_any_other_way_is_a_doubt_and_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For example a credential plugin fails: the room stays reserved until a GET shows
    the outcome.
    """

    async def fails(*_: object) -> Outcome:
        raise RuntimeError("the plugin gave no token")

    async with extender() as asked:
        asked.server.write(pod_row())
        with monkeypatch.context() as broken:
            broken.setattr(FakeSharingApi, "apply", fails)
            assert (
                "is not known yet: the plugin gave no token"
                in (await asked.ask("bind", bind()))["Error"]
            )
        assert [tenant.pod.uid for tenant in asked.driver.ledger.reserved()] == ["uid-p"]
        assert list(asked.driver.machine.bindings.doubts) == ["uid-p"]
        assert (await asked.ask("bind", bind()))["Error"] == ""


@pytest.mark.parametrize("phase", ["Pending", "Running"])
async def test_a_pod_that_was_bound_without_its_cards_gets_them_written(
    monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """Another client binds the pod while the extender's own binding is in doubt, or the grant is
    removed before the watch delivers it.
    """

    async def is_lost(*_: object) -> Outcome:
        return Outcome(Result.UNKNOWN, "connection reset")

    async with extender() as asked:
        asked.server.write(pod_row())
        with monkeypatch.context() as broken:
            broken.setattr(FakeSharingApi, "apply", is_lost)
            assert "is not known yet" in (await asked.ask("bind", bind()))["Error"]
        asked.server.write(pod_row(node="n1", phase=phase))
        await until(lambda: _is_true(lambda: bool(asked.server.pods["uid-p"].grants)))
        assert [
            (grant.uuid, grant.units) for grant in asked.server.pods["uid-p"].grants["main"]
        ] == [("GPU-n1-0", 4)]
        await until(lambda: _is_true(lambda: not asked.driver.machine.bindings.doubts))


async def test_a_node_without_room_is_refused_and_nothing_is_written() -> None:
    async with extender() as asked:
        asked.server.write(pod_row(units=20))
        assert (await asked.ask("bind", bind()))["Error"] == (
            "need 20 GiB on one GPU, largest has 15 GiB"
        )
        assert (asked.server.bindings, asked.driver.ledger.reserved()) == ({}, [])


async def test_until_the_ledger_stands_there_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.apps.extender.PATIENCE_SECONDS", 0.2)
    async with extender(is_ready=False) as asked:
        assert await asked.get("/readyz") == (503, "GPU ledger is being rebuilt\n")
        assert (await asked.get("/healthz"))[0] == 200
        answer = await asked.ask("filter", {"Pod": pod(), "NodeNames": ["n1"]})
        assert (
            answer["Error"].startswith("this extender does not hold the lease ns/lease")
            and answer["NodeNames"] is None
        )
        assert "lease" in (await asked.ask("bind", bind()))["Error"]
        assert await asked.ask(
            "preempt", {"Pod": pod(), "NodeNameToMetaVictims": {"n1": {"Pods": []}}}
        ) == {"NodeNameToMetaVictims": {}}
        asked.server.lease = LeaseRecord("me", 4, "0", version="0")
        asked.driver.leader.held_until = float("inf")
        assert (await asked.ask("filter", {"Pod": pod(), "NodeNames": ["n1"]}))["Error"] == (
            "GPU ledger is being rebuilt"
        )


async def test_a_pod_that_was_refused_too_early_is_touched_so_that_it_is_tried_again() -> None:
    async with extender() as asked:
        for row in (pod_row("first", 15), pod_row("second", 15), pod_row("late", 10)):
            asked.server.write(row)
        for name in ("first", "second"):
            assert (await asked.ask("bind", bind(name)))["Error"] == ""
        await asked.ask("filter", {"Pod": pod("late", 10), "NodeNames": ["n1"]})
        await until(lambda: _is_true(lambda: "uid-late" in asked.driver.machine.feed.pods))
        assert not any(asked.driver.machine.hints.due(time.monotonic() + 60))
        assert "fairlead.io/gpu-retry" not in asked.server.pods["uid-late"].annotations, (
            "there is no room yet"
        )
        asked.server.remove("uid-first")
        await until(
            lambda: _is_true(
                lambda: "fairlead.io/gpu-retry" in asked.server.pods["uid-late"].annotations
            )
        )


async def test_inspect_and_pages() -> None:
    async with extender() as asked:
        asked.server.write(pod_row())
        await asked.ask("bind", bind())
        await until(lambda: _is_true(lambda: not asked.driver.ledger.reserved()))
        _, text = await asked.get(f"{PREFIX}/inspect/n1")
        (found,) = json.loads(text)["nodes"]
        assert (found["usedGPU"], found["totalGPU"], found["devs"][0]["pods"][0]["state"]) == (
            4,
            30,
            "bound",
        )
        assert await asked.get(f"{PREFIX}/inspect/x") == (
            404,
            ('{"nodes":[],"error":"node \\"x\\" not found"}'),
        )
        assert [
            (await asked.get(path))[0]
            for path in ("/version", "/readyz", "/", "/nothing", f"{PREFIX}/filter")
        ] == [
            200,
            200,
            200,
            404,
            405,
        ]
        assert (await asked.post("inspect", b""))[0] == 405


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "ExtenderArgs is not a JSON object"),
        (b"{", "truncated"),
        (b"[]", "got `array`"),
        (b'{"NodeNames":["n1"]}', "there is no Pod"),
        (b'{"Pod":{"metadata":{}},"NodeNames":{}}', "NodeNames is not a list of strings"),
        (b'{"Pod":{"metadata":{}},"NodeNames":[1]}', "got `int`"),
        (b'{"Pod":{"metadata":{}},"Nodes":[]}', "Nodes is not a JSON object"),
        (b'{"Pod":{"metadata":{}},"Nodes":{"items":[{}]}}', "Nodes.items is not Nodes"),
        (
            b'{"Pod":{"metadata":{},"spec":{"containers":[{"resources":{"limits":{"aliyun.com/gpu-mem":"4Gx"}}}]}}}',
            "4Gx",
        ),
        (b'{"Pod":' * 5000, ""),
    ],
)
async def test_what_is_no_question_gets_the_reason(body: bytes, words: str) -> None:
    async with extender() as asked:
        status, text = await asked.post("filter", body)
        assert status == 400 and words in text, text
        assert (await asked.post("bind", b'{"PodName":"p"}')) == (
            400,
            "ExtenderBindingArgs without PodNamespace, PodUID, Node\n",
        )


async def test_a_body_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    async with extender() as asked:
        host, port = asked.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            (
                f"POST {PREFIX}/filter HTTP/1.1\r\nHost: x\r\nContent-Length: "
                f"{BODY_BYTES_MAX + 1}\r\n\r\n"
            ).encode()
        )
        assert b" 413 " in await reader.readline()
        writer.close()
        monkeypatch.setattr(question_protocol, "BODY_BYTES_MAX", 1000)

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b" " * 100

        async with asked.session.post(f"{asked.url}{PREFIX}/filter", data=pieces()) as answer:
            assert answer.status == 413


async def test_a_web_page_may_not_place_pods() -> None:
    async with extender() as asked:
        assert (await asked.post("bind", bind(), Origin="http://evil.example"))[0] == 403


async def test_elsewhere_only_a_client_certificate_may_place_pods(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The test has only the loopback address, so it treats it as a remote one."""
    monkeypatch.setattr(scheduler_extender, "is_loopback", lambda host: False)
    authority = Authority()
    for is_known, status in ((True, 200), (False, 403)):
        tls, trust = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
            ssl.create_default_context(cadata=authority.pem.decode()),
        )
        for context in (tls, trust) if is_known else (tls,):
            pair = tmp_path / "pair.pem"
            pair.write_bytes(b"".join(authority.issue("somebody")))
            context.load_cert_chain(pair)
        tls.load_verify_locations(cadata=authority.pem.decode())
        tls.verify_mode = ssl.CERT_OPTIONAL
        async with extender(tls=tls, trust=trust) as asked:
            assert (await asked.post("filter", {"Pod": pod(), "NodeNames": ["n1"]}))[0] == status
            assert (await asked.get(f"{PREFIX}/inspect"))[0] == 200


async def test_answers_come_at_once_over_one_connection() -> None:
    """Nagle's algorithm and delayed acknowledgements together cost 44 ms per call."""
    body = json.dumps({"Pod": pod(), "NodeNames": ["n1"] * 500}).encode()
    async with extender() as asked:
        took = []
        for _ in range(60):
            began = time.perf_counter()
            assert (await asked.post("filter", body))[0] == 200
            took.append(time.perf_counter() - began)
        # the first twenty may be acknowledged at once; a busy machine has quick moments, too
        assert sorted(took[20:])[10] < 0.03


# --- fuzz -----------------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(["n1", "n2", "uid-p", "p", "default"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
AMOUNTS = st.sampled_from(
    [
        "0",
        "-1",
        "1.5",
        "4",
        "14",
        "1k",
        "99999999999999999999",
        "x",
        "",
        4,
        -4,
        1e300,
        None,
        [],
        "4Gi",
        "5000m",
        "1e3",
    ]
)
LABELS = st.sampled_from(
    [
        None,
        {},
        {"aliyun.com/gpu-count": "x"},
        {"aliyun.com/gpu-count": "2"},
        {"aliyun.com/gpu-count": "-1"},
        {"a": 1},
        [],
    ]
)
PODS = (
    st.builds(
        lambda units, labels, notes: pod(units=units, labels=labels, annotations=notes),
        AMOUNTS,
        LABELS,
        LABELS,
    )
    | VALUES
)
KEYS = st.sampled_from(
    [
        "Pod",
        "pod",
        "NodeNames",
        "Nodes",
        "nodes",
        "NodeNameToVictims",
        "NodeNameToMetaVictims",
        "PodName",
        "PodNamespace",
        "PodUID",
        "Node",
    ]
)
BODIES = st.dictionaries(KEYS, VALUES, max_size=6).flatmap(
    lambda rest: PODS.map(lambda given: {**rest, "Pod": given})
)
GOOD = st.builds(
    lambda given, names: {"Pod": given, "NodeNames": names},
    PODS,
    st.lists(st.sampled_from(["n1", "n2", "", "x"]), max_size=4) | st.none(),
)


@examples(
    12,
    150,
    st.lists(
        st.tuples(
            st.sampled_from(["filter", "prioritize", "bind", "preempt"]),
            GOOD | BODIES | st.binary(max_size=40),
            st.integers(0, 30),
        ),
        min_size=15,
        max_size=40,
    ),
)
def test_whatever_is_sent_gets_an_answer_and_no_card_is_sold_twice(
    asked: list[tuple[str, Any, int]],
) -> None:
    """Through the app itself, without a socket; some bodies are cut short."""

    async def whole() -> None:
        server = FakeServer(random.Random(1), {"n1": msgspec.structs.replace(node("n1"), uid="n1")})
        driver = Extender(
            _Prompt(server, random.Random(1)), "me", lease_name="l", monotonic=lambda: 0.0
        )
        driver.leader.held_until = 1.0
        driver.machine.feed.is_rebuilt = True
        driver.machine.feed.observe(listed(KIND_NODES, dict(server.nodes)))
        server.write(pod_row())
        # the API server's state of a pod counts
        driver.machine.feed.observe(listed(KIND_PODS, dict(server.pods)))
        app = SchedulerExtender(driver)
        for verb, body, cut in asked:
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            status, answer = await _call(
                app, f"{PREFIX}/{verb}", text[: len(text) - cut] if cut > 25 else text
            )
            assert status in (200, 400), (status, answer)
            if status == 200:
                json.loads(answer)
        await _call(app, f"{PREFIX}/bind", json.dumps(bind()).encode())
        assert not server.faults and server.bindings == {"uid-p": 1}
        assert (
            (await _call(app, "/metrics", b"", "GET"))[0]
            == (await _call(app, f"{PREFIX}/inspect", b"", "GET"))[0]
            == 200
        )

    asyncio.run(whole())


class _Prompt(FakeSharingApi):
    async def _pause(self, most: float) -> None:
        return


async def _call(
    app: SchedulerExtender, path: str, body: bytes, method: str = "POST"
) -> tuple[int, bytes]:
    asked = Question(method, path, "127.0.0.1", body=body)
    status, _, answer = app.refusal(asked) or await app.answer(asked)
    return status, answer
