"""A page behind a web configuration: TLS, client certificates and passwords, each changed while the
server runs, over real sockets.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import bcrypt
import pytest
import yaml
from tests.apps.fakes import FakeDevices, FixedClock, four_cards
from tests.kube.certificates import Authority, KeyPair
from tests.waiting import HANG_SECONDS, until

from fairlead.apps.configuration import passwords
from fairlead.apps.configuration.web_guard import WebGuard
from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.apps.server import bind_socket
from fairlead.errors import UserError

LOOK = 0.02
BY_HTPASSWD = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG"
"""A hash in the format of `htpasswd`: the sample in the documents of exporter-toolkit."""


def hashed(password: str, cost: int = 4) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()


def client(authority: Authority | None = None, own: KeyPair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate) if authority else None)
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


class Page:
    """The server's page; each request opens a new connection."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def ask(
        self,
        path: str = "/metrics",
        tls: ssl.SSLContext | None = None,
        user: str = "",
        more: str = "",
        name: str = "127.0.0.1",
    ) -> bytes:
        """The whole answer; b"" when the connection ends without one."""
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", self._port, ssl=tls, server_hostname=name if tls else None
            )
            try:
                given = (
                    f"Authorization: Basic {b64encode(user.encode()).decode()}\r\n" if user else ""
                )
                writer.write(
                    (
                        f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{given}{more}\r\n"
                    ).encode()
                )
                return await reader.read(-1)
            finally:
                writer.close()
        except (ssl.SSLError, ConnectionError):
            return b""

    async def status(self, **asked: object) -> int:
        """The status; 0 when the connection ended without an answer."""
        answer = await self.ask(**asked)  # type: ignore[arg-type]
        return int(answer.split(b" ")[1]) if answer else 0


@asynccontextmanager
async def guarded(path: Path) -> AsyncIterator[Page]:
    guard = WebGuard(path, LOOK)
    sock = bind_socket("127.0.0.1", 0)
    exporter = GpuExporter(
        FakeDevices(four_cards()), FixedClock(), GpuExporterSettings(node="gpu-1")
    )
    service = exporter.service(sock, guard)
    running = asyncio.create_task(service.run())
    try:
        async with asyncio.timeout(HANG_SECONDS):
            await service.accepting.wait()
            yield Page(sock.getsockname()[1])
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def answers(page: Page, status: int, **asked: object) -> Callable[[], Awaitable[bool]]:
    async def is_so() -> bool:
        return await page.status(**asked) == status

    return is_so


def logged(caplog: pytest.LogCaptureFixture, words: str) -> Callable[[], Awaitable[bool]]:
    async def is_so() -> bool:
        return words in caplog.text

    return is_so


async def test_a_password_is_asked_for_and_probes_are_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(
        f"basic_auth_users:\n  prometheus: {hashed('test').replace('$2b$', '$2y$')}\n  other: "
        f"{hashed('word')}\n"
    )
    async with guarded(path) as page:
        refused = await page.ask()
        assert (
            refused.startswith(b"HTTP/1.1 401 ")
            and (b'www-authenticate: Basic realm="metrics"') in refused
            and b"gpu_info" not in refused
        )
        assert b"fairlead_gpu_info" in await page.ask(user="prometheus:test")
        assert await page.status(user="other:word") == 200
        for wrong in (
            "prometheus:tes",
            "prometheus:word",
            "other:test",
            "nobody:test",
            "prometheus",
            ":",
            "other:" + "x" * 5000,
            "a:\0",
        ):
            assert await page.status(user=wrong) == 401, wrong
        for more in (
            "Authorization: Bearer word\r\n",
            "Authorization: Basic &&\r\n",
            "Authorization: Basic\r\n",
        ):
            assert await page.status(more=more) == 401
        assert await page.status(user="other:word", more="Authorization: Basic x\r\n") == 401, (
            "two of them: which one counts?"
        )
        for probe in ("/health", "/healthz", "/readyz"):
            assert await page.status(path=probe) == 200
        for other in ("/", "/health/", "/nowhere", "//health", "/healthz/../metrics"):
            assert await page.status(path=other) == 401, other


async def test_a_right_password_is_checked_once_and_wrong_ones_delay_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(f"basic_auth_users: {{prometheus: {hashed('word')}}}\n")
    checked: list[bytes] = []
    opened = threading.Event()

    def slowly(password: bytes, hashed: bytes) -> bool:
        if password == b"slow":
            opened.wait(HANG_SECONDS)
        checked.append(password)
        return bcrypt.checkpw(password, hashed)

    monkeypatch.setattr(passwords, "is_right_password", slowly)
    async with guarded(path) as page:
        try:
            assert [await page.status(user="prometheus:word") for _ in range(3)] == [200, 200, 200]
            assert checked == [b"word"]
            guesses = [
                asyncio.create_task(page.status(user="prometheus:slow"))
                for _ in range(passwords.WAITING_MAX + 1)
            ]
            first, others = await asyncio.wait(guesses, return_when=asyncio.FIRST_COMPLETED)
            assert [each.result() for each in first] == [503]
            assert await page.status(user="prometheus:word") == 200, (
                "who is known does not wait behind guesses"
            )
            assert await page.status(path="/healthz") == 200
        finally:
            opened.set()
        assert set(await asyncio.gather(*others)) == {401}
        assert checked.count(b"slow") == passwords.WAITING_MAX, "a wrong one is never remembered"


def replace(path: Path, text: str) -> None:
    """Replaces the file in one step, as a Secret in a volume changes, so that no reader sees half
    of it.
    """
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


async def test_users_change_while_it_runs_and_a_broken_file_opens_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "web.yaml"
    replace(path, f"basic_auth_users: {{one: {hashed('word')}}}\n")
    async with guarded(path) as page:
        assert await page.status(user="one:word") == 200
        replace(path, f"basic_auth_users: {{two: {hashed('word')}}}\n")
        await until(answers(page, 200, user="two:word"))
        assert await page.status(user="one:word") == 401, "who was known before is not any more"
        for broken, words in (
            (
                "basic_auth_users: {two: plain}\n",
                "the password of `two` in `basic_auth_users` is no bcrypt hash",
            ),
            ("basic_auth_users:\n", "it guards nothing"),
            ("", "it guards nothing"),
            ("tls_server_config: {cert_file: a, key_file: b}\n", "/a` cannot be read"),
        ):
            replace(path, broken)
            await until(logged(caplog, words))
            assert (await page.status(), await page.status(user="two:word")) == (401, 200)
        path.unlink()
        await until(logged(caplog, "web.yaml` cannot be read"))
        assert (await page.status(), await page.status(user="two:word")) == (401, 200)
        replace(path, f"basic_auth_users: {{three: {hashed('word')}}}\n")
        await until(answers(page, 200, user="three:word"))
    assert [
        caplog.text.count(words)
        for words in ("is no bcrypt hash", "it guards nothing", "web.yaml` cannot be read")
    ] == [1, 1, 1], "each once"


async def test_certificate_and_clients_change_while_it_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    theirs = {
        name: authority.issue(f"client-{name}", names=[f"{name}.example"])
        for name, authority in (("old", old), ("new", new))
    }
    servers = [each.issue("server", names=["127.0.0.1"]) for each in (old,)]
    path = tmp_path / "web.yaml"
    own = f"cert_file: server.pem, key_file: {servers[0].key}"

    def write(more: str) -> None:
        path.write_text(f"tls_server_config: {{{own}, {more}}}\n")

    write("min_version: TLS13")
    async with guarded(path) as page:
        assert await page.status(tls=client(old)) == 200
        assert await page.status() == 0, "no request is answered without TLS"
        before = client(old)
        before.maximum_version = ssl.TLSVersion.TLSv1_2
        assert await page.status(tls=before) == 0
        write("client_auth_type: RequireAndVerifyClientCert, client_ca_file: old.pem")
        await until(answers(page, 0, tls=client(old)))
        assert await page.status(tls=client(old, theirs["old"])) == 200
        assert await page.status(tls=client(old, theirs["new"])) == 0
        before.load_cert_chain(theirs["old"].certificate, theirs["old"].key)
        assert await page.status(tls=before) == 200, "1.2 is spoken again"
        write("client_auth_type: RequireAndVerifyClientCert, client_ca_file: new.pem")
        await until(answers(page, 200, tls=client(old, theirs["new"])))
        assert await page.status(tls=client(old, theirs["old"])) == 0, (
            "the old authority is trusted no more"
        )
        path.write_text(f"basic_auth_users: {{one: {hashed('word')}}}\n")
        await until(logged(caplog, "has no TLS any more"))
        assert await page.status(user="one:word") == 0
        write("client_auth_type: RequireAndVerifyClientCert, client_ca_file: new.pem")
        servers[0].key.write_text("no key")
        await until(logged(caplog, "are no certificate and its key"))
        assert await page.status(tls=client(old, theirs["new"])) == 200, (
            "half of a renewal changes nothing"
        )
        again = new.issue("server", names=["127.0.0.1"])
        assert again == servers[0]
        await until(answers(page, 200, tls=client(new, theirs["new"])))
        write(
            "client_auth_type: RequireAndVerifyClientCert, client_ca_file: new.pem, "
            "client_allowed_sans: [other.example]"
        )
        await until(answers(page, 0, tls=client(new, theirs["new"])))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            "client_auth_type: NoClientCert",
            (
                "asks less of clients: `client_auth_type` was `RequireAndVerifyClientCert` and is "
                "`NoClientCert`"
            ),
        ),
        (
            "client_auth_type: VerifyClientCertIfGiven, client_ca_file: ca.pem",
            "asks less of clients",
        ),
        (
            "client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem",
            "has no `client_allowed_sans` any more",
        ),
        (
            (
                "client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem, "
                "client_allowed_sans: ['2001:db8:0::1', b, more]"
            ),
            "lets in more clients: `more` was not in `client_allowed_sans`",
        ),
    ],
)
async def test_a_file_that_asks_less_of_clients_opens_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, more: str, why: str
) -> None:
    authority = Authority(tmp_path, "ca")
    own, theirs = (
        authority.issue("server", names=["127.0.0.1"]),
        authority.issue("client", names=["2001:db8::1"]),
    )
    path = tmp_path / "web.yaml"
    asked = (
        "client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem, "
        "client_allowed_sans: ['2001:db8::1', b]"
    )
    path.write_text(f"tls_server_config: {{cert_file: server.pem, key_file: {own.key}, {asked}}}\n")
    async with guarded(path) as page:
        assert await page.status(tls=client(authority, theirs)) == 200, (
            "an address is the same, however it is written"
        )
        path.write_text(
            f"tls_server_config: {{cert_file: server.pem, key_file: {own.key}, {more}}}\n"
        )
        await until(logged(caplog, why))
        assert await page.status(tls=client(authority)) == 0
        assert await page.status(tls=client(authority, theirs)) == 200


@pytest.mark.parametrize("key", ["cert_file", "key_file", "client_ca_file"])
async def test_a_pipe_in_place_of_a_certificate_delays_no_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    authority = Authority(tmp_path, "ca")
    authority.issue("server", names=["127.0.0.1"])
    os.mkfifo(tmp_path / "pipe")
    keys = {
        "cert_file": "server.pem",
        "key_file": "server.key",
        "client_ca_file": "ca.pem",
        "client_auth_type": "VerifyClientCertIfGiven",
    }
    path, broken = tmp_path / "web.yaml", tmp_path / "broken.yaml"
    path.write_text(yaml.safe_dump({"tls_server_config": keys}))
    broken.write_text(yaml.safe_dump({"tls_server_config": keys | {key: "pipe"}}))
    with pytest.raises(UserError) as caught:
        WebGuard(broken)
    assert caught.value.what == f"`{key}` `{tmp_path}/pipe` is no regular file"
    async with guarded(path) as page:
        broken.replace(path)
        await until(logged(caplog, "the web configuration stays as it was"))
        assert await page.status(tls=client(authority)) == 200


@pytest.mark.parametrize(
    "bad",
    [
        {"client_ca": "é"},
        {"client_ca_file": "a\0b"},
        {"cert_file": "a\0b"},
        {"cert": "é", "cert_file": ""},
    ],
)
async def test_text_that_no_certificate_can_be_ends_the_start_and_later_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, bad: dict[str, str]
) -> None:
    authority = Authority(tmp_path, "ca")
    authority.issue("server", names=["127.0.0.1"])
    keys = {"cert_file": "server.pem", "key_file": "server.key"}
    path, broken = tmp_path / "web.yaml", tmp_path / "broken.yaml"
    path.write_text(yaml.safe_dump({"tls_server_config": keys}))
    broken.write_text(
        yaml.safe_dump(
            {
                "tls_server_config": keys
                | {"client_auth_type": "RequireAndVerifyClientCert", "client_ca_file": "ca.pem"}
                | bad
            }
        )
    )
    if "client_ca" in bad:
        broken.write_text(broken.read_text().replace("  client_ca_file: ca.pem\n", ""))
    with pytest.raises(UserError):
        WebGuard(broken)
    async with guarded(path) as page:
        broken.replace(path)
        await until(logged(caplog, "the web configuration stays as it was"))
        assert await page.status(tls=client(authority)) == 200


async def test_suites_of_tls_13_alone_leave_none_of_tls_12(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    authority.issue("server", names=["127.0.0.1"])
    path = tmp_path / "web.yaml"
    path.write_text(
        "tls_server_config: {cert_file: server.pem, key_file: server.key, client_auth_type: "
        "'', cipher_suites: [TLS_AES_128_GCM_SHA256]}\n"
    )
    before = client(authority)
    before.maximum_version = ssl.TLSVersion.TLSv1_2
    async with guarded(path) as page:
        assert await page.status(tls=client(authority)) == 200
        assert await page.status(tls=before) == 0


async def test_what_a_client_calls_the_host_opens_no_page(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(f"basic_auth_users: {{one: {hashed('word')}}}\n")
    async with guarded(path) as page:
        for trick in ("/health%0Az", "/healthz%23", "/%68ealthz/../metrics"):
            assert await page.status(path=trick) == 401, trick


async def test_a_file_that_takes_all_passwords_away_opens_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path, "ca")
    authority.issue("server", names=["127.0.0.1"])
    path, tls = (
        tmp_path / "web.yaml",
        "tls_server_config: {cert_file: server.pem, key_file: server.key}\n",
    )
    path.write_text(f"{tls}basic_auth_users: {{one: {hashed('word')}}}\n")
    async with guarded(path) as page:
        path.write_text(tls)
        await until(logged(caplog, "has no users any more"))
        assert await page.status(tls=client(authority)) == 401
        monkeypatch.setattr(passwords, "is_right_password", lambda password, hashed: True)
        assert await page.status(tls=client(authority), user="nobody:word") == 401, (
            "whatever bcrypt returns for an absent name"
        )
        assert await page.status(tls=client(authority), user="one:any") == 200


async def test_inline_certificates_suites_headers_and_a_limit(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    own = authority.issue("server", names=["127.0.0.1"])
    block = "".join(
        f"  {name}: |\n" + "".join(f"    {line}\n" for line in file.read_text().splitlines())
        for name, file in (
            ("cert", own.certificate),
            ("key", own.key),
            ("client_ca", authority.certificate),
        )
    )
    path = tmp_path / "web.yaml"
    path.write_text(
        f"tls_server_config:\n{block}  client_auth_type: VerifyClientCertIfGiven\n  "
        "max_version: TLS12\n  curve_preferences: [CurveP256]\n"
        "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n"
        "http_server_config: {http2: false, headers: {X-Frame-Options: deny}}\nrate_limit: "
        "{interval: 1h, burst: 2}\n"
    )
    async with guarded(path) as page:
        tls = client(authority)
        answer = await page.ask(tls=tls)
        assert answer.startswith(b"HTTP/1.1 200") and b"\r\nx-frame-options: deny\r\n" in answer
        assert await page.status(tls=client(authority, authority.issue("somebody"))) == 200
        assert [await page.status(tls=tls), await page.status(tls=tls, path="/healthz")] == [
            429,
            200,
        ]
        tls.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
        assert await page.status(tls=tls, path="/healthz") == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it guards nothing: neither `tls_server_config` nor `basic_auth_users` has a value"),
        (
            "basic_auth_users: {}\ntls_server_config: {}\nhttp_server_config: {http2: true}",
            "it guards nothing: neither `tls_server_config` nor `basic_auth_users` has a value",
        ),
        (
            "tls_server_config: {cert_fil: a, key_file: b}",
            "Object contains unknown field `cert_fil` - at `$.tls_server_config`",
        ),
        ("tls_config: {}", "Object contains unknown field `tls_config`"),
        (
            "tls_server_config: {key_file: b}",
            "`tls_server_config` has neither of `cert_file` and `cert`: it needs one of them",
        ),
        (
            "tls_server_config: {cert_file: a, cert: b, key_file: b}",
            "`tls_server_config` has both of `cert_file` and `cert`: it needs one of them",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, client_auth_type: Require}",
            (
                "`client_auth_type` is `Require`, none of NoClientCert, "
                "RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven, "
                "RequireAndVerifyClientCert"
            ),
        ),
        (
            (
                "tls_server_config: {cert_file: a, key_file: b, client_auth_type: "
                "RequireAnyClientCert}"
            ),
            (
                "`client_auth_type: RequireAnyClientCert` accepts a certificate of any "
                "issuer: write `RequireAndVerifyClientCert`"
            ),
        ),
        (
            (
                "tls_server_config: {cert_file: a, key_file: b, client_auth_type: "
                "RequireAndVerifyClientCert}"
            ),
            "`client_auth_type: RequireAndVerifyClientCert` needs `client_ca_file`",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}",
            (
                "`client_ca_file` is set and `client_auth_type` is `NoClientCert`: write "
                "`RequireAndVerifyClientCert`"
            ),
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, client_allowed_sans: [c]}",
            "`client_allowed_sans` needs `client_auth_type: RequireAndVerifyClientCert`",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, min_version: '1.2'}",
            "`min_version` is `1.2`, none of TLS10, TLS11, TLS12, TLS13",
        ),
        (
            (
                "tls_server_config: {cert_file: a, key_file: b, min_version: TLS13, max_version: "
                "TLS12}"
            ),
            "`min_version` TLS13 is above `max_version` TLS12",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, max_version: TLS11}",
            "`max_version: TLS11` leaves nothing: TLS before 1.2 is not supported",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, cipher_suites: [RC4]}",
            (
                "`cipher_suites` has `RC4`, which is none of TLS_AES_128_GCM_SHA256, "
                "TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256, "
                "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "
                "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "
                "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "
                "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "
                "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, "
                "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, "
                "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"
            ),
        ),
        (
            (
                "tls_server_config: {cert_file: a, key_file: b, max_version: TLS12, "
                "cipher_suites: [TLS_AES_128_GCM_SHA256]}"
            ),
            (
                "`cipher_suites` names none of TLS 1.2, and `max_version` is TLS12: no "
                "client could connect"
            ),
        ),
        (
            (
                "tls_server_config: {cert_file: a, key_file: b, curve_preferences: [X25519, "
                "CurveP256]}"
            ),
            (
                "`curve_preferences` names several curves: name one, or none to allow "
                "all usual curves"
            ),
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, prefer_server_cipher_suites: maybe}",
            "Expected `bool`, got `str` - at `$.tls_server_config.prefer_server_cipher_suites`",
        ),
        (
            "basic_auth_users: {a: word}",
            (
                "the password of `a` in `basic_auth_users` is no bcrypt hash (`htpasswd "
                "-nBC 10 a` makes one)"
            ),
        ),
        ("basic_auth_users: {a: 5}", "Expected `str`, got `int` - at `$.basic_auth_users[...]`"),
        (
            "basic_auth_users: [a]",
            "Expected `object | null`, got `array` - at `$.basic_auth_users`",
        ),
        (
            f"basic_auth_users: {{'a:b': {BY_HTPASSWD}}}",
            "`basic_auth_users` has the name `a:b`: it must not be empty, nor contain a colon",
        ),
        (
            f"basic_auth_users: {{a: {BY_HTPASSWD.replace('$10$', '$31$')}}}",
            "the bcrypt hash of `a` has cost 31: give 4 to 18, such as 10",
        ),
        (
            f"basic_auth_users: {{a: {BY_HTPASSWD.replace('$2y$', '$2$')}}}",
            (
                "the password of `a` in `basic_auth_users` is no bcrypt hash (`htpasswd "
                "-nBC 10 a` makes one)"
            ),
        ),
        (
            f"basic_auth_users: {{a: {BY_HTPASSWD[:28]}z{BY_HTPASSWD[29:]}}}",
            "the password of `a` is a hash that bcrypt does not read",
        ),
        (
            f"basic_auth_users: {{a: {BY_HTPASSWD}, a: {BY_HTPASSWD}}}",
            "it is no YAML of this kind: key `a` occurs twice (line 1)",
        ),
        (
            f"basic_auth_users: {{a: {BY_HTPASSWD}}}\nrate_limit: {{interval: fast}}",
            (
                "`rate_limit.interval`: `fast` is not a length of time such as `10s`, "
                "`500ms`, `1m30s`"
            ),
        ),
        (
            f"basic_auth_users: {{a: {BY_HTPASSWD}}}\nrate_limit: {{interval: 1s}}",
            "`rate_limit.burst` is 0: no request would be served",
        ),
        (
            (
                f"basic_auth_users: {{a: {BY_HTPASSWD}}}\nhttp_server_config: {{headers: {{Server: "
                f"x}}}}"
            ),
            (
                "`http_server_config.headers` has `Server`, which is none of "
                "Content-Security-Policy, X-Frame-Options, X-Content-Type-Options, "
                "X-XSS-Protection, Strict-Transport-Security"
            ),
        ),
        (
            (
                "basic_auth_users: {a: b}\nhttp_server_config: {headers: {X-Frame-Options: "
                '"a\\r\\nb: '
                'c"}}'
            ),
            (
                "the password of `a` in `basic_auth_users` is no bcrypt hash (`htpasswd "
                "-nBC 10 a` makes one)"
            ),
        ),
        (
            "basic_auth_users: {a: [",
            "it is no YAML of this kind: did not find expected node content (line 2)",
        ),
        (
            "a: &a [*a]",
            "it is no YAML of this kind: alias `a` stands inside what it repeats (line 1)",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b}",
            "`cert_file` `FOLDER/a` cannot be read: no such file or directory",
        ),
    ],
)
def test_what_cannot_guard_a_page_ends_the_start(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        WebGuard(path)
    assert caught.value.what.removeprefix(f"web configuration `{path}`: ") == why.replace(
        "FOLDER", str(tmp_path)
    )


def test_what_is_no_file_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        WebGuard(tmp_path / "web.yaml")
    assert (
        caught.value.what
        == f"web configuration `{tmp_path}/web.yaml` cannot be read: no such file or directory"
    )
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError) as caught:
        WebGuard(tmp_path / "pipe")
    assert caught.value.what == f"web configuration `{tmp_path}/pipe` is no regular file"
    (tmp_path / "large").write_bytes(b"#" * (2 << 20))
    with pytest.raises(UserError, match=r"large`.*1 MiB"):
        WebGuard(tmp_path / "large")
