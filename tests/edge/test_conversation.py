"""The requests to an API server, with answers by hand: pages, 410, waits, credentials, discovery,
and every failure at every step.
"""

from __future__ import annotations

import gzip
import itertools
import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs
from tests.edge.scripted import Reply, page, pod, status
from tests.edge.twins import connection_to, fixed, pod_reader
from tests.protobuf_bodies import encoded, envelope, list_body, part, varint

from fairlead.edge.connection.credentials import ClientCertificate, Credentials, IssuedCredentials
from fairlead.edge.kube import conversation
from fairlead.edge.kube.api_discovery import check_version
from fairlead.edge.kube.api_failure import (
    ApiFailure,
    Conflict,
    ForbiddenByServer,
    Gone,
    NotServed,
    Unauthorized,
    Unreachable,
)
from fairlead.edge.kube.api_request import ApiRequest, Selection, with_query
from fairlead.edge.kube.conversation import (
    PROTOBUF_OR_JSON,
    Answer,
    Call,
    Conversation,
    Finish,
    Pause,
    SendRequest,
    StartConversation,
    Step,
    Steps,
)
from fairlead.edge.kube.resource import NODES, PODS
from fairlead.errors import Forbidden, NotFound, OutsideError
from fairlead.wire.kube.forms import PROTOBUF

PODS_PATH = "/api/v1/pods"
SERVER = "https://api.example:6443"
NOT_SERVED = status(404, "NotFound", "the server could not find the requested resource")
Script = Mapping[str, Sequence[Reply | Exception]]


class ByHand:
    """Drives conversations with answers from a script: each request to a path takes the next step
    of its list, and the last step repeats.

    `is_late`: steps that a conversation begins in parallel are carried out only when it waits for
    them, otherwise at once. `faults`: answers for the first, second, … request overall, used before
    the script. `story`: what was done, in order.
    """

    def __init__(
        self,
        script: Script,
        *,
        is_late: bool = False,
        faults: Mapping[int, Reply | Exception] | None = None,
        **parts: Any,
    ) -> None:
        begins_in_json = parts.pop("begins_in_json", False)
        connection = connection_to(parts.pop("server", SERVER), **parts)
        self.conversation = Conversation(
            connection, (OSError,), random.Random(1), begins_in_json=begins_in_json
        )
        self.asked: list[SendRequest] = []
        self.pauses: list[float] = []
        self.story: list[str] = []
        self._script = {path: list(steps) for path, steps in script.items()}
        self._is_late = is_late
        self._faults = dict(faults or {})

    @property
    def paths(self) -> list[str]:
        return [asked.request.path for asked in self.asked]

    def run(self, steps: Steps[Any]) -> Any:
        try:
            step = next(steps)
            while True:
                try:
                    outcome = self._carry_out(step)
                except Exception as error:  # noqa: BLE001  (handed to the conversation)
                    step = steps.throw(error)
                else:
                    step = steps.send(outcome)
        except StopIteration as end:
            return end.value

    def _carry_out(self, step: Step) -> Any:
        match step:
            case SendRequest():
                return self._answer(step)
            case StartConversation():
                return step if self._is_late else self._outcome(step)
            case Finish():
                outcome = self._outcome(step.begun) if self._is_late else step.begun
                if isinstance(outcome, Exception):
                    raise outcome
                return outcome
            case Pause():
                self.story.append("pause")
                self.pauses.append(step.seconds)
                return None
            case Call():
                self.story.append("call")
                return step.call()

    def _outcome(self, begun: StartConversation) -> Any:
        try:
            return self.run(begun.steps)
        except Exception as error:  # noqa: BLE001  (a value until it is waited for)
            return error

    def _answer(self, asked: SendRequest) -> Answer:
        asked = structs.replace(asked, request=asked.made(), anew=None)
        self.asked.append(asked)
        self.story.append("ask")
        steps = self._script.get(asked.request.path.partition("?")[0]) or [NOT_SERVED]
        reply = self._faults.pop(len(self.asked) - 1, None) or (
            steps.pop(0) if len(steps) > 1 else steps[0]
        )
        if isinstance(reply, Exception):
            raise reply
        return Answer(reply.status, reply.headers, reply.content())


def names(listing: Any) -> list[str]:
    return [row.name for row in listing.rows.values()]


def listed(script: Script, selection: Selection | None = None, **more: Any) -> tuple[Any, ByHand]:
    hand = ByHand(script, **more)
    return hand.run(
        hand.conversation.list_all(pod_reader(), *([selection] if selection else []))
    ), hand


# lists


@pytest.mark.parametrize("is_late", [False, True])
def test_a_list_is_read_in_pages_of_500(is_late: bool) -> None:
    script = {
        PODS_PATH: [
            page([pod("a"), pod("b")], token="t1"),
            page([pod("c")], token="t2"),
            page([pod("d")], 12),
        ]
    }
    listing, hand = listed(
        script, Selection(fields="spec.nodeName!=", labels="a in (b,c)"), is_late=is_late
    )
    assert names(listing) == ["a", "b", "c", "d"]
    assert listing.resource_version == "12"
    wanted = {"labelSelector": "a in (b,c)", "fieldSelector": "spec.nodeName!=", "limit": "500"}
    assert hand.paths == [
        with_query(PODS_PATH, **wanted),
        with_query(PODS_PATH, **wanted, **{"continue": "t1"}),
        with_query(PODS_PATH, **wanted, **{"continue": "t2"}),
    ]


def written(name: str, token: str = "") -> Reply:
    """A page in the compact JSON of API servers: the token comes before the items. A token inside
    an item does not count.
    """
    meta = {
        "resourceVersion": "7",
        **({"continue": token, "remainingItemCount": 1} if token else {}),
    }
    item = pod(name) | {"annotations": {"continue": "x"}}
    return Reply(
        json.dumps(
            {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": [item]},
            separators=(",", ":"),
        ).encode()
    )


@pytest.mark.parametrize(
    ("first", "story"),
    [
        (written("a", "t"), ["ask", "ask", "decode", "parse", "decode", "parse"]),
        (page([pod("a")], token="t"), ["ask", "decode", "ask", "parse", "decode", "parse"]),
    ],
    ids=["as API servers write it", "with its token in another place"],
)
def test_the_next_page_is_asked_for_as_soon_as_its_token_is_seen(
    first: Reply, story: list[str]
) -> None:
    """Half of the time of a long list is the server's work on the next page."""
    reader = pod_reader()
    decode, parse = reader.decode_page, reader.parse_page
    hand = ByHand({PODS_PATH: [first, written("b")]})
    reader.decode_page = lambda body: (hand.story.append("decode"), decode(body))[1]  # type: ignore[method-assign]
    reader.parse_page = lambda wire: (hand.story.append("parse"), parse(wire))[1]  # type: ignore[method-assign]
    assert names(hand.run(hand.conversation.list_all(reader))) == ["a", "b"]
    assert hand.story == ["call", *story]


@pytest.mark.parametrize("is_late", [False, True])
def test_tokens_are_handed_back_as_they_came(is_late: bool) -> None:
    listing, hand = listed(
        {PODS_PATH: [written("a", "eyJ2/+="), written("b", "t2"), written("c")]}, is_late=is_late
    )
    assert names(listing) == ["a", "b", "c"]
    assert [path.partition("continue=")[2] for path in hand.paths] == ["", "eyJ2%2F%2B%3D", "t2"]


def test_a_list_in_one_namespace_asks_only_there() -> None:
    path = "/api/v1/namespaces/team-a/pods"
    assert names(
        listed({path: [page([pod("a", namespace="team-a")])]}, Selection("team-a"))[0]
    ) == ["a"]


def test_an_expired_continue_token_restarts_the_list_without_doubles() -> None:
    gone = status(410, "Expired", "The provided continue parameter is too old")
    listing, hand = listed(
        {
            PODS_PATH: [
                page([pod("a")], token="t"),
                gone,
                page([pod("a")], token="u"),
                page([pod("b")], 20),
            ]
        }
    )
    assert (names(listing), listing.resource_version) == (["a", "b"], "20")
    assert "continue" not in hand.paths[2]


def test_a_list_that_always_expires_is_at_last_read_in_one_piece() -> None:
    gone = status(410, "Expired", "too old")
    listing, hand = listed(
        {PODS_PATH: [*[page([pod("a")], token="t"), gone] * 3, page([pod("a"), pod("b")])]}
    )
    assert names(listing) == ["a", "b"]
    assert ["limit" in path for path in hand.paths] == [True] * 6 + [False]


@pytest.mark.parametrize("items", [None, []])
def test_a_null_list_is_an_empty_one(items: list[Any] | None) -> None:
    assert listed({PODS_PATH: [page(items)]})[0].rows == {}


def test_one_malformed_object_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    strange = [
        pod("number") | {"spec": {"nodeName": 5}},
        pod("list") | {"status": []},
        pod("quantity")
        | {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]}},
        {"metadata": None},
        "not even an object",
        None,
    ]
    nulls = pod("nulls") | {
        "spec": {"containers": None},
        "status": None,
        "x-unknown": {"deep": [1]},
    }
    hand, reader = (
        ByHand({PODS_PATH: [page([pod("first"), *strange, nulls, pod("last")])]}),
        pod_reader(),
    )
    listing = hand.run(hand.conversation.list_all(reader))
    assert names(listing) == ["first", "nulls", "last"]
    assert len(listing.malformed) == reader.malformed_total == len(strange)
    assert (
        "left out pods default/number: Expected `str | null`, got `int` - at `$.spec.nodeName`"
    ) in caplog.text
    assert "left out pods default/quantity" in caplog.text
    assert "lots" in caplog.text
    assert listing.malformed[0].key == "uid-default-number"


@pytest.mark.parametrize(
    "amount", ["1e30", "-5", "0.0001n", "", "1.5.5", "9" * 400, "1e400", "NaN"]
)
def test_an_absurd_quantity_never_fails_the_page(amount: str) -> None:
    strange = pod("strange") | {
        "spec": {
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": amount, "memory": amount}}}
            ]
        }
    }
    assert {"a", "b"} <= set(names(listed({PODS_PATH: [page([pod("a"), strange, pod("b")])]})[0]))


NOT_JSON = f"API server `{SERVER}` answered `GET {{path}}` with something else than its JSON: "


@pytest.mark.parametrize(
    "body",
    [
        b"<html>log in</html>",
        b"",
        b"[]",
        b'{"items": 5}',
        b"[" * 2000,
        (b'{"metadata": {"continue": "\xff"}}'),
    ],
)
def test_a_page_that_is_no_list_is_reported(body: bytes) -> None:
    with pytest.raises(ApiFailure) as caught:
        listed({PODS_PATH: [Reply(body)]})
    assert caught.value.what.startswith(NOT_JSON.format(path=PODS_PATH))


# answers that ask to try later


def put_off(code: int, seconds: float) -> Reply:
    return status(code, "TooManyRequests", "slow down", {"Retry-After": f"{seconds:g}"})


@pytest.mark.parametrize(("code", "wait"), [(429, 3.0), (503, 1.0)])
def test_what_the_server_puts_off_is_asked_again_after_its_time(code: int, wait: float) -> None:
    later = put_off(code, wait)
    listing, hand = listed({PODS_PATH: [later, later, page([pod("a")])]})
    assert names(listing) == ["a"]
    assert len(hand.pauses) == 2
    assert all(wait <= waited <= wait * 1.1 for waited in hand.pauses)


@pytest.mark.parametrize(
    ("wait", "tries"), [(1.0, range(6, 12)), (6.0, range(4, 6)), (40.0, range(1, 2))]
)
def test_a_request_waits_half_a_minute_in_all_however_often_it_is_put_off(
    wait: float, tries: range
) -> None:
    hand = ByHand({PODS_PATH: [put_off(429, wait)]})
    with pytest.raises(ApiFailure) as caught:
        hand.run(hand.conversation.list_all(pod_reader()))
    assert (caught.value.status, caught.value.message) == (429, "slow down")
    assert len(hand.asked) in tries
    assert sum(hand.pauses) <= 30
    assert caught.value.retry_after == wait


@pytest.mark.parametrize("code", [429, 500, 503])
def test_without_retry_after_nothing_is_asked_again(code: int) -> None:
    hand = ByHand({PODS_PATH: [status(code, "X", "not now")]})
    with pytest.raises(ApiFailure) as caught:
        hand.run(hand.conversation.list_all(pod_reader()))
    assert (len(hand.asked), caught.value.status) == (1, code)
    assert caught.value.message == "not now"


@pytest.mark.parametrize("code", [400, 404, 409, 410, 500])
def test_other_answers_with_retry_after_are_not_asked_again(code: int) -> None:
    hand = ByHand({PODS_PATH: [put_off(code, 1)]})
    with pytest.raises(ApiFailure):
        hand.run(hand.conversation.send(ApiRequest("create", "POST", PODS_PATH, b"{}")))
    assert len(hand.asked) == 1


# credentials


def renewed_each_time(**parts: Any) -> Credentials:
    numbers = itertools.count(1)
    return Credentials(
        lambda: IssuedCredentials(f"Bearer {next(numbers)}", **parts), is_renewable=True
    )


def authorizations(hand: ByHand) -> list[str | None]:
    return [dict(asked.headers).get("Authorization") for asked in hand.asked]


def test_401_renews_the_credentials_once() -> None:
    script = {PODS_PATH: [status(401, "Unauthorized", "Unauthorized"), page([pod("a")])]}
    listing, hand = listed(script, credentials=renewed_each_time())
    assert names(listing) == ["a"]
    assert authorizations(hand) == ["Bearer 1", "Bearer 2"]
    hand = ByHand(
        {PODS_PATH: [status(401, "Unauthorized", "Unauthorized")]}, credentials=renewed_each_time()
    )
    with pytest.raises(Unauthorized):
        hand.run(hand.conversation.list_all(pod_reader()))
    assert authorizations(hand) == ["Bearer 1", "Bearer 2"]


def test_a_certificate_renewed_after_401_is_the_one_shown_next() -> None:
    certificates = iter([ClientCertificate(b"old", b""), ClientCertificate(b"new", b"")])
    credentials = Credentials(
        lambda: IssuedCredentials(certificate=next(certificates)), is_renewable=True
    )
    _, hand = listed(
        {PODS_PATH: [status(401, "Unauthorized", "Unauthorized"), page([])]},
        credentials=credentials,
    )
    assert [asked.certificate and asked.certificate.certificate_pem for asked in hand.asked] == [
        b"old",
        b"new",
    ]


def test_401_again_is_reported_with_a_way_out() -> None:
    expired = "Bearer e30.eyJleHAiOjYwfQ.sig"  # {"exp": 60}
    hand = ByHand(
        {PODS_PATH: [status(401, "Unauthorized", "Unauthorized")]}, credentials=fixed(expired)
    )
    with pytest.raises(Unauthorized) as caught:
        hand.run(hand.conversation.list_all(pod_reader()))
    assert len(hand.asked) == 1
    assert "the token ended at 1970-01-01T00:01:00Z; log in again" in caught.value.hint


def test_credentials_that_must_be_read_are_a_step_of_their_own_and_fresh_ones_are_not() -> None:
    """A driver with an event loop uses a thread for steps that may read a file or run a program."""
    hand = ByHand({PODS_PATH: [page([])]})
    for _ in range(2):
        hand.run(hand.conversation.list_all(pod_reader()))
    assert hand.story == ["call", "ask", "ask"]


def test_headers_carry_token_impersonation_and_user_agent() -> None:
    impersonation = (
        ("Impersonate-User", "ann"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
    )
    _, hand = listed(
        {PODS_PATH: [page([])]}, credentials=fixed("Bearer t"), impersonation=impersonation
    )
    headers = hand.asked[0].headers
    assert dict(headers)["Authorization"] == "Bearer t"
    assert [header for header in headers if header[0].startswith("Impersonate")] == list(
        impersonation
    )
    assert dict(headers)["User-Agent"].startswith("fairlead/")
    assert dict(headers)["Accept"] == PROTOBUF_OR_JSON
    hand = ByHand({f"{PODS_PATH}/a": [Reply(pod("a"))]})
    hand.run(hand.conversation.get(PODS, "a"))
    assert dict(hand.asked[0].headers)["Accept"] == "application/json"


def test_what_is_made_anew_is_made_right_before_each_sending_after_every_wait() -> None:
    """A binding is limited to what is left of a Lease, so nothing may come between the look at the
    Lease and the request.
    """
    numbers = itertools.count(1)
    script = [put_off(429, 1), status(401, "Unauthorized", "Unauthorized"), Reply({})]
    hand = ByHand(
        {f"/{number}": [reply] for number, reply in enumerate(script, 1)},
        credentials=renewed_each_time(),
    )

    def anew() -> ApiRequest:
        hand.story.append("anew")
        return ApiRequest("create", "POST", f"/{next(numbers)}", b"{}")

    hand.run(hand.conversation.send(ApiRequest("create", "POST", "/0", b"{}"), anew=anew))
    assert hand.paths == ["/1", "/2", "/3"]
    assert hand.story == ["call", "anew", "ask", "pause", "anew", "ask", "call", "anew", "ask"]


def test_what_making_it_anew_raises_comes_out_and_nothing_is_sent() -> None:
    class NotSent(Exception):
        pass

    def anew() -> ApiRequest:
        raise NotSent

    hand = ByHand({PODS_PATH: [Reply({})]})
    with pytest.raises(NotSent):
        hand.run(hand.conversation.send(ApiRequest("create", "POST", PODS_PATH), anew=anew))
    assert hand.asked == []


# single requests


def test_writes_send_what_they_are_given() -> None:
    base = "/api/v1/namespaces/team-a/pods"
    hand = ByHand(
        {
            base: [Reply({"kind": "Pod"}, 201)],
            f"{base}/p": [Reply({"kind": "Pod"})],
            f"{base}/p/status": [Reply({})],
        }
    )
    says = hand.conversation
    for steps in (
        says.create(PODS, {"metadata": {"name": "p"}}, "team-a", dry_run=True),
        says.create(PODS, {}, "team-a", is_strict=True),
        says.update(PODS, "p", {"a": 1}, "team-a", subresource="status"),
        says.patch(PODS, "p", {"a": None}, "team-a"),
        says.patch(PODS, "p", [{"op": "remove", "path": "/a"}], "team-a", kind="json"),
        says.patch(PODS, "p", {"a": 1}, "team-a", kind="apply", force=True),
        says.delete(PODS, "p", "team-a"),
    ):
        hand.run(steps)
    patched = f"{base}/p?fieldManager=fairlead"
    assert [
        (asked.request.method, asked.request.path, dict(asked.headers)["Content-Type"])
        for asked in hand.asked
    ] == [
        ("POST", f"{base}?dryRun=All", "application/json"),
        ("POST", f"{base}?fieldValidation=Strict", "application/json"),
        ("PUT", f"{base}/p/status", "application/json"),
        ("PATCH", patched, "application/merge-patch+json"),
        ("PATCH", patched, "application/json-patch+json"),
        ("PATCH", f"{patched}&force=true", "application/apply-patch+yaml"),
        ("DELETE", f"{base}/p", "application/json"),
    ]
    bodies = [json.loads(asked.request.body or b"") for asked in hand.asked]
    assert (bodies[0], bodies[3], bodies[6]["propagationPolicy"]) == (
        {"metadata": {"name": "p"}},
        {"a": None},
        "Background",
    )


def test_an_object_is_a_dict_or_what_is_asked_for() -> None:
    from msgspec import Struct

    class Kind(Struct):
        kind: str

    hand = ByHand({"/api/v1/namespaces/default/pods/x": [Reply({"kind": "Pod"})]})
    assert hand.run(hand.conversation.get(PODS, "x", "default")) == {"kind": "Pod"}
    assert hand.run(hand.conversation.get(PODS, "x", "default", Kind)) == Kind("Pod")
    with pytest.raises(ApiFailure) as caught:
        hand.run(hand.conversation.get(PODS, "x", "default", int))
    sentence = NOT_JSON.format(path="/api/v1/namespaces/default/pods/x")
    assert caught.value.what == f"{sentence}Expected `int`, got `object`"


def test_forbidden_quotes_the_server() -> None:
    words = (
        'pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster '
        "scope"
    )
    with pytest.raises(Forbidden) as caught:
        listed({PODS_PATH: [status(403, "Forbidden", words)]})
    assert isinstance(caught.value, ForbiddenByServer)
    assert (caught.value.what, caught.value.status) == (words, 403)
    assert "auth can-i" in caught.value.hint


def test_an_absent_object_and_an_absent_resource_are_not_found() -> None:
    hand = ByHand(
        {"/api/v1/namespaces/default/pods/x": [status(404, "NotFound", ('pods "x" not found'))]}
    )
    with pytest.raises(NotFound) as caught:
        hand.run(hand.conversation.get(PODS, "x", "default"))
    assert caught.value.what == 'pods "x" not found'
    with pytest.raises(NotServed) as caught:
        hand.run(hand.conversation.list_all(pod_reader()))
    assert caught.value.message == "the server could not find the requested resource"


def test_a_conflict_is_one() -> None:
    hand = ByHand({"/api/v1/nodes": [status(409, "AlreadyExists", 'nodes "n" already exists')]})
    with pytest.raises(Conflict) as caught:
        hand.run(hand.conversation.create(NODES, {}))
    assert caught.value.reason == "AlreadyExists"
    assert caught.value.message == 'nodes "n" already exists'


def test_a_proxys_error_page_becomes_a_short_message() -> None:
    with pytest.raises(ApiFailure) as caught:
        listed({PODS_PATH: [Reply(b"<html>\n" + b"x" * 9000, 502)]})
    assert caught.value.status == 502
    assert len(caught.value.what) < 400


@pytest.mark.parametrize("code", [301, 304])
def test_an_answer_that_sends_elsewhere_is_none(code: int) -> None:
    hand = ByHand({PODS_PATH: [Reply(b"", code)]})
    for steps in (
        hand.conversation.list_all(pod_reader()),
        hand.conversation.open(ApiRequest("watch", "GET", PODS_PATH)),
    ):
        with pytest.raises(ApiFailure) as caught:
            hand.run(steps)
        assert caught.value.status == code


def test_a_gzipped_answer_is_unpacked_and_a_broken_one_is_reported() -> None:
    headers = {"Content-Encoding": "gzip"}
    zipped = gzip.compress(page([pod("a")]).content())
    assert names(listed({PODS_PATH: [Reply(zipped, headers=headers)]})[0]) == ["a"]
    for broken in (zipped[:-30], zipped[:40] + b"x" + zipped[41:]):
        with pytest.raises(Unreachable) as caught:
            listed({PODS_PATH: [Reply(broken, headers=headers)]})
        sentence = f"the connection to API server `{SERVER}` failed: broken gzip: "
        assert caught.value.what.startswith(sentence)
    unpacked_on_the_way = page([pod("a")]).content()
    assert names(listed({PODS_PATH: [Reply(unpacked_on_the_way, headers=headers)]})[0]) == ["a"]
    refused = gzip.compress(status(403, "Forbidden", "not you").content())
    with pytest.raises(ForbiddenByServer) as caught:
        listed({PODS_PATH: [Reply(refused, 403, headers=headers)]})
    assert (caught.value.status, caught.value.message) == (403, "not you")


def test_gzip_that_unpacks_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "UNPACKED_BYTES_MAX", 1 << 20)
    bomb = gzip.compress(bytes(2 << 20))
    with pytest.raises(Unreachable, match=r"gzip.*1 MiB"):
        listed({PODS_PATH: [Reply(bomb, headers={"Content-Encoding": "gzip"})]})
    exactly = page([pod("a")]).content().ljust(1 << 20)
    assert names(
        listed({PODS_PATH: [Reply(gzip.compress(exactly), headers={"Content-Encoding": "gzip"})]})[
            0
        ]
    ) == ["a"]


def test_lists_are_asked_for_with_gzip_but_where_nothing_is_encrypted_within_one_machine() -> None:
    def encodings(server: str, **parts: Any) -> set[str]:
        _, hand = listed({PODS_PATH: [page([], token="t"), page([])]}, server=server, **parts)
        return {dict(asked.headers)["Accept-Encoding"] for asked in hand.asked}

    assert encodings(SERVER) == {"gzip"}
    assert encodings("https://127.0.0.1:6443") == encodings("http://api.example") == {"gzip"}
    assert encodings("http://127.0.0.1:8080") == encodings("http://localhost:8080") == {"identity"}
    assert encodings(SERVER, may_compress=False) == {"identity"}
    hand = ByHand({"/version": [Reply({})]})
    hand.run(hand.conversation.version())
    assert dict(hand.asked[0].headers)["Accept-Encoding"] == "identity"


# protobuf


def message_page(name: str, token: str = "") -> Reply:
    return Reply(
        list_body("Pod", [encoded("core.Pod", pod(name))], token=token),
        headers={"Content-Type": PROTOBUF},
    )


def forms(hand: ByHand) -> list[str]:
    return [
        "protobuf" if PROTOBUF in dict(asked.headers)["Accept"] else "JSON" for asked in hand.asked
    ]


@pytest.mark.parametrize("is_late", [False, True])
def test_pages_come_in_protobuf_and_the_next_is_asked_for_ahead(is_late: bool) -> None:
    reader = pod_reader()
    decode = reader.decode_page
    hand = ByHand({PODS_PATH: [message_page("a", "t"), message_page("b")]}, is_late=is_late)
    reader.decode_page = lambda body: (hand.story.append("decode"), decode(body))[1]  # type: ignore[method-assign]
    listing = hand.run(hand.conversation.list_all(reader))
    assert (names(listing), listing.resource_version) == (["a", "b"], "7")
    assert forms(hand) == ["protobuf"] * 2
    assert hand.story == [
        "call",
        "ask",
        *(["decode", "ask"] if is_late else ["ask", "decode"]),
        "decode",
    ]
    assert hand.paths[1].endswith("continue=t")


def test_a_command_asks_for_its_first_page_in_json_and_turns_when_there_is_more() -> None:
    hand = ByHand(
        {PODS_PATH: [page([pod("a")], token="t"), message_page("b", "u"), message_page("c")]},
        begins_in_json=True,
    )
    assert names(hand.run(hand.conversation.list_all(pod_reader()))) == ["a", "b", "c"]
    assert forms(hand) == ["JSON", "protobuf", "protobuf"]


def test_json_that_answers_a_question_for_protobuf_is_as_good() -> None:
    listing, hand = listed({PODS_PATH: [page([pod("a")], token="t"), message_page("b")]})
    assert names(listing) == ["a", "b"] and forms(hand) == ["protobuf"] * 2


@pytest.mark.parametrize("code", [406, 415])
def test_a_server_that_has_no_protobuf_is_asked_once(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "fairlead.kubernetes")
    refused = status(
        code, "NotAcceptable", "only the following media types are accepted: application/json"
    )
    hand = ByHand({PODS_PATH: [refused, page([pod("a")], token="t"), page([pod("b")])]})
    for _ in range(2):
        hand.run(hand.conversation.list_all(pod_reader()))
    assert forms(hand) == ["protobuf", *["JSON"] * (len(hand.asked) - 1)]
    assert [line for line in caplog.messages if "JSON" in line] == [
        (
            f"API server `{SERVER}` is asked for JSON from here on: only the following media "
            "types are accepted: application/json"
        )
    ]


def test_other_refusals_are_no_reason_to_ask_in_json() -> None:
    with pytest.raises(Forbidden):
        listed({PODS_PATH: [status(403, "Forbidden", "not you")]})
    message = encoded(
        "meta.Status",
        {"message": "pods is forbidden: not you", "reason": "Forbidden", "code": 403},
    )
    with pytest.raises(ForbiddenByServer) as caught:
        listed({PODS_PATH: [Reply(envelope("Status", message), 403)]})
    assert caught.value.message == "pods is forbidden: not you"


BROKEN_PAGES = {
    "cut off": message_page("b").content()[:-20],
    "of another kind": list_body("Node", []),
    "with an item of garbage": envelope("PodList", part(2, b"\x0a\x70x")),
    "with a length of 10 GB": b"k8s\0" + part(1, b"") + b"\x12" + varint(10 << 30),
}


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("case", BROKEN_PAGES)
def test_a_page_of_broken_protobuf_is_asked_for_again_in_json(
    case: str, is_late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """No row is lost or doubled, and the rest of the list comes as JSON."""
    caplog.set_level("INFO", "fairlead.kubernetes")
    script = {
        PODS_PATH: [
            message_page("a", "t"),
            Reply(BROKEN_PAGES[case]),
            page([pod("b")], token="u"),
            page([pod("c")], 12),
        ]
    }
    listing, hand = listed(script, is_late=is_late)
    assert (names(listing), listing.resource_version) == (["a", "b", "c"], "12")
    assert forms(hand) == ["protobuf", "protobuf", "JSON", "JSON"]
    assert [path.partition("continue=")[2] for path in hand.paths] == ["", "t", "t", "u"]
    assert sum("is asked for JSON from here on" in line for line in caplog.messages) == 1


def test_a_broken_page_that_comes_as_json_too_is_a_failure() -> None:
    with pytest.raises(ApiFailure) as caught:
        listed({PODS_PATH: [Reply(b"k8s\0broken")]})
    assert caught.value.what == (
        f"{NOT_JSON.format(path=PODS_PATH)}the protobuf body cannot be read: field 12 is cut off"
    )


def test_the_version_and_a_server_too_old() -> None:
    versions = [
        {"major": "1", "minor": "27+", "gitVersion": "v1.27.3-gke"},
        {"major": "1", "minor": "16", "gitVersion": "v1.16.15"},
        {},
    ]
    hand = ByHand({"/version": [Reply(each) for each in versions]})
    check_version(SERVER, hand.run(hand.conversation.version()))
    with pytest.raises(OutsideError, match=r"v1\.16\.15.*1\.18") as caught:
        check_version(SERVER, hand.run(hand.conversation.version()))
    assert caught.value.hint
    check_version(SERVER, hand.run(hand.conversation.version()))


# discovery

AGGREGATED = Reply(
    {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": "kubeflow.org"},
                "versions": [
                    {
                        "version": version,
                        "resources": [
                            {
                                "resource": "mpijobs",
                                "responseKind": {"kind": "MPIJob"},
                                "scope": "Namespaced",
                                "verbs": ["list"],
                            }
                        ],
                    }
                    for version in ("v1", "v2beta1")
                ],
            }
        ],
    },
    headers={
        "Content-Type": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    },
)
GROUPS = {
    "groups": [
        {
            "name": "kubeflow.org",
            "versions": [
                {"groupVersion": "kubeflow.org/v2beta1", "version": "v2beta1"},
                {"groupVersion": "kubeflow.org/v1", "version": "v1"},
            ],
            "preferredVersion": {"version": "v1"},
        },
        {"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
        {"name": "down.example", "versions": [{"version": "v1"}]},
    ]
}
RESOURCES = Reply(
    {
        "resources": [
            {"name": "mpijobs", "kind": "MPIJob", "namespaced": True, "verbs": ["list"]},
            {"name": "mpijobs/status", "kind": "MPIJob"},
        ]
    }
)
OLDER: Script = {
    "/apis": [Reply(GROUPS)],
    "/apis/kubeflow.org/v1": [RESOURCES],
    "/apis/kubeflow.org/v2beta1": [RESOURCES],
    "/apis/down.example/v1": [status(503, "ServiceUnavailable", "down")],
    "/api/v1": [Reply({"resources": [{"name": "pods", "kind": "Pod"}]})],
    "/api": [Reply({"kind": "APIVersions", "versions": ["v1"]})],
}


def test_discovery_takes_one_request_where_it_is_aggregated() -> None:
    hand = ByHand({"/apis": [AGGREGATED]})
    found = hand.run(hand.conversation.discovery(["kubeflow.org"]))
    assert len(hand.asked) == 1
    assert "APIGroupDiscoveryList" in dict(hand.asked[0].headers)["Accept"]
    assert found.find("kubeflow.org", "mpijobs").version == "v1"
    assert found.find("kubeflow.org", "mpijobs", ("v2beta1", "v1")).version == "v2beta1"
    assert found.find("kubeflow.org", "mpijobs", ("v1alpha1",)) is None
    assert found.find("kubeflow.org", "tfjobs") is None


@pytest.mark.parametrize("is_late", [False, True])
def test_discovery_of_an_older_server_asks_only_the_groups_it_needs(
    is_late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    hand = ByHand(OLDER, is_late=is_late)
    found = hand.run(
        hand.conversation.discovery(["kubeflow.org", "down.example", "absent.example"])
    )
    assert hand.paths == [
        "/apis",
        "/apis/kubeflow.org/v1",
        "/apis/kubeflow.org/v2beta1",
        "/apis/down.example/v1",
    ]
    assert found.find("kubeflow.org", "mpijobs").version == "v1"
    assert found.find("kubeflow.org", "mpijobs").kind == "MPIJob"
    assert found.find("kubeflow.org", "mpijobs/status") is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "discovery of down.example/v1 failed" in caplog.text


def test_the_core_api_is_asked_for_by_its_name() -> None:
    hand = ByHand(OLDER)
    found = hand.run(hand.conversation.discovery(["", "kubeflow.org"]))
    assert hand.paths[-2:] == ["/api", "/api/v1"]
    assert found.find("", "pods").version == "v1"


# every failure at every step

LIST = {
    PODS_PATH: [
        written("a", "t1"),
        page([pod("b")], token="t2"),
        written("c", "t3"),
        page([pod("d")]),
    ]
}
CONVERSATIONS: dict[str, tuple[Script, Callable[[Conversation], Steps[Any]]]] = {
    "get": ({"/api/v1/nodes/n": [Reply({"kind": "Node"})]}, lambda says: says.get(NODES, "n")),
    "create": ({"/api/v1/nodes": [Reply({"kind": "Node"})]}, lambda says: says.create(NODES, {})),
    "delete": (
        {"/api/v1/nodes/n": [Reply({"kind": "Status"})]},
        lambda says: says.delete(NODES, "n"),
    ),
    "list": (LIST, lambda says: says.list_all(pod_reader())),
    "version": ({"/version": [Reply({"major": "1"})]}, lambda says: says.version()),
    "discovery": ({"/apis": [AGGREGATED]}, lambda says: says.discovery(["kubeflow.org"])),
    "older discovery": (OLDER, lambda says: says.discovery(["kubeflow.org"])),
}
PASSING: dict[str, Reply | Exception] = {
    "renewed": status(401, "Unauthorized", "who?"),
    "busy": put_off(429, 1),
    "restarting": put_off(503, 1),
}
FATAL: dict[str, tuple[Reply | Exception, type[Exception], str]] = {
    "cut": (ConnectionResetError("cut"), Unreachable, "cut"),
    "refused": (ConnectionRefusedError(), Unreachable, "refused the connection"),
    "late": (TimeoutError(), Unreachable, "did not answer in time"),
    "bad": (status(400, "BadRequest", "strange"), ApiFailure, "strange"),
    "forbidden": (status(403, "Forbidden", "not you"), ForbiddenByServer, "not you"),
    "absent": (status(404, "NotFound", "none"), NotServed, "none"),
    "conflict": (status(409, "Conflict", "changed"), Conflict, "changed"),
    "gone": (status(410, "Expired", "too old"), Gone, "too old"),
    "broken": (status(500, "InternalError", "oh"), ApiFailure, "oh"),
    "no JSON": (Reply(b"<html>"), ApiFailure, "something else than its JSON"),
    "a bug": (AssertionError("a bug"), AssertionError, "a bug"),
}


def steps_of(name: str) -> int:
    hand = ByHand(CONVERSATIONS[name][0])
    hand.run(CONVERSATIONS[name][1](hand.conversation))
    return len(hand.asked)


EVERY_STEP = [(name, at) for name in CONVERSATIONS for at in range(steps_of(name))]


def test_conversations_have_as_many_steps_as_there_is_to_ask() -> None:
    assert {name: steps_of(name) for name in CONVERSATIONS} == dict.fromkeys(CONVERSATIONS, 1) | {
        "list": 4,
        "older discovery": 3,
    }


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize(("name", "at"), EVERY_STEP)
def test_what_passes_makes_no_difference_at_any_step(
    name: str, at: int, passing: Reply, is_late: bool
) -> None:
    script, begin = CONVERSATIONS[name]
    undisturbed = ByHand(script)
    hand = ByHand(script, is_late=is_late, faults={at: passing}, credentials=renewed_each_time())
    assert hand.run(begin(hand.conversation)) == undisturbed.run(begin(undisturbed.conversation))
    assert len(hand.asked) == len(undisturbed.asked) + 1
    assert len(hand.pauses) == (passing.status != 401)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize(("fault", "kind", "words"), FATAL.values(), ids=FATAL)
@pytest.mark.parametrize(("name", "at"), EVERY_STEP)
def test_what_does_not_pass_is_reported_at_any_step(
    name: str, at: int, fault: Reply | Exception, kind: type[Exception], words: str, is_late: bool
) -> None:
    script, begin = CONVERSATIONS[name]
    hand = ByHand(script, is_late=is_late, faults={at: fault})
    if name == "list" and kind is Gone:
        # the scripted driver goes on with the script after a list restarts
        assert names(hand.run(begin(hand.conversation))) == list("abcd"[at:])
        assert "continue" not in hand.paths[at + 1]
    elif (
        name == "older discovery" and at > 0 and kind is not AssertionError
    ):  # an extension server that is down hides no other
        assert len(hand.run(begin(hand.conversation)).served) == 1
    else:
        with pytest.raises(kind, match=words):
            hand.run(begin(hand.conversation))
