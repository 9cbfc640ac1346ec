"""The webhook's own certificate: made once for all replicas, published before it is used, renewed
in time, whatever the clock does.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from typing import Any

import pytest
from cryptography import x509
from tests.waiting import until

from fairlead.apps.issued_certificate import IssuedCertificate, is_due, issue
from fairlead.apps.webhook_certificate import (
    CONFIGURATIONS,
    LOOK_SECONDS,
    NAME,
    WebhookCertificate,
    parse_secret,
    show,
)
from fairlead.errors import OutsideError
from fairlead.model.actions import (
    Action,
    CreateObject,
    Manifest,
    ObjectRef,
    Outcome,
    PatchObject,
    Result,
)
from fairlead.model.installation import SYSTEM_NAMESPACE

HOST = "fairlead-admission-webhook.fairlead-system.svc"
NOW = 1_790_000_000.0
DAY = 86_400.0


def certificate(issued: IssuedCertificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.certificate)


def authorities(issued: IssuedCertificate) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(issued.bundle)


# --- the contents of a certificate ----------------------------------------------------------------


def handshake(issued: IssuedCertificate, trusted: bytes, host: str) -> None:
    """Raises SSLError where the client does not trust the server. Both sides are in memory."""
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    show(server_side, issued)
    client_side = ssl.create_default_context(cadata=trusted.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    done = set[Any]()
    while len(done) < 2:
        for side in (client, server):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass


def test_a_client_believes_it() -> None:
    issued = issue(HOST, time.time())
    handshake(issued, issued.bundle, HOST)
    with pytest.raises(ssl.SSLError, match=r"not valid for .elsewhere"):
        handshake(issued, issued.bundle, "elsewhere.svc")
    with pytest.raises(ssl.SSLError, match="verify failed"):
        handshake(issued, issue(HOST, time.time()).bundle, HOST)


def test_a_renewed_one_is_trusted_by_holders_of_the_old_bundle() -> None:
    first = issue(HOST, time.time())
    second = issue(HOST, time.time(), first)
    assert (second.bundle, second.authority_key) == (first.bundle, first.authority_key)
    assert certificate(second).serial_number != certificate(first).serial_number
    handshake(second, first.bundle, HOST)


@pytest.mark.parametrize(
    ("days", "due"),
    [
        (0, False),
        (59, False),
        (61, True),
        (91, True),
        (-0.5, False),
        (-2, True),
        (-4000, True),
        (4000, True),
    ],
)
def test_it_is_due_after_two_thirds_of_its_life_and_where_the_clock_stepped(
    days: float, due: bool
) -> None:
    issued = issue(HOST, NOW)
    assert is_due(issued, HOST, NOW + days * DAY) == due
    if due:
        again = issue(HOST, NOW + days * DAY, issued)
        assert not is_due(again, HOST, NOW + days * DAY)


def test_a_worn_authority_is_replaced_and_stays_trusted_while_it_is_valid() -> None:
    first = issue(HOST, NOW)
    assert is_due(first, HOST, NOW + 2500 * DAY)
    second = issue(HOST, NOW + 2500 * DAY, first)
    assert second.authority_key != first.authority_key
    assert authorities(second)[1:] == authorities(first)
    third = issue(HOST, NOW + 6000 * DAY, second)
    assert authorities(third)[1:] == authorities(second)[:1]


def test_what_a_person_broke_is_made_anew() -> None:
    issued, other = issue(HOST, NOW), issue(HOST, NOW)
    broken = (
        IssuedCertificate(b"", issued.authority_key, issued.certificate, issued.key),
        IssuedCertificate(issued.bundle, b"no key", issued.certificate, issued.key),
        IssuedCertificate(issued.bundle, issued.authority_key, b"none", issued.key),
        IssuedCertificate(issued.bundle, issued.authority_key, issued.certificate, other.key),
        IssuedCertificate(other.bundle, other.authority_key, issued.certificate, issued.key),
        issue("elsewhere.svc", NOW),
    )
    for each in broken:
        assert is_due(each, HOST, NOW)
        assert not is_due(issue(HOST, NOW, each), HOST, NOW)


# --- how replicas share it ------------------------------------------------------------------------


class Stored:
    """The objects of an API server; a write with an older version is refused, as there."""

    def __init__(self, *found: ObjectRef) -> None:
        self.objects: dict[tuple[str, str], Manifest] = {}
        self.version = 0
        self.read: list[str] = []
        self.is_down = False
        self.forbids = False
        for target in found:
            service = {"namespace": SYSTEM_NAMESPACE, "name": NAME, "path": "/"}
            other = {"url": "https://elsewhere"}
            hooks = [
                {"name": "ours", "clientConfig": {"service": service}},
                {"name": "other", "clientConfig": other},
            ]
            self._put(target, {"metadata": {"name": target.name}, "webhooks": hooks})

    def _put(self, target: ObjectRef, obj: Manifest) -> None:
        self.version += 1
        self.objects[target.kind, target.name] = {
            **obj,
            "metadata": {**obj["metadata"], "resourceVersion": str(self.version)},
        }

    async def get(self, target: ObjectRef) -> Manifest | None:
        await asyncio.sleep(0)
        if self.is_down:
            raise OutsideError("kubernetes", "no answer")
        self.read.append(target.name)
        return self.objects.get((target.kind, target.name))

    async def apply(self, action: Action) -> Outcome:
        await asyncio.sleep(0)
        if self.forbids:
            return Outcome(
                Result.REFUSED,
                "secrets is forbidden",
                failure=OutsideError("kubernetes", "secrets is forbidden"),
            )
        if isinstance(action, CreateObject):
            target = ObjectRef("v1", "Secret", action.manifest["metadata"]["name"])
            if (target.kind, target.name) in self.objects:
                return Outcome(
                    Result.THERE,
                    "already exists",
                    failure=OutsideError("kubernetes", "already exists"),
                )
            self._put(target, action.manifest)
            return Outcome()
        assert isinstance(action, PatchObject)
        found = self.objects[action.target.kind, action.target.name]
        if action.patch["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            message = (
                "the object has been modified; please apply your changes to the latest version"
            )
            return Outcome(Result.REFUSED, message, failure=OutsideError("kubernetes", message))
        more = {key: value for key, value in action.patch.items() if key != "metadata"}
        self._put(action.target, {**found, **more})
        return Outcome()

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"unexpected request for {name}")

    @property
    def secret(self) -> IssuedCertificate:
        found = parse_secret(self.objects["Secret", NAME])
        assert found is not None
        return found

    def bundles(self, target: ObjectRef) -> list[bytes]:
        hooks = self.objects[target.kind, target.name]["webhooks"]
        return [base64.b64decode(hook["clientConfig"].get("caBundle", "")) for hook in hooks]


def replica(api: Stored, now: float = NOW) -> WebhookCertificate:
    return WebhookCertificate(api, lambda: now, look_seconds=0.02)


async def test_it_is_made_written_and_shown() -> None:
    api = Stored(*CONFIGURATIONS)
    one = replica(api)
    await one.look()
    assert one.is_ready.is_set()
    for target in CONFIGURATIONS:
        assert api.bundles(target) == [api.secret.bundle, b""]
    version = api.version
    await one.look()
    assert api.version == version  # nothing to do, nothing written


async def test_replicas_that_start_at_once_share_one() -> None:
    api = Stored(CONFIGURATIONS[0])
    replicas = [replica(api) for _ in range(5)]
    running = [asyncio.create_task(each.run()) for each in replicas]
    try:

        async def settled() -> bool:
            return all(each.is_ready.is_set() for each in replicas)

        await until(settled)
        assert api.bundles(CONFIGURATIONS[0]) == [api.secret.bundle, b""]
        assert len(authorities(api.secret)) == 1
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_a_configuration_that_comes_later_is_reported() -> None:
    api = Stored()
    one = replica(api)
    await one.look()
    later = Stored(CONFIGURATIONS[3])
    api.objects |= later.objects
    await one.look()
    assert api.bundles(CONFIGURATIONS[3]) == [api.secret.bundle, b""]


async def test_what_trusts_it_is_read_once_a_minute_and_what_is_missing_at_each_look() -> None:
    """A look is every ten seconds, by each replica: six reads each would be more than all other
    requests of an idle control plane.
    """
    there = CONFIGURATIONS[:-1]
    api, now = Stored(*there), NOW
    one = WebhookCertificate(api, lambda: now)
    await one.look()  # writes the bundle
    await one.look()  # has seen it everywhere
    api.read.clear()
    for _ in range(5):
        now += LOOK_SECONDS
        await one.look()
    assert api.read == 5 * [NAME, CONFIGURATIONS[-1].name]
    hooks = api.objects[there[0].kind, there[0].name]["webhooks"]
    hooks[0]["clientConfig"].pop("caBundle")  # as another program's update would
    now += LOOK_SECONDS
    await one.look()
    assert api.bundles(there[0]) == [api.secret.bundle, b""]


async def test_a_deleted_secret_is_made_anew_and_the_old_authority_stays_trusted() -> None:
    api = Stored(CONFIGURATIONS[0])
    one = replica(api)
    await one.look()
    before = api.secret
    del api.objects["Secret", NAME]
    await one.look()
    assert api.secret.authority_key != before.authority_key
    assert authorities(api.secret)[1:] == authorities(before)
    assert api.bundles(CONFIGURATIONS[0]) == [api.secret.bundle, b""]
    handshake(issue(HOST, time.time(), before), api.secret.bundle, HOST)
    later = replica(api, NOW + 61 * DAY)
    await later.look()
    assert len(authorities(api.secret)) == 1  # the old authority is not trusted for ever


async def test_an_old_one_is_renewed_by_one_and_read_by_the_other() -> None:
    api = Stored(CONFIGURATIONS[0])
    await replica(api).look()
    before = api.secret
    later = [replica(api, NOW + 61 * DAY) for _ in range(2)]
    await asyncio.gather(*(each.look() for each in later))
    renewed = api.secret
    for each in later:
        await each.look()
        assert each.is_ready.is_set()
    assert renewed == api.secret != before


async def test_no_answer_is_sent_before_the_api_server_can_get_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = Stored(CONFIGURATIONS[0])
    api.is_down = True
    one = replica(api)
    running = asyncio.create_task(one.run())
    try:

        async def reported() -> bool:
            return "no answer" in caplog.text

        await until(reported)
        assert not one.is_ready.is_set()
        api.is_down, api.forbids = False, True

        async def forbidden() -> bool:
            return "secrets is forbidden" in caplog.text

        await until(forbidden)
        assert not one.is_ready.is_set()
        api.forbids = False
        await until(lambda: asyncio.sleep(0, one.is_ready.is_set()))
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
