"""A real OpenID Connect provider (github.com/zitadel/oidc, its example server), and a browser that
fills its login form.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, NamedTuple

from tests.kube.component import Component
from tests.kube.programs import program
from tests.kube.servers import environment

CLIENT, SECRET = "web", "secret"
USER, PASSWORD, UID = "test-user@localhost", "verysecure", "id1"


class Provider(NamedTuple):
    issuer: str
    component: Component
    port: int


@contextmanager
def provider(redirect: str, log: Path, port: int) -> Iterator[Provider]:
    """The provider, which sends browsers back to `redirect`."""
    variables = {"PORT": str(port), "REDIRECT_URI": redirect}
    component = Component(
        "the OpenID Connect provider", [program("oidc-provider")], log, environment() | variables
    )
    made = Provider(f"http://localhost:{port}/", component, port)
    try:
        component.start()
        component.wait_until(lambda: _answers(made), 60)
        yield made
    finally:
        component.stop()


def _answers(made: Provider) -> bool:
    try:
        urllib.request.urlopen(f"{made.issuer}.well-known/openid-configuration", timeout=2).close()
    except OSError:
        return False
    return True


class Answered(NamedTuple):
    status: int
    body: bytes
    location: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class PlainBrowser:
    """A client with cookies that follows no redirect by itself."""

    def __init__(self) -> None:
        self.cookies = CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self.cookies), _NoRedirect()
        )

    def send(
        self, url: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> Answered:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        asked = urllib.request.Request(url, body, named, method=method)
        try:
            with self._opener.open(asked, timeout=30) as found:
                return Answered(found.status, found.read(), found.headers.get("Location", ""))
        except urllib.error.HTTPError as error:
            return Answered(error.code, error.read(), error.headers.get("Location", ""))

    def opened(self, url: str) -> Any:
        """An answer while it is being sent."""
        return self._opener.open(url, timeout=120)

    def post(self, url: str, body: Any, **headers: str) -> Answered:
        data = json.dumps(body).encode()
        return self.send(url, "POST", data, Content_Type="application/json", **headers)

    def log_in(self, authorize: str) -> str:
        """From the provider's address to the one to which it sends the browser back."""
        found = self.send(authorize)
        form_address = urllib.parse.urljoin(authorize, found.location)
        form = self.send(form_address).body.decode()
        hidden = re.search(r'name="id" value="([^"]+)"', form)
        assert hidden is not None, form
        filled = {"username": USER, "password": PASSWORD, "id": hidden[1]}
        answer = self.send(
            urllib.parse.urljoin(form_address, "/login/username"),
            "POST",
            urllib.parse.urlencode(filled).encode(),
            Content_Type="application/x-www-form-urlencoded",
        )
        assert answer.status == 302, answer.body
        return self.send(urllib.parse.urljoin(form_address, answer.location)).location


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None
