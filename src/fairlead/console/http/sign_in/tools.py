"""What signing in takes: keys, store, code and provider; cookies; the count of failures."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct
from starlette.responses import Response

from fairlead.console.http.answers import Refused
from fairlead.console.http.proxies import Peer, Proxies
from fairlead.model.records.rows import StoreFacts
from fairlead.ports import (
    IssuedRecords,
    OidcProvider,
    OperationHistory,
    SignInApi,
    SignIns,
    TreeVersions,
    UsageLedger,
)
from fairlead.rules.people.sign_in import (
    CODE_SECONDS,
    TRIES_MAX,
    Tries,
)

COOKIE: Final = "fairlead-sign-in"
STATE_COOKIE: Final = "fairlead-oidc"
BEGIN_AGAIN: Final = "sign in again"


class Cookie(Struct, frozen=True):
    """A cookie to set. `value`: "" removes it."""

    name: str
    value: str
    seconds: int
    is_secure: bool


def set_cookie(answer: Response, path: str, cookie: Cookie) -> None:
    """`path`: the console's base path; the cookie goes to no other."""
    answer.set_cookie(
        cookie.name,
        cookie.value,
        max_age=cookie.seconds,
        path=path,
        secure=cookie.is_secure,
        httponly=True,
        samesite="lax",
    )


class Actor(Struct, frozen=True):
    """The actor of a row of the audit; "" = not known."""

    name: str = ""
    role: str = ""


class OneTimeCode:
    """A code that signs in once. `seconds`: how long it works. `monotonic`: a clock that nothing
    sets.

    A client with a code that was used or is too old gets no other one; but then there is a new
    `text`, and `announce` is called with it, to show it to the user who started the console.
    """

    def __init__(
        self, seconds: float = CODE_SECONDS, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.announce: Callable[[str], object] = lambda text: None
        self._seconds = seconds
        self._monotonic = monotonic
        self._old: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        self.text = secrets.token_urlsafe(24)
        self._is_used = False
        self._ends_at = self._monotonic() + self._seconds

    @property
    def _is_over(self) -> bool:
        return self._is_used or self._monotonic() >= self._ends_at

    def spend(self, given: str) -> bool:
        """Whether it is the code, for the first time, in time."""
        is_right = secrets.compare_digest(given.encode(), self.text.encode())
        if is_right and not self._is_over:
            self._is_used = True
            return True
        if (is_right or given in self._old) and self._is_over:
            self._old.add(self.text)
            self._begin()
            self.announce(self.text)
        return False


class SignInTools(Struct, frozen=True, kw_only=True):
    """What signing in takes.

    `keys`: that sign cookies, the first one new ones. `code`: for a console that only this machine
    can reach. `external_url`: where browsers find the console, "" = by the host that they name.
    `records`: None = nothing is noted. `versions`: of the quota tree, None = they are not kept.
    `history`: of operations, None = it is not kept. `store_facts`: asks the store what it is, None
    = it cannot be asked. `ledger`: of usage, None = the store has none. `cluster_now`: the time by
    which tokens expire, None = `now`.
    """

    api: SignInApi
    store: SignIns
    records: IssuedRecords | None = None
    versions: TreeVersions | None = None
    history: OperationHistory | None = None
    store_facts: Callable[[], Awaitable[StoreFacts]] | None = None
    ledger: UsageLedger | None = None
    keys: tuple[bytes, ...]
    code: OneTimeCode | None = None
    provider: OidcProvider | None = None
    issuer: str = ""
    proxies: Proxies = Proxies()
    external_url: str = ""
    is_simulated: bool = False
    base_path: str = "/"
    now: Callable[[], float] = time.time
    cluster_now: Callable[[], float] | None = None
    monotonic: Callable[[], float] = time.monotonic


class TryCount:
    """The failures of each address, so that no client guesses tokens."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._tries = Tries()
        self._monotonic = monotonic

    def begin(self, peer: Peer) -> None:
        """Counts as a failure until it has succeeded: a client may send many at once."""
        self.check(peer)
        self.failed(peer)

    def check(self, peer: Peer) -> None:
        """Raises Refused, 429, after too many failures."""
        wait = self._tries.wait(peer.address, self._monotonic())
        if wait:
            raise Refused(
                429,
                f"signing in failed {TRIES_MAX} times within a minute from `{peer.address}`",
                f"try again in {wait:.0f} s",
                {"Retry-After": str(round(wait))},
            )

    def failed(self, peer: Peer) -> None:
        self._tries.failed(peer.address, self._monotonic())

    def succeeded(self, peer: Peer) -> None:
        self._tries.succeeded(peer.address)


def signed_out(what: str = "you are not signed in", hint: str = BEGIN_AGAIN) -> Refused:
    """401: the page leads to signing in."""
    return Refused(401, what, hint)
