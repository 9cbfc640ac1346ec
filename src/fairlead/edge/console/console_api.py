"""Asks the API of a console, with the token of the kubeconfig; blocking, for commands.

A token is never sent unencrypted to another machine.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec

from fairlead.console.pages.endpoints import BASE
from fairlead.console.pages.envelope import ErrorAnswer
from fairlead.edge.connection.connection import trust
from fairlead.edge.connection.connection_failure import explain_connection
from fairlead.edge.connection.http_blocking import open_connection, request_target
from fairlead.edge.connection.pem import read_pem
from fairlead.edge.connection.proxy import is_loopback, proxy_for
from fairlead.errors import OutsideError, UserError
from fairlead.wire.text.printable_address import printable_address

READ_SECONDS: Final = 60.0
"""A report of a large cluster takes seconds."""
_HINT: Final = "write it as https://console.example, with its base path if it has one"
_FROM_HERE: Final = "--console"


class ConsoleApi:
    """`url`: of the console, with its base path. `authorization`: the header of the kubeconfig's
    user, "" = there is none. `ca_file`: PEM of the authority of its certificate, "" = those of this
    machine. Raises UserError for a malformed address.
    """

    def __init__(
        self,
        url: str,
        authorization: Callable[[], str] = str,
        *,
        ca_file: str = "",
        env: Mapping[str, str],
    ) -> None:
        self.url = _checked(url)
        self._authorization = authorization
        self._ca_file = ca_file
        self._proxy = proxy_for(self.url, None, env)

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        """The body of `GET /api/v1{path}`. Raises UserError for 4xx, OutsideError for 5xx and for
        what is no answer of a console.
        """
        words = {name: value for name, value in query.items() if value}
        return self._ask("GET", f"{path}?{urlencode(words)}" if words else path, None)

    def post(self, path: str, body: bytes) -> bytes:
        return self._ask("POST", path, body)

    def delete(self, path: str) -> bytes:
        return self._ask("DELETE", path, None)

    def _ask(self, method: str, path: str, body: bytes | None) -> bytes:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if authorization := self._authorization():
            self._check_is_private()
            headers["Authorization"] = authorization
        line = open_connection(
            self.url, context=self._tls(), proxy=self._proxy, read_seconds=READ_SECONDS
        )
        try:
            line.request(method, request_target(self.url, BASE + path, self._proxy), body, headers)
            answer = line.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            shown = printable_address(self.url)
            what, hint = explain_connection(
                f"the console `{shown}`",
                f"in {_FROM_HERE}",
                self.url,
                error,
                authority="--console-ca-file",
                proxy=self._proxy,
            )
            raise OutsideError("console", what, hint) from error
        finally:
            line.close()
        if answer.status < 300:
            return data
        raise self._refusal(answer.status, data)

    def _refusal(self, status: int, data: bytes) -> UserError | OutsideError:
        try:
            refused = msgspec.json.decode(data, type=ErrorAnswer)
        except msgspec.DecodeError:
            shown = printable_address(self.url)
            what = f"`{shown}` does not answer as a console does (status {status})"
            return OutsideError("console", what, f"check the address; {_HINT}")
        faults = "; ".join(each.error for each in refused.fields)
        hint = refused.hint
        if refused.code == "signed-out":
            hint = f"{hint}; the kubeconfig has no token that this console accepts"
        if status < 500:
            return UserError(faults or refused.error, hint)
        return OutsideError("console", refused.error, hint)

    def _check_is_private(self) -> None:
        if self.url.startswith("http://") and not is_loopback(self.url):
            raise UserError(
                f"the console `{printable_address(self.url)}` is asked without TLS, so that the "
                "token of the kubeconfig could be read on the way",
                "name its https address, or forward its port to this machine",
            )

    def _tls(self) -> ssl.SSLContext | None:
        if not self.url.startswith("https://"):
            return None
        context = ssl.create_default_context()
        pem = read_pem("--console-ca-file", None, self._ca_file or None)
        if pem is not None:
            trust(context, pem, f"`{self._ca_file}`", "name a PEM file with certificates")
        return context


def _checked(url: str) -> str:
    """Raises UserError for what is no address of a page."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or parts.query or parts.fragment or parts.username is not None:
        raise UserError(f"`{printable_address(url)}` is no address of a console", _HINT)
    return url.rstrip("/")
